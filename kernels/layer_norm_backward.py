"""Gradients of layer normalisation: of its input row by row, of weight and bias by partial sums of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

from .sizes import multiprocessors, next_power_of_two

if TYPE_CHECKING:
    import torch

MAX_COLUMNS = 8192
TILE_COLUMNS, TILE_PARTS = 128, 64


@ct.kernel
def layer_norm_backward_kernel(
    grad: ct.Array,
    x: ct.Array,
    weight: ct.Array,
    grad_x: ct.Array,
    weight_parts: ct.Array,
    bias_parts: ct.Array,
    eps: float,
    TILE_N: ct.Constant[int],
) -> None:
    """Each block walks over rows; what they add to the gradients of weight and bias is a row of its own."""
    part = ct.bid(0)
    gain = ct.load(weight, index=(0,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO)
    gain = ct.reshape(ct.astype(gain, ct.float32), (1, TILE_N))
    inside = ct.reshape(ct.arange(TILE_N, dtype=ct.int32) < x.shape[1], (1, TILE_N))
    of_weight = ct.zeros((1, TILE_N), dtype=ct.float32)
    of_bias = ct.zeros((1, TILE_N), dtype=ct.float32)
    for row in range(part, x.shape[0], ct.num_blocks(0)):
        values = ct.load(x, index=(row, 0), shape=(1, TILE_N), padding_mode=ct.PaddingMode.ZERO)
        given = ct.load(grad, index=(row, 0), shape=(1, TILE_N), padding_mode=ct.PaddingMode.ZERO)
        values, given = ct.astype(values, ct.float32), ct.astype(given, ct.float32)
        mean = ct.sum(values, axis=1, keepdims=True) / x.shape[1]
        centred = ct.where(inside, values - mean, 0.0)
        scale = ct.rsqrt(ct.sum(centred * centred, axis=1, keepdims=True) / x.shape[1] + eps)
        normalised = centred * scale
        of_weight = of_weight + given * normalised
        of_bias = of_bias + given
        scaled = given * gain
        along = ct.sum(scaled * normalised, axis=1, keepdims=True) / x.shape[1]
        result = (scaled - ct.sum(scaled, axis=1, keepdims=True) / x.shape[1] - normalised * along) * scale
        ct.store(grad_x, index=(row, 0), tile=ct.astype(result, grad_x.dtype))
    ct.store(weight_parts, index=(part, 0), tile=of_weight)
    ct.store(bias_parts, index=(part, 0), tile=of_bias)


@ct.kernel
def sum_parts_kernel(
    parts: ct.Array, out: ct.Array, TILE_PARTS: ct.Constant[int], TILE_COLUMNS: ct.Constant[int]
) -> None:
    """The sum of each column."""
    column = ct.bid(0)
    shape = (TILE_PARTS, TILE_COLUMNS)
    total = ct.zeros((1, TILE_COLUMNS), dtype=ct.float32)
    for part in range(ct.num_tiles(parts, axis=0, shape=shape)):
        tile = ct.load(parts, index=(part, column), shape=shape, padding_mode=ct.PaddingMode.ZERO)
        total = total + ct.sum(tile, axis=0, keepdims=True)
    ct.store(out, index=(column,), tile=ct.astype(ct.reshape(total, (TILE_COLUMNS,)), out.dtype))


def layer_norm_backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of `x`, weight and bias, from that of the result of `layer_norm(x, weight, bias, eps)`."""
    import torch

    if x.ndim != 2 or grad.shape != x.shape or weight.ndim != 1 or weight.shape[0] != x.shape[1]:
        raise ValueError("layer_norm_backward needs two matrices of one shape and a weight for each column")
    rows, columns = x.shape
    if columns > MAX_COLUMNS:
        raise ValueError(f"layer_norm_backward keeps a row in registers: at most {MAX_COLUMNS} columns")
    grad_x = torch.empty_like(x)
    grad_weight, grad_bias = torch.zeros_like(weight), torch.zeros_like(weight)
    if rows == 0 or columns == 0:
        return grad_x, grad_weight, grad_bias
    stream = torch.cuda.current_stream()
    blocks = min(rows, 2 * multiprocessors(x.device))
    weight_parts = torch.empty((blocks, columns), dtype=torch.float32, device=x.device)
    bias_parts = torch.empty((blocks, columns), dtype=torch.float32, device=x.device)
    args = (grad, x, weight, grad_x, weight_parts, bias_parts, eps, next_power_of_two(columns))
    tilecheck.launch(stream, (blocks, 1, 1), layer_norm_backward_kernel, args)
    grid = (ct.cdiv(columns, TILE_COLUMNS), 1, 1)
    for parts, out in ((weight_parts, grad_weight), (bias_parts, grad_bias)):
        tilecheck.launch(stream, grid, sum_parts_kernel, (parts, out, TILE_PARTS, TILE_COLUMNS))
    return grad_x, grad_weight, grad_bias


Gradients = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


def reference(
    grad: np.ndarray[Any, Any], x: np.ndarray[Any, Any], weight: np.ndarray[Any, Any], eps: float = 1e-5
) -> Gradients:
    """What `layer_norm_backward` computes, in float32."""
    values, given = x.astype(np.float32), grad.astype(np.float32)
    centred = values - values.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True) + np.float32(eps))
    normalised, scaled = centred * scale, given * weight.astype(np.float32)
    along = np.mean(scaled * normalised, axis=1, keepdims=True)
    grad_x = (scaled - scaled.mean(axis=1, keepdims=True) - normalised * along) * scale
    return grad_x, (given * normalised).sum(axis=0), given.sum(axis=0)


def examples() -> Iterator[tilecheck.Example]:
    """More rows than blocks, of a width that is no tile; parts and columns that no tile divides."""
    rng = np.random.default_rng(0)
    grad, x = rng.standard_normal((2, 11, 100)).astype(np.float32)
    weight = rng.standard_normal(100).astype(np.float32)
    expected = reference(grad, x, weight)[0]
    parts = [np.empty((3, 100), dtype=np.float32) for _ in range(2)]
    args: tuple[Any, ...] = (grad, x, weight, np.empty_like(x), *parts, 1e-5, 128)
    of_weight, of_bias = _parts(grad, x, 3)
    found = {"grad_x": expected, "weight_parts": of_weight, "bias_parts": of_bias}
    yield tilecheck.Example(layer_norm_backward_kernel, (3,), args, found, 1e-4)
    sums = x.sum(axis=0)
    yield tilecheck.Example(sum_parts_kernel, (4,), (x, np.empty_like(sums), 4, 32), {"out": sums}, 1e-5)


def _parts(grad: np.ndarray[Any, Any], x: np.ndarray[Any, Any], blocks: int) -> list[np.ndarray[Any, Any]]:
    """What each of the blocks adds to the gradients of weight and bias."""
    one = np.ones(x.shape[1], dtype=np.float32)
    of_blocks = [reference(grad[part::blocks], x[part::blocks], one) for part in range(blocks)]
    return [np.stack([found[which] for found in of_blocks]) for which in (1, 2)]
