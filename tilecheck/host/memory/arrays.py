"""The addresses, layouts and element types of arrays of any library, and a plain array on the device."""

from __future__ import annotations

import ctypes
import operator
from typing import Any

from tilecheck.ir.host_program import Place as Kind
from tilecheck.jit.layouts import Layout, NotAnArray, contiguous_strides, layout_of

# Element types by the names that PyTorch and cuTile have in common: type strings, and `struct` letters.
TYPE_STRINGS = {
    "bool": "|b1", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "uint8": "|u1", "uint16": "<u2", "uint32": "<u4", "uint64": "<u8",
    "float16": "<f2", "float32": "<f4", "float64": "<f8",
}  # fmt: skip
LETTERS = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip
_NAMES = {text[1:]: name for name, text in TYPE_STRINGS.items()}


def size_of(dtype: str) -> int:
    """The bytes of an element.

    Raises:
        ValueError: the type is not known here.
    """
    try:
        return int(TYPE_STRINGS[dtype][2:])
    except KeyError:
        known = ", ".join(TYPE_STRINGS)
        raise ValueError(f"`{dtype}` is no element type of arrays made here; known: {known}") from None


class DeviceArray:
    """A strided view of device memory, with the interfaces that kernels of cuTile and Triton read."""

    __slots__ = ("__weakref__", "_strides", "address", "dtype", "owner", "shape")

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        dtype: str,
        owner: Any,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self.address = address
        self.shape = shape
        self.dtype = dtype
        self.owner = owner  # keeps the memory
        self._strides = contiguous_strides(shape) if strides is None else strides

    def data_ptr(self) -> int:
        return self.address

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def element_size(self) -> int:
        return size_of(self.dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        size = size_of(self.dtype)
        return {
            "version": 3,
            "shape": self.shape,
            "strides": tuple(step * size for step in self._strides),
            "typestr": TYPE_STRINGS[self.dtype],
            "data": (self.address, False),
        }

    def __getitem__(self, box: tuple[slice, ...]) -> DeviceArray:
        """A view of the elements `start <= i < stop` along each axis."""
        size = size_of(self.dtype)
        at = self.address
        shape = []
        for part, extent, step in zip(box, self.shape, self._strides, strict=True):
            start, stop, _ = part.indices(extent)
            at += start * step * size
            shape.append(max(0, stop - start))
        return DeviceArray(at, tuple(shape), self.dtype, self.owner, self._strides)


def dtype_of(array: Any) -> str:
    """The name of an array's element type; a type string where it has no name that is known."""
    dtype = getattr(array, "dtype", None)
    name = str(dtype).rpartition(".")[2] if dtype is not None else ""
    interface: dict[str, Any] = (
        getattr(array, "__cuda_array_interface__", None) or getattr(array, "__array_interface__", None) or {}
    )
    text = str(interface.get("typestr", ""))
    return name if name in TYPE_STRINGS or not text else _NAMES.get(text[1:], text)


def locate(array: Any) -> tuple[int, Layout, Kind, tuple[int, int]]:
    """The address and layout of an array, what memory it lies in, and the range that it was allocated in.

    Raises:
        NotAnArray: it is no array whose addresses can be known.
    """
    if hasattr(array, "data_ptr"):
        address, layout = layout_of(array)
        kind = _kind_of_tensor(array)
    elif hasattr(array, "__cuda_array_interface__"):
        address, layout = layout_of(array)
        kind = Kind.DEVICE
    else:
        address, layout = _host_layout(array)
        kind = Kind.PAGEABLE
    if any(stride < 0 for stride in layout.strides):
        raise NotAnArray("an array with a negative stride")
    return address, layout, kind, _allocated(array, address, layout)


def _kind_of_tensor(array: Any) -> Kind:
    where = getattr(getattr(array, "device", None), "type", "cuda")
    if where == "cuda":
        return Kind.DEVICE
    if where == "cpu":
        return Kind.PINNED if array.is_pinned() else Kind.PAGEABLE
    raise NotAnArray(f"a tensor on the device `{where}`")


def _allocated(array: Any, address: int, layout: Layout) -> tuple[int, int]:
    """The addresses of an array's storage, as far as it tells."""
    if hasattr(array, "untyped_storage"):
        storage = array.untyped_storage()
        start = storage.data_ptr()
        return start, max(start + storage.nbytes(), address + layout.span)
    return address, address + layout.span


def _host_layout(array: Any) -> tuple[int, Layout]:
    """The address and layout of an array in the host's memory.

    Raises:
        NotAnArray: it has neither NumPy's interface nor a writable buffer.
    """
    interface = getattr(array, "__array_interface__", None)
    if interface is not None:
        shape = tuple(map(operator.index, interface["shape"]))
        size = int(interface["typestr"][2:])
        steps = interface.get("strides")
        if steps is not None and any(step % size for step in steps):
            raise NotAnArray("an array whose strides are no multiples of its item size")
        strides = contiguous_strides(shape) if steps is None else tuple(step // size for step in steps)
        return operator.index(interface["data"][0]), Layout(shape, strides, size)
    try:
        view = memoryview(array)
        if not view.c_contiguous:
            raise NotAnArray("a buffer with gaps")
        flat = view.cast("B")
        address = ctypes.addressof((ctypes.c_char * flat.nbytes).from_buffer(flat)) if flat.nbytes else 0
    except TypeError as error:
        raise NotAnArray(f"a {type(array).__name__} ({error})") from None
    shape = tuple(view.shape or (view.nbytes // view.itemsize,))
    return address, Layout(shape, contiguous_strides(shape), view.itemsize)
