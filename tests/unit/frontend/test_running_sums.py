"""What is known of running sums is true of all sums that the terms allow, and of no other scan anything is."""

from __future__ import annotations

import itertools

import pytest

from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.ir import expr as E
from tilecheck.ir.kernel import Kernel
from tilecheck.text import decode

TEXT = """
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    place = SUM
    tl.store(x + i + place, a)
"""
LANES = 4


def lowered(text: str) -> Kernel:
    table = Project().add(parse(decode("kernel.py", TEXT.replace("SUM", text).encode())))
    [definition] = [d for d in find_kernels(table) if d.name == "kernel"]
    return lower(definition)


@pytest.mark.parametrize(
    "text",
    [
        "tl.cumsum((a > b).to(tl.int32), axis=0)",
        "tl.cumsum(tl.where(i > 0, a != b, 0))",
        "tl.cumsum(tl.where(i > 0, a != b, 1), -1)",
        "tl.cumsum(tl.where(a > 0, 2, tl.where(b > 0, 5, 1)), dtype=tl.int64)",
        "tl.cumsum((a > b).to(tl.int64), 0, False)",
    ],
)
def test_every_sum_of_such_terms_is_admitted(text: str) -> None:
    """With the true sum for what is not known of it, an element is that sum, whatever the terms are."""
    [found] = lowered(text).sums
    [unknown] = [
        s for s in E.symbols(found.value) if s not in E.symbols(found.term) and s.kind.name == "OPAQUE"
    ]
    truths = [s for s in E.symbols(found.term) if s.kind.name == "OPAQUE"]
    for block in (0, 1):
        fixed = {"ct.bid(0)": block, "B": LANES, "grid[0]": 2}
        for rows in itertools.product(itertools.product((False, True), repeat=len(truths)), repeat=LANES):
            total = 0
            for lane, row in enumerate(rows):
                chosen = dict(zip(truths, row, strict=True)) | {found.lane: lane}

                def value(symbol, chosen=chosen, fixed=fixed):
                    return chosen[symbol] if symbol in chosen else fixed[symbol.name]

                total += E.evaluate(found.term, value)
                chosen[unknown] = total
                assert E.evaluate(found.value, value) == total


@pytest.mark.parametrize(
    "text",
    [
        "tl.cumsum((a > b).to(tl.int32), axis=0, reverse=True)",
        "tl.cumsum((a > b).to(tl.int32), axis=0, dtype=tl.int8)",
        "tl.cumsum((a > b).to(tl.int8), axis=0)",
        "tl.cumsum(a > b, axis=0)",
        "tl.cumsum((a > b) * True, axis=0)",
        "tl.cumsum(tl.where(a > b, 1, -1), axis=0)",
        "tl.cumsum(tl.where(a > b, 1, 1 << 20), axis=0)",
        "tl.cumsum(tl.where(a > b, 1, n), axis=0)",
        "tl.cumsum(tl.where(a > b, 1, a.to(tl.int32)), axis=0)",
        "tl.cumprod((a > b).to(tl.int32), axis=0)",
        "tl.sort((a > b).to(tl.int32))",
    ],
)
def test_nothing_is_said_of_other_scans(text: str) -> None:
    assert not lowered(text).sums
