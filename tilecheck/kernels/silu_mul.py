"""`silu(gate) * up`, the gated activation of a feed-forward layer, computed in float32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

from .sizes import next_power_of_two

if TYPE_CHECKING:
    import torch

TILE_ELEMENTS = 1024
MAX_TILE_N = 1024
LOG2E = 1.4426950408889634


@ct.kernel
def silu_mul_kernel(
    gate: ct.Array, up: ct.Array, out: ct.Array, TILE_M: ct.Constant[int], TILE_N: ct.Constant[int]
) -> None:
    """One tile per block, in the order of memory: along the rows first."""
    tiles_n = ct.num_tiles(out, axis=1, shape=(TILE_M, TILE_N))
    m = ct.bid(0) // tiles_n
    n = ct.bid(0) % tiles_n
    opening = ct.astype(ct.load(gate, index=(m, n), shape=(TILE_M, TILE_N)), ct.float32)
    values = ct.astype(ct.load(up, index=(m, n), shape=(TILE_M, TILE_N)), ct.float32)
    decay = ct.exp2(opening * -LOG2E, flush_to_zero=True)
    result = values * ct.truediv(opening, 1.0 + decay, rounding_mode=ct.RoundingMode.FULL)
    ct.store(out, index=(m, n), tile=ct.astype(result, out.dtype))


def silu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """`silu(gate) * up` for two matrices of one shape and type; they may be halves of a packed one."""
    import torch

    if gate.ndim != 2 or gate.shape != up.shape or gate.dtype != up.dtype:
        raise ValueError("silu_mul needs two matrices of one shape and type")
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if gate.shape[0] == 0 or gate.shape[1] == 0:
        return out
    tile_n = min(MAX_TILE_N, next_power_of_two(gate.shape[1]))
    tile_m = TILE_ELEMENTS // tile_n
    grid = (ct.cdiv(gate.shape[0], tile_m) * ct.cdiv(gate.shape[1], tile_n), 1, 1)
    args = (gate, up, out, tile_m, tile_n)
    tilecheck.launch(torch.cuda.current_stream(), grid, silu_mul_kernel, args)
    return out


def reference(gate: np.ndarray[Any, Any], up: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `silu_mul` computes."""
    opening = gate.astype(np.float32)
    result = opening * (1 + np.tanh(opening / 2)) / 2 * up.astype(np.float32)
    out: np.ndarray[Any, Any] = result.astype(gate.dtype)
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Halves of a packed matrix, with a ragged last tile along both axes."""
    packed = np.random.default_rng(0).standard_normal((3, 2 * 2500)).astype(np.float16)
    gate, up = packed[:, :2500], packed[:, 2500:]
    args = (gate, up, np.empty_like(gate), 1, 1024)
    yield tilecheck.Example(silu_mul_kernel, (9,), args, {"out": reference(gate, up)}, tolerance=2e-3)
