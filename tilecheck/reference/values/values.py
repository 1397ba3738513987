"""The values that a kernel computes with.

Compile-time constants are plain Python values (int, float, bool, str, None, tuples of them): their
arithmetic is unbounded. Everything the device computes is a `Tile`; a scalar is a tile of rank 0.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilecheck.reference.machine import Reject
from tilecheck.reference.values.dtypes import (
    BOOL,
    INT32,
    Category,
    Data,
    DType,
    convert,
    dtype_of_constant,
    round_float,
)

if TYPE_CHECKING:
    from tilecheck.reference.interpret.modules import Module

MAX_TILE_ELEMENTS = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """An immutable block of elements. `data` is never written after the tile is made."""

    data: Data
    dtype: DType

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """A global array, or a slice of one.

    `data` is a view of the argument's memory, `origin` is where it starts in the root array, and
    `static_shape` / `static_strides` are the axes whose extents or strides are compile-time constants.
    """

    name: str
    member: int | None
    root: Data
    data: Data
    dtype: DType
    origin: tuple[int, ...]
    index_dtype: DType = INT32
    static_shape: frozenset[int] = frozenset()
    static_strides: frozenset[int] = frozenset()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements."""
        return tuple(stride // self.root.itemsize for stride in self.root.strides)


@dataclass(frozen=True, slots=True, eq=False)
class ArrayList:
    """A list of arrays passed to the kernel; its length and its indices are runtime values."""

    name: str
    members: tuple[Array, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TiledView:
    """An array seen as a grid of tiles; `steps` are the elements between tile origins."""

    array: Array
    tile_shape: tuple[int, ...]
    padding: str
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RawMemory:
    """The base pointer of an array; `base` is its offset from the root array's base pointer."""

    array: Array
    base: int


@dataclass(frozen=True, slots=True)
class IndexSlice:
    """`ct.Slice(start, length)`."""

    start: Any
    length: int


@dataclass(frozen=True, slots=True)
class Range:
    """`range(...)`: `dtype` is that of the induction variable; `constant` if every bound is one."""

    values: range
    dtype: DType
    constant: bool

    def static_items(self) -> Iterator[Any]:
        """The items as compile-time iteration sees them."""
        return iter(self.values) if self.constant else (scalar(value, self.dtype) for value in self.values)


@dataclass(frozen=True, slots=True)
class EnumMember:
    """A member of an enumeration, of the DSL or of the user."""

    owner: str
    name: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class Namespace:
    """A module that is known by name (`cuda.tile`, `math`, ...)."""

    name: str


@dataclass(frozen=True, slots=True)
class Operation:
    """A function of the DSL or of Python, run by `function`."""

    name: str
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Method:
    """A method bound to a value."""

    owner: Any
    function: Any
    name: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something outside the kernel's world (an unknown import); it may be passed on but not used."""

    what: str


@dataclass(frozen=True, slots=True)
class TypeMark:
    """A type used in annotations: `name` is `Constant`, `Annotated`, `Array`, ...; `items` its arguments."""

    name: str
    items: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(slots=True, eq=False)
class Frame:
    """The names of one running function. Mutable: assignments change it.

    `own` are the names that the function assigns, which therefore never come from outside;
    `branched` says that a branch on a runtime value around a `return` was taken.
    """

    module: Module
    parent: Frame | None
    own: frozenset[str]
    names: dict[str, Any] = field(default_factory=dict)
    branched: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A user function with the scope it was made in and its default values."""

    node: ast.FunctionDef | ast.Lambda
    module: Module
    scope: Frame | None
    defaults: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "<lambda>"


@dataclass(frozen=True, slots=True, eq=False)
class UserClass:
    """A class of the user's module: a dataclass, an enumeration or a bag of constants."""

    node: ast.ClassDef
    module: Module


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """An instance of a user's dataclass."""

    cls: UserClass
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class ContextManager:
    """What a `with` statement enters: a user's generator and its arguments, or nothing to run."""

    generator: Closure | None = None
    arguments: tuple[Any, ...] = ()
    keywords: tuple[tuple[str, Any], ...] = ()


def is_constant(value: Any) -> bool:
    """Whether the value is a loosely typed numeric constant."""
    return isinstance(value, (bool, int, float))


def scalar(value: bool | float, dtype: DType) -> Tile:
    """A strictly typed scalar; integers wrap to their type."""
    if dtype.is_integer:
        return _integer_scalar(int(value), dtype)
    return Tile(round_float(np.array(value, dtype.numpy), dtype), dtype)


@functools.lru_cache(maxsize=4096)  # most are block numbers, bounds of loops and literals
def _integer_scalar(value: int, dtype: DType) -> Tile:
    wrapped = value & ((1 << dtype.bitwidth) - 1)
    low, high = dtype.bounds
    data = np.array(wrapped if wrapped <= high else wrapped + 2 * low, dtype.numpy)
    data.setflags(write=False)  # several launches have it
    return Tile(data, dtype)


def harden(value: Any) -> Any:
    """The value as it leaves a merge point: loosely typed constants take a machine type there."""
    if is_constant(value):
        return scalar(value, dtype_of_constant(value))
    if isinstance(value, tuple):
        return tuple(harden(item) for item in value)
    return value


def as_tile(value: Any) -> Tile:
    """The value as a tile; a constant takes its default type."""
    if isinstance(value, Tile):
        return value
    if is_constant(value):
        return scalar(value, dtype_of_constant(value))
    raise Reject(f"{describe(value)} used as a tile")


def cast(value: Any, dtype: DType) -> Tile:
    """`astype`."""
    if is_constant(value):
        if dtype.category is Category.BOOL:
            return scalar(bool(value), BOOL)
        return scalar(value, dtype)
    tile = as_tile(value)
    return Tile(convert(tile.data, tile.dtype, dtype), dtype)


def broadcast(data: Data, shape: tuple[int, ...]) -> Data:
    """The elements in a shape; most operands have it already."""
    return data if data.shape == shape else np.broadcast_to(data, shape)


def as_int(value: Any) -> int:
    """An integer scalar, constant or not, as a Python int."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Tile) and value.shape == () and value.dtype.category <= Category.INTEGER:
        return int(value.data)
    raise Reject(f"{describe(value)} used as an integer")


def as_index(value: Any) -> tuple[Any, ...]:
    """An index given as one value or as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def tile_shape(value: Any, rank: int | None = None) -> tuple[int, ...]:
    """A tile shape: the compiler takes powers of two only."""
    shape = tuple(as_int(extent) for extent in as_index(value))
    if rank is not None and shape and len(shape) != rank:
        raise Reject(f"tile shape {shape} for rank {rank}")
    for extent in shape:
        if extent < 1 or extent & (extent - 1):
            raise Reject(f"tile extent {extent} is not a power of two")
    require_size(shape)
    return shape


def require_size(shape: Sequence[int]) -> None:
    """Refuse tiles that would exhaust memory."""
    elements = 1
    for extent in shape:
        elements *= extent
    if elements > MAX_TILE_ELEMENTS:
        raise Reject(f"a tile of {elements} elements")


def truth(value: Any) -> tuple[bool, bool]:
    """What a condition is, and whether it is a runtime value."""
    if isinstance(value, Tile):
        if value.shape != ():
            raise Reject(f"a tile of shape {value.shape} used as a condition")
        return bool(value.data != 0), True
    if value is None or isinstance(value, (bool, int, float, str, tuple, list, dict)):
        return bool(value), False
    raise Reject(f"{describe(value)} used as a condition")


def static_items(value: Any) -> list[Any]:
    """The items of something that is iterated at compile time."""
    if isinstance(value, Range):
        return list(value.static_items())
    if isinstance(value, (tuple, list, str, dict)):
        return list(value)
    raise Reject(f"iteration over {describe(value)}")


def describe(value: Any) -> str:
    """A value in words, for messages."""
    if isinstance(value, Tile):
        return f"tile of {value.dtype} {value.shape}"
    if isinstance(value, (Array, ArrayList)):
        return f"array `{value.name}`"
    if isinstance(value, Opaque):
        return value.what
    if isinstance(value, (Operation, Closure, Method)):
        return f"function `{value.name}`"
    return f"{type(value).__name__} value"
