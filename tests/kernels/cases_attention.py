"""Small launches of the kernels of attention and of the products: exact and ragged shapes, edges of a cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from kernel_cases import Case, cdiv, load, poisoned, reference, values

BATCHED = {"TILE_M": 4, "TILE_N": 8, "TILE_K": 4}


def batched_matmul(batches: int, rows: int, columns: int, depth: int, blocks: int = 3) -> Case:
    a, b = values(batches, rows, depth), values(batches, depth, columns)
    arguments = {"a": a, "b": b, "out": poisoned(batches, rows, columns), **BATCHED}
    expected = {"out": reference("batched_matmul")(a, b)}
    return Case("batched_matmul", "batched_matmul_kernel", (blocks, 1, 1), arguments, expected, 1e-4)


def split_k_partial(splits: int, rows: int, columns: int, depth: int) -> Case:
    a, b = values(rows, depth), values(depth, columns)
    arguments = {"a": a, "b": b, "partial": poisoned(splits, rows, columns), **BATCHED}
    turn = np.arange(depth) // 4 % splits
    expected = {"partial": np.stack([a[:, turn == s] @ b[turn == s] for s in range(splits)])}
    grid = (cdiv(rows, 4), cdiv(columns, 8), splits)
    return Case("split_k_matmul", "split_k_partial_kernel", grid, arguments, expected, 1e-4)


def split_k_reduce(splits: int, rows: int, columns: int) -> Case:
    partial = values(splits, rows, columns)
    arguments = {"partial": partial, "out": poisoned(rows, columns), "TILE_S": 4, "TILE_N": 8}
    grid = (rows, cdiv(columns, 8), 1)
    return Case("split_k_matmul", "split_k_reduce_kernel", grid, arguments, {"out": partial.sum(0)}, 1e-4)


def rope(q_heads: int, k_heads: int, half: int, positions: list[int]) -> Case:
    tokens = len(positions)
    q, k = values(tokens, q_heads, 2 * half), values(tokens, k_heads, 2 * half)
    table = values(9, 2 * half)
    cos, sin, named = table[:, :half].copy(), table[:, half:].copy(), np.array(positions)
    arguments: dict[str, Any] = {"cos": cos, "sin": sin, "positions": named}
    arguments |= {"TILE_T": 2, "TILE_Q": 4, "TILE_K": 2, "TILE_D": 8}
    expected = {}
    for name, x in (("q", q), ("k", k)):
        shape = (tokens, x.shape[1], 2, half)
        arguments[name] = x.reshape(shape)
        expected[name] = reference("rope")(x, cos, sin, named).reshape(shape)
    return Case("rope", "rope_kernel", (cdiv(tokens, 2), 1, 1), arguments, expected, 1e-5)


def kv_cache_update(tokens: int, slots: int, first: int, heads: int = 2, width: int = 8) -> Case:
    new = {"keys": values(tokens, heads, width), "values": -values(tokens, heads, width)}
    old = {"key_cache": 3 + values(slots, heads, width), "value_cache": 4 - values(slots, heads, width)}
    update = reference("kv_cache_update")
    expected = {cache: update(new[name], old[cache], first) for name, cache in zip(new, old, strict=True)}
    arguments = {**new, **old, "position": np.array([first], dtype=np.int32)}
    arguments |= {"TILE_T": 2, "TILE_H": 2, "TILE_D": 8}
    grid = (cdiv(tokens, 2), 1, 1)
    return Case("kv_cache_update", "kv_cache_update_kernel", grid, arguments, expected)


def flash_attention(
    queries: int, length: int, width: int, *, heads: tuple[int, int] = (1, 1), causal: bool = False
) -> Case:
    q = values(2, heads[0], queries, width)
    k, v = values(2, heads[1], length, width), -values(2, heads[1], length, width)
    scale = load("flash_attention").LOG2E / width**0.5
    arguments = {"q": q, "k": k, "v": v, "out": poisoned(*q.shape), "scale": scale}
    arguments |= {"GROUP": heads[0] // heads[1], "CAUSAL": causal, "TILE_M": 4, "TILE_N": 8, "TILE_D": 8}
    grid = (cdiv(queries, 4), heads[0], 2)
    expected = {"out": reference("flash_attention")(q, k, v, causal=causal)}
    return Case("flash_attention", "flash_attention_kernel", grid, arguments, expected, 1e-4)


CASES: dict[str, Callable[[], Case]] = {
    "batched_matmul-exact": lambda: batched_matmul(2, 8, 16, 8),
    "batched_matmul-ragged": lambda: batched_matmul(3, 9, 13, 6),
    "batched_matmul-no-depth": lambda: batched_matmul(2, 5, 9, 0),
    "batched_matmul-idle-blocks": lambda: batched_matmul(1, 4, 8, 4, blocks=2),
    "split_k_partial-exact": lambda: split_k_partial(2, 4, 8, 16),
    "split_k_partial-ragged": lambda: split_k_partial(3, 5, 9, 18),
    "split_k_partial-idle-splits": lambda: split_k_partial(4, 5, 9, 6),
    "split_k_partial-no-depth": lambda: split_k_partial(1, 5, 9, 0),
    "split_k_reduce-one-split": lambda: split_k_reduce(1, 3, 8),
    "split_k_reduce-ragged": lambda: split_k_reduce(6, 3, 13),
    "rope-exact": lambda: rope(4, 2, 8, [0, 3, 8, 3]),
    "rope-ragged": lambda: rope(3, 1, 5, [1, 1, 8, 2, 7]),
    "rope-unknown-positions": lambda: rope(3, 2, 8, [-1, 9, 4]),
    "kv_cache_update-first-slot": lambda: kv_cache_update(4, 9, 0),
    "kv_cache_update-last-slot": lambda: kv_cache_update(3, 9, 6),
    "kv_cache_update-whole-cache": lambda: kv_cache_update(5, 5, 0, heads=1, width=6),
    "flash_attention-exact": lambda: flash_attention(8, 16, 8),
    "flash_attention-ragged": lambda: flash_attention(7, 13, 5, heads=(4, 2)),
    "flash_attention-one-key": lambda: flash_attention(3, 1, 8),
    "flash_attention-causal-exact": lambda: flash_attention(16, 16, 8, causal=True),
    "flash_attention-causal-ragged": lambda: flash_attention(13, 13, 8, heads=(3, 1), causal=True),
    "flash_attention-causal-more-keys": lambda: flash_attention(6, 19, 5, heads=(2, 2), causal=True),
    "flash_attention-causal-one-query": lambda: flash_attention(1, 17, 8, heads=(2, 1), causal=True),
}
