"""Layer normalisation of rows: `(x - mean) / sqrt(variance + eps) * weight + bias`, in one pass over memory."""

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


@ct.kernel(occupancy=5)
def layer_norm_kernel(
    x: ct.Array,
    weight: ct.Array,
    bias: ct.Array,
    out: ct.Array,
    eps: float,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
) -> None:
    """A tile of whole rows per block. The variance is that of the values less their mean, on chip.

    Without TMA a block needs few enough registers that several share a multiprocessor.
    """
    tile = ct.bid(0)
    shape = (TILE_M, TILE_N)
    values = ct.load(x, index=(tile, 0), shape=shape, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    gain = ct.load(weight, index=(0,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    shift = ct.load(bias, index=(0,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    values = ct.astype(values, ct.float32)
    mean = ct.sum(values, axis=1, keepdims=True) / x.shape[1]
    inside = ct.reshape(ct.arange(TILE_N, dtype=ct.int32) < x.shape[1], (1, TILE_N))
    centred = ct.where(inside, values - mean, 0.0)
    variance = ct.sum(centred * centred, axis=1, keepdims=True) / x.shape[1]
    scaled = centred * ct.rsqrt(variance + eps) * ct.reshape(ct.astype(gain, ct.float32), (1, TILE_N))
    result = scaled + ct.reshape(ct.astype(shift, ct.float32), (1, TILE_N))
    ct.store(out, index=(tile, 0), tile=ct.astype(result, out.dtype), allow_tma=False)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Normalise each row of a matrix."""
    import torch

    if x.ndim != 2 or weight.ndim != 1 or bias.ndim != 1:
        raise ValueError("layer_norm needs a matrix, a weight and a bias")
    if weight.shape[0] != x.shape[1] or bias.shape[0] != x.shape[1]:
        raise ValueError("layer_norm needs a weight and a bias for each column")
    if x.shape[1] > MAX_COLUMNS:
        raise ValueError(f"layer_norm keeps a row in registers: at most {MAX_COLUMNS} columns")
    out = torch.empty_like(x)
    if x.shape[0] == 0 or x.shape[1] == 0:
        return out
    tile_n = next_power_of_two(x.shape[1])
    tile_m = max(1, TILE_ELEMENTS // tile_n)
    grid = (ct.cdiv(x.shape[0], tile_m), 1, 1)
    args = (x, weight, bias, out, eps, tile_m, tile_n)
    tilecheck.launch(torch.cuda.current_stream(), grid, layer_norm_kernel, args)
    return out


def reference(
    x: np.ndarray[Any, Any],
    weight: np.ndarray[Any, Any],
    bias: np.ndarray[Any, Any],
    eps: float = 1e-5,
) -> np.ndarray[Any, Any]:
    """What `layer_norm` computes."""
    values = x.astype(np.float32)
    centred = values - values.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True) + np.float32(eps))
    result = centred * scale * weight.astype(np.float32) + bias.astype(np.float32)
    out: np.ndarray[Any, Any] = result.astype(x.dtype)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Rows far from zero, of a width that is no tile, and a last tile short of rows."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((11, 1000)) + 10).astype(np.float16)
    weight, bias = rng.standard_normal((2, 1000)).astype(np.float16)
    args = (x, weight, bias, np.empty_like(x), 1e-5, TILE_ELEMENTS // 1024, 1024)
    yield tilecheck.Example(layer_norm_kernel, (2,), args, {"out": reference(x, weight, bias)}, tolerance=2e-3)
