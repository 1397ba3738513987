"""Random hosts whose launches are enumerated: what a verdict says of them is so."""

from __future__ import annotations

from collections import Counter

import pytest
from soundness_launch_judged import Judged, described, holds, judged_file
from soundness_launch_random import FAMILIES, Made, made, runs
from soundness_virtual_machine import Outcome
from soundness_virtual_tensors import empty

FILES = range(9_000, 9_016)


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    return [one for seed in FILES for one in judged_file(seed)]


def _problems(judged: list[Judged], *names: str) -> str:
    return "\n".join(described(one) for one in judged if one.problem in names)


def test_no_harmless_launch_is_called_wrong(judged: list[Judged]) -> None:
    assert not _problems(judged, "wrong violated", "layout alone")


def test_nothing_that_is_said_to_hold_is_false(judged: list[Judged]) -> None:
    assert not _problems(judged, "false holds")


def test_no_harmful_launch_passes(judged: list[Judged]) -> None:
    assert not _problems(judged, "wrong pass")


def test_both_sides_are_drawn_and_decided(judged: list[Judged]) -> None:
    """The comparison is of something: harmful and harmless launches, most of them decided."""
    assert len({one.pair.family for one in judged}) == len(FAMILIES)
    truths, came = Counter(one.truth for one in judged), Counter(one.came for one in judged)
    assert truths["harm"] > len(judged) // 5
    assert truths["none"] > len(judged) // 5
    assert came["unknown"] < len(judged) // 4
    assert came["violated"] > len(judged) // 8


# ---- the truth itself ----------------------------------------------------------------------------------------


def _flat(grid: str, mask: str) -> Made:
    text = (
        "@triton.jit\ndef k(x, y, n, B: tl.constexpr):\n    i = tl.program_id(0) * B + tl.arange(0, B)\n"
        f"    tl.store(y + i, tl.load(x + i{mask}){mask})\n\n\n"
        "def h(x):\n    n = x.numel()\n    y = torch.empty(n, device=x.device)\n"
        f"    k[{grid}](x, y, n, B=4)\n"
    )
    return Made("k", "h", text, (("x", 1),), "flat")


@pytest.mark.parametrize(
    ("grid", "mask", "harms"),
    [
        ("(triton.cdiv(n, 4),)", ", mask=i < n", False),
        ("(triton.cdiv(n, 4),)", "", True),
        ("(n // 4,)", "", False),
        ("(triton.cdiv(n, 4), 2)", ", mask=i < n", True),
        ("lambda meta: (triton.cdiv(n, meta['B']) + 1,)", ", mask=i < n", False),
        ("lambda meta: (triton.cdiv(n, meta['B']) + 1,)", "", True),
    ],
)
def test_the_enumeration_finds_what_a_launch_does(grid: str, mask: str, harms: bool) -> None:
    import random

    found = list(runs(_flat(grid, mask), random.Random(0)))
    assert found
    assert any(one.outcome.is_harmful for one in found) is harms


def test_a_pair_is_the_same_for_the_same_seed() -> None:
    import random

    assert made(random.Random(3), 1) == made(random.Random(3), 1)


def test_conditions_are_read_against_a_launch() -> None:
    outcome = Outcome("k", (3, 1, 1), started=True, arguments={"x": empty(4, 2), "n": 4, "B": 2})
    assert holds("grid[0] <= cdiv(x.shape[0], B)", outcome) is False
    assert holds("x.stride(0) >= x.shape[1]", outcome) is True
    assert holds("numel(x) >= n * B", outcome) is True
    assert holds("x is not y", outcome) is None
