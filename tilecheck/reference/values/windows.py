"""Whole tiles of arrays: where a tile lies, the elements it touches, what it leaves undefined.

An access touches exactly the elements of its tile that lie in the array. A tile wholly outside touches nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.values.dtypes import INT32, Data, DType
from tilecheck.reference.values.memory import Order, writable
from tilecheck.reference.values.values import Array, Tile, as_int

_PADDING = {
    "ZERO": 0.0,
    "NEG_ZERO": -0.0,
    "NAN": np.nan,
    "POS_INF": np.inf,
    "NEG_INF": -np.inf,
}


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
        positions = _positions(self.inside)
        elements = np.empty_like(positions)
        for column, (axis, start) in enumerate(zip(self.axes, self.starts, strict=True)):
            elements[:, axis] = positions[:, column] + (start + self.array.origin[axis])
        return elements, positions if rank else positions[:, :0]


@functools.lru_cache(maxsize=64)
def _positions(counts: tuple[int, ...]) -> Data:
    """All positions of a tile, in row-major order; tiles of one size share them."""
    positions: Data = np.indices(counts).reshape(len(counts), -1).T.astype(np.int64)
    positions.flags.writeable = False
    return positions


def _log(machine: Machine, target: Window, effect: str, rank: int, order: Order) -> None:
    if machine.recording:
        elements, lanes = target.rows(rank)
        machine.access(target.array, effect, elements, lanes, order=order.order, scope=order.scope)


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
    if padding == "UNDETERMINED":
        value = machine.idle_value(array.name) if target.inside != target.sizes else 0
    else:
        value = _padding(padding, array.dtype)
    data = np.full(target.sizes, value, array.dtype.numpy)
    if all(target.inside):
        source = array.data.transpose(target.axes)[target.box]
        data[tuple(slice(0, count) for count in target.inside)] = source
    _log(machine, target, "read", rank, order)
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
    _log(machine, target, "write", rank, order)


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
    _log(machine, target, "atomic", rank, order)
