"""One change of a visible launch: the mutants that do harm are found, whatever was changed."""

from __future__ import annotations

from collections import Counter

import pytest
from soundness_launch_mutate import mutants
from soundness_launch_mutated import Mutant, of_file
from soundness_launch_suite import SUITE

SAMPLED = (
    "triton/grid_divisor",
    "triton/strided_copy",
    "cutile/persistent",
    "cutile/axis_order",
    "cutile/workspace",
)
MOST = 5

TEXT = """
import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"B": 16}), triton.Config({"B": 32})], key=[])
@triton.jit
def k(x, y, sx, n, B: tl.constexpr):
    c = tl.program_id(1) * B + tl.arange(0, B)
    at = tl.program_id(0) * sx + c
    tl.store(y + at, tl.load(x + at, mask=c < n), mask=c < n)

# args: x[M,N]
def h(x):
    m, n = x.shape
    y = torch.empty_like(x)
    grid = lambda meta: (m, triton.cdiv(n, meta["B"]))
    k[grid](x, y, x.stride(0), n)
"""


@pytest.fixture(scope="module")
def judged() -> list[Mutant]:
    return [m for name in SAMPLED for m in of_file(SUITE / f"{name}.py", name, MOST)]


def test_wrong_mutants_never_pass(judged: list[Mutant]) -> None:
    assert not [m for m in judged if m.truth == "wrong" and m.came not in ("violated", "unknown")]


def test_most_sampled_mutants_are_run_and_many_are_wrong(judged: list[Mutant]) -> None:
    truths = Counter(m.truth for m in judged)
    assert truths["not run"] < len(judged) // 3
    assert truths["wrong"] > len(judged) // 5
    assert all(m.came for m in judged if m.truth == "wrong")


def test_every_part_of_a_launch_is_changed() -> None:
    made = {change.what: change for change in mutants(TEXT, {"k"})}
    assert {"grid[0] + 1", "grid[1] * 2", "swapped axes", "extra axis", "smaller buffer"} <= made.keys()
    assert {"same tensor twice", "halved number", "wrong configuration"} <= made.keys()
    assert '(triton.cdiv(n, meta["B"]), m)' in made["swapped axes"].applied(TEXT)
    assert 'triton.Config({"B": 64})' in made["wrong configuration"].applied(TEXT)
    assert "torch.empty_like(x[: x.shape[0] // 2])" in made["smaller buffer"].applied(TEXT)
    assert not list(mutants(TEXT, {"other"}))
