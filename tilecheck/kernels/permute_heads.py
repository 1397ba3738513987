"""(B, H, M, D) to (B, M, H, D): attention heads to rows of one token.

Each block moves the rows of one head, so the head of the block must be in the index of the store: without
it the blocks of all heads write one tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cuda.tile as ct
import numpy as np

import tilecheck

from .sizes import next_power_of_two

if TYPE_CHECKING:
    import torch

TILE_ELEMENTS = 4096
MAX_HEAD = 1024


@ct.kernel
def permute_heads_kernel(
    x: ct.Array, out: ct.Array, TILE_M: ct.Constant[int], TILE_D: ct.Constant[int]
) -> None:
    heads = x.shape[1]
    batch = ct.bid(0) // heads
    head = ct.bid(0) % heads
    m = ct.bid(1)
    tile = ct.load(x, index=(batch, head, m, 0), shape=(1, 1, TILE_M, TILE_D))
    ct.store(out, index=(batch, m, head, 0), tile=ct.permute(tile, (0, 2, 1, 3)))


def permute_heads(x: torch.Tensor) -> torch.Tensor:
    """The heads of (B, H, M, D) moved behind the tokens: (B, M, H, D), in memory of its own."""
    import torch

    if x.ndim != 4:
        raise ValueError("permute_heads needs an array of shape (B, H, M, D)")
    batches, heads, tokens, width = x.shape
    if width > MAX_HEAD:
        raise ValueError(f"permute_heads moves whole rows: at most {MAX_HEAD} elements a head")
    out = torch.empty((batches, tokens, heads, width), dtype=x.dtype, device=x.device)
    if batches == 0 or heads == 0 or tokens == 0 or width == 0:
        return out
    tile_d = next_power_of_two(width)
    tile_m = TILE_ELEMENTS // tile_d
    grid = (batches * heads, ct.cdiv(tokens, tile_m), 1)
    tilecheck.launch(torch.cuda.current_stream(), grid, permute_heads_kernel, (x, out, tile_m, tile_d))
    return out


def reference(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `permute_heads` computes."""
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3))


def examples() -> Iterator[tilecheck.Example]:
    """Heads narrower than their tile, and a last tile that is short of tokens."""
    batches, heads, tokens, width = shape = (2, 3, 77, 80)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float16)
    out = np.empty((batches, tokens, heads, width), dtype=x.dtype)
    tile_m = TILE_ELEMENTS // 128
    grid = (batches * heads, ct.cdiv(tokens, tile_m))
    yield tilecheck.Example(permute_heads_kernel, grid, (x, out, tile_m, 128), {"out": reference(x)})
