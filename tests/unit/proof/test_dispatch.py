"""What a block's id chooses is taken apart into cases, of which exactly one holds in each block."""

from __future__ import annotations

from itertools import product

import pytest

from tilecheck import check_source
from tilecheck.ir.expr import Expr, Kind, Symbol, all_of, any_of, eq, evaluate, ite, le, lt, ne, sym
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.proof.rewrite.block_dispatch import dispatched, in_order, only_id, reached, settled

GRID = Symbol("grid[0]", Kind.GRID)
BID = Symbol("bid", Kind.BLOCK, 1, bound=sym(GRID))
A, B, C = (Symbol(name, Kind.SCALAR) for name in "abc")
b, a_, b_, c_ = sym(BID), sym(A), sym(B), sym(C)


def obligation(goal: Expr, given: Expr) -> Obligation:
    return Obligation("TC303", Holds(goal, given), (), "", 1, "bounds")


CHOICES = [
    ite(eq(b, 0), a_, ite(eq(b, 1), b_, c_)),
    ite(eq(b, 3), a_, ite(eq(b, 2), b_, ite(eq(b, 0), c_, a_))),
    ite(eq(b, -1), a_, b_),
    ite(all_of(eq(b, 1), le(a_, 2)), a_, ite(any_of(eq(b, 0), eq(b, 2)), b_, c_)),
]
GIVENS = [le(0, b), ne(b, 1), all_of(ne(b, 0), eq(b, 1)), any_of(eq(b, 2), all_of(ne(b, 0), lt(a_, 2)))]


@pytest.mark.parametrize(("choice", "given"), list(product(CHOICES, GIVENS)))
def test_one_case_holds_in_each_block_and_says_the_same(choice: Expr, given: Expr) -> None:
    whole = obligation(le(choice, 1), given)
    cases = dispatched(whole)
    assert cases != (whole,)
    for bid, a, other, c in product(range(6), range(3), range(3), range(3)):
        values = {BID: bid, A: a, B: other, C: c, GRID: 6}.__getitem__
        met = [case for case in cases if evaluate(case.goal.given, values)]
        assert len(met) == bool(evaluate(given, values))
        for case in met:
            assert evaluate(case.goal.goal, values) == evaluate(whole.goal.goal, values)
        plain = settled(whole).goal
        assert evaluate(plain.given, values) == evaluate(given, values)
        if met:
            assert evaluate(plain.goal, values) == evaluate(whole.goal.goal, values)


GUARDS = [eq(b, 2), ne(b, 0), all_of(ne(b, 0), ne(b, 1)), all_of(ne(b, 0), ne(b, 2)), le(1, b), ne(b, -1)]


@pytest.mark.parametrize("guard", GUARDS)
def test_what_guards_say_of_ids(guard: Expr) -> None:
    for grid in range(1, 6):
        met = [k for k in range(grid) if evaluate(guard, {BID: k, GRID: grid}.__getitem__)]
        assert not met or all(evaluate(fact, {GRID: grid}.__getitem__) for fact in reached((guard,)))
        left = only_id(guard, BID, grid)
        assert left is None or (met or [grid]) == [left]
    assert only_id(guard, BID, float("inf")) is None


def test_order_is_that_of_the_smallest_ids() -> None:
    assert in_order(eq(b, 0), all_of(ne(b, 0), ne(b, 1))) == 1
    assert in_order(eq(b, 2), all_of(ne(b, 0), ne(b, 2))) == -1
    assert in_order(eq(b, 2), eq(b, 2)) == in_order(le(0, b), eq(b, 2)) == 0


TEXT = """
import triton
import triton.language as tl


@triton.jit
def kernel(out_ptr, a, b, c, n, BLOCK: tl.constexpr):
    which = tl.program_id(1)
    start = tl.where(which == 0, a, tl.where(which == 1, b, {last}))
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + start + i, 1.0, mask=i < n)
"""


def conditions(text: str) -> tuple[str, ...] | None:
    [kernel] = check_source(text, "kernel.py").kernels
    return kernel.conditions if kernel.verdict.value == "conditional" else None


def test_what_a_branch_needs_is_asked_where_it_is_reached() -> None:
    found = conditions(TEXT.format(last="c"))
    assert found is not None
    assert "grid[1] <= 3" in found
    assert {"grid[1] < 2 or n + a <= b", "grid[1] < 3 or n + b <= c"} <= set(found)


def test_a_branch_that_starts_inside_another_is_not_saved() -> None:
    assert conditions(TEXT.format(last="a + 1")) is None
    assert "grid[1] <= 2" in (conditions(TEXT.format(last="b")) or ())  # there are two branches
