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
TILE_ELEMENTS = 16384  # few enough to stay in registers


@ct.kernel(num_worker_warps=8, occupancy=3)
def rms_norm_kernel(
    x: ct.Array,
    weight: ct.Array,
    out: ct.Array,
    eps: float,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
) -> None:
    """A tile of whole rows per block.

    Without TMA a block needs few enough registers that several share a multiprocessor.
    """
    tile = ct.bid(0)
    shape = (TILE_M, TILE_N)
    values = ct.load(x, index=(tile, 0), shape=shape, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    gain = ct.load(weight, index=(0,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    values = ct.astype(values, ct.float32)
    mean = ct.sum(values * values, axis=1, keepdims=True) / x.shape[1]
    result = values * ct.rsqrt(mean + eps) * ct.reshape(ct.astype(gain, ct.float32), (1, TILE_N))
    ct.store(out, index=(tile, 0), tile=ct.astype(result, out.dtype), allow_tma=False)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Normalise each row of a matrix: a row a block while these run all at once, else a tile of rows."""
    import torch

    if x.ndim != 2 or weight.ndim != 1 or weight.shape[0] != x.shape[1]:
        raise ValueError("rms_norm needs a matrix and a weight for each of its columns")
    if x.shape[1] > MAX_COLUMNS:
        raise ValueError(f"rms_norm keeps a row in registers: at most {MAX_COLUMNS} columns")
    out = torch.empty_like(x)
    if x.shape[0] == 0 or x.shape[1] == 0:
        return out
    tile_n = next_power_of_two(x.shape[1])
    tile_m = 1 if x.shape[0] <= multiprocessors(x.device) else TILE_ELEMENTS // tile_n
    grid = (ct.cdiv(x.shape[0], tile_m), 1, 1)
    tilecheck.launch(torch.cuda.current_stream(), grid, rms_norm_kernel, (x, weight, out, eps, tile_m, tile_n))
    return out


def reference(x: np.ndarray[Any, Any], weight: np.ndarray[Any, Any], eps: float = 1e-6) -> np.ndarray[Any, Any]:
    """What `rms_norm` computes."""
    values = x.astype(np.float32)
    scale = 1 / np.sqrt(np.mean(values * values, axis=1, keepdims=True) + np.float32(eps))
    out: np.ndarray[Any, Any] = (values * scale * weight.astype(np.float32)).astype(x.dtype)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Rows shorter than a tile: one row a block, then tiles of rows, the last of them incomplete."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal(1000).astype(np.float16)
    for rows, tile_m in ((3, 1), (37, TILE_ELEMENTS // 1024)):
        x = rng.standard_normal((rows, 1000)).astype(np.float16)
        args = (x, weight, np.empty_like(x), 1e-6, tile_m, 1024)
        grid = (ct.cdiv(rows, tile_m),)
        yield tilecheck.Example(rms_norm_kernel, grid, args, {"out": reference(x, weight)}, tolerance=2e-3)
