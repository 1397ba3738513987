"""Matrix product: plain, with tiles grouped for reuse in L2, and persistent.

All three compute `a @ b` with a float32 accumulator, one tile of the output at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

from .sizes import multiprocessors

if TYPE_CHECKING:
    import torch

TILE_M = 128
TILE_N = 128
TILE_K = 64
GROUP = 8


def product_tile(a: ct.Array, b: ct.Array, m: int, n: int, TILE_M: int, TILE_N: int, TILE_K: int) -> ct.Tile:
    """Tile (m, n) of `a @ b`."""
    acc = ct.zeros((TILE_M, TILE_N), dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(TILE_M, TILE_K))):
        left = ct.load(a, index=(m, k), shape=(TILE_M, TILE_K), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(b, index=(k, n), shape=(TILE_K, TILE_N), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(left, right, acc)
    return acc


def grouped(tile: int, tiles_m: int, tiles_n: int) -> tuple[int, int]:
    """Walk down GROUP rows of tiles before the next column, so that neighbours share tiles of both inputs.

    Every product is bounded by `tile`, so none leaves 32 bits, however large the output is.
    """
    first = tile // tiles_n // GROUP * GROUP
    height = min(tiles_m - first, GROUP)
    inside = tile - first * tiles_n
    return first + inside % height, inside // height


@ct.kernel
def matmul_kernel(
    a: ct.Array,
    b: ct.Array,
    out: ct.Array,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    TILE_K: ct.Constant[int],
) -> None:
    m = ct.bid(0)
    n = ct.bid(1)
    acc = product_tile(a, b, m, n, TILE_M, TILE_N, TILE_K)
    ct.store(out, index=(m, n), tile=ct.astype(acc, out.dtype))


@ct.kernel(occupancy=2)
def matmul_grouped_kernel(
    a: ct.Array,
    b: ct.Array,
    out: ct.Array,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    TILE_K: ct.Constant[int],
) -> None:
    tiles_m = ct.num_tiles(out, axis=0, shape=(TILE_M, TILE_N))
    tiles_n = ct.num_tiles(out, axis=1, shape=(TILE_M, TILE_N))
    m, n = grouped(ct.bid(0), tiles_m, tiles_n)
    acc = product_tile(a, b, m, n, TILE_M, TILE_N, TILE_K)
    ct.store(out, index=(m, n), tile=ct.astype(acc, out.dtype))


@ct.kernel
def matmul_persistent_kernel(
    a: ct.Array,
    b: ct.Array,
    out: ct.Array,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    TILE_K: ct.Constant[int],
) -> None:
    tiles_m = ct.num_tiles(out, axis=0, shape=(TILE_M, TILE_N))
    tiles_n = ct.num_tiles(out, axis=1, shape=(TILE_M, TILE_N))
    for tile in range(ct.bid(0), tiles_m * tiles_n, ct.num_blocks(0)):
        m, n = grouped(tile, tiles_m, tiles_n)
        acc = product_tile(a, b, m, n, TILE_M, TILE_N, TILE_K)
        ct.store(out, index=(m, n), tile=ct.astype(acc, out.dtype))


def empty_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Memory for `a @ b`."""
    import torch

    if a.ndim != 2 or b.ndim != 2 or a.dtype != b.dtype:
        raise ValueError("a matrix product needs two matrices of one type")
    if a.shape[1] != b.shape[0]:
        raise ValueError("a matrix product needs as many columns of a as rows of b")
    return torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device=a.device)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`a @ b`: persistent where its tiles fill the GPU, else one block for each narrow tile."""
    import torch

    out = empty_product(a, b)
    if out.shape[0] == 0 or out.shape[1] == 0:
        return out
    stream = torch.cuda.current_stream()
    blocks = multiprocessors(a.device)
    tiles_m = ct.cdiv(out.shape[0], TILE_M)
    if tiles_m * ct.cdiv(out.shape[1], TILE_N) >= blocks:
        args = (a, b, out, TILE_M, TILE_N, TILE_K)
        tilecheck.launch(stream, (blocks, 1, 1), matmul_persistent_kernel, args)
    else:
        narrow = TILE_N // 2
        grid = (tiles_m, ct.cdiv(out.shape[1], narrow), 1)
        tilecheck.launch(stream, grid, matmul_kernel, (a, b, out, TILE_M, narrow, TILE_K))
    return out


def matmul_grouped(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`a @ b`, one block for each tile of the output, in grouped order."""
    import torch

    out = empty_product(a, b)
    if out.shape[0] == 0 or out.shape[1] == 0:
        return out
    grid = (ct.cdiv(out.shape[0], TILE_M) * ct.cdiv(out.shape[1], TILE_N), 1, 1)
    args = (a, b, out, TILE_M, TILE_N, TILE_K)
    tilecheck.launch(torch.cuda.current_stream(), grid, matmul_grouped_kernel, args)
    return out


def matmul_persistent(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`a @ b` with one block for each multiprocessor."""
    import torch

    out = empty_product(a, b)
    if out.shape[0] == 0 or out.shape[1] == 0:
        return out
    tiles = ct.cdiv(out.shape[0], TILE_M) * ct.cdiv(out.shape[1], TILE_N)
    grid = (min(multiprocessors(a.device), tiles), 1, 1)
    args = (a, b, out, TILE_M, TILE_N, TILE_K)
    tilecheck.launch(torch.cuda.current_stream(), grid, matmul_persistent_kernel, args)
    return out


def reference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What all three kernels compute."""
    out: np.ndarray[Any, Any] = (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """All three extents ragged, with one tile for each block or unequal work."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((200, 150)).astype(np.float16)
    b = rng.standard_normal((150, 300)).astype(np.float16)
    args = (a, b, np.empty((200, 300), dtype=a.dtype), TILE_M, TILE_N, TILE_K)
    tiles = (ct.cdiv(200, TILE_M), ct.cdiv(300, TILE_N))
    for kernel, grid in (
        (matmul_kernel, tiles),
        (matmul_grouped_kernel, (tiles[0] * tiles[1],)),
        (matmul_persistent_kernel, (4,)),
    ):
        yield tilecheck.Example(kernel, grid, args, {"out": reference(a, b)}, tolerance=2e-3)
