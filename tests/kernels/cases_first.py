"""Small launches of the first kernels: exact and ragged shapes, idle blocks, nothing to sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from kernel_cases import Case, cdiv, poisoned, reference, values


def vector_add(n: int, tile: int) -> Case:
    x, y = values(n), values(n)[::-1].copy()
    arguments = {"x": x, "y": y, "out": poisoned(n), "TILE": tile}
    grid = (cdiv(n, tile), 1, 1)
    return Case("vector_add", "vector_add_kernel", grid, arguments, {"out": reference("vector_add")(x, y)})


def rms_norm(rows: int, columns: int) -> Case:
    x, weight = values(rows, columns), values(columns)
    arguments = {
        "x": x,
        "weight": weight,
        "out": poisoned(rows, columns),
        "eps": 1e-6,
        "TILE_M": 2,
        "TILE_N": 16,
    }
    expected = {"out": reference("rms_norm")(x, weight)}
    return Case("rms_norm", "rms_norm_kernel", (cdiv(rows, 2), 1, 1), arguments, expected, 1e-5)


def softmax(rows: int, columns: int, blocks: int) -> Case:
    x = values(rows, columns)
    x[0, : columns // 2] = -np.inf
    arguments = {"x": x, "out": poisoned(rows, columns), "TILE_M": 2, "TILE_N": 16}
    return Case("softmax", "softmax_kernel", (blocks, 1, 1), arguments, {"out": reference("softmax")(x)}, 1e-5)


def softmax_online(rows: int, columns: int, tile: int) -> Case:
    x = values(rows, columns)
    x[0, : columns // 2] = -np.inf
    arguments = {"x": x, "out": poisoned(rows, columns), "TILE_N": tile}
    return Case(
        "softmax", "softmax_online_kernel", (rows, 1, 1), arguments, {"out": reference("softmax")(x)}, 1e-5
    )


def transpose(rows: int, columns: int, tile_m: int, tile_n: int) -> Case:
    x = values(rows, columns)
    arguments = {"x": x, "out": poisoned(columns, rows), "TILE_M": tile_m, "TILE_N": tile_n}
    grid = (cdiv(rows, tile_m), cdiv(columns, tile_n), 1)
    return Case("transpose", "transpose_kernel", grid, arguments, {"out": reference("transpose")(x)})


def permute_heads(shape: tuple[int, int, int, int], tile_m: int, tile_d: int) -> Case:
    batches, heads, tokens, width = shape
    x = values(*shape)
    out = poisoned(batches, tokens, heads, width)
    arguments = {"x": x, "out": out, "TILE_M": tile_m, "TILE_D": tile_d}
    grid = (batches * heads, cdiv(tokens, tile_m), 1)
    return Case(
        "permute_heads", "permute_heads_kernel", grid, arguments, {"out": reference("permute_heads")(x)}
    )


def matmul(kernel: str, shape: tuple[int, int, int], blocks: int | None = None) -> Case:
    """A launch with a block for each tile, or for flat grids with `blocks` blocks (0: one for each tile)."""
    rows, columns, depth = shape
    a, b = values(rows, depth), values(depth, columns)
    tile_m, tile_n, tile_k = 4, 8, 4
    tiles = (cdiv(rows, tile_m), cdiv(columns, tile_n))
    arguments = {"a": a, "b": b, "out": poisoned(rows, columns)}
    arguments |= {"TILE_M": tile_m, "TILE_N": tile_n, "TILE_K": tile_k}
    grid = (*tiles, 1) if blocks is None else (blocks or tiles[0] * tiles[1], 1, 1)
    return Case("matmul", kernel, grid, arguments, {"out": reference("matmul")(a, b)}, 1e-4)


def embedding(ids: list[int], columns: int, dtype: type[np.integer[Any]]) -> Case:
    table = values(9, columns)
    named = np.array(ids, dtype=dtype)
    arguments = {"ids": named, "table": table, "out": poisoned(len(ids), columns)}
    arguments |= {"TILE_T": 4, "TILE_D": 8}
    grid = (cdiv(len(ids), 4), cdiv(columns, 8), 1)
    return Case("embedding", "embedding_kernel", grid, arguments, {"out": reference("embedding")(named, table)})


CASES: dict[str, Callable[[], Case]] = {
    "vector_add-one-element": lambda: vector_add(1, 16),
    "vector_add-exact": lambda: vector_add(64, 16),
    "vector_add-ragged": lambda: vector_add(50, 16),
    "rms_norm-exact": lambda: rms_norm(4, 16),
    "rms_norm-ragged": lambda: rms_norm(5, 13),
    "softmax-exact": lambda: softmax(4, 16, 1),
    "softmax-ragged": lambda: softmax(7, 11, 3),
    "softmax_online-exact": lambda: softmax_online(3, 16, 4),
    "softmax_online-ragged": lambda: softmax_online(4, 19, 4),
    "transpose-exact": lambda: transpose(8, 16, 4, 8),
    "transpose-ragged": lambda: transpose(7, 18, 4, 8),
    "permute_heads-exact": lambda: permute_heads((2, 3, 8, 8), 4, 8),
    "permute_heads-ragged": lambda: permute_heads((2, 3, 7, 5), 4, 8),
    "matmul-exact": lambda: matmul("matmul_kernel", (8, 16, 8)),
    "matmul-ragged": lambda: matmul("matmul_kernel", (9, 13, 6)),
    "matmul-no-depth": lambda: matmul("matmul_kernel", (5, 9, 0)),
    "matmul_grouped-two-groups": lambda: matmul("matmul_grouped_kernel", (37, 19, 6), blocks=0),
    "matmul_grouped-one-short-group": lambda: matmul("matmul_grouped_kernel", (9, 19, 6), blocks=0),
    "matmul_persistent-ragged": lambda: matmul("matmul_persistent_kernel", (37, 19, 6), blocks=4),
    "matmul_persistent-one-block": lambda: matmul("matmul_persistent_kernel", (9, 9, 5), blocks=1),
    "embedding-int32": lambda: embedding([3, 0, 8, 8, 1], 16, np.int32),
    "embedding-int64-unknown-ids": lambda: embedding([3, -1, 9, 8, 2**40], 11, np.int64),
}
