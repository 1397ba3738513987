"""What disjunctions give once facts contradict their other terms."""

from __future__ import annotations

import itertools
import random

from tilecheck.ir.expr import Expr, Kind, Symbol, all_of, any_of, bool_sym, evaluate, negate
from tilecheck.proof.premises.disjunctions import resolved

A, B, C, D = (bool_sym(Symbol(name, Kind.HOST)) for name in "abcd")


def test_the_only_term_that_is_left_follows() -> None:
    assert resolved([any_of(A, B), negate(A)]) == [B]
    assert resolved([any_of(A, all_of(B, C)), negate(A)]) == [B, C]


def test_a_term_is_refuted_by_any_part_of_it() -> None:
    assert resolved([any_of(all_of(A, B), C), negate(B)]) == [C]


def test_parts_that_do_not_hold_together_refute_a_term_with_both() -> None:
    assert resolved([any_of(all_of(A, B, C), D), negate(all_of(A, C))]) == [D]


def test_what_follows_may_decide_another_disjunction() -> None:
    assert resolved([any_of(negate(B), C), any_of(A, B), negate(A)]) == [B, C]


def test_two_terms_that_may_hold_give_nothing() -> None:
    assert resolved([any_of(A, B, C), negate(A)]) == []
    assert resolved([any_of(all_of(A, B), C), negate(all_of(A, D))]) == []
    assert resolved([any_of(A, B), A]) == []


def test_all_that_follows_holds_wherever_the_facts_do() -> None:
    rng = random.Random(7)
    literals = [*(A, B, C, D), *map(negate, (A, B, C, D))]

    def term() -> Expr:
        return all_of(*rng.sample(literals, rng.randint(1, 3)))

    derived = 0
    for _ in range(500):
        facts = [any_of(*(term() for _ in range(rng.randint(1, 3)))) for _ in range(3)]
        facts += [negate(term()) for _ in range(2)]
        found = resolved(facts)
        derived += len(found)
        for values in itertools.product((False, True), repeat=4):
            given = dict(zip((s.args[0] for s in (A, B, C, D)), values, strict=True))
            if all(evaluate(fact, given.__getitem__) for fact in facts):
                assert all(evaluate(fact, given.__getitem__) for fact in found)
    assert derived > 100
