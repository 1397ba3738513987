"""Operations that touch arrays: load and store of tiles, gather and scatter, raw memory, views, slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilecheck.reference.cutile.operations import method, operation
from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.values.dtypes import INT32
from tilecheck.reference.values.lanes import advanced_lanes, element_lanes, raw_lanes, read_lanes, write_lanes
from tilecheck.reference.values.memory import Order, slice_array
from tilecheck.reference.values.values import (
    Array,
    EnumMember,
    IndexSlice,
    RawMemory,
    Tile,
    TiledView,
    as_index,
    as_int,
    as_tile,
    cast,
    describe,
    scalar,
    tile_shape,
)
from tilecheck.reference.values.windows import read_window, window, write_window

_UNDETERMINED = EnumMember("PaddingMode", "UNDETERMINED")
_WEAK = EnumMember("MemoryOrder", "WEAK")
_NO_SCOPE = EnumMember("MemoryScope", "NONE")
_LOAD_ORDERS = ("WEAK", "RELAXED", "ACQUIRE")
_STORE_ORDERS = ("WEAK", "RELAXED", "RELEASE")


def require_array(value: Any) -> Array:
    if not isinstance(value, Array):
        raise Reject(f"{describe(value)} used as an array")
    return value


def memory_order(order: Any, scope: Any, allowed: Sequence[str]) -> Order:
    """Check an order and a scope as the compiler does."""
    if not isinstance(order, EnumMember) or order.owner != "MemoryOrder" or order.name not in allowed:
        raise Reject(f"memory order {getattr(order, 'name', order)}")
    if not isinstance(scope, EnumMember) or scope.owner != "MemoryScope":
        raise Reject("a memory scope that is not one")
    if (order.name == "WEAK") != (scope.name == "NONE"):
        raise Reject(f"memory order {order.name} with scope {scope.name}")
    return Order(order.name, scope.name)


def padding_name(value: Any) -> str:
    if not isinstance(value, EnumMember) or value.owner != "PaddingMode":
        raise Reject(f"{describe(value)} used as a padding mode")
    return value.name


def axis_order(order: Any, rank: int) -> tuple[int, ...]:
    """The array axis of each tile axis."""
    if order == "C":
        return tuple(range(rank))
    if order == "F":
        return tuple(reversed(range(rank)))
    axes = tuple(as_int(axis) % rank for axis in as_index(order))
    if sorted(axes) != list(range(rank)):
        raise Reject(f"order {axes} of an array of rank {rank}")
    return axes


@operation("load")
def load(
    machine: Machine,
    array: Any,
    /,
    index: Any,
    shape: Any,
    *,
    order: Any = "C",
    padding_mode: Any = _UNDETERMINED,
    check_bounds: Any = True,
    latency: Any = None,
    allow_tma: Any = None,
    memory_order: Any = _WEAK,
    memory_scope: Any = _NO_SCOPE,
) -> Tile:
    """Read one tile of the tile space that `shape` makes of the array."""
    array = require_array(array)
    rank = len(array.shape)
    sizes = tile_shape(shape, rank)
    target = window(
        machine,
        array,
        as_index(index),
        sizes or (1,) * rank,
        axes=axis_order(order, rank),
        check_bounds=bool(check_bounds),
    )
    return read_window(
        machine, target, padding_name(padding_mode), len(sizes), _order(memory_order, memory_scope)
    )


def _order(order: Any, scope: Any, allowed: Sequence[str] = _LOAD_ORDERS) -> Order:
    return memory_order(order, scope, allowed)


@operation("store")
def store(
    machine: Machine,
    array: Any,
    /,
    index: Any,
    tile: Any,
    *,
    order: Any = "C",
    check_bounds: Any = True,
    latency: Any = None,
    allow_tma: Any = None,
    memory_order: Any = _WEAK,
    memory_scope: Any = _NO_SCOPE,
) -> None:
    """Write one tile; a scalar is a tile with one element."""
    array = require_array(array)
    rank = len(array.shape)
    data = cast(tile, array.dtype).data
    if data.ndim not in (0, rank):
        raise Reject(f"a tile of rank {data.ndim} stored to `{array.name}` of rank {rank}")
    target = window(
        machine,
        array,
        as_index(index),
        data.shape or (1,) * rank,
        axes=axis_order(order, rank),
        check_bounds=bool(check_bounds),
    )
    write_window(machine, target, data, data.ndim, _order(memory_order, memory_scope, _STORE_ORDERS))


@operation("num_tiles")
def num_tiles(machine: Machine, array: Any, /, axis: Any, shape: Any, order: Any = "C") -> Tile:
    """How many tiles the tile space has along an axis."""
    array = require_array(array)
    rank = len(array.shape)
    sizes = tile_shape(shape, rank) or (1,) * rank
    at = as_int(axis) % rank
    extent = array.shape[axis_order(order, rank)[at]]
    return scalar(-(-extent // sizes[at]), INT32)


@operation("gather")
def gather(
    machine: Machine,
    array: Any,
    indices: Any,
    /,
    *,
    mask: Any = None,
    padding_value: Any = 0,
    check_bounds: Any = True,
    latency: Any = None,
) -> Tile:
    """Read elements one by one."""
    target = element_lanes(
        machine, require_array(array), as_index(indices), mask, check_bounds=bool(check_bounds)
    )
    return read_lanes(machine, target, padding_value)


@operation("scatter")
def scatter(
    machine: Machine,
    array: Any,
    indices: Any,
    value: Any,
    /,
    *,
    mask: Any = None,
    check_bounds: Any = True,
    latency: Any = None,
) -> None:
    """Write elements one by one."""
    target = element_lanes(
        machine, require_array(array), as_index(indices), mask, check_bounds=bool(check_bounds)
    )
    write_lanes(machine, target, value)


@operation("Slice")
def index_slice(machine: Machine, start: Any, length: Any, /) -> IndexSlice:
    """`ct.Slice(start, length)`."""
    (size,) = tile_shape(length)
    return IndexSlice(start, size)


@operation("load_advanced_indexing")
def load_advanced_indexing(
    machine: Machine,
    array: Any,
    indices: Any,
    /,
    *,
    padding_mode: Any = _UNDETERMINED,
    latency: Any = None,
    allow_tma: Any = None,
) -> Tile:
    """Read the rows that an index tile names, between the bounds of the other axes."""
    array = require_array(array)
    starts, lengths = _advanced(array, indices)
    target = advanced_lanes(machine, array, starts, lengths)
    fills = {"UNDETERMINED": None, "NEG_ZERO": -0.0, "NAN": np.nan, "POS_INF": np.inf, "NEG_INF": -np.inf}
    fill = fills.get(padding_name(padding_mode), 0)
    return read_lanes(machine, target, fill)


@operation("store_advanced_indexing")
def store_advanced_indexing(
    machine: Machine, array: Any, indices: Any, tile: Any, /, *, latency: Any = None, allow_tma: Any = None
) -> None:
    """Write the rows that an index tile names."""
    array = require_array(array)
    starts, lengths = _advanced(array, indices)
    if as_tile(tile).shape not in ((), lengths):
        raise Reject(f"{describe(tile)} stored through indices of shape {lengths}")
    write_lanes(machine, advanced_lanes(machine, array, starts, lengths), tile)


def _advanced(array: Array, indices: Any) -> tuple[list[Any], tuple[int, ...]]:
    items = as_index(indices)
    if len(items) != len(array.shape):
        raise Reject(f"{len(items)} indices for `{array.name}` of rank {len(array.shape)}")
    tiles = [item for item in items if isinstance(item, Tile) and len(item.shape) == 1]
    if len(tiles) != 1 or not all(isinstance(item, IndexSlice) for item in items if item is not tiles[0]):
        raise Reject("advanced indices other than one index tile and slices")
    starts = [item.start if isinstance(item, IndexSlice) else item for item in items]
    lengths = tuple(item.length if isinstance(item, IndexSlice) else item.shape[0] for item in items)
    return starts, lengths


@method("Array", "slice")
def array_slice(machine: Machine, array: Array, /, axis: Any, start: Any, stop: Any) -> Array:
    """A part of the array along one axis."""
    return slice_array(machine, array, as_int(axis), start, stop)


@method("Array", "tiled_view")
def tiled_view(
    machine: Machine,
    array: Array,
    /,
    tile_shape: Any,
    *,
    padding_mode: Any = _UNDETERMINED,
    traversal_steps: Any = None,
) -> TiledView:
    """The array as a grid of tiles."""
    sizes = _shape(tile_shape, len(array.shape))
    steps = sizes or (1,) * len(array.shape)
    if traversal_steps is not None:
        steps = tuple(as_int(step) for step in as_index(traversal_steps))
        if len(steps) != len(array.shape) or min(steps, default=1) < 1:
            raise Reject(f"traversal steps {steps}")
    return TiledView(array, sizes, padding_name(padding_mode), steps)


_shape = tile_shape  # a parameter of `tiled_view` has its name


def view_window(machine: Machine, view: TiledView, index: Any, *, check_bounds: Any = True) -> Any:
    """The window of one tile of a view."""
    rank = len(view.array.shape)
    return window(
        machine,
        view.array,
        as_index(index),
        view.tile_shape or (1,) * rank,
        axes=range(rank),
        steps=view.steps,
        check_bounds=bool(check_bounds),
    )


@method("TiledView", "load")
def view_load(
    machine: Machine,
    view: TiledView,
    /,
    index: Any,
    *,
    check_bounds: Any = True,
    latency: Any = None,
    allow_tma: Any = None,
) -> Tile:
    """Read one tile of the view."""
    target = view_window(machine, view, index, check_bounds=check_bounds)
    return read_window(machine, target, view.padding, len(view.tile_shape), Order())


@method("TiledView", "store")
def view_store(
    machine: Machine,
    view: TiledView,
    /,
    index: Any,
    tile: Any,
    *,
    check_bounds: Any = True,
    latency: Any = None,
    allow_tma: Any = None,
) -> None:
    """Write one tile of the view."""
    data = np.broadcast_to(cast(tile, view.array.dtype).data, view.tile_shape)
    target = view_window(machine, view, index, check_bounds=check_bounds)
    write_window(machine, target, data, len(view.tile_shape), Order())


@method("TiledView", "num_tiles")
def view_num_tiles(machine: Machine, view: TiledView, /, axis: Any) -> Tile:
    """How many tiles start inside the array along an axis."""
    at = as_int(axis) % len(view.steps)
    return scalar(-(-view.array.shape[at] // view.steps[at]), INT32)


@method("Array", "get_raw_memory")
def get_raw_memory(machine: Machine, array: Array, /) -> RawMemory:
    """The base pointer; a slice has moved it."""
    base = sum(at * stride for at, stride in zip(array.origin, array.strides, strict=True))
    return RawMemory(array, base)


@method("RawMemory", "load_offset")
def load_offset(
    machine: Machine,
    memory: RawMemory,
    offset: Any,
    /,
    *,
    mask: Any = None,
    padding_value: Any = 0,
    latency: Any = None,
) -> Tile:
    """Read by element offset, unchecked."""
    return read_lanes(
        machine, raw_lanes(machine, memory, offset, mask), 0 if padding_value is None else padding_value
    )


@method("RawMemory", "store_offset")
def store_offset(
    machine: Machine, memory: RawMemory, offset: Any, value: Any, /, *, mask: Any = None, latency: Any = None
) -> None:
    """Write by element offset, unchecked."""
    write_lanes(machine, raw_lanes(machine, memory, offset, mask), value)
