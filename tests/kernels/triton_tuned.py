"""Kernels whose launches need more of the guard than those of the library: tuned ones, ones with parameters
that may be None, ones that count, ones without a mask. `triton_on_gpu.py` launches them."""

from __future__ import annotations

import triton
import triton.language as tl

FACTOR = tl.constexpr(2)


@triton.jit
def doubled(x):
    return x * FACTOR


@triton.jit
def fill_kernel(out_ptr, value, BLOCK: tl.constexpr):
    """No mask: each program fills a whole block."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.zeros((BLOCK,), tl.float32) + value)


@triton.jit
def pairs_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr = 256):
    """Reads one element more than it writes."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    left = tl.load(x_ptr + at, mask=mask)
    right = tl.load(x_ptr + at + 1, mask=mask)
    tl.store(out_ptr + at, left + right, mask=mask)


@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def biased_kernel(x_ptr, bias_ptr, out_ptr, n, scale, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask) * scale
    if bias_ptr is not None:
        x += tl.load(bias_ptr + at, mask=mask)
    if EVEN:
        x = doubled(x)
    tl.store(out_ptr + at, x, mask=mask)


@triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((256, 2), (1024, 4))], key=["n"])
@triton.jit
def scaled_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)


@triton.autotune(
    [triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 512})], key=["n"], reset_to_zero=["total_ptr"]
)
@triton.jit
def total_kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total_ptr, tl.sum(tl.load(x_ptr + at, mask=at < n, other=0), axis=0))


@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def unmasked_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Each configuration needs another grid."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at) + n)
