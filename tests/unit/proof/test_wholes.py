"""Which goals are looked at as a whole is told by those of their kind that were, and changes no verdict."""

from __future__ import annotations

from proof_kernels import COUNT, LANE, SIZE, access, element, obligation

from tilecheck.ir.expr import TRUE, Kind, Symbol, add, bool_sym, ite, lt, mul, sym
from tilecheck.proof.obligation import Between, Disjoint, Holds
from tilecheck.proof.rewrite.whole_goals import Wholes

FLAG = bool_sym(Symbol("REVERSE", Kind.CONSTANT))
PLACE = ite(FLAG, mul(COUNT, sym(LANE)), add(COUNT, sym(LANE)))
RACE = obligation(Disjoint(access(element(PLACE)), access(element(PLACE)), Between.BLOCKS))
BOUND = obligation(Holds(lt(PLACE, SIZE), TRUE))
PLAIN = obligation(Holds(lt(COUNT, SIZE), TRUE))


def test_a_race_is_taken_apart_where_bounds_were() -> None:
    wholes = Wholes()
    assert wholes.is_tried(BOUND)
    assert wholes.is_tried(RACE)
    wholes.note(BOUND, saved=False)
    assert not wholes.is_tried(BOUND)
    assert not wholes.is_tried(RACE)
    assert wholes.is_tried(PLAIN)  # which has no cases


def test_bounds_are_looked_at_as_a_whole_whatever_became_of_races() -> None:
    wholes = Wholes()
    wholes.note(RACE, saved=False)
    assert wholes.is_tried(BOUND)
    assert not wholes.is_tried(RACE)
    wholes.note(BOUND, saved=True)
    assert wholes.is_tried(BOUND)
