"""Races inside a program between accesses whose lanes have other names."""

from __future__ import annotations

from dataclasses import replace

import pytest
from proof_kernels import BID, COUNT, LANE, LOOP, SIZE, access, context, element, obligation

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import ONE, Expr, Kind, Symbol, sym
from tilecheck.ir.kernel import Effect
from tilecheck.proof.goals.question import Question
from tilecheck.proof.obligation import Between, Disjoint
from tilecheck.proof.rewrite.equal_lanes import with_equal_lanes
from tilecheck.proof.rungs import provenance

OTHER = Symbol("lane", Kind.LANE, uid=1, bound=SIZE)
NARROW = Symbol("lane", Kind.LANE, uid=2, bound=ex.sub(SIZE, ONE))
READ, WRITTEN = sym(LANE), sym(OTHER)


def goal(read: Expr, written: Expr, other: Symbol = OTHER, between: Between = Between.PROGRAM) -> Disjoint:
    first = access(element(read), effect=Effect.READ)
    return Disjoint(first, access(element(written), lanes=(other,)), between)


def is_decided(asked: Disjoint) -> bool:
    return provenance.decide(Question(obligation(asked), context(ex.le(1, SIZE))))


def test_a_store_to_what_equal_lanes_have_loaded_meets_no_other_lane() -> None:
    base = ex.mul(BID, SIZE)
    asked = goal(ex.add(base, READ), ex.add(base, WRITTEN))
    renamed = with_equal_lanes(asked)
    assert renamed is not None
    assert renamed.second.lanes == (LANE,)
    assert renamed.second.axes == renamed.first.axes
    assert is_decided(asked)


@pytest.mark.parametrize(
    ("read", "written"),
    [
        (READ, ex.add(WRITTEN, 1)),  # the next lane's
        (ex.floordiv(READ, 2), ex.floordiv(WRITTEN, 2)),  # two lanes, one element
        (READ, ex.sub(SIZE, WRITTEN)),  # backwards
        (ex.mul(READ, COUNT), ex.mul(WRITTEN, COUNT)),  # all one element where the stride is 0
        (ex.add(READ, LOOP), ex.add(WRITTEN, LOOP)),  # another iteration's
    ],
)
def test_what_other_lanes_may_have_loaded_is_left_open(read: Expr, written: Expr) -> None:
    asked = goal(read, written)
    loops = (LOOP.args[0],)
    looped = Disjoint(replace(asked.first, loops=loops), replace(asked.second, loops=loops), asked.between)
    assert not is_decided(looped)


def test_tiles_of_two_sizes_are_not_paired() -> None:
    asked = goal(READ, sym(NARROW), NARROW)
    assert with_equal_lanes(asked) is None
    assert not is_decided(asked)


def test_other_goals_keep_their_lanes() -> None:
    for between in (Between.BLOCKS, Between.LANES, Between.THREADS):
        assert with_equal_lanes(goal(READ, WRITTEN, between=between)) is None


def test_no_two_symbols_get_one_name() -> None:
    asked = goal(ex.add(READ, 0), WRITTEN)
    guarded = replace(asked.second, guard=ex.lt(sym(LANE), sym(OTHER)))
    assert with_equal_lanes(Disjoint(asked.first, guarded, asked.between)) is None
