"""Matrix transpose: a tile is read along rows, turned on chip, and written along rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

if TYPE_CHECKING:
    import torch

TILE_M = 64
TILE_N = 64


@ct.kernel
def transpose_kernel(x: ct.Array, out: ct.Array, TILE_M: ct.Constant[int], TILE_N: ct.Constant[int]) -> None:
    i = ct.bid(0)
    j = ct.bid(1)
    tile = ct.load(x, index=(i, j), shape=(TILE_M, TILE_N))
    ct.store(out, index=(j, i), tile=ct.transpose(tile))


def transpose(x: torch.Tensor) -> torch.Tensor:
    """The transpose of a matrix, in memory of its own."""
    import torch

    if x.ndim != 2:
        raise ValueError("transpose needs a matrix")
    out = torch.empty((x.shape[1], x.shape[0]), dtype=x.dtype, device=x.device)
    if x.shape[0] == 0 or x.shape[1] == 0:
        return out
    grid = (ct.cdiv(x.shape[0], TILE_M), ct.cdiv(x.shape[1], TILE_N), 1)
    tilecheck.launch(torch.cuda.current_stream(), grid, transpose_kernel, (x, out, TILE_M, TILE_N))
    return out


def reference(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `transpose` computes."""
    return np.ascontiguousarray(x.T)


def examples() -> Iterator[tilecheck.Example]:
    """Both extents ragged."""
    x = np.random.default_rng(0).standard_normal((150, 100)).astype(np.float16)
    grid = (ct.cdiv(x.shape[0], TILE_M), ct.cdiv(x.shape[1], TILE_N))
    args = (x, np.empty_like(x, shape=x.shape[::-1]), TILE_M, TILE_N)
    yield tilecheck.Example(transpose_kernel, grid, args, {"out": reference(x)})
