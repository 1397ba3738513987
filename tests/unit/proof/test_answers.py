"""What is remembered of one copy of premises is said of no other that was told something else."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from proof_brute import integers, random_boolean

from tilecheck.ir.expr import Expr, floordiv, le, lt, mul
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.premises.shared import KnownPremises
from tilecheck.proof.rungs.entail import entailed

X, Y, Z, N = integers("x", "y", "z", "n")
STATED = (le(0, X), le(1, N), le(X, Y))


def told(known: KnownPremises, *facts: Expr) -> Premises:
    found = known.of(STATED)
    for fact in facts:
        found.assume(fact)
    return found


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_what_one_copy_is_told_answers_for_no_other(order: tuple[int, ...]) -> None:
    known = KnownPremises()
    asked = [((), False), ((le(5, X),), True), ((le(5, Y),), False), ((le(2, X), le(2, X)), False)]
    for number in (*order, *order):
        facts, answer = asked[number]
        assert entailed(le(3, X), told(known, *facts)) is answer


def test_atoms_that_copies_number_otherwise_are_kept_apart() -> None:
    known = KnownPremises()
    one, two = known.of(STATED), known.of(STATED)
    assert entailed(le(0, floordiv(X, N)), one)
    assert not entailed(le(0, floordiv(Z, N)), two)
    three, four = known.of(STATED), known.of(STATED)
    assert three.form(Z) == four.form(floordiv(X, N))  # one number for both
    assert not entailed(le(0, Z), three)
    assert entailed(le(0, floordiv(X, N)), four)


def test_what_was_asked_before_costs_less() -> None:
    known = KnownPremises()
    spent = []
    for _ in range(2):
        copy = known.of(STATED)
        before = known.work.spent
        assert entailed(lt(X, mul(N, Y)), copy) is entailed(lt(X, mul(N, Y)), known.of(STATED))
        spent.append(known.work.spent - before)
    assert spent[1] < spent[0]


@pytest.mark.parametrize("seed", range(30))
def test_shared_answers_are_those_of_premises_made_anew(seed: int) -> None:
    rng = random.Random(seed)
    known = KnownPremises()
    leaves = [X, Y, Z, N, floordiv(Y, N), mul(X, N)]
    pool = [random_boolean(rng, leaves, 2) for _ in range(5)]
    for _ in range(12):
        facts = [rng.choice(pool) for _ in range(rng.randrange(3))]
        goals = [rng.choice(pool) for _ in range(3)]
        shared, own = told(known, *facts), told(KnownPremises(), *facts)
        for goal in goals:
            assert entailed(goal, shared) is entailed(goal, own)
