"""Operations on memory: allocation, fills, and copies both ways."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tilecheck.host.defaults import default
from tilecheck.host.errors import HostRefused
from tilecheck.host.memory.arrays import LETTERS, dtype_of, locate, size_of
from tilecheck.host.memory.handles import Array, View
from tilecheck.host.memory.host_arrays import HostArray, pack
from tilecheck.host.memory.regions import Region, count_runs, runs
from tilecheck.host.memory.uses import Use, new_use
from tilecheck.host.operations.operations import Execution, Operation
from tilecheck.host.places import Place, caller, text_of
from tilecheck.host.streams.clocks import Item
from tilecheck.ir.host_program import Place as Kind
from tilecheck.jit.layouts import contiguous_strides

if TYPE_CHECKING:
    from tilecheck.host.runtime import Runtime

T = TypeVar("T")

Shape = int | Sequence[int]
_MOST_RUNS = 1024  # pieces of a copy or fill of an array with gaps
_LONGEST_PATTERN = 4  # bytes that a device fills with


class Leaf(Operation[T]):
    """An operation that is enqueued as a whole. It holds arrays until it is enqueued, refused or dropped."""

    __slots__ = ("lent", "moved", "name")

    def __init__(self, runtime: Runtime, name: str, place: Place) -> None:
        super().__init__(runtime, place)
        self.name = name
        self.moved: list[View] = []
        self.lent: list[View] = []

    def __del__(self) -> None:
        try:
            is_holding = self.is_holding
        except AttributeError:  # it was refused before it held anything
            return
        if is_holding:
            self._release()

    def takes(self, view: View) -> None:
        """Move in an array that the operation writes."""
        view.move(self.name, self.place)
        self.moved.append(view)

    def borrows(self, view: View) -> None:
        """Borrow an array that the operation reads."""
        view.lend(self.name, self.place)
        self.lent.append(view)

    def _release(self) -> None:
        if not self.is_holding:
            return
        self.is_holding = False
        for view in self.moved:
            view.moved = None
        for view in self.lent:
            view.loans -= 1

    def _take_again(self) -> None:
        moved, lent = self.moved, self.lent
        self.moved, self.lent, self.is_holding = [], [], True
        try:
            for view in moved:
                self.takes(view)
            for view in lent:
                self.borrows(view)
        except HostRefused:
            self._release()
            self.moved, self.lent = moved, lent
            raise


class Empty(Leaf[Array]):
    """An allocation, perhaps with something in it."""

    __slots__ = ("_data", "_dtype", "_pattern", "_shape")

    def __init__(
        self,
        runtime: Runtime,
        name: str,
        shape: Shape,
        dtype: str,
        place: Place,
        *,
        pattern: bytes = b"",
        data: Any = None,
    ) -> None:
        super().__init__(runtime, name, place)
        self._shape = shape_of(shape)
        self._dtype = dtype
        self._pattern = pattern  # repeated
        self._data = data  # copied from the host
        size_of(dtype)  # refuses a type that is not known

    def _run(self, on: Execution) -> Array:
        array = _allocated(self.runtime, self._shape, self._dtype, on, self.place)
        if self._pattern or self._data is not None:
            item = Item(on.queue, self.name, self.place)
            on.claim(item, (Use(array, array.region, True, "array"),), "fill")
            if self._pattern:
                self.runtime.driver.fill(on.queue.raw, array.region.start, array.nbytes, self._pattern)
            else:
                _copy_bytes(on, item, array.region, self._data)
        return array


class Fill(Leaf[Array]):
    """A value in every element of an array."""

    __slots__ = ("_array", "_pattern")

    def __init__(self, array: Array, pattern: bytes, place: Place) -> None:
        super().__init__(array.runtime, "`fill`", place)
        self._array = array
        self._pattern = pattern
        _check_pieces(self.name, array.region, place)
        self.takes(array)

    def _run(self, on: Execution) -> Array:
        region = self._array.region
        on.claim(Item(on.queue, self.name, self.place), (Use(self._array, region, True, "array"),), "fill")
        driver = self.runtime.driver
        for first, last in runs(region):
            driver.fill(on.queue.raw, first, last - first, self._pattern)
        self._release()
        return self._array


class Copy(Leaf[T]):
    """A copy between two arrays of one shape and element type, on the device or in page-locked memory.

    Without a destination it allocates one on the device.
    """

    __slots__ = ("_source", "_to")

    def __init__(self, name: str, to: View | None, source: View, place: Place) -> None:
        super().__init__(source.runtime, name, place)
        self._to = to
        self._source = source
        if not source.region.is_dense:
            _check_pieces(name, source.region, place)
        if to is not None:
            if not to.region.is_dense:
                _check_pieces(name, to.region, place)
            _check_alike(name, to, source)
            self.takes(to)
        self.borrows(source)

    def _run(self, on: Execution) -> T:
        source = self._source
        to = self._to
        if to is None:
            to = _allocated(self.runtime, source.shape, source.dtype, on, self.place)
        uses = (new_use(to, to.region, True, "to"), new_use(source, source.region, False, "source"))
        on.claim(Item(on.queue, self.name, self.place), uses, "copy")
        for at, start, size in _pieces(to.region, source.region):
            self.runtime.driver.copy(on.queue.raw, at, start, size)
        self._release()
        found: Any = to
        result: T = found
        return result


class Upload(Leaf[Array]):
    """A copy from pageable memory: the driver has read it when the call returns, so it is watched no longer."""

    __slots__ = ("_data", "_to")

    def __init__(self, to: Array, data: Any, place: Place) -> None:
        super().__init__(to.runtime, "`copy_to_device`", place)
        self._to = to
        self._data = data
        self.takes(to)

    def _run(self, on: Execution) -> Array:
        if on.queue.capture is not None:
            on.queue.capture.forbid("a copy from pageable memory", self.place)
        item = Item(on.queue, self.name, self.place)
        on.claim(item, (Use(self._to, self._to.region, True, "to"),), "copy")
        _copy_bytes(on, item, self._to.region, self._data)
        self._release()
        return self._to


def _allocated(runtime: Runtime, shape: tuple[int, ...], dtype: str, on: Execution, place: Place) -> Array:
    if on.queue.capture is not None:
        on.queue.capture.forbid("an allocation", place)
    return runtime.allocate(shape, dtype, on.queue, place)


def _copy_bytes(on: Execution, item: Item, to: Region, data: Any) -> None:
    """Copy pageable memory, and keep it until the copy has ended: some systems read it late."""
    kept = bytearray(data) if isinstance(data, bytes) else data
    start, _, _, _ = locate(kept)
    on.runtime.reaper.keep(item, kept)
    if to.end > to.start:
        on.runtime.driver.copy(on.queue.raw, to.start, start, to.end - to.start)


def _pieces(to: Region, source: Region) -> list[tuple[int, int, int]]:
    """A copy as copies of bytes: where to, where from, how many. Elements have one order in both."""
    if to.is_dense and source.is_dense:
        return [(to.start, source.start, to.end - to.start)] if to.end > to.start else []
    found = []
    others = sorted(runs(source))
    number = done = 0
    for first, last in sorted(runs(to)):
        at = first
        while at < last:
            start, end = others[number]
            size = min(last - at, end - start - done)
            found.append((at, start + done, size))
            at += size
            done += size
            if start + done == end:
                number, done = number + 1, 0
    return found


def _check_alike(name: str, to: View, source: View) -> None:
    if to.dtype == source.dtype and to.region.layout == source.region.layout:
        return
    if (to.shape, to.dtype) != (source.shape, source.dtype):
        raise ValueError(f"{name} of {source.dtype}{list(source.shape)} to {to.dtype}{list(to.shape)}")
    if _axis_order(to.region) != _axis_order(source.region):
        raise ValueError(f"{name} between arrays whose axes lie in memory in another order: use `call`")


def _axis_order(region: Region) -> list[int]:
    layout = region.layout
    axes = [k for k, extent in enumerate(layout.shape) if extent > 1]
    return sorted(axes, key=lambda k: layout.strides[k])


def _check_pieces(name: str, region: Region, place: Place) -> None:
    if region.is_dense:
        return
    layout = region.layout
    if any(n > 1 and not s for n, s in zip(layout.shape, layout.strides, strict=True)):
        raise ValueError(f"{name} at {text_of(place)} of an array that repeats its elements")
    if count_runs(region) > _MOST_RUNS:
        raise ValueError(f"{name} at {text_of(place)} of an array in {count_runs(region)} pieces: use `call`")


def shape_of(shape: Shape) -> tuple[int, ...]:
    found = (shape,) if isinstance(shape, int) else tuple(map(operator.index, shape))
    if min((0, *found)) < 0:
        raise ValueError(f"the shape {found} has a negative extent")
    return found


def pattern_of(value: float, dtype: str) -> tuple[bytes, bool]:
    """The bytes of a value as the shortest pattern that repeats, and whether a device can fill with it."""
    pattern = struct.pack(f"<{LETTERS[dtype]}", value)
    while len(pattern) > 1 and pattern[: len(pattern) // 2] == pattern[len(pattern) // 2 :]:
        pattern = pattern[: len(pattern) // 2]
    return pattern, len(pattern) <= _LONGEST_PATTERN


# ---- the public functions ------------------------------------------------------------------------------------


def empty(shape: Shape, dtype: str = "float32", *, runtime: Runtime | None = None) -> Operation[Array]:
    """A new array with anything in it."""
    return Empty(runtime or default(), "`empty`", shape, dtype, caller())


def zeros(shape: Shape, dtype: str = "float32", *, runtime: Runtime | None = None) -> Operation[Array]:
    """A new array of zeros."""
    return Empty(runtime or default(), "`zeros`", shape, dtype, caller(), pattern=b"\0")


def full(
    shape: Shape, value: float, dtype: str = "float32", *, runtime: Runtime | None = None
) -> Operation[Array]:
    """A new array with one value in every element."""
    size_of(dtype)
    pattern, fits = pattern_of(value, dtype)
    if fits:
        return Empty(runtime or default(), "`full`", shape, dtype, caller(), pattern=pattern)
    data = pattern * math.prod(shape_of(shape))
    return Empty(runtime or default(), "`full`", shape, dtype, caller(), data=data)


def arange(
    start: int, stop: int | None = None, step: int = 1, *, dtype: str = "int64", runtime: Runtime | None = None
) -> Operation[Array]:
    """A new array of the numbers of a range."""
    values = range(start) if stop is None else range(start, stop, step)
    size_of(dtype)
    data = pack(values, dtype)
    return Empty(runtime or default(), "`arange`", len(values), dtype, caller(), data=data)


def fill(array: Array, value: float) -> Operation[Array]:
    """A value in every element of an array."""
    pattern, fits = pattern_of(value, array.dtype)
    if not fits:
        raise ValueError(f"a device cannot fill memory with the 8 bytes of {value!r}: use `copy_to_device`")
    return Fill(array, pattern, caller())


def copy(to: Array, source: View) -> Operation[Array]:
    """A copy of one array to another on the device."""
    return Copy("`copy`", to, source, caller())


def copy_to_device(
    source: Any, to: Array | None = None, *, dtype: str | None = None, runtime: Runtime | None = None
) -> Operation[Array]:
    """A copy of an array of the host to the device: a new one, or into `to`.

    Args:
        source: a `HostArray` or a pinned tensor (then the copy is asynchronous), a NumPy array, a tensor or a
            buffer, or a flat sequence of numbers.
        to: where to.
        dtype: the type of the elements of a sequence.
        runtime: whose array it becomes.
    """
    place = caller()
    found = to.runtime if to is not None else runtime or default()
    return transfer(found, source, to, dtype, place)


def transfer(
    runtime: Runtime, source: Any, to: Array | None, dtype: str | None, place: Place
) -> Operation[Array]:
    """A copy of anything that holds numbers to the device.

    Raises:
        ValueError: the two are not alike.
    """
    name = "`copy_to_device`"
    if isinstance(source, View):
        return Copy(name, to, source, place)
    if isinstance(source, list | tuple | range):
        dtype = dtype or (to.dtype if to is not None else "float32")
        shape: tuple[int, ...] = (len(source),)
        data: Any = bytearray(pack(source, dtype))
    else:
        _, layout, kind, _ = locate(source)
        if kind is not Kind.PAGEABLE:
            return Copy(name, to, runtime.adopt(source, place), place)
        shape, dtype, data = layout.shape, dtype or dtype_of(source), source
        if layout.strides != contiguous_strides(layout.shape):
            raise ValueError(f"{name} of an array of the host that is not contiguous")
    if to is None:
        return Empty(runtime, name, shape, dtype, place, data=data)
    if (to.dtype, to.shape) != (dtype, shape) or not to.region.is_dense:
        raise ValueError(f"{name} of {dtype}{list(shape)} to {to.dtype}{list(to.shape)}")
    return Upload(to, data, place)


def copy_to_host(source: View, to: HostArray | None = None) -> Operation[HostArray]:
    """A copy of an array of the device in page-locked memory of the host: new, or `to`."""
    place = caller()
    if to is None:
        to = new_pinned(source.runtime, source.shape, source.dtype, place)
    return Copy("`copy_to_host`", to, source, place)


def pinned(shape: Shape, dtype: str = "float32", *, runtime: Runtime | None = None) -> HostArray:
    """A new array in page-locked memory of the host, at once."""
    return new_pinned(runtime or default(), shape_of(shape), dtype, caller())


def new_pinned(runtime: Runtime, shape: tuple[int, ...], dtype: str, place: Place) -> HostArray:
    runtime.refuse_in_capture("an allocation of page-locked memory", place)
    with runtime.lock:
        return HostArray(runtime, shape, dtype, place)
