"""Matrix product in Triton: one block of the result per program, in groups of rows that share columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import triton
import triton.language as tl

import tilecheck

if TYPE_CHECKING:
    import torch

BLOCK_M, BLOCK_N, BLOCK_K, GROUP = 64, 64, 32, 8


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    a_stride,
    b_stride,
    c_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP * blocks_n)
    height = min(blocks_m - group * GROUP, GROUP)
    row = group * GROUP + (pid % (GROUP * blocks_n)) % height
    column = (pid % (GROUP * blocks_n)) // height
    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        steps = start + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + rows[:, None] * a_stride + steps[None, :],
            mask=(rows[:, None] < M) & (steps[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + steps[:, None] * b_stride + columns[None, :],
            mask=(steps[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        total = tl.dot(a, b, total)
    tl.store(
        c_ptr + rows[:, None] * c_stride + columns[None, :],
        total,
        mask=(rows[:, None] < M) & (columns[None, :] < N),
    )


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`a @ b` for two matrices of one type whose rows are contiguous."""
    import torch

    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or a.dtype != b.dtype:
        raise ValueError("matmul needs two matrices of one type that fit")
    if a.stride(1) != 1 or b.stride(1) != 1:
        raise ValueError("matmul needs matrices with contiguous rows")
    (m, k), n = a.shape, b.shape[1]
    c = torch.zeros((m, n), dtype=a.dtype, device=a.device)
    if m == 0 or n == 0 or k == 0:
        return c
    grid = (triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),)
    tilecheck.verified(matmul_kernel)[grid](
        a,
        b,
        c,
        m,
        n,
        k,
        a.stride(0),
        b.stride(0),
        c.stride(0),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        GROUP=GROUP,
    )
    return c


def reference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `matmul` computes."""
    out: np.ndarray[Any, Any] = a.astype(np.float32) @ b.astype(np.float32)
    return out.astype(a.dtype)


def examples() -> Iterator[tilecheck.Example]:
    """Sizes that no block divides, and a last group that is not full."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((70, 50)).astype(np.float16)
    b = rng.standard_normal((50, 40)).astype(np.float16)
    c = np.empty((70, 40), dtype=np.float16)
    args = (a, b, c, 70, 40, 50, 50, 40, 40, 32, 16, 16, 2)
    yield tilecheck.Example(matmul_kernel, (9,), args, {"c_ptr": reference(a, b)}, 1e-2)
