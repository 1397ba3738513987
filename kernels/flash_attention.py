"""Attention without the matrix of scores: tiles of keys and values pass by, and the softmax is kept running.

Several heads of the queries may share a head of keys and values. The scores are kept in powers of two, as the
hardware has them.
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

MAX_HEAD = 256
MIN_TILE = 16  # of the tensor cores
LOG2E = 1.4426950408889634
LANES = 8  # sums of a row that are kept apart until the end: in registers, keys this far apart share a thread
LOWEST = -3.4028234663852886e38  # the least float32: a running maximum that never makes inf - inf


def tile_sizes(width: int) -> tuple[int, int, int]:
    """Queries, keys and elements of a head in a tile: the most that stay in registers."""
    tile_d = next_power_of_two(max(width, MIN_TILE))
    tile = 128 if tile_d <= 128 else 64
    return tile, tile, tile_d


def attend(
    q: ct.Tile,
    k: ct.Array,
    v: ct.Array,
    place: tuple[int, int, int],
    running: tuple[ct.Tile, ct.Tile, ct.Tile],
    last: ct.Tile | None,
    scale: float,
    TILE_N: int,
    TILE_D: int,
) -> tuple[ct.Tile, ct.Tile, ct.Tile]:
    """One tile of keys and values. Row i of the queries sees the keys up to `last[i]`; without it, all."""
    batch, head, j = place
    top, total, acc = running
    keys = ct.load(
        k,
        index=(batch, head, 0, j),
        shape=(1, 1, TILE_D, TILE_N),
        order=(0, 1, 3, 2),
        padding_mode=ct.PaddingMode.ZERO,
    )
    scores = ct.mma(q, ct.reshape(keys, (TILE_D, TILE_N)), ct.zeros((q.shape[0], TILE_N), dtype=ct.float32))
    if last is not None:
        key = j * TILE_N + ct.arange(TILE_N, dtype=ct.int32)
        scores = ct.where(key[None, :] <= last, scores, -float("inf"))
    higher = ct.maximum(top, ct.max(scores, axis=1, keepdims=True) * scale)
    powers = ct.exp2(scores * scale - higher, flush_to_zero=True)
    shrink = ct.exp2(top - higher, flush_to_zero=True)
    total = total * shrink + ct.sum(ct.reshape(powers, (q.shape[0], TILE_N // LANES, LANES)), axis=1)
    values = ct.load(
        v, index=(batch, head, j, 0), shape=(1, 1, TILE_N, TILE_D), padding_mode=ct.PaddingMode.ZERO
    )
    acc = ct.mma(ct.astype(powers, v.dtype), ct.reshape(values, (TILE_N, TILE_D)), acc * shrink)
    return higher, total, acc


@ct.kernel(num_worker_warps=8)
def flash_attention_kernel(
    q: ct.Array,
    k: ct.Array,
    v: ct.Array,
    out: ct.Array,
    scale: float,
    GROUP: ct.Constant[int],
    CAUSAL: ct.Constant[bool],
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    TILE_D: ct.Constant[int],
) -> None:
    """A tile of one head's queries per block. The last come first: a causal mask leaves them most to do."""
    m = ct.num_blocks(0) - 1 - ct.bid(0)
    head = ct.bid(1)
    batch = ct.bid(2)
    length = k.shape[2]
    queries = ct.load(
        q, index=(batch, head, m, 0), shape=(1, 1, TILE_M, TILE_D), padding_mode=ct.PaddingMode.ZERO
    )
    queries = ct.reshape(queries, (TILE_M, TILE_D))
    running = (
        ct.full((TILE_M, 1), LOWEST, dtype=ct.float32),
        ct.zeros((TILE_M, LANES), dtype=ct.float32),
        ct.zeros((TILE_M, TILE_D), dtype=ct.float32),
    )
    whole = length // TILE_N
    tiles = ct.num_tiles(k, axis=2, shape=(1, 1, TILE_N, TILE_D))
    last = ct.full((TILE_M, 1), length - 1, dtype=ct.int32)
    if CAUSAL:
        first = m * TILE_M + length - q.shape[2]
        whole = max(0, min(whole, first // TILE_N))
        tiles = min(tiles, ct.cdiv(first + TILE_M, TILE_N))
        last = ct.minimum(last, first + ct.arange(TILE_M, dtype=ct.int32)[:, None])
    for j in range(whole):
        running = attend(queries, k, v, (batch, head // GROUP, j), running, None, scale, TILE_N, TILE_D)
    for j in range(whole, tiles):
        running = attend(queries, k, v, (batch, head // GROUP, j), running, last, scale, TILE_N, TILE_D)
    _, total, acc = running
    acc = acc * (1.0 / ct.sum(total, axis=1, keepdims=True))
    result = ct.reshape(ct.astype(acc, out.dtype), (1, 1, TILE_M, TILE_D))
    ct.store(out, index=(batch, head, m, 0), tile=result)


def flash_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """Attention of (batch, heads, queries, d) to (batch, heads of keys, keys, d).

    Under the causal mask the last query sees all keys, the one before it all but the last, and so on.
    """
    import torch

    if q.ndim != 4 or k.ndim != 4 or q.dtype != k.dtype or k.dtype != v.dtype or k.shape != v.shape:
        raise ValueError("flash_attention needs arrays of shape (batch, heads, length, d) and of one type")
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        raise ValueError("flash_attention needs queries and keys of one batch and one size of a head")
    batches, heads, queries, width = q.shape
    kv_heads, length = k.shape[1], k.shape[2]
    if kv_heads == 0 or heads % kv_heads != 0:
        raise ValueError("flash_attention needs a number of heads that the heads of the keys divide")
    if width == 0 or width > MAX_HEAD:
        raise ValueError(f"flash_attention keeps heads in registers: 1 to {MAX_HEAD} elements each")
    if length == 0 or (causal and queries > length):
        raise ValueError("flash_attention needs a key for each query to see")
    out = torch.empty_like(q)
    if batches == 0 or heads == 0 or queries == 0:
        return out
    tile_m, tile_n, tile_d = tile_sizes(width)
    grid = (ct.cdiv(queries, tile_m), heads, batches)
    args = (q, k, v, out, LOG2E / width**0.5, heads // kv_heads, causal, tile_m, tile_n, tile_d)
    tilecheck.launch(torch.cuda.current_stream(), grid, flash_attention_kernel, args)
    return out


def reference(
    q: np.ndarray[Any, Any], k: np.ndarray[Any, Any], v: np.ndarray[Any, Any], *, causal: bool = False
) -> np.ndarray[Any, Any]:
    """What `flash_attention` computes."""
    group = q.shape[1] // k.shape[1]
    keys, values = (np.repeat(x.astype(np.float32), group, axis=1) for x in (k, v))
    scores = q.astype(np.float32) @ keys.transpose(0, 1, 3, 2) / np.sqrt(np.float32(q.shape[3]))
    if causal:
        hidden = np.triu(np.ones(scores.shape[2:], dtype=bool), 1 + k.shape[2] - q.shape[2])
        scores[:, :, hidden] = -np.inf
    powers = np.exp(scores - scores.max(axis=3, keepdims=True))
    out: np.ndarray[Any, Any] = (powers / powers.sum(axis=3, keepdims=True)) @ values
    return out.astype(q.dtype)


def examples() -> Iterator[tilecheck.Example]:
    """Two heads for each head of the keys; ragged lengths, once with more keys than queries."""
    rng = np.random.default_rng(0)
    for causal, queries, length, width in ((False, 150, 100, 64), (True, 200, 230, 128)):
        q = rng.standard_normal((1, 4, queries, width)).astype(np.float16)
        k, v = rng.standard_normal((2, 1, 2, length, width)).astype(np.float16)
        tile_m, tile_n, tile_d = tile_sizes(width)
        grid = (ct.cdiv(queries, tile_m), 4, 1)
        args = (q, k, v, np.empty_like(q), LOG2E / width**0.5, 2, causal, tile_m, tile_n, tile_d)
        expected = {"out": reference(q, k, v, causal=causal)}
        yield tilecheck.Example(flash_attention_kernel, grid, args, expected, 5e-3)
