"""Conditions speak of the launch alone, and what a host's text establishes does not outlast an exception."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tilecheck import verify_paths

KERNELS = """
import torch
import triton
import triton.language as tl

@triton.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 1.0)

class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True
"""


BRANCH = """
import triton
import triton.language as tl

@triton.jit
def k(out_ptr, table_ptr, N, B: tl.constexpr):
    p, q = tl.program_id(0), {other}
    lane = tl.arange(0, B)
    if p >= q:
        if p != q:
            tl.store(out_ptr + (p * N + q) * B + lane // (p - q), 1.0, mask=q < N)
"""


@pytest.fixture
def statuses(tmp_path: Path):
    def statuses(body: str) -> set[str]:
        path = tmp_path / "host.py"
        path.write_text(KERNELS + textwrap.dedent(body), encoding="utf-8")
        (kernel,) = verify_paths([path.as_posix()]).kernels
        assert kernel.internal_error is None
        return {c.status for launch in kernel.launches for c in launch.conditions}

    return statuses


LAUNCH = "fill[(1,)](torch.empty(64), n, BLOCK=n)"


def test_what_an_assertion_establishes_holds_after_it(statuses) -> None:
    assert statuses(f"def go(n: int):\n    assert n <= 64\n    {LAUNCH}\n") == {"holds"}
    within = f"def go(n: int):\n    with torch.no_grad():\n        assert n <= 64\n    {LAUNCH}\n"
    assert statuses(within) == {"holds"}


@pytest.mark.parametrize(
    "body",
    [
        f"try:\n    assert n <= 64\nfinally:\n    {LAUNCH}",
        f"try:\n    if n > 64:\n        return\nfinally:\n    {LAUNCH}",
        f"with Quiet():\n    assert n <= 64\n{LAUNCH}",
        f"k = 64\nif n and (k := n):\n    pass\nassert k <= 64\n{LAUNCH}",
    ],
)
def test_what_may_not_have_happened_establishes_nothing(statuses, body: str) -> None:
    text = "def go(n: int):\n" + textwrap.indent(body, "    ") + "\n"
    # In a `finally`, what runs after the body and what runs after an exception are judged apart.
    assert statuses(text) - {"holds"}
    assert "finally" in body or "holds" not in statuses(text)


def test_a_tensor_that_changes_its_shape_is_lost(statuses) -> None:
    body = f"""
    def go(x):
        n, = x.shape
        assert n <= 64
        x.resize_(256)
        n, = x.shape
        {LAUNCH}
    """
    assert "holds" not in statuses(body)


@pytest.mark.parametrize("other", ["tl.program_id(1)", "tl.load(table_ptr)"])
def test_no_condition_speaks_of_blocks_or_of_memory(tmp_path: Path, other: str) -> None:
    path = tmp_path / "k.py"
    path.write_text(BRANCH.format(other=other), encoding="utf-8")
    (kernel,) = verify_paths([path.as_posix()]).kernels
    assert kernel.internal_error is None
    assert not any("program_id" in c or "table_ptr[" in c for c in kernel.conditions), kernel.conditions
