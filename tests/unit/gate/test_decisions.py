"""Decisions of kernels that ask the same as one before: used where they are the same, and only there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tilecheck.gate.analyse import answered
from tilecheck.gate.decisions import Decisions
from tilecheck.gate.protocol import Item
from tilecheck.options import Options

SCALE = """import torch
import triton
import triton.language as tl

@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    v = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, v * 2.0, mask=mask)
"""
ALIKE = (
    SCALE.replace("2.0", "3.5").replace("def scale", "def grow"),
    SCALE.replace("v * 2.0", "tl.exp(v) + v / 7"),
    "# a comment above\n\n\n" + SCALE.replace("v = tl", "value_of_x = tl").replace("v * 2.0", "value_of_x"),
)
LAUNCH = """def run(x):
    out = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), 64) + {more},)](x, out, x.numel(), BLOCK=64)
"""


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _said(source: str, decisions: Decisions, launch: str = "", contracts: tuple[str, ...] = ()) -> str:
    item = Item("a", source, contracts=contracts, launch=launch)
    return re.sub(r'"time_ms": [0-9.e+-]+', "", json.dumps(answered(item, Options(), decisions)))


@pytest.mark.parametrize("alike", ALIKE)
def test_a_kernel_that_asks_the_same_is_answered_as_if_it_were_the_first(alike: str) -> None:
    decisions = Decisions()
    _said(SCALE, decisions)
    assert _said(alike, decisions) == _said(alike, Decisions())
    assert decisions.found == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("* BLOCK +", "* BLOCK // 2 +"),
        ("tl.store(out_ptr + offs", "tl.store(out_ptr + offs + 1"),
        ("v * 2.0, mask=mask", "v * 2.0"),
        ("offs < n", "offs < n + 1"),
        ("program_id(0)", "program_id(1)"),
        ("tl.store(out_ptr", "tl.store(x_ptr"),
    ],
)
def test_one_that_asks_something_else_is_decided_anew(old: str, new: str) -> None:
    decisions = Decisions()
    _said(SCALE, decisions)
    other = SCALE.replace(old, new)
    assert other != SCALE
    assert _said(other, decisions) == _said(other, Decisions())
    assert decisions.found == 0


def test_premises_of_the_author_count() -> None:
    decisions = Decisions()
    _said(SCALE, decisions)
    _said(SCALE, decisions, contracts=("n <= x_ptr.shape[0]",))
    assert decisions.found == 0


def test_the_launches_are_those_of_the_kernel_at_hand() -> None:
    decisions = Decisions()
    known = [_said(SCALE, decisions, LAUNCH.format(more=more)) for more in (0, 1, 0)]
    assert decisions.found == 2
    assert known[0] == known[2]
    assert known == [_said(SCALE, Decisions(), LAUNCH.format(more=more)) for more in (0, 1, 0)]


def test_what_a_counterexample_showed_is_shown_again() -> None:
    racy = SCALE.replace("tl.store(out_ptr + offs", "tl.store(out_ptr + tl.arange(0, BLOCK)")
    decisions = Decisions()
    first = _said(racy, decisions)
    assert '"verdict": "violated"' in first
    assert _said(racy, decisions) == first
    assert decisions.found == 0


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilecheck.gate.decisions._MOST", 1)
    decisions = Decisions()
    other = SCALE.replace("program_id(0)", "program_id(1)")
    for source in (SCALE, other, SCALE, SCALE):
        _said(source, decisions)
    assert decisions.found == 1
