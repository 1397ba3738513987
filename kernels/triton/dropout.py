"""Dropout of a tensor taken flat: elements are kept with a probability, and scaled up to keep the mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import triton
import triton.language as tl

import tilecheck

if TYPE_CHECKING:
    import torch

BLOCK = 1024


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    """Each element is dropped with probability `p`, by a number made from the seed and its place."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    kept = tl.rand(seed, at) >= p
    tl.store(out_ptr + at, tl.where(kept, x / (1 - p), 0.0), mask=at < n)


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """`x` with elements dropped with probability `p`; the same seed gives the same result, and its gradient."""
    import torch

    if not 0 <= p < 1:
        raise ValueError("dropout needs a probability from 0 to below 1")
    if not x.is_contiguous() or not x.is_floating_point():
        raise ValueError("dropout needs a contiguous tensor of floats")
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out
    tilecheck.verified(dropout_kernel)[(triton.cdiv(n, BLOCK),)](x, out, n, p, seed, BLOCK=BLOCK)
    return out


def reference(x: np.ndarray[Any, Any], kept: np.ndarray[Any, Any], p: float) -> np.ndarray[Any, Any]:
    """What `dropout` computes where it keeps the elements that `kept` says."""
    out: np.ndarray[Any, Any] = np.where(kept, x / np.float32(1 - p), 0).astype(x.dtype)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Nothing dropped, in a last block that is not full."""
    x = np.random.default_rng(0).standard_normal(2500).astype(np.float32)
    args = (x, np.empty_like(x), 2500, 0.0, 7, BLOCK)
    yield tilecheck.Example(
        dropout_kernel, (3,), args, {"out_ptr": reference(x, np.full(x.shape, fill_value=True), 0.0)}
    )
