"""Elementwise addition in Triton: one block of each input per program."""

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
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`x + y` for two contiguous tensors of one shape and type."""
    import torch

    if x.shape != y.shape or x.dtype != y.dtype or not x.is_contiguous() or not y.is_contiguous():
        raise ValueError("vector_add needs two contiguous tensors of one shape and type")
    out = torch.empty_like(x)
    n = out.numel()
    tilecheck.verified(vector_add_kernel)[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK)
    return out


def reference(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `vector_add` computes."""
    out: np.ndarray[Any, Any] = x + y
    return out


def examples() -> Iterator[tilecheck.Example]:
    """A ragged length: the last block hangs over the end."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 5000), dtype=np.float32)
    args = (x, y, np.empty_like(x), x.size, BLOCK)
    yield tilecheck.Example(vector_add_kernel, (5,), args, {"out_ptr": reference(x, y)})
