"""What is learned of disjunctions about values in memory, and nothing that does not follow."""

from __future__ import annotations

from tilecheck.ir.expr import Expr, Kind, Symbol, add, any_of, le, lt, read, sym
from tilecheck.proof.guarded import learn_guarded
from tilecheck.proof.premises import Premises

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
