"""Goals become the formulas that they mean."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from proof_brute import solutions

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import FALSE, ONE, TRUE, ZERO, Expr, Kind, Symbol, sym
from tilecheck.ir.kernel import (
    Access,
    Axis,
    Effect,
    Kernel,
    Space,
    block_symbol,
    extent_symbol,
    grid_symbol,
    stride_symbol,
)
from tilecheck.model import Site, Span
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.instances import in_instance, symbol_in_instance
from tilecheck.proof.goals.predicate import both_perform, inhabited, negation
from tilecheck.proof.obligation import Between, Disjoint, Holds, Ordered
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import satisfiable

SITE = Site("kernel.py", Span(0, 1))
BID = sym(block_symbol(0))
SIZE = sym(Symbol("T", Kind.CONSTANT))
EXTENT = sym(extent_symbol("out", 0))
LANE = Symbol("lane", Kind.LANE, bound=SIZE)


def kernel(*facts: Expr, grid_axes: tuple[int, ...] = (0,)) -> Context:
    return Context(Kernel("k", "cutile", SITE, (), grid_axes, (), (), (), facts))


def access(
    *axes: Axis, space: Space = Space.TILE, lanes: tuple[Symbol, ...] = (LANE,), **more: object
) -> Access:
    plain = Access("out", Effect.WRITE, space, axes, TRUE, TRUE, lanes, SITE, 0)
    return replace(plain, **more)


def tile(index: Expr, lane: Symbol = LANE, size: Expr = SIZE) -> Axis:
    return Axis(index, size, size, EXTENT, ZERO, lane)


def element(coordinate: Expr) -> Axis:
    return Axis(coordinate, ONE, ONE, EXTENT, ZERO)


def refuted(assertions: tuple[Expr, ...]) -> bool:
    return satisfiable(assertions, session=Session()).status == "unsat"


def test_instances_rename_what_varies_also_inside_bounds() -> None:
    loop = sym(Symbol("i", Kind.LOOP))
    inner = Symbol("l", Kind.LANE, bound=ex.add(loop, SIZE))
    renamed = symbol_in_instance(inner, 2)
    assert renamed.instance == 2
    assert renamed.bound is ex.add(in_instance(loop, 2), SIZE)
    assert in_instance(SIZE, 1) is SIZE


def test_tiles_of_different_blocks_are_disjoint() -> None:
    one = access(tile(BID))
    goal = Disjoint(one, one, Between.BLOCKS)
    negated = negation(goal, kernel())
    assert refuted(negated)
    assert not any(s.kind is Kind.LANE for s in ex.symbols(*negated))


def test_one_tile_for_all_blocks_is_not() -> None:
    one = access(tile(ZERO))
    answer = satisfiable(negation(Disjoint(one, one, Between.BLOCKS), kernel(ex.le(1, SIZE))))
    assert answer.status == "sat"
    assert answer.model is not None
    first, second = (symbol_in_instance(block_symbol(0), k) for k in (1, 2))
    assert answer.model.symbols[first] != answer.model.symbols[second]


def test_a_kernel_without_grid_axes_has_one_block() -> None:
    one = access(tile(ZERO))
    assert negation(Disjoint(one, one, Between.BLOCKS), kernel(grid_axes=())) == (FALSE,)


def test_a_block_index_that_the_kernel_does_not_declare_proves_nothing() -> None:
    one = access(tile(ex.floordiv(BID, 2)))
    assert not refuted(negation(Disjoint(one, one, Between.BLOCKS), kernel(grid_axes=())))


def test_lanes_of_a_tile_are_distinct_and_scattered_ones_may_not_be() -> None:
    one = access(tile(BID))
    assert refuted(negation(Disjoint(one, one, Between.LANES), kernel()))
    halves = access(element(ex.floordiv(sym(LANE), 2)), space=Space.ELEMENT)
    assert not refuted(
        negation(Disjoint(halves, halves, Between.LANES), kernel(ex.le(4, SIZE), ex.le(9, EXTENT)))
    )


def test_an_opaque_index_differs_between_lanes_only_if_it_may() -> None:
    for per_lane in (True, False):
        seed = sym(Symbol("seed", Kind.OPAQUE, per_lane=per_lane))
        one = access(element(ex.add(seed, sym(LANE))), space=Space.ELEMENT)
        assert refuted(negation(Disjoint(one, one, Between.LANES), kernel())) is not per_lane


def test_members_of_a_list_are_different_arrays() -> None:
    one = access(tile(ZERO), member=BID)
    assert refuted(negation(Disjoint(one, one, Between.BLOCKS), kernel()))


def test_arrays_with_different_names_are_not_compared_by_index() -> None:
    one, two = access(tile(BID)), access(tile(BID), array="other")
    assert not refuted(negation(Disjoint(one, two, Between.BLOCKS), kernel(ex.le(1, SIZE))))


def test_raw_offsets_meet_elements_through_strides() -> None:
    raw = access(element(ex.add(BID, 1)), space=Space.RAW)
    rows = access(element(BID), space=Space.ELEMENT)
    goal = Disjoint(raw, rows, Between.BLOCKS)
    stride = sym(stride_symbol("out", 0))
    assert not refuted(negation(goal, kernel(ex.eq(stride, 1))))
    assert refuted(negation(goal, kernel(ex.eq(stride, 0))))
    assert refuted(negation(Disjoint(raw, raw, Between.BLOCKS), kernel()))


def test_holds_uses_ranges_of_blocks_lanes_and_loops() -> None:
    loop = sym(Symbol("i", Kind.LOOP))
    goal = ex.all_of(
        ex.le(0, ex.add(BID, loop, sym(LANE))), ex.lt(BID, sym(grid_symbol(0))), ex.lt(sym(LANE), SIZE)
    )
    assert refuted(negation(Holds(goal, TRUE), kernel()))
    assert not refuted(negation(Holds(ex.lt(BID, 5), TRUE), kernel()))
    assert refuted(negation(Holds(ex.lt(BID, 5), ex.lt(BID, 4)), kernel()))
    assert refuted(negation(Holds(ex.lt(BID, 5), TRUE), kernel(), assume=ex.lt(BID, 4)))


def test_an_ordered_goal_is_not_a_question_about_numbers() -> None:
    one = access(tile(BID))
    assert negation(Ordered(one, one, "out"), kernel()) == (TRUE,)


def test_contradictory_facts_are_not_inhabited() -> None:
    assert refuted(inhabited(kernel(ex.lt(SIZE, 1), ex.lt(1, SIZE))))
    assert not refuted(inhabited(kernel(), (access(tile(BID)),)))
    assert refuted(inhabited(kernel(ex.eq(EXTENT, 0)), (access(tile(BID)),)))


def test_two_blocks_perform_only_if_the_grid_has_two() -> None:
    one = access(tile(BID))
    assert not refuted(both_perform(kernel(), one, one))
    assert refuted(both_perform(kernel(ex.lt(sym(grid_symbol(0)), 2)), one, one))


@pytest.mark.parametrize("seed", range(6))
def test_comparing_whole_tiles_says_the_same_as_comparing_elements(seed: int) -> None:
    """`negation` drops the lanes of plain tiles; with them, the same launches and blocks collide."""
    rng = random.Random(seed)
    n = sym(Symbol("n", Kind.SCALAR))
    first, second = (
        ex.add(ex.mul(rng.randint(-1, 2), BID), rng.choice((ZERO, ONE, n, ex.floordiv(BID, 2))))
        for _ in range(2)
    )
    one, two = access(tile(first)), access(tile(second))
    facts = ex.le(1, SIZE), ex.le(1, n)
    by_tile = negation(Disjoint(one, two, Between.BLOCKS), kernel(*facts))
    masked = [replace(a, mask=ex.le(sym(LANE), SIZE)) for a in (one, two)]  # always true, but mentions the lane
    by_element = negation(Disjoint(masked[0], masked[1], Between.BLOCKS), kernel(*facts))
    assert any(s.kind is Kind.LANE for s in ex.symbols(*by_element))
    found = []
    for negated in (by_tile, by_element):
        launches = set()
        for values in solutions(negated, rng, range(3), 3**9):
            launches.add(
                tuple(sorted((s.name, s.instance, v) for s, v in values.items() if s.kind is not Kind.LANE))
            )
        found.append(launches)
    assert found[0] == found[1]
