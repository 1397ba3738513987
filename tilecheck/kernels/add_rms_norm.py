"""Residual addition and RMS normalisation in one pass: `residual += x`, then `rms_norm(residual) * weight`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

from .sizes import next_power_of_two

if TYPE_CHECKING:
    import torch

MAX_COLUMNS = 16384
TILE_ELEMENTS = 8192  # few enough to stay in registers


@ct.kernel(occupancy=4)
def add_rms_norm_kernel(
    x: ct.Array,
    residual: ct.Array,
    weight: ct.Array,
    out: ct.Array,
    eps: float,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
) -> None:
    """A tile of whole rows per block. What is normalised is the residual as it is stored, rounded.

    Without TMA a block needs few enough registers that several share a multiprocessor.
    """
    tile = ct.bid(0)
    shape = (TILE_M, TILE_N)
    added = ct.load(x, index=(tile, 0), shape=shape, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    old = ct.load(residual, index=(tile, 0), shape=shape, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    gain = ct.load(weight, index=(0,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    new = ct.astype(ct.astype(old, ct.float32) + ct.astype(added, ct.float32), residual.dtype)
    ct.store(residual, index=(tile, 0), tile=new, allow_tma=False)
    values = ct.astype(new, ct.float32)
    mean = ct.sum(values * values, axis=1, keepdims=True) / residual.shape[1]
    result = values * ct.rsqrt(mean + eps) * ct.reshape(ct.astype(gain, ct.float32), (1, TILE_N))
    ct.store(out, index=(tile, 0), tile=ct.astype(result, out.dtype), allow_tma=False)


def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> torch.Tensor:
    """Add a matrix to the residual, in place, and return the sum with each row normalised."""
    import torch

    if x.ndim != 2 or x.shape != residual.shape or x.dtype != residual.dtype:
        raise ValueError("add_rms_norm needs two matrices of one shape and type")
    if weight.ndim != 1 or weight.shape[0] != x.shape[1]:
        raise ValueError("add_rms_norm needs a weight for each column")
    if x.shape[1] > MAX_COLUMNS:
        raise ValueError(f"add_rms_norm keeps a row in registers: at most {MAX_COLUMNS} columns")
    out = torch.empty_like(x)
    if x.shape[0] == 0 or x.shape[1] == 0:
        return out
    tile_n = next_power_of_two(x.shape[1])
    tile_m = max(1, TILE_ELEMENTS // tile_n)
    grid = (ct.cdiv(x.shape[0], tile_m), 1, 1)
    args = (x, residual, weight, out, eps, tile_m, tile_n)
    tilecheck.launch(torch.cuda.current_stream(), grid, add_rms_norm_kernel, args)
    return out


def reference(
    x: np.ndarray[Any, Any],
    residual: np.ndarray[Any, Any],
    weight: np.ndarray[Any, Any],
    eps: float = 1e-6,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The output of `add_rms_norm` and the new residual."""
    new = (residual.astype(np.float32) + x.astype(np.float32)).astype(residual.dtype)
    values = new.astype(np.float32)
    scale = 1 / np.sqrt(np.mean(values * values, axis=1, keepdims=True) + np.float32(eps))
    return (values * scale * weight.astype(np.float32)).astype(x.dtype), new


def examples() -> Iterator[tilecheck.Example]:
    """Rows of a width that is no tile, and a last tile short of rows."""
    rng = np.random.default_rng(0)
    x, residual = rng.standard_normal((2, 11, 1000)).astype(np.float16)
    weight = rng.standard_normal(1000).astype(np.float16)
    out, new = reference(x, residual, weight)
    args = (x, residual, weight, np.empty_like(x), 1e-6, TILE_ELEMENTS // 1024, 1024)
    yield tilecheck.Example(add_rms_norm_kernel, (2,), args, {"out": out, "residual": new}, tolerance=2e-3)
