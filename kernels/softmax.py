"""Softmax of rows: a row in one tile, or two passes over a long row with a running maximum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

from .sizes import multiprocessors, next_power_of_two

if TYPE_CHECKING:
    import torch

ONE_TILE_COLUMNS = 16384
TILE_ELEMENTS = 16384  # few enough to stay in registers
LONG_TILE = 4096
LOG2E = 1.4426950408889634
LOWEST = -3.4028234663852886e38  # the least float32: a running maximum that never makes inf - inf


def power(exponent: ct.Tile) -> ct.Tile:
    """exp, as the hardware has it; the scaling comes after the subtraction, where LOWEST cannot overflow."""
    return ct.exp2(exponent * LOG2E, flush_to_zero=True)


@ct.kernel(occupancy=2)
def softmax_kernel(x: ct.Array, out: ct.Array, TILE_M: ct.Constant[int], TILE_N: ct.Constant[int]) -> None:
    """Each block walks over tiles of whole rows: every row is read once.

    With TMA it takes half as long again.
    """
    shape = (TILE_M, TILE_N)
    for tile in range(ct.bid(0), ct.num_tiles(x, axis=0, shape=shape), ct.num_blocks(0)):
        values = ct.load(x, index=(tile, 0), shape=shape, padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False)
        values = ct.astype(values, ct.float32)
        powers = power(values - ct.max(values, axis=1, keepdims=True))
        scale = 1.0 / ct.sum(powers, axis=1, keepdims=True)
        ct.store(out, index=(tile, 0), tile=ct.astype(powers * scale, out.dtype), allow_tma=False)


@ct.kernel(occupancy=2)
def softmax_online_kernel(x: ct.Array, out: ct.Array, TILE_N: ct.Constant[int]) -> None:
    """One row per block in two passes: the first keeps the maximum and rescales the sum as it grows."""
    row = ct.bid(0)
    tiles = ct.num_tiles(x, axis=1, shape=(1, TILE_N))
    top = ct.full((1, 1), LOWEST, dtype=ct.float32)
    total = ct.zeros((1, 1), dtype=ct.float32)
    for j in range(tiles):
        values = ct.load(x, index=(row, j), shape=(1, TILE_N), padding_mode=ct.PaddingMode.NEG_INF)
        values = ct.astype(values, ct.float32)
        higher = ct.maximum(top, ct.max(values, axis=1, keepdims=True))
        total = total * power(top - higher) + ct.sum(power(values - higher), axis=1, keepdims=True)
        top = higher
    scale = 1.0 / total
    for j in range(tiles):
        values = ct.load(x, index=(row, j), shape=(1, TILE_N), padding_mode=ct.PaddingMode.NEG_INF)
        result = power(ct.astype(values, ct.float32) - top) * scale
        ct.store(out, index=(row, j), tile=ct.astype(result, out.dtype))


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis of a matrix; rows of up to `ONE_TILE_COLUMNS` are read once."""
    import torch

    if x.ndim != 2:
        raise ValueError("softmax needs a matrix")
    out = torch.empty_like(x)
    if x.shape[0] == 0 or x.shape[1] == 0:
        return out
    stream = torch.cuda.current_stream()
    if x.shape[1] <= ONE_TILE_COLUMNS:
        tile_n = next_power_of_two(x.shape[1])
        tile_m = max(1, TILE_ELEMENTS // tile_n)
        grid = (min(4 * multiprocessors(x.device), ct.cdiv(x.shape[0], tile_m)), 1, 1)
        tilecheck.launch(stream, grid, softmax_kernel, (x, out, tile_m, tile_n))
    else:
        tilecheck.launch(stream, (x.shape[0], 1, 1), softmax_online_kernel, (x, out, LONG_TILE))
    return out


def reference(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What both kernels compute."""
    values = x.astype(np.float32)
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    out: np.ndarray[Any, Any] = (powers / powers.sum(axis=1, keepdims=True)).astype(x.dtype)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Rows of a width that is no tile, in persistent blocks with unequal work; rows of several tiles."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((11, 3000)).astype(np.float16)
    args: tuple[Any, ...] = (x, np.empty_like(x), TILE_ELEMENTS // 4096, 4096)
    yield tilecheck.Example(softmax_kernel, (2,), args, {"out": reference(x)}, tolerance=1e-5)
    x = rng.standard_normal((3, 20000)).astype(np.float16)
    args = (x, np.empty_like(x), LONG_TILE)
    yield tilecheck.Example(softmax_online_kernel, (3,), args, {"out": reference(x)}, tolerance=1e-5)
