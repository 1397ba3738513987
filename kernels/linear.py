"""The product with a weight as models keep it, [outputs, inputs]: `x @ weight.T`, by persistent blocks."""

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

TILE_M, TILE_N, TILE_K = 128, 128, 64


@ct.kernel(num_worker_warps=4)
def linear_kernel(
    x: ct.Array,
    weight: ct.Array,
    out: ct.Array,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    TILE_K: ct.Constant[int],
) -> None:
    """A block walks over tiles of the output, in groups that share tiles of both inputs."""
    tiles_m = ct.num_tiles(out, axis=0, shape=(TILE_M, TILE_N))
    tiles_n = ct.num_tiles(out, axis=1, shape=(TILE_M, TILE_N))
    for tile in range(ct.bid(0), tiles_m * tiles_n, ct.num_blocks(0)):
        m, n = grouped(tile, tiles_m, tiles_n)
        acc = ct.zeros((TILE_M, TILE_N), dtype=ct.float32)
        for k in range(ct.num_tiles(x, axis=1, shape=(TILE_M, TILE_K))):
            left = ct.load(x, index=(m, k), shape=(TILE_M, TILE_K), padding_mode=ct.PaddingMode.ZERO)
            right = ct.load(
                weight,
                index=(k, n),
                shape=(TILE_K, TILE_N),
                order=(1, 0),
                padding_mode=ct.PaddingMode.ZERO,
            )
            acc = ct.mma(left, right, acc)
        ct.store(out, index=(m, n), tile=ct.astype(acc, out.dtype))


def linear(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """`x @ weight.T` for `x` [rows, inputs] and `weight` [outputs, inputs]."""
    import torch

    if x.ndim != 2 or weight.ndim != 2 or x.dtype != weight.dtype or x.shape[1] != weight.shape[1]:
        raise ValueError("linear needs two matrices of one type with as many columns")
    out = torch.empty((x.shape[0], weight.shape[0]), dtype=x.dtype, device=x.device)
    if out.shape[0] == 0 or out.shape[1] == 0:
        return out
    tiles = ct.cdiv(out.shape[0], TILE_M) * ct.cdiv(out.shape[1], TILE_N)
    grid = (min(multiprocessors(x.device), tiles), 1, 1)
    args = (x, weight, out, TILE_M, TILE_N, TILE_K)
    tilecheck.launch(torch.cuda.current_stream(), grid, linear_kernel, args)
    return out


def reference(x: np.ndarray[Any, Any], weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `linear` computes."""
    out: np.ndarray[Any, Any] = (x.astype(np.float32) @ weight.astype(np.float32).T).astype(x.dtype)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """All three extents ragged, with unequal work."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 150)).astype(np.float16)
    weight = rng.standard_normal((300, 150)).astype(np.float16)
    args = (x, weight, np.empty((200, 300), dtype=x.dtype), 128, 128, 64)
    yield tilecheck.Example(linear_kernel, (4,), args, {"out": reference(x, weight)}, tolerance=2e-3)
