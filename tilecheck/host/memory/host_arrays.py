"""Arrays in the host's memory whose copies are asynchronous, so that their use has to be watched."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilecheck.host.memory.arrays import LETTERS, TYPE_STRINGS, size_of
from tilecheck.host.memory.handles import View
from tilecheck.host.places import Place, caller
from tilecheck.ir.host_program import Place as Kind
from tilecheck.jit.layouts import Layout, contiguous_strides

if TYPE_CHECKING:
    from tilecheck.host.memory.uses import Order
    from tilecheck.host.runtime import Runtime


class HostArray(View):
    """Page-locked memory of the host, contiguous. Reads and writes by the host are checked against copies."""

    __slots__ = ("_address",)

    def __init__(self, runtime: Runtime, shape: tuple[int, ...], dtype: str, place: Place) -> None:
        layout = Layout(shape, contiguous_strides(shape), size_of(dtype))
        self._address, owner = runtime.driver.pinned(max(1, layout.span))
        end = self._address + max(1, layout.span)
        storage = runtime.table.at(self._address, end, Kind.PINNED, runtime.name("host memory"))
        storage.retain(owner)
        if runtime.ledger.recorder is not None:
            runtime.ledger.recorder.allocate(storage, None, place)
        super().__init__(runtime, None, storage, storage.region(self._address, layout), place)
        self.dtype = dtype

    def move(self, to: str, place: Place) -> None:
        """Lend it to a copy that fills it: a later read of the host is checked by address."""
        self.check_alive(to, place)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's view of the memory, for reading."""
        self._touch("its values", caller(), None, write=False)
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": TYPE_STRINGS[self.dtype],
            "data": (self._address, True),
        }

    def read(self, *, order: Order | None = None) -> bytes:
        """The bytes.

        Raises:
            HostRefused: a copy in flight writes them.
        """
        self._touch("its bytes", caller(), order, write=False)
        return ctypes.string_at(self._address, self.nbytes)

    def write(self, data: bytes | bytearray | memoryview, *, order: Order | None = None) -> None:
        """Replace the bytes.

        Raises:
            HostRefused: a copy in flight uses them.
            ValueError: there are too few or too many.
        """
        if len(data) != self.nbytes:
            raise ValueError(f"{len(data)} bytes for an array of {self.nbytes}")
        self._touch("its bytes", caller(), order, write=True)
        ctypes.memmove(self._address, bytes(data), self.nbytes)

    def assign(self, values: Sequence[Any], *, order: Order | None = None) -> None:
        """Replace the values by those of a flat sequence.

        Raises:
            HostRefused: a copy in flight uses them.
        """
        data = pack(values, self.dtype)
        if len(data) != self.nbytes:
            raise ValueError(f"{len(values)} values for an array of shape {self.shape}")
        self._touch("its values", caller(), order, write=True)
        ctypes.memmove(self._address, data, self.nbytes)

    def tolist(self, *, order: Order | None = None) -> Any:
        """The values as nested lists.

        Raises:
            HostRefused: a copy in flight writes them.
        """
        self._touch("its values", caller(), order, write=False)
        data = ctypes.string_at(self._address, self.nbytes)
        return _nested([value for (value,) in struct.iter_unpack(f"<{LETTERS[self.dtype]}", data)], self.shape)

    def tensor(self, *, order: Order | None = None) -> Any:
        raise TypeError("memory of the host has no tensor: `read`, `write` and NumPy see it")

    def _touch(self, what: str, place: Place, order: Order | None, *, write: bool) -> None:
        with self.runtime.lock:
            self.runtime.ledger.touch(
                self.home(), self.region, place, what, order or self.runtime.order, write=write
            )


def pack(values: Sequence[Any], dtype: str) -> bytes:
    """The bytes of a sequence of values."""
    return struct.pack(f"<{len(values)}{LETTERS[dtype]}", *values)


def _nested(flat: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return flat
    step = len(flat) // shape[0] if shape[0] else 0
    return [_nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
