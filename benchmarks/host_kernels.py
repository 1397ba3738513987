"""Small kernels for `host_runtime.py`."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add_one(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1.0, mask=at < n)


@triton.jit
def step(w_ptr, x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One step of a chain: the weight is loaded before the launch before has ended."""
    tl.extra.cuda.gdc_launch_dependents()
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w = tl.load(w_ptr + at, mask=at < n)
    tl.extra.cuda.gdc_wait()
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) + w, mask=at < n)
