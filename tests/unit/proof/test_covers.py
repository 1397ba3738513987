"""Rung "covers": many stores of one kernel are proved apart as one, and each premise of that is needed."""

from __future__ import annotations

import pytest
from proof_kernels import rungs_of_races

from tilecheck import check_source
from tilecheck.options import Options

# Each block stores a chunk of BT rows of its head in pieces of 16 rows, one of them by a loop.
KERNEL = """
import triton
import triton.language as tl


# tilecheck: requires chunks(work, of=start, size=BT)
# tilecheck: requires increasing(start)
# tilecheck: requires within(start, 0, rows + 1)
# tilecheck: requires 2 * grid[0] <= numel(work)
# tilecheck: requires BT >= 64
# tilecheck: requires H >= 1
# tilecheck: requires grid[1] <= H
@triton.jit
def kernel(out, work, start, rows, H: tl.constexpr, BT: tl.constexpr):
    pid, head = tl.program_id(0), tl.program_id(1) % H
    sequence, chunk = tl.load(work + pid * 2), tl.load(work + pid * 2 + 1).to(tl.int64)
    first, end = tl.load(start + sequence).to(tl.int64), tl.load(start + sequence + 1).to(tl.int64)
    row, column = chunk * BT + tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    p = out + (first * H + head) * BT + row * (H * BT) + column
    tl.store(p, 0.0, mask=row < end - first)
    tl.store(p + 16 * (H * BT) + 16, 1.0, mask=row + 16 < end - first)
    tl.store(p + 32 * (H * BT), 2.0, mask=row + 32 < end - first)
    for i in range(0, 16):
        tl.store(p + 48 * (H * BT) + i, 3.0, mask=row + 48 < end - first)
"""
# Pieces of a row, whatever the block.
ROWS = """
import triton
import triton.language as tl


# tilecheck: requires N >= 48
@triton.jit
def kernel(out, N):
    p = out + tl.program_id(0) * N + tl.arange(0, 16)
    tl.store(p, 0.0)
    tl.store(p + 16, 1.0)
    tl.store(p + 32, 2.0)
"""


PAIRS = ("smt", "digits", "tables")  # what proves one pair


def races(text: str) -> set[str]:
    """By which rungs races between blocks are proved, without a solver and without those that do one pair."""
    return rungs_of_races(text, *PAIRS)


@pytest.mark.parametrize("text", [KERNEL, ROWS])
def test_many_stores_are_proved_apart_as_one(text: str) -> None:
    assert races(text) == {"covers"}
    [kernel] = check_source(text, "kernel.py", Options(without=frozenset({"launch", *PAIRS}))).kernels
    assert {o.rung for o in kernel.obligations if o.rule == "TC201"} == {"covers"}


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        (KERNEL, "requires BT >= 64", "requires BT >= 63"),
        (KERNEL, "requires grid[1] <= H", "requires grid[1] <= H + 1"),
        (KERNEL, "# tilecheck: requires increasing(start)\n", ""),
        (KERNEL, "row + 48 < end - first", "row + 47 < end - first"),
        (KERNEL, "2.0, mask=row + 32 < end - first", "2.0"),
        (KERNEL, "+ i, 3.0", "+ i * 4, 3.0"),
        (KERNEL, "p + 32 * (H * BT)", "p - 16 * (H * BT)"),
        (KERNEL, "p + 32 * (H * BT)", "p + 32 * BT"),
        (KERNEL, "p + 32 * (H * BT)", "out + column + 32 * row"),
        (ROWS, "requires N >= 48", "requires N >= 47"),
        (ROWS, "p + 32", "p + N"),
        (ROWS, "p + 32", "p - 32"),
        (ROWS, "tl.program_id(0) * N", "tl.program_id(0) // 2 * N"),
    ],
)
def test_each_premise_is_needed(text: str, right: str, wrong: str) -> None:
    assert right in text
    assert races(text.replace(right, wrong)) != {"covers"}


def test_other_atomics_leave_it_to_the_rungs_for_pairs() -> None:
    text = ROWS.replace("    tl.store(p, 0.0)", "    tl.atomic_add(out, 1.0)\n    tl.store(p, 0.0)")
    assert "covers" not in races(text)


def test_conditions_are_found_for_all_of_them() -> None:
    text = ROWS.replace("# tilecheck: requires N >= 48\n", "")
    [kernel] = check_source(text, "kernel.py", Options(without=frozenset({"smt"}))).kernels
    assert kernel.verdict.value == "conditional"
    assert "N >= 48" in kernel.conditions
