"""A store whose lanes are sent elsewhere touches what its two parts touch."""

from __future__ import annotations

import random
from itertools import product

from tilecheck.frontend.execute.accesses import redirected
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.kernel import Axis

LANE, BID = E.sym(Symbol("lane", Kind.LANE)), E.sym(Symbol("bid", Kind.BLOCK))
N, K = E.sym(Symbol("n", Kind.SCALAR)), E.sym(Symbol("k", Kind.SCALAR))
EXTENTS = [E.sym(Symbol(f"out.shape[{k}]", Kind.EXTENT)) for k in range(2)]


def _touched(axes: tuple[Axis, ...], mask: Expr, values: dict[Symbol, int]) -> tuple[int, ...] | None:
    happens = E.all_of(mask, *(axis.inside for axis in axes))
    if not E.evaluate(happens, values.__getitem__):
        return None
    return tuple(int(E.evaluate(axis.coordinate, values.__getitem__)) for axis in axes)


def test_the_parts_touch_what_the_store_touches() -> None:
    rng = random.Random(3)
    plain = (LANE, BID, E.add(LANE, BID), E.add(LANE, -1))
    few, place = E.lt(LANE, K), E.add(LANE, BID)
    chosen = [E.ite(few, place, N), E.minimum(place, N), E.ite(few, LANE, E.add(N, 1))]
    split = 0
    for first, second in product((*plain, *chosen), repeat=2):
        axes = tuple(Axis(e, E.ONE, E.ONE, x, E.ZERO) for e, x in zip((first, second), EXTENTS, strict=True))
        parts = list(redirected(axes, E.lt(BID, 3)))
        split += len(parts) > 1
        for _ in range(60):
            values = {s.args[0]: rng.randrange(5) for s in (LANE, BID, N, K, *EXTENTS)}
            wanted = _touched(axes, E.lt(BID, 3), values)
            found = [_touched(own, mask, values) for own, mask, _ in parts]
            assert [e for e in found if e is not None] == ([] if wanted is None else [wanted])
    assert split > 20


def test_a_place_that_is_never_inside_is_left_out() -> None:
    axis = Axis(E.ite(E.lt(LANE, K), LANE, EXTENTS[0]), E.ONE, E.ONE, EXTENTS[0], E.ZERO)
    assert [spare for _, _, spare in redirected((axis,), E.TRUE)] == [False]
