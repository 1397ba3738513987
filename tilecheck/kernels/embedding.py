"""Rows of a table picked by ids. An id outside the table gives a row of zeros."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

if TYPE_CHECKING:
    import torch

TILE_T = 8
TILE_D = 128


@ct.kernel
def embedding_kernel(
    ids: ct.Array,
    table: ct.Array,
    out: ct.Array,
    TILE_T: ct.Constant[int],
    TILE_D: ct.Constant[int],
) -> None:
    t = ct.bid(0)
    d = ct.bid(1)
    rows = ct.load(ids, index=(t,), shape=(TILE_T,), padding_mode=ct.PaddingMode.ZERO)
    columns = d * TILE_D + ct.arange(TILE_D, dtype=ct.int32)
    values = ct.gather(table, (rows[:, None], columns[None, :]))
    ct.store(out, index=(t, d), tile=values)


def embedding(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """`table[ids]` for a vector of ids and a matrix."""
    import torch

    if ids.ndim != 1 or table.ndim != 2 or ids.is_floating_point():
        raise ValueError("embedding needs a vector of integer ids and a matrix")
    out = torch.empty((ids.shape[0], table.shape[1]), dtype=table.dtype, device=table.device)
    if ids.shape[0] == 0 or table.shape[1] == 0:
        return out
    grid = (ct.cdiv(ids.shape[0], TILE_T), ct.cdiv(table.shape[1], TILE_D), 1)
    args = (ids, table, out, TILE_T, TILE_D)
    tilecheck.launch(torch.cuda.current_stream(), grid, embedding_kernel, args)
    return out


def reference(ids: np.ndarray[Any, Any], table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `embedding` computes."""
    out = np.zeros((ids.shape[0], table.shape[1]), dtype=table.dtype)
    known = (ids >= 0) & (ids < table.shape[0])
    out[known] = table[ids[known]]
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Ids on both sides of the table; both extents of the output ragged."""
    rng = np.random.default_rng(0)
    ids = rng.integers(-3, 53, 21)
    table = rng.standard_normal((50, 200)).astype(np.float16)
    out = np.empty((21, 200), dtype=table.dtype)
    grid = (ct.cdiv(out.shape[0], TILE_T), ct.cdiv(out.shape[1], TILE_D))
    args = (ids, table, out, TILE_T, TILE_D)
    yield tilecheck.Example(embedding_kernel, grid, args, {"out": reference(ids, table)})
