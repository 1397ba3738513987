"""What needs no solver: lengths asked for under flags, tiles that are broadcast, minima as limits."""

from __future__ import annotations

from dataclasses import replace

from proof_kernels import BID, COUNT, EXTENT, LANE, SIZE, access, element, obligation

from tilecheck.ir.expr import (
    Expr,
    Kind,
    Symbol,
    add,
    any_of,
    bool_sym,
    eq,
    ite,
    le,
    lt,
    minimum,
    mul,
    negate,
    sub,
    sym,
)
from tilecheck.ir.kernel import extent_symbol
from tilecheck.proof.conditions.ranges import Ranges
from tilecheck.proof.conditions.terms import Terms
from tilecheck.proof.obligation import Between, Disjoint
from tilecheck.proof.rewrite.case_split import cases
from tilecheck.proof.solver.known_models import Recall

FLAGS = [bool_sym(Symbol(f"F{k}", Kind.CONSTANT)) for k in range(6)]


def test_lengths_under_many_flags_are_met_at_once() -> None:
    """As many as a change each for one of them would not reach."""
    arrays = [sym(extent_symbol(f"x{k}", 0)) for k in range(30)]
    lengths = [
        any_of(negate(FLAGS[k % 6]), le(mul(COUNT, COUNT, k + 2), extent)) for k, extent in enumerate(arrays)
    ]
    found = Recall().repaired((*lengths, *FLAGS, le(9, COUNT)), wanted=True)
    assert found is not None
    assert all(found.number(extent) >= 81 * (k + 2) for k, extent in enumerate(arrays))


def test_a_length_that_is_limited_is_no_least_one() -> None:
    question = (any_of(negate(FLAGS[0]), le(mul(COUNT, 2), EXTENT)), FLAGS[0], le(EXTENT, 10), le(8, COUNT))
    assert Recall().repaired(question, wanted=True) is None


def test_a_lane_below_the_size_of_its_tile_is_itself_where_that_is_broadcast() -> None:
    """Under a flag: `max(T, T if FLAG else n)` is T, and `0 if T == 1 else lane` is the lane."""
    wide = ite(FLAGS[0], SIZE, add(SIZE, COUNT))
    lane = replace(LANE, bound=wide)
    at = access(element(add(mul(BID, SIZE), ite(eq(SIZE, 1), 0, sym(lane)))), lanes=(lane,))
    first, second = cases(obligation(Disjoint(at, at, Between.BLOCKS)))
    assert isinstance(first.goal, Disjoint)
    assert isinstance(second.goal, Disjoint)
    (own,) = first.goal.first.lanes
    assert own.bound == SIZE
    assert first.goal.first.axes[0].index is add(mul(BID, SIZE), sym(own))
    (other,) = second.goal.first.lanes
    assert second.goal.first.axes[0].index is add(mul(BID, SIZE), ite(eq(SIZE, 1), 0, sym(other)))


def test_what_is_below_a_minimum_is_below_each_of_its_branches() -> None:
    i, n, k = (sym(Symbol(name, Kind.LOOP)) for name in ("i", "n", "k"))
    terms = Terms()
    ranges = Ranges(terms, (lt(i, minimum(SIZE, sub(COUNT, k))),))
    known: dict[Expr, Expr] = {terms.expr(p): bound for p, bound in ranges.known()}
    assert known[add(i, k)] is sub(COUNT, 1)
    assert known[i] is sub(SIZE, 1)
    assert n not in known
