"""Rung "digits" where guards fix a value that another block never has, or say what sign a dividend has."""

from __future__ import annotations

import pytest

from tilecheck import check_source
from tilecheck.options import Options

HEAD = """
import triton
import triton.language as tl


# tilecheck: requires n >= 1
# tilecheck: requires D >= 1
# tilecheck: requires B >= 1
# tilecheck: requires S >= 1
# tilecheck: requires grid[0] <= n
@triton.jit
def kernel(out, n, m, D, B, S):
    block, row, columns = tl.program_id(0), tl.program_id(1), tl.arange(0, 16)
"""
EITHER_WAY = (
    HEAD
    + """
    if {last}:
        tl.store(out + (row * n + block) * D + columns, 1.0, mask=columns < D)
    if {before}:
        tl.store(out + (row * n + {place}) * D + columns, 2.0, mask=columns < D)
"""
)
DOWNWARDS = (
    HEAD
    + """
    if block == 0:
        for i in range({start}, {stop}, -1):
            tl.store(out + (row * S + {place}) * D + columns, 1.0, mask=columns < D)
"""
)


def proved_apart(text: str) -> bool:
    """Whether every race between blocks is proved without a solver and without launch conditions."""
    only = frozenset({"smt", "launch", "tables"})
    [kernel] = check_source(text, "kernel.py", Options(without=only)).kernels
    races = [o for o in kernel.obligations if o.rule in ("TC201", "TC202")]
    return bool(races) and all(o.verdict == "proved" for o in races)


@pytest.mark.parametrize(
    ("last", "before", "place", "is_apart"),
    [
        ("block == n - 1", "block > 0", "block - 1", True),
        ("block + 1 == n", "block > 0", "block - 1", True),
        ("block == 0", "(block > 0) & (block < n - 1)", "block + 1", True),
        ("block == n - 2", "block > 0", "block - 1", False),
        ("block == n - 1", "block > 0", "block - 1 + m", False),
        ("block == m", "block > 0", "block - 1", False),
        ("block >= n - 2", "block > 0", "block - 1", False),
        ("block == 0", "block > 0", "block - 1", False),
    ],
)
def test_a_block_writes_where_no_other_would(last: str, before: str, place: str, is_apart: bool) -> None:
    """`block == n - 1` beside `block - 1`: that would be block n, which there is not."""
    assert proved_apart(EITHER_WAY.format(last=last, before=before, place=place)) is is_apart


@pytest.mark.parametrize(
    ("start", "stop", "place", "is_apart"),
    [
        ("S * B - 1", "-1", "i // B", True),
        ("S * B - 1", "-2", "i // B", False),
        ("S * B", "-1", "i // B", False),
        ("S * B - 1", "-1", "(i - 1) // B", False),
        ("S * B - 1", "m", "i // B", False),
    ],
)
def test_what_a_loop_counts_down_to_0_is_divided_as_it_is(
    start: str, stop: str, place: str, is_apart: bool
) -> None:
    """Rows of S quotients stay apart; where -1 is divided too, a row may begin in the one before."""
    assert proved_apart(DOWNWARDS.format(start=start, stop=stop, place=place)) is is_apart
