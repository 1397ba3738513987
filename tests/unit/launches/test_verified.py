"""A host that launches through `tilecheck.verified` is judged like one that launches the kernel itself."""

from __future__ import annotations

import pytest

import tilecheck

KERNEL = """
import tilecheck
import torch
import triton
import triton.language as tl
from tilecheck import verified


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


def host(x: torch.Tensor):
    n = x.numel()
    out = torch.empty((n{less},), dtype=x.dtype)
    {launch}[(triton.cdiv(n, 256),)](x.contiguous(), out, n, BLOCK=256)
    return out
"""
SPELLINGS = ["tilecheck.verified(copy)", "verified(copy)", "copy"]


@pytest.mark.parametrize("launch", SPELLINGS)
def test_a_good_launch_holds(launch):
    (kernel,) = tilecheck.check_source(KERNEL.format(launch=launch, less="")).kernels
    (seen,) = kernel.launches
    assert kernel.verdict is tilecheck.Verdict.CONDITIONAL
    assert {c.status for c in seen.conditions} == {"holds"}


@pytest.mark.parametrize("launch", SPELLINGS)
def test_a_launch_that_breaks_a_condition_is_violated(launch):
    (kernel,) = tilecheck.check_source(KERNEL.format(launch=launch, less=" - 1")).kernels
    assert kernel.verdict is tilecheck.Verdict.VIOLATED
