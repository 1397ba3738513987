"""Every pattern of the catalogue is decided, and decided rightly."""

from __future__ import annotations

import random
from contextlib import closing

import pytest
from proof_brute import solutions
from proof_patterns import CATALOGUE, SINGLE

from tilecheck.proof.rungs.ladder import prove
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import satisfiable

ALL = [*CATALOGUE, *SINGLE]
SESSION = Session()


def test_the_catalogue_is_complete() -> None:
    assert len(CATALOGUE) == 102
    assert len(SINGLE) == 47


@pytest.mark.parametrize("pattern", ALL, ids=lambda p: p.name)
def test_pattern(pattern) -> None:
    assertions = pattern.assertions()
    answer = satisfiable(assertions, session=SESSION)
    assert answer.status == pattern.expect
    if answer.model is not None:
        assert all(answer.model.evaluate(a) for a in assertions)


@pytest.mark.parametrize("pattern", ALL, ids=lambda p: p.name)
def test_ladder_proves_the_safe_patterns_alone(pattern) -> None:
    question = pattern.question()
    if question is None:
        pytest.skip("not an obligation: contracts over a table, or no two blocks")
    with closing(Session()) as session:
        assert prove(*question, session).proved == (pattern.expect == "unsat")


@pytest.mark.parametrize("pattern", [p for p in ALL if p.expect == "sat"], ids=lambda p: p.name)
def test_broken_pattern_has_a_small_model(pattern) -> None:
    assertions = pattern.assertions()
    answer = satisfiable(assertions, session=SESSION, smallest=True)
    assert answer.model is not None
    assert all(answer.model.evaluate(a) for a in assertions)
    largest = max(abs(int(v)) for v in answer.model.symbols.values())
    has_large_literal = pattern.name[:3] in ("01z", "12b", "12e", "12f")
    assert has_large_literal or largest <= 40


@pytest.mark.parametrize("pattern", [p for p in CATALOGUE if p.expect == "unsat"], ids=lambda p: p.name)
def test_brute_force_finds_nothing_in_a_safe_pattern(pattern) -> None:
    if pattern.increasing or pattern.distinct:
        pytest.skip("a random table does not keep the contract")
    rng = random.Random(7)
    assert next(solutions(pattern.assertions(), rng, range(4), 1500), None) is None
