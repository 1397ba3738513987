"""What nothing says the truth of is not taken for true."""

from __future__ import annotations

import pytest

from tilecheck import check_source

TRITON = """import torch
import triton
import triton.language as tl
import settings
from settings import SAFE

@triton.jit
def kernel(x, y, F: tl.constexpr):
    if {test}:
        tl.store(x + tl.program_id(0), 1)
    else:
        tl.store(y + tl.program_id(0) // 2, tl.program_id(0))
"""
TILE = """import cuda.tile as ct
from settings import SAFE

@ct.kernel
def kernel(x, y):
    if SAFE:
        ct.store(x, (ct.bid(0),), ct.zeros((16,), dtype=ct.float32))
    else:
        ct.store(y, (ct.bid(0) // 2,), ct.full((16,), ct.bid(0), dtype=ct.float32))
"""


def verdict(text: str) -> str:
    [kernel] = check_source(text, "kernel.py").kernels
    return kernel.verdict.value


@pytest.mark.parametrize(
    "test",
    [
        "SAFE",
        "not SAFE",
        "settings.SAFE",
        "F.use",
        "SAFE and F",
        "SAFE is not None",
        "F.use is None",
        "torch.version.hip is not None",
        "triton.knobs.runtime.debug is not None",
        "x",
    ],
)
def test_a_branch_that_nothing_decides_is_not_left_out(test: str) -> None:
    assert verdict(TRITON.format(test=test)) in ("unknown", "violated")


def test_the_same_in_tiles() -> None:
    assert verdict(TILE) == "unknown"


def test_names_of_the_language_are_not_none() -> None:
    text = TRITON.replace("F: tl.constexpr", "F: tl.constexpr = tl.float32").replace(
        "y + tl.program_id(0) // 2", "y"
    )
    assert verdict(text.format(test="tl.float32 is not None")) == "conditional"
