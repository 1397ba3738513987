"""Elements named one by one: gathers, scatters, raw offsets and rows by index tile.

An access touches exactly the lanes that are active and inside; an unchecked lane outside is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.values.dtypes import BOOL, Data
from tilecheck.reference.values.memory import Order, writable
from tilecheck.reference.values.rows import row_keys
from tilecheck.reference.values.values import Array, RawMemory, Tile, as_tile, broadcast, cast, describe


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
    return active_lanes(machine, array, array.data, list(grids), inside, mask, check_bounds=check_bounds)


def raw_lanes(machine: Machine, memory: RawMemory, offset: Any, mask: Any) -> Lanes:
    """Offsets in elements from the base pointer, into the whole storage of the root array."""
    array = memory.array
    storage = _storage(array)
    flat = _index_data(offset) + memory.base
    inside = np.asarray((flat >= 0) & (flat < storage.size))
    return active_lanes(machine, array, storage, [flat], inside, mask, check_bounds=False, raw=True)


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
    return active_lanes(machine, array, array.data, list(full), inside, None, check_bounds=True)


def active_lanes(
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
    """The lanes that `mask` wants and that are `inside`; unchecked, the first one outside is logged."""
    shape = tuple(inside.shape)
    wanted = np.ones(shape, bool) if mask is None else broadcast(_mask_data(mask), shape)
    origin = (0,) if raw else array.origin
    if not check_bounds and (outside := wanted & ~inside).any():
        bad = np.argwhere(outside)[0]
        where = [int(grid[tuple(bad)]) + start for grid, start in zip(grids, origin, strict=True)]
        machine.undefined("out-of-bounds", array=array.name, element=where)
    active = np.asarray(wanted & inside)
    lanes = np.array(active.nonzero(), np.int64).T if shape else np.zeros((int(active), 0), np.int64)
    key = tuple(np.asarray(grid)[active] for grid in grids)
    if not key:  # an array of rank 0: its one element, if the lane is active
        return Lanes(array, memory, shape, lanes, np.zeros((len(lanes), 0), np.int64), key)
    elements = np.empty((len(lanes), len(key)), np.int64)
    for axis, (column, start) in enumerate(zip(key, origin, strict=True)):
        elements[:, axis] = column + start
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


def read_lanes(machine: Machine, target: Lanes, padding: Any, order: Order | None = None) -> Tile:
    """Read the active lanes; the others take the padding value, or are undefined if it is None."""
    dtype = target.array.dtype
    data = np.empty(target.shape, dtype.numpy)
    if padding is None:
        padding = machine.idle_value(target.array.name) if len(target.lanes) < data.size else 0
    data[...] = cast(padding, dtype).data
    _put(data, target.lanes, target.memory[target.key])
    order = order or Order()
    machine.access(
        target.array,
        "read",
        target.elements,
        target.lanes,
        raw=target.raw,
        order=order.order,
        scope=order.scope,
    )
    return Tile(data, dtype)


def write_lanes(machine: Machine, target: Lanes, value: Any) -> None:
    """Write the active lanes; two lanes that hit one element are logged."""
    source = broadcast(cast(value, target.array.dtype).data, target.shape)
    values = _take(source, target.lanes)
    _log_duplicates(machine, target, values)
    if len(target.lanes):
        writable(target.memory, target.array)[target.key] = values if target.key else values[-1]
    machine.access(target.array, "write", target.elements, target.lanes, raw=target.raw)


def _log_duplicates(machine: Machine, target: Lanes, values: Data) -> None:
    if len(target.elements) < 2:
        return
    keys = row_keys(target.elements)
    repeated = np.bincount(keys) > 1
    if not repeated.any():
        return
    rows = np.flatnonzero(keys == np.argmax(repeated))
    hits = values[rows]
    same = "same value" if np.all(hits == hits[0]) else "different values"
    machine.undefined("duplicate", array=target.array.name, element=target.elements[rows[0]], detail=same)


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
    result[...] = cast(idle, dtype).data
    sources = [_take(broadcast(cast(item, dtype).data, target.shape), target.lanes) for item in operands]
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


def _put(data: Data, lanes: Data, values: Any) -> None:
    if len(lanes) and lanes.shape[1]:
        data[tuple(lanes.T)] = values
    elif len(lanes):
        data[...] = np.asarray(values).reshape(-1)[0]


def _take(data: Data, lanes: Data) -> Data:
    if not lanes.shape[1]:
        return np.repeat(np.asarray(data).reshape(1), len(lanes))
    return np.asarray(data[tuple(lanes.T)])
