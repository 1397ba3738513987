"""What is learned of disjunctions about values in memory, and nothing that does not follow."""

from __future__ import annotations

import pytest

from tilecheck.ir.expr import Expr, Kind, Symbol, add, all_of, any_of, eq, le, lt, negate, read, sym
from tilecheck.proof.premises.guarded_contracts import about_ends, learn_ends, learn_guarded
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.premises.shared import KnownPremises
from tilecheck.proof.rungs.entail import follows

AT, N, M = (sym(Symbol(name, Kind.SCALAR)) for name in "inm")
INNER = read("t", AT)
OUTER = read("u", INNER)


def guarded(index: Expr, length: Expr, value: Expr, limit: Expr) -> Expr:
    return any_of(lt(index, 0), le(length, index), lt(value, limit))


def learned(*facts: Expr) -> Premises:
    premises = Premises.of(facts)
    learn_guarded(premises)
    return premises


def test_an_element_that_exists_may_show_that_another_does() -> None:
    chain = guarded(AT, N, INNER, M), guarded(INNER, M, OUTER, N)
    premises = learned(le(0, AT), lt(AT, N), le(0, INNER), *chain)
    assert lt(INNER, M) in premises.facts
    assert lt(OUTER, N) in premises.facts


def test_nothing_is_learned_of_an_element_that_may_be_outside() -> None:
    premises = learned(le(0, AT), le(AT, N), guarded(AT, N, INNER, M))
    assert lt(INNER, M) not in premises.facts
    assert lt(INNER, M) not in learned(lt(AT, N), guarded(AT, N, INNER, M)).facts


def test_a_disjunction_without_a_possible_term_contradicts() -> None:
    assert learned(le(0, AT), lt(AT, N), le(M, INNER), guarded(AT, N, INNER, M)).contradict
    assert not learned(le(0, AT), lt(AT, N), le(M, add(INNER, 1)), guarded(AT, N, INNER, M)).contradict


def test_what_is_left_open_is_given_back() -> None:
    premises = Premises.of([lt(AT, N), guarded(AT, N, INNER, M)])
    assert learn_guarded(premises) == [(lt(AT, 0), lt(INNER, M))]


# ---- ends of searches ----------------------------------------------------------------------------------------

KINDS = {"end": Kind.OPAQUE, "place": Kind.SCALAR, "length": Kind.EXTENT}
END, PLACE, LENGTH = (sym(Symbol(name, kind, 90)) for name, kind in KINDS.items())
FOUND = read("t", END)
MOVED = any_of(eq(END, 0), le(FOUND, PLACE))
EXISTS = (le(0, END), lt(END, LENGTH))
FIRST_IS_0 = any_of(negate(all_of(le(0, END), lt(END, LENGTH), eq(END, 0))), all_of(le(0, FOUND), lt(FOUND, 1)))


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ((MOVED, *EXISTS, FIRST_IS_0, le(0, PLACE)), True),
        ((MOVED, *EXISTS, lt(0, END)), True),  # it has moved
        ((MOVED, *EXISTS, FIRST_IS_0), False),  # x may be negative
        ((MOVED, *EXISTS, le(0, PLACE)), False),
        ((MOVED, FIRST_IS_0, le(0, PLACE)), False),  # the element may be outside
        ((any_of(eq(END, 1), le(FOUND, PLACE)), *EXISTS, FIRST_IS_0, le(0, PLACE)), False),
        ((any_of(eq(END, 0), lt(FOUND, PLACE)), *EXISTS, FIRST_IS_0, le(0, PLACE)), False),
    ],
)
def test_what_a_search_tells_holds_where_it_began(facts, told) -> None:
    assert MOVED not in facts or MOVED in about_ends(facts)
    assert bool(learn_ends(Premises.of(facts))) is told
    if told:
        known = KnownPremises().of(facts)
        assert follows(le(FOUND, PLACE), known, 3)


def test_an_end_that_must_have_moved_has() -> None:
    large = any_of(negate(all_of(*EXISTS, eq(END, 0))), le(LENGTH, FOUND))  # the element where it began
    known = KnownPremises().of((MOVED, *EXISTS, large, lt(FOUND, LENGTH)))
    assert follows(le(1, END), known, 3)
    assert not follows(le(1, END), KnownPremises().of((MOVED, *EXISTS, large)), 3)
    assert not follows(le(1, END), KnownPremises().of((MOVED, *EXISTS, lt(FOUND, LENGTH))), 3)
