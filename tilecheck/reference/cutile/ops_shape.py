"""Operations that make tiles and change their shape or type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilecheck.reference.cutile.operations import method, operation
from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.values.arithmetic import binary
from tilecheck.reference.values.bits import from_bits, pack, to_bits, unpack
from tilecheck.reference.values.dtypes import BOOL, INT32, UINT8, DType, promote
from tilecheck.reference.values.values import (
    Tile,
    as_index,
    as_int,
    as_tile,
    cast,
    describe,
    require_size,
    scalar,
    tile_shape,
)


def require_dtype(value: Any) -> DType:
    if not isinstance(value, DType):
        raise Reject(f"{describe(value)} used as a data type")
    return value


@operation("bid")
def bid(machine: Machine, axis: Any) -> Tile:
    """The index of the running block."""
    return scalar(machine.block[_grid_axis(axis)], INT32)


@operation("num_blocks")
def num_blocks(machine: Machine, axis: Any) -> Tile:
    """The number of blocks of the launch."""
    return scalar(machine.grid[_grid_axis(axis)], INT32)


def _grid_axis(axis: Any) -> int:
    at = as_int(axis)
    if at not in (0, 1, 2):
        raise Reject(f"grid axis {at}")
    return at


@operation("arange")
def arange(machine: Machine, size: Any, /, *, dtype: Any, start: Any = 0, step: Any = 1) -> Tile:
    """Evenly spaced values."""
    (length,) = tile_shape(size)
    kind = require_dtype(dtype)
    lanes = cast(Tile(np.arange(length, dtype=np.int64), INT32), kind)
    if not (isinstance(step, int) and step == 1):
        lanes = binary(machine, "mul", lanes, cast(step, kind))
    if not (isinstance(start, int) and start == 0):
        lanes = binary(machine, "add", lanes, cast(start, kind))
    return lanes


@operation("full")
def full(machine: Machine, shape: Any, fill_value: Any, dtype: Any) -> Tile:
    """One value everywhere."""
    kind = require_dtype(dtype)
    value = cast(fill_value, kind)
    if value.shape != ():
        raise Reject(f"{describe(fill_value)} used as a fill value")
    return Tile(np.broadcast_to(value.data, tile_shape(shape)), kind)


@operation("zeros")
def zeros(machine: Machine, shape: Any, dtype: Any) -> Tile:
    return full(machine, shape, 0, dtype)


@operation("ones")
def ones(machine: Machine, shape: Any, dtype: Any) -> Tile:
    return full(machine, shape, 1, dtype)


@operation("astile")
def astile(machine: Machine, value: Any, /, *, dtype: Any) -> Tile:
    """A tile from nested tuples of scalars."""
    kind = require_dtype(dtype)

    def build(item: Any) -> Any:
        if isinstance(item, (tuple, list)):
            return np.stack([build(part) for part in item])
        return cast(item, kind).data

    data = np.asarray(build(value), kind.numpy)
    return Tile(data.reshape(tile_shape(data.shape)), kind)


@operation("reshape")
@method("Tile", "reshape")
def reshape(machine: Machine, x: Any, /, shape: Any) -> Tile:
    """The same elements in another shape; one extent may be -1."""
    tile = as_tile(x)
    wanted = tuple(as_int(extent) for extent in as_index(shape))
    return Tile(tile.data.reshape(wanted), tile.dtype)


@method("Tile", "item")
def item(machine: Machine, x: Tile, /) -> Tile:
    """The only element of a tile."""
    return Tile(x.data.reshape(()), x.dtype)


@operation("broadcast_to")
def broadcast_to(machine: Machine, x: Any, /, shape: Any) -> Tile:
    tile = as_tile(x)
    return Tile(np.broadcast_to(tile.data, tile_shape(shape)), tile.dtype)


@operation("expand_dims")
def expand_dims(machine: Machine, x: Any, /, axis: Any) -> Tile:
    tile = as_tile(x)
    return Tile(np.expand_dims(tile.data, as_int(axis)), tile.dtype)


@operation("permute")
@method("Tile", "permute")
def permute(machine: Machine, x: Any, /, axes: Any) -> Tile:
    tile = as_tile(x)
    return Tile(tile.data.transpose([as_int(axis) for axis in as_index(axes)]), tile.dtype)


@operation("transpose")
@method("Tile", "transpose")
def transpose(machine: Machine, x: Any, /, axis0: Any = None, axis1: Any = None) -> Tile:
    """Swap two axes; the only two if none is given."""
    tile = as_tile(x)
    if (axis0 is None) != (axis1 is None) or (axis0 is None and len(tile.shape) != 2):
        raise Reject(f"transpose of {describe(tile)} without both axes")
    first, second = (0, 1) if axis0 is None else (as_int(axis0), as_int(axis1))
    return Tile(tile.data.swapaxes(first, second), tile.dtype)


@operation("astype")
@method("Tile", "astype")
def astype(machine: Machine, x: Any, dtype: Any, /, *, rounding_mode: Any = None) -> Tile:
    """Convert the elements."""
    if getattr(rounding_mode, "name", "RN") not in ("RN", "RZ", "RP", "RM", "RA"):
        raise Reject(f"rounding mode {describe(rounding_mode)}")
    return cast(x, require_dtype(dtype))


@operation("bitcast")
def bitcast(machine: Machine, x: Any, /, dtype: Any) -> Tile:
    """The same bits as another type."""
    tile, kind = as_tile(x), require_dtype(dtype)
    if BOOL in (tile.dtype, kind) or tile.dtype.bitwidth != kind.bitwidth:
        raise Reject(f"bitcast from {tile.dtype} to {kind}")
    if tile.dtype == kind:
        return tile
    return Tile(from_bits(to_bits(tile.data, tile.dtype), kind), kind)


@operation("pack_to_bytes")
def pack_to_bytes(machine: Machine, x: Any, /) -> Tile:
    """The bytes of a tile, little-endian."""
    bits = to_bits(as_tile(x).data, as_tile(x).dtype)
    return Tile(pack(bits, as_tile(x).dtype), UINT8)


@operation("unpack_from_bytes")
def unpack_from_bytes(machine: Machine, x: Any, /, dtype: Any) -> Tile:
    """The inverse of `pack_to_bytes`."""
    tile, kind = as_tile(x), require_dtype(dtype)
    if tile.dtype != UINT8 or len(tile.shape) != 1:
        raise Reject(f"unpack_from_bytes of {describe(tile)}")
    return Tile(from_bits(unpack(tile.data, kind), kind), kind)


@operation("cat")
def cat(machine: Machine, tiles: Any, /, axis: Any) -> Tile:
    """Two tiles, one after the other."""
    parts = [as_tile(part) for part in tiles]
    kind = parts[0].dtype
    for part in parts[1:]:
        kind = promote(kind, part.dtype)
    data = np.concatenate([cast(part, kind).data for part in parts], axis=as_int(axis))
    require_size(data.shape)
    return Tile(data, kind)


@operation("extract")
@method("Tile", "extract")
def extract(machine: Machine, x: Any, /, index: Any, shape: Any) -> Tile:
    """One subtile of the grid that `shape` makes of the tile."""
    tile = as_tile(x)
    sizes = tile_shape(shape, len(tile.shape))
    part = _subtile(machine, tile, index, sizes or (1,) * len(tile.shape))
    return Tile(tile.data[part].reshape(sizes), tile.dtype)


@operation("insert")
@method("Tile", "insert")
def insert(machine: Machine, x: Any, /, index: Any, value: Any) -> Tile:
    """The tile with one subtile replaced."""
    tile, new = as_tile(x), as_tile(value)
    sizes = new.shape or (1,) * len(tile.shape)
    data = tile.data.copy()
    data[_subtile(machine, tile, index, sizes)] = cast(new, tile.dtype).data.reshape(sizes)
    return Tile(data, tile.dtype)


def _subtile(machine: Machine, tile: Tile, index: Any, sizes: Sequence[int]) -> tuple[slice, ...]:
    items = [as_int(part) for part in as_index(index)]
    if len(items) != len(tile.shape) or any(have % size for have, size in zip(tile.shape, sizes, strict=True)):
        raise Reject(f"a subtile of shape {tuple(sizes)} of {describe(tile)}")
    counts = [have // size for have, size in zip(tile.shape, sizes, strict=True)]
    if any(not 0 <= at < count for at, count in zip(items, counts, strict=True)):
        machine.undefined("tile-outside", element=items, detail=f"subtile of {math.prod(counts)}")
        items = [min(max(at, 0), count - 1) for at, count in zip(items, counts, strict=True)]
    return tuple(slice(at * size, (at + 1) * size) for at, size in zip(items, sizes, strict=True))
