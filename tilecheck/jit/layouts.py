"""Where the elements of an array argument lie in memory, and whether two arguments share one."""

from __future__ import annotations

import itertools
import operator
from typing import Any

from tilecheck.dataclass import dataclass

_MOST_ELEMENTS = 1 << 16  # of an array whose layout only enumeration decides
_MOST_WORK: Any = 1 << 20  # candidate solutions that NumPy tries for one pair of arrays


class NotAnArray(TypeError):
    """An argument has neither PyTorch's interface nor `__cuda_array_interface__`."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Strides are in elements; `itemsize` is in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def span(self) -> int:
        """How many bytes from the base pointer on hold all elements. Strides must not be negative."""
        if not self.size:
            return 0
        reach = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (reach + 1) * self.itemsize

    @property
    def reach(self) -> int:
        """How many elements there are from the first to the last, gaps between rows included."""
        return self.span // self.itemsize

    def ends_within(self, granule: int) -> bool:
        """Whether rows begin on multiples of `granule` bytes, as far as the strides say, and end within one."""
        if not self.shape or self.strides[-1] != 1 or not self.size:
            return False
        outer = [s for n, s in zip(self.shape[:-1], self.strides[:-1], strict=True) if n > 1]
        begins = all(stride * self.itemsize % granule == 0 for stride in outer)
        return begins and self.shape[-1] * self.itemsize % granule != 0

    def overlaps_itself(self) -> bool | None:
        """Whether two different elements share memory; None where that is not decided."""
        if self.size <= 1:
            return False
        axes = sorted((s, n) for n, s in zip(self.shape, self.strides, strict=True) if n > 1)
        reach = 0
        for stride, extent in axes:
            if stride <= reach:
                break  # this axis does not step over everything inside it
            reach += (extent - 1) * stride
        else:
            return False
        if axes[0][0] == 0:
            return True
        if self.size > _MOST_ELEMENTS:
            return None
        offsets = [sum(p) for p in itertools.product(*(range(0, n * s, s) for s, n in axes))]
        return len(set(offsets)) < len(offsets)


def layout_of(argument: Any) -> tuple[int, Layout]:
    """The address of the first element, in bytes, and the layout.

    Raises:
        NotAnArray: it cannot be told.
    """
    if hasattr(argument, "data_ptr"):  # PyTorch
        itemsize = argument.element_size()
        if is_reinterpreted(argument) and max(8, argument.dtype.primitive_bitwidth) != 8 * itemsize:
            raise NotAnArray("a tensor whose elements are taken for others of another size")
        return argument.data_ptr(), Layout(tuple(argument.shape), tuple(argument.stride()), itemsize)
    interface = getattr(argument, "__cuda_array_interface__", None)
    if interface is None:
        raise NotAnArray(f"a {type(argument).__name__} has no `__cuda_array_interface__`")
    try:
        shape = tuple(map(operator.index, interface["shape"]))
        itemsize = int(interface["typestr"][2:])
        address = operator.index(interface["data"][0])
        steps = interface.get("strides")
        given = None if steps is None else tuple(map(operator.index, steps))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise NotAnArray("its `__cuda_array_interface__` is not of plain numbers") from None
    if interface.get("mask") is not None or itemsize < 1 or min((0, *shape)) < 0:
        raise NotAnArray("its `__cuda_array_interface__` has a mask, or sizes that no array has")
    if given is None:
        return address, Layout(shape, contiguous_strides(shape), itemsize)
    if len(given) != len(shape) or any(step % itemsize for step in given):
        raise NotAnArray("an array whose strides are no multiples of its item size")
    return address, Layout(shape, tuple(step // itemsize for step in given), itemsize)


def is_reinterpreted(argument: Any) -> bool:
    """Whether it is what `triton.reinterpret` gives: a tensor whose elements are taken for those of a type of
    Triton's, and which answers for itself as before."""
    return hasattr(getattr(argument, "dtype", None), "primitive_bitwidth")


def element_type(argument: Any) -> str:
    """The type of an array's elements, such as "int32"; a type string of NumPy where the array says no more."""
    dtype = getattr(argument, "dtype", None)
    if dtype is not None:
        return str(dtype).rpartition(".")[2]
    text = str((getattr(argument, "__cuda_array_interface__", None) or {}).get("typestr"))
    return {"<i4": "int32", "<i8": "int64"}.get(text, text)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a row-major array without gaps."""
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def solid(layout: Layout) -> Layout:
    """All bytes from the first element of an array to its last, gaps between elements included."""
    return Layout((layout.span,), (1,), 1)


def share_memory(first: Layout, second: Layout, distance: int) -> bool | None:
    """Whether an element of `first` overlaps one of `second`, whose base lies `distance` bytes further.

    None where that is not decided: the question is a bounded integer equation, which is NP-hard in the number
    of axes. Byte ranges that do not meet decide it at once. Else NumPy does, by the method of
    `numpy.shares_memory`, which computes with addresses and touches no memory.
    """
    if not first.size or not second.size:
        return False
    if distance >= first.span or -distance >= second.span:
        return False
    try:
        import numpy as np  # lazy: arguments seldom lie in one another's range
    except ImportError:
        return None
    try:
        base = 1 << 40  # an address of no meaning: the arrays are never read
        return bool(np.shares_memory(_view(first, base), _view(second, base + distance), max_work=_MOST_WORK))
    except np.exceptions.TooHardError:
        return None


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Something NumPy makes a view of."""

    __array_interface__: dict[str, Any]


def _view(layout: Layout, address: int) -> Any:
    import numpy as np  # lazy: as above

    interface = {
        "version": 3,
        "data": (address, True),
        "typestr": f"|V{layout.itemsize}",
        "shape": layout.shape,
        "strides": tuple(s * layout.itemsize for s in layout.strides),
    }
    return np.asarray(_Bytes(interface))
