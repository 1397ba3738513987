"""Which 32-bit expressions wrap although every run-time quantity is small."""

from __future__ import annotations

import pytest

from tilecheck.analysis.ranges import SMALL, promised_sizes, wraps_when_small
from tilecheck.ir.expr import Expr, Kind, Symbol, add, all_of, const, floordiv, le, lt, mod, mul, sym

N = sym(Symbol("n", Kind.SCALAR))
GRID = Symbol("grid[0]", Kind.GRID)
BLOCK = sym(Symbol("ct.bid(0)", Kind.BLOCK, bound=sym(GRID)))


@pytest.mark.parametrize(
    ("value", "wraps"),
    [
        (mul(N, 1 << 20), False),
        (mul(N, 1 << 26), True),
        (mul(N, -2_000_000_000), True),
        (mul(N, N, N, N), False),
        (add(mul(N, N), N), False),
        (floordiv(mul(N, 1 << 26), 1 << 20), True),
        (mod(mul(N, 1 << 26), 1000), False),
        (mul(N, N, N, N, N, N, N), False),
        (mul(N, N, N, N, N, N, 1000), False),
        (mul(N, N, N, N, N, N, 1 << 26), True),
        (mul(N, N, 1 << 20), True),
        (add(mul(N, N, N, N, N, N), mul(N, 1 << 30)), True),
        (add(mul(N, N, N, N, N, N), mul(N, 40_000_000)), True),
        (floordiv(add(mul(N, N, N, N, N, N), mul(N, 40_000_000)), 2), True),
        (mul(*[N] * 40), False),
    ],
)
def test_constants_decide(value: Expr, wraps: bool) -> None:
    assert wraps_when_small(value, {}) is wraps


def test_contracts_raise_what_counts_as_small() -> None:
    value = mul(BLOCK, 1 << 20)
    assert not wraps_when_small(value, {})
    promised = promised_sizes([all_of(le(4096, sym(GRID)), lt(N, 5))])
    assert promised == {GRID: 4096}
    assert wraps_when_small(value, promised)


def test_lanes_below_a_large_literal_are_as_many() -> None:
    lane = sym(Symbol("lane 0", Kind.LANE, bound=const(65536)))
    assert wraps_when_small(mul(lane, 65536), {})
    assert not wraps_when_small(mul(lane, 4096), {})


def test_a_large_promise_leaves_other_sizes_as_they_are() -> None:
    promised = {Symbol("n", Kind.SCALAR): 100_000}
    assert wraps_when_small(add(N, mul(BLOCK, 40_000_000)), promised)
    assert wraps_when_small(mul(N, BLOCK, 1000), promised)


def test_small_promises_change_nothing() -> None:
    assert promised_sizes([le(SMALL, N)]) == {}
