"""The values that only Triton has: pointers and windows of arrays; and how numbers become tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from tilecheck.reference.machine import Reject
from tilecheck.reference.triton.dtypes import bits_of, type_of_constant
from tilecheck.reference.values.dtypes import BOOL, Category, Data, DType
from tilecheck.reference.values.values import Array, Tile, cast, describe, is_constant, scalar

MAX_ELEMENTS = 1 << 20  # of one tensor, as the compiler has it


@dataclass(frozen=True, slots=True, eq=False)
class Pointer:
    """Pointers into one array: a block of element offsets from its first element, or one offset.

    `element` is the type that is read and written through it.
    """

    array: Array
    offsets: Data
    element: DType

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.offsets.shape)


@dataclass(frozen=True, slots=True, eq=False)
class BlockPointer:
    """`tl.make_block_ptr`: a window of a strided array; only the dimensions asked for are checked."""

    base: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offsets: tuple[int, ...]
    block_shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Descriptor:
    """`tl.make_tensor_descriptor`: a strided array whose every access is checked against `shape`."""

    base: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    padding: str = "zero"


@dataclass(frozen=True, slots=True, eq=False)
class HostDescriptor:
    """A tensor descriptor that the host made and passed: an array of its own rank.

    `block_shape` is empty where the launch does not say it.
    """

    array: Array
    block_shape: tuple[int, ...]


def to_tensor(value: Any) -> Any:
    """A compile-time number as a scalar tensor; other values are unchanged."""
    if is_constant(value):
        return scalar(value, type_of_constant(value))
    if isinstance(value, (tuple, list)):
        return tuple(to_tensor(item) for item in value)
    return value


def as_tensor(value: Any) -> Tile:
    """A number or a tensor, as a tensor."""
    tensor = to_tensor(value)
    if isinstance(tensor, Tile):
        return tensor
    raise Reject(f"{describe(value)} used as a tensor")


def operand(value: Any, dtype: DType) -> Tile:
    """A value in the type of the operation; a constant must fit."""
    if is_constant(value) and dtype.category <= Category.INTEGER:
        low, high = (0, 1) if dtype.category is Category.BOOL else dtype.bounds
        if not low <= value <= high:
            raise Reject(f"constant {value} is out of range of {dtype}")
    return cast(value, dtype)


def remap(value: Any, change: Callable[[Data], Any]) -> Any:
    """The value with its elements rearranged: tensors and blocks of pointers alike."""
    if isinstance(value, Pointer):
        return Pointer(value.array, np.asarray(change(value.offsets)), value.element)
    tensor = as_tensor(value)
    return Tile(np.asarray(change(tensor.data)), tensor.dtype)


def static_int(value: Any) -> int:
    """An integer known at compile time."""
    if isinstance(value, int):
        return int(value)
    raise Reject(f"{describe(value)} used as a compile-time integer")


def flatten_shape(parts: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape given as one sequence or as several numbers."""
    if len(parts) == 1 and isinstance(parts[0], (tuple, list)):
        parts = tuple(parts[0])
    return tuple(static_int(part) for part in parts)


def block_shape(parts: Any) -> tuple[int, ...]:
    """The shape of a tensor: powers of two, and not too many elements."""
    shape = flatten_shape((parts,))
    elements = 1
    for extent in shape:
        if extent < 1 or extent & (extent - 1):
            raise Reject(f"tensor extent {extent} is not a power of two")
        elements *= extent
    if elements > MAX_ELEMENTS:
        raise Reject(f"a tensor of {elements} elements")
    return shape


def require_size(data: Data) -> Data:
    """Refuse tensors that the compiler refuses for their size."""
    if data.size > MAX_ELEMENTS:
        raise Reject(f"a tensor of {data.size} elements")
    return data


def require_joint_size(*operands: Data) -> None:
    """Refuse operands that broadcast to a tensor that the compiler refuses, before memory is taken for it."""
    if len(operands) == 2 and 0 < operands[0].size * operands[1].size <= MAX_ELEMENTS:
        return  # it has no more elements than that
    axes = zip_longest(*(reversed(data.shape) for data in operands), fillvalue=1)
    elements = math.prod(max(extents) for extents in axes)
    if elements > MAX_ELEMENTS:
        raise Reject(f"a tensor of {elements} elements")


def runtime_int(value: Any, widest: int = 64) -> int:
    """A scalar integer, known at compile time or not, of at most `widest` bits."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Tile) and value.data.size == 1 and value.dtype.category <= Category.INTEGER:
        if bits_of(value.dtype) > widest:
            raise Reject(f"{describe(value)} where {widest} bits are the most")
        return int(value.data.reshape(())[()])
    raise Reject(f"{describe(value)} used as an integer")


def truth(value: Any) -> tuple[bool, bool]:
    """What a condition is, and whether it is a runtime value."""
    if isinstance(value, Tile):
        if value.data.size != 1:
            raise Reject(f"a tensor of shape {value.shape} used as a condition")
        return bool(value.data.reshape(())[()] != 0), True
    if isinstance(value, Pointer) and value.shape == ():
        return True, True  # no null pointer is ever given
    if value is None or isinstance(value, (bool, int, float, str, tuple, list, dict)):
        return bool(value), False
    raise Reject(f"{describe(value)} used as a condition")


def as_mask(value: Any) -> Tile | None:
    """A mask: booleans, or None. An array of booleans may have been given as one of numbers."""
    if value is None:
        return None
    if is_constant(value) and not isinstance(value, bool):
        raise Reject(f"{describe(value)} used as a mask")
    return cast(as_tensor(value), BOOL)
