"""Elementwise addition: one tile of each input per block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

if TYPE_CHECKING:
    import torch

TILE = 1024


@ct.kernel
def vector_add_kernel(x: ct.Array, y: ct.Array, out: ct.Array, TILE: ct.Constant[int]) -> None:
    i = ct.bid(0)
    a = ct.load(x, index=(i,), shape=(TILE,))
    b = ct.load(y, index=(i,), shape=(TILE,))
    ct.store(out, index=(i,), tile=a + b)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`x + y` for two vectors of one length and type."""
    import torch

    if x.ndim != 1 or x.shape != y.shape or x.dtype != y.dtype:
        raise ValueError("vector_add needs two vectors of one length and type")
    out = torch.empty_like(x)
    if x.shape[0] == 0:
        return out
    grid = (ct.cdiv(x.shape[0], TILE), 1, 1)
    tilecheck.launch(torch.cuda.current_stream(), grid, vector_add_kernel, (x, y, out, TILE))
    return out


def reference(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `vector_add` computes."""
    out: np.ndarray[Any, Any] = x + y
    return out


def examples() -> Iterator[tilecheck.Example]:
    """A ragged length: the last tile hangs over the end."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 5000), dtype=np.float32)
    grid = (ct.cdiv(x.shape[0], TILE),)
    args = (x, y, np.empty_like(x), TILE)
    yield tilecheck.Example(vector_add_kernel, grid, args, {"out": reference(x, y)})
