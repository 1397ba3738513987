"""Rotary position embedding of queries and keys, in place: element i of a head turns with element i + half.

x1, x2 = x1 * cos - x2 * sin, x2 * cos + x1 * sin
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

from .sizes import next_power_of_two

if TYPE_CHECKING:
    import torch

TILE_ELEMENTS = 2048  # of one half of the heads: few enough to stay in registers


def turn(x: ct.Array, t: int, cos: ct.Tile, sin: ct.Tile, TILE_T: int, TILE_H: int, TILE_D: int) -> None:
    """Turn all heads of tile `t` of the tokens of `x`, whose halves are an axis of their own."""
    shape = (TILE_T, TILE_H, 1, TILE_D)
    first = ct.astype(ct.load(x, index=(t, 0, 0, 0), shape=shape), ct.float32)
    second = ct.astype(ct.load(x, index=(t, 0, 1, 0), shape=shape), ct.float32)
    ct.store(x, index=(t, 0, 0, 0), tile=ct.astype(first * cos - second * sin, x.dtype))
    ct.store(x, index=(t, 0, 1, 0), tile=ct.astype(second * cos + first * sin, x.dtype))


@ct.kernel
def rope_kernel(
    q: ct.Array,
    k: ct.Array,
    cos: ct.Array,
    sin: ct.Array,
    positions: ct.Array,
    TILE_T: ct.Constant[int],
    TILE_Q: ct.Constant[int],
    TILE_K: ct.Constant[int],
    TILE_D: ct.Constant[int],
) -> None:
    """Each block turns some tokens, all heads of both arrays: their angles are read once."""
    t = ct.bid(0)
    rows = ct.load(positions, index=(t,), shape=(TILE_T,), padding_mode=ct.PaddingMode.ZERO)
    columns = ct.arange(TILE_D, dtype=ct.int32)
    angles = (rows[:, None], columns[None, :])
    c = ct.reshape(ct.gather(cos, angles), (TILE_T, 1, 1, TILE_D))
    s = ct.reshape(ct.gather(sin, angles), (TILE_T, 1, 1, TILE_D))
    turn(q, t, c, s, TILE_T, TILE_Q, TILE_D)
    turn(k, t, c, s, TILE_T, TILE_K, TILE_D)


def rope(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, positions: torch.Tensor
) -> None:
    """Turn `q` and `k`, (tokens, heads, head size), by rows `positions` of the tables `cos` and `sin`.

    A position outside the tables gives a token of zeros.
    """
    import torch

    if q.ndim != 3 or k.ndim != 3 or q.shape[0] != k.shape[0] or q.shape[2] != k.shape[2]:
        raise ValueError("rope needs q and k of shape (tokens, heads, head size)")
    if q.shape[2] % 2 != 0 or cos.ndim != 2 or cos.shape != sin.shape or 2 * cos.shape[1] != q.shape[2]:
        raise ValueError("rope needs tables with a column for each pair of elements of a head")
    if (
        positions.ndim != 1
        or positions.shape[0] != q.shape[0]
        or positions.dtype not in (torch.int32, torch.int64)
    ):
        raise ValueError("rope needs an integer position for each token")
    if q.shape[1] == 0 or k.shape[1] == 0:
        raise ValueError("rope needs a head of each")
    tokens, half = q.shape[0], q.shape[2] // 2
    if tokens == 0 or half == 0:
        return
    tile_q, tile_k, tile_d = (next_power_of_two(n) for n in (q.shape[1], k.shape[1], half))
    tile_t = max(1, TILE_ELEMENTS // (max(tile_q, tile_k) * tile_d))
    args = (
        q.view(tokens, q.shape[1], 2, half),
        k.view(tokens, k.shape[1], 2, half),
        cos,
        sin,
        positions,
        tile_t,
        tile_q,
        tile_k,
        tile_d,
    )
    tilecheck.launch(torch.cuda.current_stream(), (ct.cdiv(tokens, tile_t), 1, 1), rope_kernel, args)


def reference(
    x: np.ndarray[Any, Any],
    cos: np.ndarray[Any, Any],
    sin: np.ndarray[Any, Any],
    positions: np.ndarray[Any, Any],
) -> np.ndarray[Any, Any]:
    """What `rope` makes of `q` and of `k`."""
    known = (positions >= 0) & (positions < cos.shape[0])
    rows = np.where(known, positions, 0)
    c, s = ((table[rows] * known[:, None])[:, None] for table in (cos, sin))
    first, second = np.split(x.astype(np.float32), 2, axis=2)
    out: np.ndarray[Any, Any] = np.concatenate((first * c - second * s, second * c + first * s), axis=2)
    return out.astype(x.dtype)


def examples() -> Iterator[tilecheck.Example]:
    """Six query heads for two key heads, of a size that is no power of two."""
    rng = np.random.default_rng(0)
    tokens, half = 11, 40
    q = rng.standard_normal((tokens, 6, 2 * half)).astype(np.float16)
    k = rng.standard_normal((tokens, 2, 2 * half)).astype(np.float16)
    angles = np.outer(np.arange(64), 10000.0 ** (-np.arange(half) / half)).astype(np.float32)
    cos, sin = np.cos(angles), np.sin(angles)
    positions = rng.integers(0, 64, tokens)
    tile_q, tile_k, tile_d = 8, 2, 64
    tile_t = TILE_ELEMENTS // (tile_q * tile_d)
    views = tuple(x.reshape(tokens, -1, 2, half) for x in (q, k))
    expected = {
        name: reference(x, cos, sin, positions).reshape(tokens, -1, 2, half) for name, x in (("q", q), ("k", k))
    }
    args = (*views, cos, sin, positions, tile_t, tile_q, tile_k, tile_d)
    yield tilecheck.Example(rope_kernel, (ct.cdiv(tokens, tile_t),), args, expected, 2e-3)
