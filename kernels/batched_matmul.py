"""Matrix products of a batch: `a[i] @ b[i]` with a float32 accumulator, one tile of one product at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

from .matmul import grouped
from .sizes import multiprocessors

if TYPE_CHECKING:
    import torch

TILE_M = 128
TILE_N = 128
TILE_K = 64


@ct.kernel
def batched_matmul_kernel(
    a: ct.Array,
    b: ct.Array,
    out: ct.Array,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    TILE_K: ct.Constant[int],
) -> None:
    """A block walks over the tiles of all products, in groups that share tiles of both inputs."""
    tiles_m = ct.num_tiles(out, axis=1, shape=(1, TILE_M, TILE_N))
    tiles_n = ct.num_tiles(out, axis=2, shape=(1, TILE_M, TILE_N))
    each = tiles_m * tiles_n
    for tile in range(ct.bid(0), out.shape[0] * each, ct.num_blocks(0)):
        batch = tile // each
        m, n = grouped(tile - batch * each, tiles_m, tiles_n)
        acc = ct.zeros((TILE_M, TILE_N), dtype=ct.float32)
        for k in range(ct.num_tiles(a, axis=2, shape=(1, TILE_M, TILE_K))):
            left = ct.load(a, index=(batch, m, k), shape=(1, TILE_M, TILE_K), padding_mode=ct.PaddingMode.ZERO)
            right = ct.load(b, index=(batch, k, n), shape=(1, TILE_K, TILE_N), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(ct.reshape(left, (TILE_M, TILE_K)), ct.reshape(right, (TILE_K, TILE_N)), acc)
        result = ct.reshape(ct.astype(acc, out.dtype), (1, TILE_M, TILE_N))
        ct.store(out, index=(batch, m, n), tile=result)


def batched_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`a @ b` for (B, M, K) and (B, K, N), with one block for each multiprocessor."""
    import torch

    if a.ndim != 3 or b.ndim != 3 or a.dtype != b.dtype:
        raise ValueError("batched_matmul needs two batches of matrices of one type")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ValueError("batched_matmul needs as many matrices in a as in b, and columns of a as rows of b")
    out = torch.empty((a.shape[0], a.shape[1], b.shape[2]), dtype=a.dtype, device=a.device)
    if out.shape[0] == 0 or out.shape[1] == 0 or out.shape[2] == 0:
        return out
    tiles = out.shape[0] * ct.cdiv(out.shape[1], TILE_M) * ct.cdiv(out.shape[2], TILE_N)
    grid = (min(multiprocessors(a.device), tiles), 1, 1)
    args = (a, b, out, TILE_M, TILE_N, TILE_K)
    tilecheck.launch(torch.cuda.current_stream(), grid, batched_matmul_kernel, args)
    return out


def reference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `batched_matmul` computes."""
    out: np.ndarray[Any, Any] = (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Two products whose last tiles hang over the end of every axis, with unequal work."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((2, 150, 80)).astype(np.float16)
    b = rng.standard_normal((2, 80, 136)).astype(np.float16)
    out = np.empty((2, 150, 136), dtype=a.dtype)
    args = (a, b, out, TILE_M, TILE_N, TILE_K)
    yield tilecheck.Example(batched_matmul_kernel, (3,), args, {"out": reference(a, b)}, 2e-3)
