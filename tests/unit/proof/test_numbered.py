"""Numbers of blocks, and the rows and columns that they are taken apart into, for all blocks of small grids."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from proof_kernels import access, context

from tilecheck.ir.expr import (
    Expr,
    Kind,
    Symbol,
    add,
    all_of,
    bool_sym,
    conjuncts,
    eq,
    evaluate,
    floordiv,
    ite,
    le,
    lt,
    minimum,
    mod,
    mul,
    sub,
    sym,
)
from tilecheck.ir.kernel import Effect
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.proof.rewrite.block_numbering import numbered

ROWS, COLUMNS = Symbol("grid[0]", Kind.GRID), Symbol("grid[1]", Kind.GRID)
X, Y = Symbol("x", Kind.BLOCK, 1, bound=sym(ROWS)), Symbol("y", Kind.BLOCK, 2, bound=sym(COLUMNS))
SIZE, TILE = Symbol("G", Kind.CONSTANT), Symbol("T", Kind.CONSTANT)
x, y, rows, columns, G, T = map(sym, (X, Y, ROWS, COLUMNS, SIZE, TILE))

KERNEL = context(grid_axes=(0, 1)).kernel


MASK = le(0, T)


def holds(goal: Expr, assume: Expr = MASK) -> Obligation:
    return Obligation("TC303", Holds(goal, MASK), (), "", 1, "bounds", assume=assume)


def parts(spelling: int) -> tuple[Expr, Expr]:
    """A row and a column, with sums and sizes spelled in one of several ways."""
    old, where, turned = spelling & 1, spelling & 2, spelling & 4
    pid = add(mul(y, rows), x) if turned else add(x, mul(y, rows))
    width = mul(G, columns) if turned else mul(columns, G)
    first = mul(floordiv(pid, width), G)
    size = ite(lt(rows, add(first, G)), mod(rows, G), G) if where else minimum(sub(rows, first), G)
    inside = mod(pid, width)
    return add(first, mod(pid if old else inside, size)), floordiv(inside, size)


GRIDS = list(product(range(1, 6), range(1, 5), range(1, 5)))


@pytest.mark.parametrize("spelling", range(8))
def test_rows_and_columns_are_those_of_one_block_each(spelling: int) -> None:
    row, column = parts(spelling)
    goal = lt(add(mul(row, T), mul(column, T)), mul(T, T))
    plain = numbered(holds(goal), KERNEL).goal
    assert isinstance(plain, Holds)
    assert plain.goal is lt(add(mul(x, T), mul(y, T)), mul(T, T))
    assert numbered(holds(le(row, T)), KERNEL).goal.goal is le(x, T)
    assert numbered(holds(le(column, T)), KERNEL).goal.goal is le(y, T)
    flag = eq(G, 1)
    chosen = le(add(ite(flag, x, row), ite(flag, y, column)), T)
    assert numbered(holds(chosen), KERNEL).goal.goal is le(add(x, y), T)
    for n, m, g in GRIDS:
        blocks = list(product(range(n), range(m)))
        values = [{X: a, Y: b, ROWS: n, COLUMNS: m, SIZE: g}.__getitem__ for a, b in blocks]
        assert sorted((evaluate(row, v), evaluate(column, v)) for v in values) == blocks


@pytest.mark.parametrize("spelling", range(8))
def test_nothing_else_may_depend_on_the_ids(spelling: int) -> None:
    row, column = parts(spelling)
    for more in (x, y, add(x, mul(y, rows)), floordiv(add(x, y), T)):
        whole = holds(le(add(row, column, more), T))
        left = numbered(whole, KERNEL)
        for n, m, g in GRIDS:
            for a, b in product(range(n), range(m)):
                value = {X: a, Y: b, ROWS: n, COLUMNS: m, SIZE: g, TILE: 3}.__getitem__
                assert evaluate(left.goal.goal, value) == evaluate(whole.goal.goal, value)
                assert evaluate(left.assume, value)


def test_what_is_assumed_of_ids_is_left_out() -> None:
    row, _ = parts(0)
    assumed = all_of(le(1, x), le(1, row), le(0, T))
    found = numbered(holds(le(row, T), assumed), KERNEL)
    assert set(conjuncts(found.assume)) == {le(1, x), le(0, T)}


def test_numbers_that_are_taken_apart_otherwise_are_left() -> None:
    pid = add(x, mul(y, rows))
    for width, start in ((mul(rows, G), rows), (mul(columns, G), columns), (G, rows)):
        first = mul(floordiv(pid, width), G)
        size = minimum(sub(start, first), G)
        row, column = add(first, mod(mod(pid, width), size)), floordiv(mod(pid, width), size)
        if (width, start) == (mul(columns, G), rows):
            continue
        goal = le(add(row, column), T)
        assert numbered(holds(goal), KERNEL).goal.goal is goal


def test_ids_of_unlike_flags_are_left() -> None:
    row, column = parts(0)
    one, two = bool_sym(Symbol("A", Kind.CONSTANT, 8)), bool_sym(Symbol("B", Kind.CONSTANT, 9))
    for goal in (
        le(add(ite(one, x, row), ite(two, y, column)), T),
        le(add(ite(one, x, row), column), T),
        le(add(ite(one, y, row), ite(one, x, column)), T),
    ):
        assert numbered(holds(goal), KERNEL).goal.goal is goal


def test_a_kernel_with_atomics_is_left() -> None:
    goal = le(parts(0)[0], T)
    atomic = replace(access(), effect=Effect.ATOMIC)
    assert numbered(holds(goal), replace(KERNEL, accesses=(atomic,))).goal.goal is goal
    assert numbered(holds(goal), replace(KERNEL, accesses=(access(),))).goal.goal is le(x, T)
