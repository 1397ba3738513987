"""How operations reach arrays: the elements they touch, what they leave undefined, and the log of both.

Three ways to name elements exist: whole tiles (`Window`), one index per axis and lane (`Lanes`), and raw
offsets, which are lanes over the array's storage. A read or write touches exactly the lanes that are
active and inside; everything undefined is logged and touches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilecheck.jit.reference.dtypes import BOOL, INT32, Data, DType
from tilecheck.jit.reference.machine import Abandoned, Machine, Reject
from tilecheck.jit.reference.values import Array, ArrayList, RawMemory, Tile, as_int, as_tile, cast, describe

_PADDING = {
    "ZERO": 0.0,
    "UNDETERMINED": 0.0,
    "NEG_ZERO": -0.0,
    "NAN": np.nan,
    "POS_INF": np.inf,
    "NEG_INF": -np.inf,
}


@dataclass(frozen=True, slots=True)
class Order:
    """Memory order and scope, as cuTile names them."""

    order: str = "WEAK"
    scope: str = "NONE"


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """One tile of an array's tile space. Per tile axis: the array axis, the first element, the length.

    `inside` is how many elements of each tile axis lie in the array; all are 0 if the tile is outside.
    """

    array: Array
    axes: tuple[int, ...]
    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    inside: tuple[int, ...]

    @property
    def box(self) -> tuple[slice, ...]:
        """The elements inside, as a NumPy index into the array with its axes in tile order."""
        return tuple(slice(start, start + count) for start, count in zip(self.starts, self.inside, strict=True))

    def rows(self, rank: int) -> tuple[Data, Data]:
        """The touched elements (root coordinates) and their positions in a tile of rank `rank`."""
        positions = np.indices(self.inside).reshape(len(self.inside), -1).T.astype(np.int64)
        elements = np.empty_like(positions)
        for column, (axis, start) in enumerate(zip(self.axes, self.starts, strict=True)):
            elements[:, axis] = positions[:, column] + start + self.array.origin[axis]
        return elements, positions if rank else positions[:, :0]


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """Elements named one by one: `lanes` are positions in the index tile, `elements` where they point.

    `key` is what NumPy needs to reach the elements in `memory`, one entry per axis.
    """

    array: Array
    memory: Data
    shape: tuple[int, ...]
    lanes: Data
    elements: Data
    key: tuple[Data, ...]
    raw: bool = False


def window(
    machine: Machine,
    array: Array,
    index: Sequence[Any],
    sizes: Sequence[int],
    *,
    axes: Sequence[int],
    steps: Sequence[int] | None = None,
    check_bounds: bool = True,
) -> Window:
    """Place a tile; a tile wholly outside, a negative index and an unchecked element outside are logged."""
    if len(index) != len(array.shape):
        raise Reject(f"an index of length {len(index)} for `{array.name}` of rank {len(array.shape)}")
    steps = sizes if steps is None else steps
    tiles = [_tile_index(machine, array, item) for item in index]
    starts = tuple(tile * step for tile, step in zip(tiles, steps, strict=True))
    extents = [array.shape[axis] for axis in axes]
    counts = tuple(
        max(0, min(size, extent - start)) for start, size, extent in zip(starts, sizes, extents, strict=True)
    )
    outside = any(count == 0 for count in counts) or any(tile < 0 for tile in tiles)
    partial = counts != tuple(sizes)
    if outside or (partial and not check_bounds):
        first = _first_outside(array, axes, starts, sizes)
        if outside:
            machine.undefined("tile-outside", array=array.name, element=first, detail=f"index {tuple(tiles)}")
        if not check_bounds:
            machine.undefined("out-of-bounds", array=array.name, element=first, detail=f"index {tuple(tiles)}")
    inside = (0,) * len(sizes) if outside else counts
    if outside:
        starts = (0,) * len(sizes)
    return Window(array, tuple(axes), starts, tuple(sizes), inside)


def _tile_index(machine: Machine, array: Array, value: Any) -> int:
    """One tile coordinate. The compiler truncates it to 32 bits unless the array is indexed with int64."""
    index = as_int(value)
    low, high = INT32.bounds
    if array.index_dtype == INT32 and not low <= index <= high:
        machine.undefined("overflow", array=array.name, detail=str(index))
        return int(np.array(index).astype(np.int64).astype(np.int32))
    return index


def _first_outside(
    array: Array, axes: Sequence[int], starts: Sequence[int], sizes: Sequence[int]
) -> tuple[int, ...]:
    """The coordinates of the first element of the tile that lies outside the array."""
    element = [0] * len(axes)
    for axis, start in zip(axes, starts, strict=True):
        element[axis] = start + array.origin[axis]
    for axis, start, size in zip(axes, starts, sizes, strict=True):
        extent = array.shape[axis]
        if start >= extent or start < 0:
            return tuple(element)
        if start + size > extent:
            element[axis] = extent + array.origin[axis]
            return tuple(element)
    return tuple(element)


def read_window(machine: Machine, target: Window, padding: str, rank: int, order: Order) -> Tile:
    """Read a tile; what lies outside the array is filled in."""
    array = target.array
    data = np.full(target.sizes, _padding(padding, array.dtype), array.dtype.numpy)
    if all(target.inside):
        source = array.data.transpose(target.axes)[target.box]
        data[tuple(slice(0, count) for count in target.inside)] = source
    elements, lanes = target.rows(rank)
    machine.access(array, "read", elements, lanes, order=order.order, scope=order.scope)
    return Tile(data if rank else data.reshape(()), array.dtype)


def _padding(mode: str, dtype: DType) -> Any:
    value = _PADDING[mode]
    if value == 0 or dtype.is_float:
        return value
    raise Reject(f"padding {mode} for {dtype}")


def write_window(machine: Machine, target: Window, data: Data, rank: int, order: Order) -> None:
    """Write a tile; what lies outside the array is dropped."""
    array = target.array
    if all(target.inside):
        kept = data.reshape(target.sizes)[tuple(slice(0, count) for count in target.inside)]
        writable(array.data, array).transpose(target.axes)[target.box] = kept
    elements, lanes = target.rows(rank)
    machine.access(array, "write", elements, lanes, order=order.order, scope=order.scope)


def writable(memory: Data, array: Array) -> Data:
    """The memory, if it may be written."""
    if not memory.flags.writeable:
        raise Reject(f"a write to `{array.name}`, whose memory is read-only")
    return memory


def element_lanes(
    machine: Machine, array: Array, indices: Sequence[Any], mask: Any, *, check_bounds: bool
) -> Lanes:
    """One index per axis, broadcast together. Negative indices are outside."""
    if len(indices) != len(array.shape):
        raise Reject(f"{len(indices)} indices for `{array.name}` of rank {len(array.shape)}")
    grids = np.broadcast_arrays(*(_index_data(index) for index in indices)) if indices else []
    shape = tuple(grids[0].shape) if indices else ()
    inside = np.ones(shape, bool)
    for grid, extent in zip(grids, array.shape, strict=True):
        inside &= (grid >= 0) & (grid < extent)
    return _active_lanes(machine, array, array.data, list(grids), inside, mask, check_bounds=check_bounds)


def raw_lanes(machine: Machine, memory: RawMemory, offset: Any, mask: Any) -> Lanes:
    """Offsets in elements from the base pointer, into the whole storage of the root array."""
    array = memory.array
    storage = _storage(array)
    flat = _index_data(offset) + memory.base
    inside = np.asarray((flat >= 0) & (flat < storage.size))
    return _active_lanes(machine, array, storage, [flat], inside, mask, check_bounds=False, raw=True)


def _active_lanes(
    machine: Machine,
    array: Array,
    memory: Data,
    grids: list[Data],
    inside: Data,
    mask: Any,
    *,
    check_bounds: bool,
    raw: bool = False,
) -> Lanes:
    shape = tuple(inside.shape)
    wanted = np.ones(shape, bool) if mask is None else np.broadcast_to(_mask_data(mask), shape)
    origin = (0,) if raw else array.origin
    if not check_bounds and np.any(wanted & ~inside):
        bad = np.argwhere(wanted & ~inside)[0]
        where = [int(grid[tuple(bad)]) + start for grid, start in zip(grids, origin, strict=True)]
        machine.undefined("out-of-bounds", array=array.name, element=where)
    active = np.asarray(wanted & inside)
    lanes = np.argwhere(active).astype(np.int64)
    key = tuple(np.asarray(grid)[active] for grid in grids)
    if not key:  # an array of rank 0: its one element, if the lane is active
        return Lanes(array, memory, shape, lanes, np.zeros((len(lanes), 0), np.int64), key)
    elements = np.stack([column + start for column, start in zip(key, origin, strict=True)], axis=1)
    return Lanes(array, memory, shape, lanes, elements, key, raw)


def _index_data(value: Any) -> Data:
    tile = as_tile(value)
    if not tile.dtype.is_integer:
        raise Reject(f"{describe(value)} used as an index")
    if tile.dtype.name == "uint64":  # beyond int64 is outside every array
        return np.where(tile.data > np.uint64(2**62), np.uint64(2**62), tile.data).astype(np.int64)
    return tile.data.astype(np.int64)


def _mask_data(value: Any) -> Data:
    tile = as_tile(value)
    if tile.dtype != BOOL:
        raise Reject(f"{describe(value)} used as a mask")
    return tile.data


def _storage(array: Array) -> Data:
    """The memory that the root array spans, as one flat view."""
    root = array.root
    if any(stride < 0 or stride % root.itemsize for stride in root.strides):
        raise Reject(f"raw memory of `{array.name}` with strides {root.strides} bytes")
    span = 1 + sum((n - 1) * s for n, s in zip(root.shape, array.strides, strict=True)) if root.size else 0
    return np.lib.stride_tricks.as_strided(
        root, (span,), (root.itemsize,), writeable=bool(root.flags.writeable)
    )


def read_lanes(machine: Machine, target: Lanes, padding: Any) -> Tile:
    """Read the active lanes; the others take the padding value."""
    dtype = target.array.dtype
    data = np.empty(target.shape, dtype.numpy)
    data[...] = cast(padding, dtype).data
    _put(data, target.lanes, target.memory[target.key])
    machine.access(target.array, "read", target.elements, target.lanes, raw=target.raw)
    return Tile(data, dtype)


def write_lanes(machine: Machine, target: Lanes, value: Any) -> None:
    """Write the active lanes; two lanes that hit one element are logged."""
    source = np.broadcast_to(cast(value, target.array.dtype).data, target.shape)
    values = _take(source, target.lanes)
    _log_duplicates(machine, target, values)
    if len(target.lanes):
        writable(target.memory, target.array)[target.key] = values if target.key else values[-1]
    machine.access(target.array, "write", target.elements, target.lanes, raw=target.raw)


def _log_duplicates(machine: Machine, target: Lanes, values: Data) -> None:
    unique, first, counts = np.unique(target.elements, axis=0, return_index=True, return_counts=True)
    if len(unique) == len(target.elements):
        return
    element = unique[int(np.argmax(counts > 1))]
    hits = values[np.all(target.elements == element, axis=1)]
    same = "same value" if np.all(hits == hits[0]) else "different values"
    machine.undefined("duplicate", array=target.array.name, element=element, detail=same)


def update_lanes(
    machine: Machine,
    target: Lanes,
    operands: Sequence[Any],
    change: Callable[..., Any],
    idle: Any,
    order: Order,
) -> Tile:
    """An atomic read-modify-write, lane after lane; gives the old values (`idle` where no lane is active)."""
    dtype = target.array.dtype
    result = np.empty(target.shape, dtype.numpy)
    result[...] = np.broadcast_to(cast(idle, dtype).data, target.shape)
    sources = [_take(np.broadcast_to(cast(item, dtype).data, target.shape), target.lanes) for item in operands]
    memory = writable(target.memory, target.array) if len(target.lanes) else target.memory
    old = np.empty(len(target.lanes), dtype.numpy)
    for row in range(len(target.lanes)):
        where = tuple(column[row] for column in target.key)
        old[row] = memory[where]
        memory[where] = change(old[row], *(source[row] for source in sources))
    _put(result, target.lanes, old)
    machine.access(
        target.array,
        "atomic",
        target.elements,
        target.lanes,
        raw=target.raw,
        order=order.order,
        scope=order.scope,
    )
    return Tile(result, dtype)


def update_window(
    machine: Machine, target: Window, data: Data, rank: int, change: Callable[..., Any], order: Order
) -> None:
    """An atomic read-modify-write of a whole tile; nothing is returned."""
    array = target.array
    if all(target.inside):
        memory = writable(array.data, array).transpose(target.axes)[target.box]
        kept = data.reshape(target.sizes)[tuple(slice(0, count) for count in target.inside)]
        for position in np.ndindex(*target.inside):
            memory[position] = change(memory[position], kept[position])
    elements, lanes = target.rows(rank)
    machine.access(array, "atomic", elements, lanes, order=order.order, scope=order.scope)


def _put(data: Data, lanes: Data, values: Any) -> None:
    if len(lanes) and lanes.shape[1]:
        data[tuple(lanes.T)] = values
    elif len(lanes):
        data[...] = np.asarray(values).reshape(-1)[0]


def _take(data: Data, lanes: Data) -> Data:
    if not lanes.shape[1]:
        return np.repeat(np.asarray(data).reshape(1), len(lanes))
    return np.asarray(data[tuple(lanes.T)])


def member(machine: Machine, arrays: ArrayList | tuple[Any, ...], index: int, name: str = "") -> Any:
    """One array of a list. Past its end nothing that the block does has a meaning."""
    members = arrays.members if isinstance(arrays, ArrayList) else arrays
    if not 0 <= index < len(members):
        label = arrays.name if isinstance(arrays, ArrayList) else name
        machine.undefined("member", array=label, element=(index,), detail=f"of {len(members)}")
        raise Abandoned
    return members[index]


def slice_array(machine: Machine, array: Array, axis: int, start: Any, stop: Any) -> Array:
    """`Array.slice`: bounds that break its preconditions are logged and clamped to the array."""
    rank = len(array.shape)
    if not -rank <= axis < rank:
        raise Reject(f"slice axis {axis} of an array of rank {rank}")
    axis %= rank
    extent = array.shape[axis]
    first, last = as_int(start), as_int(stop)
    if not (0 <= first < extent and first <= last <= extent):
        element = [first if other == axis else 0 for other in range(rank)]
        detail = f"[{first}:{last}] of {extent}"
        machine.undefined("slice", array=array.name, element=element, detail=detail)
        first = min(max(first, 0), extent)
        last = min(max(last, first), extent)
    part = tuple(slice(first, last) if other == axis else slice(None) for other in range(rank))
    origin = tuple(at + first if other == axis else at for other, at in enumerate(array.origin))
    constant = isinstance(start, int) and isinstance(stop, int)
    static = array.static_shape | {axis} if constant else array.static_shape - {axis}
    return Array(
        array.name,
        array.member,
        array.root,
        array.data[part],
        array.dtype,
        origin,
        array.index_dtype,
        static,
        array.static_strides,
    )


def advanced_lanes(machine: Machine, array: Array, starts: Sequence[Any], lengths: Sequence[int]) -> Lanes:
    """`load_advanced_indexing`: per axis either an index tile or a start; checked, but not wholly outside."""
    grids = []
    for axis, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        shape = tuple(length if other == axis else 1 for other in range(len(lengths)))
        data = _index_data(start)
        grids.append((data if data.ndim else data + np.arange(length)).reshape(shape))
    full = np.broadcast_arrays(*grids)
    inside = np.ones(tuple(lengths), bool)
    for grid, extent in zip(full, array.shape, strict=True):
        inside &= (grid >= 0) & (grid < extent)
    if not inside.any():
        first = [int(grid.flat[0]) + at for grid, at in zip(full, array.origin, strict=True)]
        machine.undefined("tile-outside", array=array.name, element=first)
    return _active_lanes(machine, array, array.data, list(full), inside, None, check_bounds=True)
