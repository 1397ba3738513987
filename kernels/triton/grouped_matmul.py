"""Products of the tokens of each expert with its own weight, as a mixture of experts needs them.

Tokens are sorted by expert, and those of one expert fill whole blocks of rows: `expert_of_block` names the
expert of each block, `token_of_row` the token of each row, or none. Both lie in memory of the device, so what
they name is masked: a row without a token of the input is zeros, and so is a block without an expert.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import triton
import triton.language as tl

import tilecheck

if TYPE_CHECKING:
    import torch

BLOCK_M, BLOCK_N, BLOCK_K = 16, 64, 64


@triton.jit
def grouped_matmul_kernel(
    x_ptr,
    w_ptr,
    expert_ptr,
    token_ptr,
    out_ptr,
    tokens,
    experts,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """A program takes some columns of one block of rows."""
    block = tl.program_id(0)
    rows = block.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    expert = tl.load(expert_ptr + block).to(tl.int64)
    token = tl.load(token_ptr + rows).to(tl.int64)
    known = (token >= 0) & (token < tokens)
    fits = (columns < N) & (expert >= 0) & (expert < experts)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        steps = start + tl.arange(0, BLOCK_K)
        inside = steps < K
        x = tl.load(
            x_ptr + token[:, None] * K + steps[None, :], mask=known[:, None] & inside[None, :], other=0.0
        )
        w = tl.load(
            w_ptr + (expert * N + columns)[None, :] * K + steps[:, None],
            mask=fits[None, :] & inside[:, None],
            other=0.0,
        )
        total = tl.dot(x, w, total)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], total, mask=(columns < N)[None, :])


def grouped_matmul(
    x: torch.Tensor, weights: torch.Tensor, expert_of_block: torch.Tensor, token_of_row: torch.Tensor
) -> torch.Tensor:
    """`weights[expert] @ x[token]` for each row.

    Args:
        x: tokens, [tokens, K].
        weights: of the experts, [experts, N, K].
        expert_of_block: int32, [blocks]; rows of blocks of other numbers are zeros.
        token_of_row: int32, [blocks * BLOCK_M]; rows of other numbers are zeros.
    """
    import torch

    if x.ndim != 2 or weights.ndim != 3 or weights.shape[2] != x.shape[1] or x.dtype != weights.dtype:
        raise ValueError("grouped_matmul needs tokens, and weights of their width and type")
    blocks = expert_of_block.shape[0]
    if expert_of_block.ndim != 1 or token_of_row.shape != (blocks * BLOCK_M,):
        raise ValueError(f"grouped_matmul needs an expert for each block, and {BLOCK_M} rows in it")
    if expert_of_block.dtype != torch.int32 or token_of_row.dtype != torch.int32:
        raise ValueError("grouped_matmul needs numbers of experts and tokens of type int32")
    for tensor in (x, weights, expert_of_block, token_of_row):
        if not tensor.is_contiguous():
            raise ValueError("grouped_matmul needs contiguous tensors")
    (tokens, k), (experts, n) = x.shape, weights.shape[:2]
    out = torch.empty((blocks * BLOCK_M, n), dtype=x.dtype, device=x.device)
    if blocks == 0 or n == 0:
        return out
    tilecheck.verified(grouped_matmul_kernel)[(blocks, triton.cdiv(n, BLOCK_N))](
        x,
        weights,
        expert_of_block,
        token_of_row,
        out,
        tokens,
        experts,
        n,
        k,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
    )
    return out


def reference(
    x: np.ndarray[Any, Any],
    weights: np.ndarray[Any, Any],
    expert_of_block: np.ndarray[Any, Any],
    token_of_row: np.ndarray[Any, Any],
) -> np.ndarray[Any, Any]:
    """What `grouped_matmul` computes, in float32."""
    height = len(token_of_row) // len(expert_of_block)
    out = np.zeros((len(token_of_row), weights.shape[1]), dtype=np.float32)
    for row, token in enumerate(token_of_row):
        expert = expert_of_block[row // height]
        if 0 <= token < len(x) and 0 <= expert < len(weights):
            out[row] = weights[expert].astype(np.float32) @ x[token].astype(np.float32)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """A block that is not full, one without an expert, tokens that do not exist, sizes that no tile divides."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, 50)).astype(np.float32)
    weights = rng.standard_normal((3, 40, 50)).astype(np.float32)
    experts = np.array([0, 2, 2, 7], dtype=np.int32)
    tokens = rng.integers(0, 9, 64).astype(np.int32)
    tokens[[5, 13, 20]] = [-1, 9, 100]
    expected = reference(x, weights, experts, tokens)
    args = (x, weights, experts, tokens, np.empty_like(expected), 9, 3, 40, 50, 16, 16, 32)
    yield tilecheck.Example(grouped_matmul_kernel, (4, 3), args, {"out_ptr": expected}, 1e-2)
