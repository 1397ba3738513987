"""Softmax of the rows of a matrix in Triton: programs stride over the rows, each of which fits in one block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import triton
import triton.language as tl

import tilecheck

if TYPE_CHECKING:
    import torch

PROGRAMS = 1024  # that stride over the rows


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * x_stride + lanes, mask=mask, other=-float("inf"))
        powers = tl.exp(x.to(tl.float32) - tl.max(x.to(tl.float32), axis=0))
        tl.store(out_ptr + row * out_stride + lanes, powers / tl.sum(powers, axis=0), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """The softmax of each row of a matrix whose rows are contiguous."""
    import torch

    if x.ndim != 2 or x.stride(1) != 1 or x.stride(0) < x.shape[1] or not x.is_floating_point():
        raise ValueError("softmax needs a matrix of floats with contiguous rows")
    rows, columns = x.shape
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    if rows == 0 or columns == 0:
        return out
    block = triton.next_power_of_2(columns)
    tilecheck.verified(softmax_kernel)[(min(rows, PROGRAMS),)](
        x, out, x.stride(0), out.stride(0), rows, columns, BLOCK=block
    )
    return out


def reference(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `softmax` computes."""
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    out: np.ndarray[Any, Any] = powers / powers.sum(axis=1, keepdims=True)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Rows with a pitch, more of them than programs."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((7, 128), dtype=np.float32)[:, :100]
    out = np.empty((7, 100), dtype=np.float32)
    args = (x, out, 128, 100, 7, 100, 128)
    yield tilecheck.Example(softmax_kernel, (3,), args, {"out_ptr": reference(x)}, 1e-5)
