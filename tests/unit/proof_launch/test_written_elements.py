"""What the analysis says that stores write is what the reference backend writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.kernels.fills import is_straight
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.proof.goals.context import Context
from tilecheck.proof.initialisation.written_elements import is_written_whole
from tilecheck.proof.launches.replays.trials import Trial
from tilecheck.proof.refute.concrete import Concrete, launch_symbols
from tilecheck.proof.solver.fuel import Fuel

TRITON = """
import triton
import triton.language as tl


@triton.jit
def kernel(out, n, B: tl.constexpr, EVEN: tl.constexpr):
    pid, lane = tl.program_id(0), tl.arange(0, B)
"""
CUTILE = """
import cuda.tile as ct


@ct.kernel
def kernel(out, n, T: ct.Constant[int]):
    i = ct.bid(0)
"""


WHOLE = "tl.store(out + pid * B + lane, 1.0, mask=pid * B + lane < n)"
HALF = "tl.store(out + pid * B + lane, 1.0, mask=(pid * B + lane < n) & (lane % 2 == {rest}))"
TWO_HALVES = f"{HALF.format(rest=0)}\n    {HALF.format(rest=1)}"


@pytest.mark.parametrize(
    ("body", "blocks", "n", "whole"),
    [
        (WHOLE, 4, 13, True),
        (WHOLE, 3, 13, False),  # too few blocks
        ("tl.store(out + pid * B + lane, 1.0, mask=pid * B + lane < n - 1)", 4, 13, False),
        ("tl.store(out + (pid * B + lane) * 2, 1.0, mask=(pid * B + lane) * 2 < n)", 4, 13, False),  # holes
        ("tl.store(out + n - 1 - pid * B - lane, 1.0, mask=pid * B + lane < n)", 4, 13, True),  # backwards
        ("if pid > 0:\n        tl.store(out + pid * B + lane, 1.0, mask=pid * B + lane < n)", 4, 13, False),
        ("tl.store(out + pid * B + lane, 1.0, mask=lane < tl.minimum(B, n - pid * B))", 4, 13, True),
        (
            "tl.store(out + tl.where(lane < 2, lane, lane) + pid // 1 * B, 1.0, mask=pid * B + lane < n)",
            4,
            13,
            True,
        ),
        ("tl.atomic_add(out + pid * B + lane, 1.0, mask=pid * B + lane < n)", 4, 13, True),
        (TWO_HALVES, 4, 13, True),
        (f"if EVEN:\n        tl.store(out + pid * B + lane, 1.0)\n    else:\n        {WHOLE}", 4, 16, True),
        (f"if EVEN:\n        pass\n    else:\n        {WHOLE}", 4, 16, False),
        (f"if EVEN:\n        {WHOLE}", 3, 13, False),
    ],
)
def test_flat_stores(body: str, blocks: int, n: int, whole: bool, tmp_path: Path) -> None:
    values = {"grid[0]": blocks, "out.shape[0]": n, "n": n, "B": 4, "EVEN": True}
    assert _found(f"{TRITON}    {body}\n", values, tmp_path) == (whole, whole)


@pytest.mark.parametrize(
    ("index", "blocks", "n", "whole"), [("i", 4, 13, True), ("i", 3, 13, False), ("i // 2", 4, 13, False)]
)
def test_tiles(index: str, blocks: int, n: int, whole: bool, tmp_path: Path) -> None:
    text = f"{CUTILE}    ct.store(out, index=({index},), tile=ct.full((T,), 1.0, dtype=ct.float32))\n"
    values = {"grid[0]": blocks, "out.shape[0]": n, "n": n, "T": 4}
    assert _found(text, values, tmp_path) == (whole, whole)


@pytest.mark.parametrize(
    "body",
    [
        "for k in range(0, B):\n        tl.store(out + pid * B + k, 1.0, mask=pid * B + k < n)",
        "p = out + pid * B + lane\n    tl.store(p, 1.0, mask=tl.load(p) < 100.0)",
    ],
)
def test_what_is_not_read_is_not_said_to_be_written(body: str, tmp_path: Path) -> None:
    values = {"grid[0]": 4, "out.shape[0]": 16, "n": 16, "B": 4}
    assert _found(f"{TRITON}    {body}\n", values, tmp_path) == (False, True)


def test_a_value_that_is_not_known_is_not_guessed(tmp_path: Path) -> None:
    text = (
        f"{TRITON}    tl.store(out + pid * B + lane, 1.0, mask=pid * B + lane >= n - 1)\n"  # n is 1 in the run
    )
    values = {"grid[0]": 4, "out.shape[0]": 16, "B": 4}
    assert _found(text, values, tmp_path) == (False, True)
    assert _found(text, {**values, "n": 1}, tmp_path) == (True, True)


@pytest.mark.parametrize(
    ("body", "straight"),
    [
        ("for k in range(0, B):\n        if k > n:\n            return", False),
        ("for k in range(0, B):\n        n += k", True),
        ("while n > 0:\n        n -= 1", False),
    ],
)
def test_a_loop_that_is_left_early(body: str, straight: bool, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(f"{TRITON}    {body}\n")
    [definition] = find_kernels(Project().add(load(str(tmp_path / "kernel.py"))))
    assert is_straight(definition) is straight


def _found(text: str, values: Mapping[str, int], folder: Path) -> tuple[bool, bool]:
    """Whether `out` is written whole: as the analysis says, and as a run shows."""
    path = folder / "kernel.py"
    path.write_text(text)
    [definition] = find_kernels(Project().add(load(str(path))))
    kernel = lower(definition)
    named = {s: values[s.name] for s in launch_symbols(Context(kernel)) if s.name in values}
    settled = Concrete(dict(named)).settled(kernel)
    first = Trial(kernel, str(path), settled, {}, (), Fuel()).run()
    assert first is not None
    assert first.is_clean
    written = first.written("out")
    assert written is not None
    return is_written_whole(kernel, "out", settled), bool(written.all())
