"""Rung "digits" on rows of several parts: what a row number is multiplied by is a sum."""

from __future__ import annotations

import random

import pytest

from tilecheck import check_source
from tilecheck.options import Options
from tilecheck.proof.algebra.polynomial import Polynomial, combine, times
from tilecheck.proof.rungs.digits import _divided

KERNEL = """
import triton
import triton.language as tl


# tilecheck: requires N >= 1
# tilecheck: requires M >= 1
# tilecheck: requires grid[1] <= N
@triton.jit
def kernel(out, N, M, K: tl.constexpr, L: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    tl.store(out + row * {row} + part * K + tl.arange(0, K), 0.0)
    if part < M:
        tl.store(out + {other} * {row} + {begin} + part * L + tl.arange(0, L), 1.0)
"""


@pytest.mark.parametrize(
    ("row", "other", "begin", "is_apart"),
    [
        ("(N * K + M * L)", "row", "N * K", True),
        ("(N * K + M * L + 3)", "row", "N * K + 3", True),
        ("(N * K + M * L)", "row", "N * K + 1", False),
        ("(N * K + M * L)", "row", "N * K - 1", False),
        ("(N * K + M * L - 1)", "row", "N * K", False),
        ("(N * K + M)", "row", "N * K", False),
        ("(N * K - M * L)", "row", "N * K", False),
        ("(N * K + M * L)", "(row + part)", "N * K", True),
        ("(N * K + M * L)", "(row // 2)", "N * K", False),
    ],
)
def test_parts_of_rows_are_told_apart_where_they_fit_into_a_row(
    row: str, other: str, begin: str, is_apart: bool
) -> None:
    text = KERNEL.format(row=row, other=other, begin=begin)
    only = Options(without=frozenset({"smt", "launch", "tables", "covers"}))
    [kernel] = check_source(text, "kernel.py", only).kernels
    races = [o.verdict for o in kernel.obligations if o.rule == "TC201"]
    assert len(races) == 3
    assert (set(races) == {"proved"}) is is_apart


def _polynomial(drawn: random.Random, terms: int) -> Polynomial:
    found: Polynomial = {}
    for _ in range(terms):
        m = tuple(sorted(drawn.choices(range(4), k=drawn.randrange(3))))
        found = combine(found, {m: drawn.choice((-2, -1, 1, 2, 3))})
    return found


def test_a_value_is_the_stride_times_its_high_part_and_its_low_part() -> None:
    drawn, divided = random.Random(5), 0
    for _ in range(2000):
        f, high, rest = (_polynomial(drawn, terms) for terms in (drawn.choice((1, 2)), 2, 2))
        if f:
            p = combine(times(f, high), rest)
            a, low = _divided(p, f)
            assert combine(times(f, a), low) == p
            divided += bool(a) and len(f) > 1
    assert divided > 100  # strides that are sums among them
