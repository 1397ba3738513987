"""What the rungs without a solver are given of a question."""

from __future__ import annotations

from dataclasses import replace

from proof_kernels import BID, COUNT, EXTENT, LOOP, SIZE, access, context, element, obligation

from tilecheck.ir.expr import FALSE, TRUE, Expr, add, le, lt, mul, read, sym
from tilecheck.ir.kernel import Access, extent_symbol
from tilecheck.proof.goals.question import Question
from tilecheck.proof.obligation import Between, Disjoint, Holds

LENGTH = le(mul(COUNT, SIZE), EXTENT)
OTHER = le(mul(COUNT, 4), sym(extent_symbol("x", 0)))
CONDITIONS = (le(1, COUNT), LENGTH, OTHER)


def near(at: Access) -> tuple[Expr, ...]:
    race = obligation(Disjoint(at, at, Between.BLOCKS))
    return Question(race, context().under(*CONDITIONS)).near.conditions


def test_a_race_in_flat_memory_does_without_lengths() -> None:
    at = replace(access(element(add(mul(BID, COUNT), LOOP)), lanes=()), unchecked=TRUE)
    assert near(at) == (le(1, COUNT),)
    bounds = replace(obligation(Holds(lt(BID, EXTENT), TRUE)), assume=TRUE)
    assert Question(bounds, context().under(*CONDITIONS)).near.conditions == CONDITIONS


def test_places_that_speak_of_an_extent_keep_its_lengths() -> None:
    """So do those that are looked up, and arrays with axes."""
    at = replace(access(element(add(mul(BID, EXTENT), LOOP)), lanes=()), unchecked=TRUE)
    assert near(at) == (le(1, COUNT), LENGTH)
    looked_up = replace(access(element(read("t", BID)), lanes=()), unchecked=TRUE)
    assert near(looked_up) == CONDITIONS
    checked = replace(access(element(BID), lanes=()), unchecked=FALSE)
    assert near(checked) == CONDITIONS
