"""Maps from blocks of a grid to tiles of an array, shown to give no two blocks one tile."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from tilecheck.host.errors import HostRefused
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol

if TYPE_CHECKING:
    from tilecheck.proof.solver.solver import Answer

TileMap: TypeAlias = Callable[..., "int | Coordinate | tuple[int | Coordinate, ...]"]


class Coordinate:
    """An integer of a block's index that is not chosen yet. Sums, products, floor division and remainders of it
    are understood; what would have to know its value is not."""

    __slots__ = ("value",)

    def __init__(self, value: Expr) -> None:
        self.value = value

    def __add__(self, other: int | Coordinate) -> Coordinate:
        return Coordinate(E.add(self.value, _lifted(other)))

    def __sub__(self, other: int | Coordinate) -> Coordinate:
        return Coordinate(E.sub(self.value, _lifted(other)))

    def __rsub__(self, other: int) -> Coordinate:
        return Coordinate(E.sub(_lifted(other), self.value))

    def __mul__(self, other: int | Coordinate) -> Coordinate:
        return Coordinate(E.mul(self.value, _lifted(other)))

    def __neg__(self) -> Coordinate:
        return Coordinate(E.neg(self.value))

    def __floordiv__(self, other: int) -> Coordinate:
        return Coordinate(E.floordiv(self.value, _divisor(other)))

    def __mod__(self, other: int) -> Coordinate:
        return Coordinate(E.mod(self.value, _divisor(other)))

    def _unknown(self, *_: object) -> NoReturn:
        raise TypeError("a tile map may not look at the value of an index: use arithmetic alone")

    __radd__ = __add__
    __rmul__ = __mul__
    __bool__ = __index__ = __int__ = __lt__ = __le__ = __gt__ = __ge__ = _unknown
    __eq__ = __ne__ = _unknown
    __hash__ = None  # type: ignore[assignment]


def _lifted(value: int | Coordinate) -> Expr:
    return value.value if isinstance(value, Coordinate) else E.const(operator.index(value))


def _divisor(value: int) -> Expr:
    if isinstance(value, Coordinate) or not operator.index(value):
        raise TypeError("a tile map may divide by numbers other than 0 alone")
    return E.const(operator.index(value))


def tile_of(tile_map: TileMap, block: Sequence[int]) -> tuple[int, ...]:
    """The tile of a block."""
    found = tile_map(*block)
    return tuple(map(operator.index, found if isinstance(found, tuple) else (found,)))


def check(tile_map: TileMap, grid: Sequence[int], counts: Sequence[int]) -> None:
    """Show that a map gives every block of the grid a tile of its own among `counts` tiles.

    Raises:
        HostRefused: two blocks get one tile, a block gets none, or that cannot be shown.
        TypeError: the map does something that is not understood.
    """
    first, tiles = _mapped(tile_map, grid, 1)
    second, others = _mapped(tile_map, grid, 2)
    if len(tiles) != len(counts):
        raise HostRefused("", f"the tile map gives {len(tiles)} coordinates for an array of {len(counts)} axes")
    inside = [*_inside(first, grid), *_inside(second, grid)]
    outside = E.any_of(*(E.any_of(E.lt(t, 0), E.ge(t, n)) for t, n in zip(tiles, counts, strict=True)))
    answer = _decide([*inside, outside])
    if answer.status != "unsat":
        block = _block(answer, first)
        raise HostRefused(
            "", "the tile map leaves the array", f"of the {tuple(counts)} tiles, block {block} gets another"
        )
    same = [E.eq(t, u) for t, u in zip(tiles, others, strict=True)]
    apart = E.any_of(*(E.ne(E.sym(i), E.sym(j)) for i, j in zip(first, second, strict=True)))
    answer = _decide([*inside, *same, apart])
    if answer.status != "unsat":
        blocks = f"blocks {_block(answer, first)} and {_block(answer, second)}"
        raise HostRefused("", "the tile map is not shown to be injective", f"{blocks} get one tile")


def _mapped(tile_map: TileMap, grid: Sequence[int], instance: int) -> tuple[list[Symbol], list[Expr]]:
    block = [
        Symbol(f"block {axis}", Kind.BLOCK, bound=E.const(size), instance=instance)
        for axis, size in enumerate(grid)
    ]
    found = tile_map(*(Coordinate(E.sym(symbol)) for symbol in block))
    return block, [_lifted(value) for value in (found if isinstance(found, tuple) else (found,))]


def _inside(block: Sequence[Symbol], grid: Sequence[int]) -> list[Expr]:
    return [
        condition
        for symbol, size in zip(block, grid, strict=True)
        for condition in (E.le(0, E.sym(symbol)), E.lt(E.sym(symbol), size))
    ]


def _decide(assertions: list[Expr]) -> Answer:
    from tilecheck.proof.solver.solver import satisfiable  # lazy: loads the solver

    answer = satisfiable(assertions)
    if answer.status == "unknown":
        raise HostRefused(
            "", f"the tile map cannot be decided ({answer.reason})", "help: use simpler arithmetic"
        )
    return answer


def _block(answer: Answer, block: Sequence[Symbol]) -> tuple[int, ...]:
    assert answer.model is not None
    return tuple(int(answer.model.evaluate(E.sym(symbol))) for symbol in block)
