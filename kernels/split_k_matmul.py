"""Matrix product split along its depth, for outputs of too few tiles to fill the GPU.

The first kernel writes the partial product of each split to a place of its own, the second adds them up: no
atomics, and the same result in every run. The second one starts while the first still runs, and waits for it
before it touches memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

from .matmul import empty_product
from .sizes import may_depend, multiprocessors

if TYPE_CHECKING:
    import torch

TILE_M = 128
TILE_N = 64
TILE_K = 64
REDUCE_SPLITS = 4
REDUCE_N = 512


@ct.kernel(num_worker_warps=4)
def split_k_partial_kernel(
    a: ct.Array,
    b: ct.Array,
    partial: ct.Array,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    TILE_K: ct.Constant[int],
) -> None:
    """The splits take turns along the depth, so that those which run together read neighbouring tiles."""
    m = ct.bid(0)
    n = ct.bid(1)
    split = ct.bid(2)
    ct.grid_dependency_control_launch_dependents()
    acc = ct.zeros((TILE_M, TILE_N), dtype=ct.float32)
    for k in range(split, ct.num_tiles(a, axis=1, shape=(TILE_M, TILE_K)), ct.num_blocks(2)):
        left = ct.load(a, index=(m, k), shape=(TILE_M, TILE_K), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(b, index=(k, n), shape=(TILE_K, TILE_N), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(left, right, acc)
    ct.store(partial, index=(split, m, n), tile=ct.reshape(acc, (1, TILE_M, TILE_N)))


@ct.kernel
def split_k_reduce_kernel(
    partial: ct.Array, out: ct.Array, TILE_S: ct.Constant[int], TILE_N: ct.Constant[int]
) -> None:
    """A piece of one row per block. No TMA: its buffers would leave room for a single block at a time."""
    m = ct.bid(0)
    n = ct.bid(1)
    ct.grid_dependency_control_wait()
    shape = (TILE_S, 1, TILE_N)
    total = ct.zeros(shape, dtype=ct.float32)
    for s in range(ct.num_tiles(partial, axis=0, shape=shape)):
        total = total + ct.load(
            partial, index=(s, m, n), shape=shape, padding_mode=ct.PaddingMode.ZERO, allow_tma=False
        )
    result = ct.astype(ct.sum(total, axis=0), out.dtype)
    ct.store(out, index=(m, n), tile=result, allow_tma=False)


def split_k_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`a @ b`, with as many splits of the depth as fill the GPU once."""
    import torch

    out = empty_product(a, b)
    rows, columns = out.shape
    if rows == 0 or columns == 0:
        return out
    tiles_m, tiles_n = ct.cdiv(rows, TILE_M), ct.cdiv(columns, TILE_N)
    wanted = multiprocessors(a.device) // (tiles_m * tiles_n)
    splits = max(1, min(wanted, ct.cdiv(a.shape[1], TILE_K)))
    partial = torch.empty((splits, rows, columns), dtype=torch.float32, device=a.device)
    stream = torch.cuda.current_stream()
    grid = (tiles_m, tiles_n, splits)
    tilecheck.launch(stream, grid, split_k_partial_kernel, (a, b, partial, TILE_M, TILE_N, TILE_K))
    grid = (rows, ct.cdiv(columns, REDUCE_N), 1)
    args = (partial, out, REDUCE_SPLITS, REDUCE_N)
    early = may_depend(a.device)
    tilecheck.launch(stream, grid, split_k_reduce_kernel, args, programmatic_dependent_launch=early)
    return out


def reference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What both kernels together compute."""
    out: np.ndarray[Any, Any] = (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype)
    return out


def partial_reference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], splits: int) -> np.ndarray[Any, Any]:
    """What the first kernel leaves for the second: split s has tiles s, s + splits, ... of the depth."""
    turn = np.arange(a.shape[1]) // TILE_K % splits
    left, right = a.astype(np.float32), b.astype(np.float32)
    return np.stack([left[:, turn == s] @ right[turn == s] for s in range(splits)])


def examples() -> Iterator[tilecheck.Example]:
    """Three splits of five tiles: one has fewer tiles than the others, and the last tile is ragged."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((50, 300)).astype(np.float16)
    b = rng.standard_normal((300, 140)).astype(np.float16)
    partial = partial_reference(a, b, 3)
    grid: tuple[int, ...] = (ct.cdiv(50, TILE_M), ct.cdiv(140, TILE_N), 3)
    args: tuple[Any, ...] = (a, b, np.empty_like(partial), TILE_M, TILE_N, TILE_K)
    yield tilecheck.Example(split_k_partial_kernel, grid, args, {"partial": partial}, 1e-4)
    out = np.empty((50, 140), dtype=a.dtype)
    grid = (50, ct.cdiv(140, REDUCE_N))
    args = (partial, out, REDUCE_SPLITS, REDUCE_N)
    yield tilecheck.Example(split_k_reduce_kernel, grid, args, {"out": reference(a, b)}, 2e-3)
