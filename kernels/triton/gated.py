"""`silu(gate) * up` of rows that hold both halves: what one product with a joined weight leaves."""

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
def gated_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """A program takes some columns of one row."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = lane < columns
    gate = tl.load(x_ptr + 2 * row * columns + lane, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + (2 * row + 1) * columns + lane, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * columns + lane, gate * tl.sigmoid(gate) * up, mask=mask)


def gated(x: torch.Tensor) -> torch.Tensor:
    """`silu(x[:, :n]) * x[:, n:]` for `x` [rows, 2 * n]."""
    import torch

    if x.ndim != 2 or not x.is_contiguous() or not x.is_floating_point():
        raise ValueError("gated needs a contiguous matrix of floats")
    rows, columns = x.shape[0], x.shape[1] // 2
    if x.shape[1] != 2 * columns:
        raise ValueError("gated needs an even number of columns")
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    if rows == 0 or columns == 0:
        return out
    tilecheck.verified(gated_kernel)[(rows, triton.cdiv(columns, BLOCK))](x, out, columns, BLOCK=BLOCK)
    return out


def reference(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `gated` computes, in float32."""
    gate, up = np.split(x.astype(np.float32), 2, axis=1)
    out: np.ndarray[Any, Any] = gate / (1 + np.exp(-gate)) * up
    return out


def examples() -> Iterator[tilecheck.Example]:
    """A last block that is not full."""
    x = np.random.default_rng(0).standard_normal((3, 100)).astype(np.float32)
    expected = reference(x)
    args = (x, np.empty_like(expected), 50, 32)
    yield tilecheck.Example(gated_kernel, (3, 2), args, {"out_ptr": expected}, 1e-5)
