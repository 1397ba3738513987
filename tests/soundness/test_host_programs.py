"""The queries over the host borrow graph find what some interleaving shows, no more and no less."""

from __future__ import annotations

from collections import Counter

import pytest
from soundness_host_judged import Judged, judged, unconfirmed

CODES = (*(f"TC41{k}" for k in range(1, 6)), *(f"TC42{k}" for k in range(1, 7)), "TC431", "TC432", "TC433")


@pytest.fixture(scope="module")
def drawn() -> list[Judged]:
    return [judged(seed) for seed in range(400)]


def test_queries_find_what_interleavings_show(drawn: list[Judged]) -> None:
    assert [found for found in drawn if found.missed or found.invented] == []


def test_the_drawn_programs_break_each_rule_and_none(drawn: list[Judged]) -> None:
    shown = Counter(code for found in drawn for code in {key[0] for key in found.shown})
    assert set(CODES) <= set(shown)
    assert len(drawn) // 4 < sum(not found.shown for found in drawn)


def test_programs_that_nobody_would_write_agree_too() -> None:
    found = [judged(seed, scrambled=True) for seed in range(400, 800)]
    assert [one for one in found if one.missed or one.invented] == []
    assert sum(bool(one.shown) for one in found) > 100


@pytest.mark.parametrize("seed", range(800, 860))
def test_the_two_steps_alone_confirm_each_finding(seed: int) -> None:
    assert unconfirmed(seed) == frozenset()


@pytest.mark.parametrize("seed", range(400, 430))
def test_sizes_may_be_symbols(seed: int) -> None:
    found = judged(seed, symbolic=True)
    assert (found.missed, found.invented) == (frozenset(), frozenset())
