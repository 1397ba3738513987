"""Element-wise activations of a vector or a matrix taken flat: `relu` and `gelu`, computed in float32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

if TYPE_CHECKING:
    import torch

TILE = 1024
# The error function in gelu is approximated as its authors do: x * sigmoid of a cubic in x.
CUBIC = 0.044715
SLOPE = 1.5957691216057308  # 2 * sqrt(2 / pi)
LOG2E = 1.4426950408889634


@ct.kernel
def relu_kernel(x: ct.Array, out: ct.Array, TILE: ct.Constant[int]) -> None:
    """`max(x, 0)`, one tile per block."""
    tile = ct.bid(0)
    values = ct.load(x, index=(tile,), shape=(TILE,))
    ct.store(out, index=(tile,), tile=ct.maximum(values, ct.zeros((TILE,), dtype=x.dtype)))


@ct.kernel
def gelu_kernel(x: ct.Array, out: ct.Array, TILE: ct.Constant[int]) -> None:
    """`x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2`, one tile per block."""
    tile = ct.bid(0)
    values = ct.astype(ct.load(x, index=(tile,), shape=(TILE,)), ct.float32)
    inner = values * (SLOPE + SLOPE * CUBIC * values * values)
    below = 1.0 + ct.exp2(inner * -LOG2E, flush_to_zero=True)
    result = ct.truediv(values, below, rounding_mode=ct.RoundingMode.APPROX, flush_to_zero=True)
    ct.store(out, index=(tile,), tile=ct.astype(result, out.dtype))


def relu(x: torch.Tensor) -> torch.Tensor:
    """`max(x, 0)` of each element of a contiguous tensor."""
    import torch

    flat = _flat(x)
    out = torch.empty_like(flat)
    if flat.shape[0] > 0:
        grid = (ct.cdiv(flat.shape[0], TILE), 1, 1)
        tilecheck.launch(torch.cuda.current_stream(), grid, relu_kernel, (flat, out, TILE))
    return out.view(x.shape)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """The Gaussian error linear unit of each element of a contiguous tensor, in its tanh approximation."""
    import torch

    flat = _flat(x)
    out = torch.empty_like(flat)
    if flat.shape[0] > 0:
        grid = (ct.cdiv(flat.shape[0], TILE), 1, 1)
        tilecheck.launch(torch.cuda.current_stream(), grid, gelu_kernel, (flat, out, TILE))
    return out.view(x.shape)


def _flat(x: torch.Tensor) -> torch.Tensor:
    if not x.is_contiguous() or not x.is_floating_point():
        raise ValueError("an activation needs a contiguous tensor of floats")
    return x.view(-1)


def reference_relu(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `relu` computes."""
    out: np.ndarray[Any, Any] = np.maximum(x, np.zeros_like(x))
    return out


def reference_gelu(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `gelu` computes."""
    values = x.astype(np.float32)
    out: np.ndarray[Any, Any] = values * (1 + np.tanh(SLOPE / 2 * (values + CUBIC * values**3))) / 2
    return out.astype(x.dtype)


def examples() -> Iterator[tilecheck.Example]:
    """A last tile that is not full, and values whose exponential overflows."""
    x = np.random.default_rng(0).standard_normal(2500).astype(np.float16)
    x[:4] = [60000, -60000, 0, -0.0]
    yield tilecheck.Example(relu_kernel, (3,), (x, np.empty_like(x), TILE), {"out": reference_relu(x)})
    yield tilecheck.Example(gelu_kernel, (3,), (x, np.empty_like(x), TILE), {"out": reference_gelu(x)}, 2e-3)
