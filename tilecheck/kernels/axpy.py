"""`a * x + y` for a scalar `a`: one tile of each vector per block."""

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
def axpy_kernel(a: float, x: ct.Array, y: ct.Array, out: ct.Array, TILE: ct.Constant[int]) -> None:
    i = ct.bid(0)
    scaled = a * ct.astype(ct.load(x, index=(i,), shape=(TILE,)), ct.float32)
    shifted = scaled + ct.astype(ct.load(y, index=(i,), shape=(TILE,)), ct.float32)
    ct.store(out, index=(i,), tile=ct.astype(shifted, out.dtype))


def axpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`a * x + y` for two vectors of one length and type, computed in float32."""
    import torch

    if x.ndim != 1 or x.shape != y.shape or x.dtype != y.dtype:
        raise ValueError("axpy needs two vectors of one length and type")
    out = torch.empty_like(x)
    if x.shape[0] == 0:
        return out
    grid = (ct.cdiv(x.shape[0], TILE), 1, 1)
    tilecheck.launch(torch.cuda.current_stream(), grid, axpy_kernel, (a, x, y, out, TILE))
    return out


def reference(a: float, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `axpy` computes."""
    out: np.ndarray[Any, Any] = (np.float32(a) * x.astype(np.float32) + y.astype(np.float32)).astype(x.dtype)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """A ragged length in half precision: the last tile hangs over the end."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 10_001)).astype(np.float16)
    grid = (ct.cdiv(x.shape[0], TILE),)
    args = (-1.7, x, y, np.empty_like(x), TILE)
    yield tilecheck.Example(axpy_kernel, grid, args, {"out": reference(-1.7, x, y)}, tolerance=1e-3)
