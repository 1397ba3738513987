"""RMS normalisation of rows: `x / sqrt(mean(x * x) + eps) * weight`, accumulated in float32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

from .sizes import multiprocessors, next_power_of_two

if TYPE_CHECKING:
    import torch

MAX_COLUMNS = 16384
TILE_ELEMENTS = 8192  # few enough to stay in registers


@ct.kernel
def rms_norm_kernel(x: ct.Array, weight: ct.Array, out: ct.Array, eps: float, TILE_N: ct.Constant[int]) -> None:
    """One row per block: the most parallelism for few rows."""
    row = ct.bid(0)
    values = ct.load(x, index=(row, 0), shape=(1, TILE_N), padding_mode=ct.PaddingMode.ZERO)
    values = ct.astype(values, ct.float32)
    mean = ct.sum(values * values, axis=1, keepdims=True) / x.shape[1]
    gain = ct.load(weight, index=(0,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO)
    result = values * ct.rsqrt(mean + eps) * ct.reshape(ct.astype(gain, ct.float32), (1, TILE_N))
    ct.store(out, index=(row, 0), tile=ct.astype(result, out.dtype))


@ct.kernel(num_worker_warps=8)
def rms_norm_persistent_kernel(
    x: ct.Array,
    weight: ct.Array,
    out: ct.Array,
    eps: float,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
) -> None:
    """Each block walks over tiles of rows and loads the weight once: for many rows."""
    gain = ct.load(weight, index=(0,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO)
    gain = ct.reshape(ct.astype(gain, ct.float32), (1, TILE_N))
    for tile in range(ct.bid(0), ct.num_tiles(x, axis=0, shape=(TILE_M, TILE_N)), ct.num_blocks(0)):
        values = ct.load(x, index=(tile, 0), shape=(TILE_M, TILE_N), padding_mode=ct.PaddingMode.ZERO)
        values = ct.astype(values, ct.float32)
        mean = ct.sum(values * values, axis=1, keepdims=True) / x.shape[1]
        result = values * ct.rsqrt(mean + eps) * gain
        ct.store(out, index=(tile, 0), tile=ct.astype(result, out.dtype))


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Normalise each row of a matrix: a block a row while that fills the GPU once, else persistent blocks."""
    import torch

    if x.ndim != 2 or weight.ndim != 1 or weight.shape[0] != x.shape[1]:
        raise ValueError("rms_norm needs a matrix and a weight for each of its columns")
    if x.shape[1] > MAX_COLUMNS:
        raise ValueError(f"rms_norm keeps a row in registers: at most {MAX_COLUMNS} columns")
    out = torch.empty_like(x)
    if x.shape[0] == 0 or x.shape[1] == 0:
        return out
    stream = torch.cuda.current_stream()
    blocks = multiprocessors(x.device)
    tile_n = next_power_of_two(x.shape[1])
    if x.shape[0] <= blocks:
        tilecheck.launch(stream, (x.shape[0], 1, 1), rms_norm_kernel, (x, weight, out, eps, tile_n))
    else:
        tile_m = max(1, TILE_ELEMENTS // tile_n)
        grid = (min(blocks, ct.cdiv(x.shape[0], tile_m)), 1, 1)
        tilecheck.launch(stream, grid, rms_norm_persistent_kernel, (x, weight, out, eps, tile_m, tile_n))
    return out


def reference(x: np.ndarray[Any, Any], weight: np.ndarray[Any, Any], eps: float = 1e-6) -> np.ndarray[Any, Any]:
    """What both kernels compute."""
    values = x.astype(np.float32)
    scale = 1 / np.sqrt(np.mean(values * values, axis=1, keepdims=True) + np.float32(eps))
    out: np.ndarray[Any, Any] = (values * scale * weight.astype(np.float32)).astype(x.dtype)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Rows of a width that is no tile; persistent blocks with unequal work, the last tile short of rows."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal(1000).astype(np.float16)
    x = rng.standard_normal((3, 1000)).astype(np.float16)
    args: tuple[Any, ...] = (x, weight, np.empty_like(x), 1e-6, 1024)
    yield tilecheck.Example(rms_norm_kernel, (3,), args, {"out": reference(x, weight)}, tolerance=2e-3)
    x = rng.standard_normal((21, 1000)).astype(np.float16)
    args = (x, weight, np.empty_like(x), 1e-6, TILE_ELEMENTS // 1024, 1024)
    yield tilecheck.Example(
        rms_norm_persistent_kernel, (2,), args, {"out": reference(x, weight)}, tolerance=2e-3
    )
