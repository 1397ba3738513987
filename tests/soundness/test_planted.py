"""The random cases notice a prover that is wrong, and parts of the prover prove nothing that is false."""

from __future__ import annotations

import random

import pytest
from soundness_ablation import FAMILIES, SETUPS, Setup, ablated, opinions, proved
from soundness_decided import decide, first_wrong, whole
from soundness_edges import EDGES, WHOLE_EDGES
from soundness_planted import BUGS, MANY, SOURCE_EDGES, Bug, edge_that_finds, held_edge
from soundness_truth import Runner


@pytest.mark.parametrize("name", EDGES)
def test_an_edge_case_goes_wrong_and_is_not_proved(name: str) -> None:
    case = EDGES[name]
    assert decide(case, 0, count=0).verdict != "proved"
    assert first_wrong(case, Runner.of(case), random.Random(1), MANY)[0] is not None


@pytest.mark.parametrize("name", WHOLE_EDGES)
def test_no_launch_refutes_a_whole_edge_case(name: str) -> None:
    assert not whole(WHOLE_EDGES[name], 0, MANY).refuted


@pytest.mark.parametrize("name", SOURCE_EDGES)
def test_a_source_edge_case_goes_wrong_and_is_not_proved(name: str) -> None:
    held = held_edge(name)
    assert held.verdict != "proved"
    assert held.problem is None


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.what)
def test_an_edge_case_finds_a_planted_bug(bug: Bug) -> None:
    assert edge_that_finds(bug) is not None


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.name)
def test_no_part_of_the_prover_proves_an_edge_case(setup: Setup) -> None:
    assert [name for name, case in EDGES.items() if proved(case, setup)] == []


def test_parts_of_the_prover_prove_nothing_false() -> None:
    counts, refuted = ablated(range(600, 612), SETUPS)
    assert not refuted, refuted[0]
    assert counts["all"]["proved"]
    assert counts["smt alone"]["proved"]
    assert counts["provenance alone"]["proved"]


def test_every_lemma_family_exists() -> None:
    """A family that is renamed would otherwise be left out in name only."""
    with Setup("none", frozenset(), frozenset(FAMILIES)).lemmas():
        pass


def test_other_solvers_agree() -> None:
    found = list(opinions(range(20)))
    assert not [opinion for opinion in found if opinion.clash]
    assert any(opinion.ours == opinion.z3 == opinion.cvc5 == "unsat" for opinion in found)
    assert any(opinion.z3 == "sat" for opinion in found)
