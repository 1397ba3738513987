"""Rung "digits" on offsets that count down: from the end of a part, and beside others that count up."""

from __future__ import annotations

import pytest

from tilecheck import check_source
from tilecheck.options import Options

HEAD = """
import triton
import triton.language as tl


# tilecheck: requires N >= 1
# tilecheck: requires D >= 1
# tilecheck: requires shift >= 0
@triton.jit
def kernel(out, shift, D, N: tl.constexpr):
    block, row, columns = tl.program_id(0), tl.program_id(1), tl.arange(0, 16)
"""
PARTS = (
    HEAD
    + """
    if row == 0:
        for k in range(0, N):
            tl.store(out + ((block + shift) * N + {place}) * D + columns, 0.0, mask=columns < D)
"""
)
BOTH_WAYS = (
    HEAD
    + """
    if row == 0:
        for k in range(0, N):
            tl.store(out + (block * N + {place}) * D + columns, 0.0, mask=columns < D)
        tl.debug_barrier()
        for i in range(0, N):
            tl.store(out + (block * N + i) * D + columns, 1.0, mask=columns < D)
"""
)


def proved_apart(text: str) -> bool:
    """Whether every race between blocks is proved without a solver and without launch conditions."""
    only = frozenset({"smt", "launch", "tables"})
    [kernel] = check_source(text, "kernel.py", Options(without=only)).kernels
    races = [o for o in kernel.obligations if o.rule in ("TC201", "TC202")]
    return bool(races) and all(o.verdict == "proved" for o in races)


@pytest.mark.parametrize(
    ("place", "is_apart"),
    [
        ("N - 1 - k", True),
        ("N + N - 1 - k", True),
        ("N - 1 - 2 * k", False),
        ("N + k - 2 * k * k", False),
    ],
)
def test_what_counts_down_from_the_end_of_a_part_stays_in_it(place: str, is_apart: bool) -> None:
    assert proved_apart(PARTS.format(place=place)) == is_apart


@pytest.mark.parametrize(
    ("place", "is_apart"),
    [("N - 1 - k", True), ("N - k", False), ("2 * N - 1 - k", False), ("N - 2 - k", False)],
)
def test_down_and_up_are_one_part(place: str, is_apart: bool) -> None:
    assert proved_apart(BOTH_WAYS.format(place=place)) == is_apart
