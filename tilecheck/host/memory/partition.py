"""Exclusive pieces of an array: disjoint tiles, each with the right to write it."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

from tilecheck.host.errors import HostRefused
from tilecheck.host.memory.arrays import locate
from tilecheck.host.memory.handles import Array
from tilecheck.host.memory.tile_maps import TileMap, check, tile_of
from tilecheck.host.operations.copies import Shape, shape_of
from tilecheck.host.places import Place, caller, text_of

_MOST_GRID_AXES = 3


class _Part(Array):
    """A handle of a partition: one of its pieces, or all of it. While some are in use the others are not:
    the whole is written only when all pieces are back, and a piece only while the whole is not in use."""

    __slots__ = ("partition",)

    def __init__(self, partition: Partition, source: Array, array: Any, place: Place) -> None:
        address, layout, _, _ = locate(array)
        storage = source.home()
        super().__init__(source.runtime, array, storage, storage.region(address, layout), place)
        self.partition = partition

    def check_alive(self, use: str, place: Place) -> None:
        super().check_alive(use, place)
        self.partition.check_free(self, use, place)

    def move(self, to: str, place: Place) -> None:
        super().move(to, place)
        try:
            self.partition.check_free(self, to, place, lent=True)
        except HostRefused:
            self.moved = None
            raise


class Partition:
    """An array as exclusive tiles. Given to a launch as a whole, it says the grid; indexed, it gives pieces.

    Mutable: it knows the pieces that were handed out.
    """

    def __init__(
        self,
        source: Array,
        tile: tuple[int, ...],
        place: Place,
        *,
        rows: int | None = None,
        grid: tuple[int, ...] | None = None,
        tile_map: TileMap | None = None,
    ) -> None:
        self.place = place
        shape = source.shape if rows is None else (rows, *source.shape[1:])
        if len(tile) != len(shape) or min((1, *tile)) < 1:
            raise ValueError(f"tiles of {list(tile)} for an array of shape {list(shape)}")
        self.tile = tile
        self.counts = tuple(-(-extent // size) for extent, size in zip(shape, tile, strict=True))
        self.grid = self.counts if grid is None else grid
        self._map = tile_map
        if tile_map is not None:
            check(tile_map, self.grid, self.counts)
        if rows is not None and not 0 <= rows <= source.shape[0]:
            raise ValueError(f"the first {rows} rows of an array of {source.shape[0]}")
        source.move("a partition", place)
        self._source = source
        self._pieces: dict[tuple[int, ...], weakref.ref[_Part]] = {}
        part = tuple(slice(0, extent) for extent in shape)
        self.whole = _Part(self, source, source.array if rows is None else source.array[part], place)

    def __getitem__(self, index: int | tuple[int, ...]) -> Array:
        """The piece of a block: the exclusive handle of its tile, clipped at the end of the array.

        Raises:
            HostRefused: all of the partition is in use, or it was undone.
            IndexError: there is no such block.
        """
        place = caller()
        block = index if isinstance(index, tuple) else (index,)
        if len(block) != len(self.grid) or any(not 0 <= i < n for i, n in zip(block, self.grid, strict=True)):
            raise IndexError(f"no block {block} in a grid of {self.grid}")
        super(_Part, self.whole).check_alive("a piece", place)
        found = self._pieces.get(block)
        piece = None if found is None else found()
        if piece is None:
            at = block if self._map is None else tile_of(self._map, block)
            box = tuple(
                slice(i * size, min((i + 1) * size, extent))
                for i, size, extent in zip(at, self.tile, self.whole.shape, strict=True)
            )
            piece = _Part(self, self._source, self.whole.array[box], place)
            self._pieces[block] = weakref.ref(piece)
        return piece

    def __len__(self) -> int:
        """How many pieces there are."""
        count = 1
        for size in self.grid:
            count *= size
        return count

    def pieces(self) -> list[Array]:
        """All pieces, the last axis of the grid running fastest."""
        return [self[block] for block in itertools.product(*map(range, self.grid))]

    def check_free(self, part: _Part, use: str, place: Place, *, lent: bool = False) -> None:
        """Check that no part that overlaps with one is in use: to be written, or, if `lent`, to be read.

        Raises:
            HostRefused: one is.
        """
        others = [self.whole] if part is not self.whole else self._handed_out()
        for other in others:
            if other.moved is None and not (lent and other.loans):
                continue
            where = f", moved into {other.moved[0]} at {text_of(other.moved[1])}" if other.moved else ""
            what = "a piece of it is" if part is self.whole else "the whole partition is"
            raise HostRefused(
                "TC412",
                f"{use} at {text_of(place)} uses the partition made at {text_of(self.place)} while {what} "
                f"in use{where}",
                "help: run that operation first: it gives back what it was given",
            )

    def _handed_out(self) -> list[_Part]:
        return [piece for held in self._pieces.values() if (piece := held()) is not None]

    def undo(self, place: Place) -> Array:
        """Take all pieces back, for the array itself."""
        self.whole.move("`unpartition`", place)
        for part in self._handed_out():
            part.moved = ("`unpartition`", place)
        self._source.moved = None
        return self._source


def partition(array: Array, tile: Shape) -> Partition:
    """Exclusive tiles of an array, from its first element on; those at the end are clipped.

    Raises:
        HostRefused: the array was moved, or is shared.
    """
    return Partition(array, shape_of(tile), caller())


def partition_prefix(array: Array, rows: int, tile: Shape) -> Partition:
    """Exclusive tiles of the first rows of an array. The others cannot be used until it is undone."""
    return Partition(array, shape_of(tile), caller(), rows=rows)


def partition_map(array: Array, tile: Shape, grid: Shape, tile_map: TileMap) -> Partition:
    """Exclusive tiles by a map from the index of a block to that of its tile.

    Args:
        array: it moves into the partition.
        tile: the shape of a tile.
        grid: the number of blocks along each axis.
        tile_map: integer arithmetic on the index of a block, for one or more coordinates. The prover shows
            that it is injective over the grid and stays inside the array.

    Raises:
        HostRefused: two blocks get one tile, or that cannot be decided.
    """
    return Partition(array, shape_of(tile), caller(), grid=shape_of(grid), tile_map=tile_map)


def unpartition(parts: Partition) -> Array:
    """The array itself, when all pieces are back.

    Raises:
        HostRefused: a piece was moved into an operation that has not run, or was partitioned further.
    """
    return parts.undo(caller())


def common_grid(args: Sequence[Any], place: Place) -> tuple[int, ...]:
    """The grid that the partitions among the arguments of a launch say.

    Raises:
        ValueError: there is none, or they say different ones.
    """
    grids = {value.grid for value in args if isinstance(value, Partition)}
    if len(grids) != 1 or len(grid := grids.pop()) > _MOST_GRID_AXES:
        known = ", ".join(map(str, sorted(grids))) or "none"
        raise ValueError(f"the launch at {text_of(place)} names no grid, and its partitions say: {known}")
    return grid
