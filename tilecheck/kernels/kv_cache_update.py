"""New keys and values written into a cache from a slot on that the kernel reads from memory.

The position is no argument of the launch, so a CUDA graph that was captured once writes further along at each
replay, and no host code vouches for it: the kernel writes all tokens where they fit, else none.
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


@ct.kernel
def kv_cache_update_kernel(
    keys: ct.Array,
    values: ct.Array,
    key_cache: ct.Array,
    value_cache: ct.Array,
    position: ct.Array,
    TILE_T: ct.Constant[int],
    TILE_H: ct.Constant[int],
    TILE_D: ct.Constant[int],
) -> None:
    """All blocks read one position, so their slots are as far apart as their tokens."""
    t = ct.bid(0)
    tokens = keys.shape[0]
    first = ct.load(position, index=(0,), shape=()).item()
    if 0 <= first <= key_cache.shape[0] - tokens:  # `first + tokens` might wrap
        shape = (TILE_T, TILE_H, TILE_D)
        key_slots = key_cache.slice(axis=0, start=first, stop=first + tokens)
        value_slots = value_cache.slice(axis=0, start=first, stop=first + tokens)
        ct.store(key_slots, index=(t, 0, 0), tile=ct.load(keys, index=(t, 0, 0), shape=shape))
        ct.store(value_slots, index=(t, 0, 0), tile=ct.load(values, index=(t, 0, 0), shape=shape))


def kv_cache_update(
    keys: torch.Tensor,
    values: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    position: torch.Tensor,
) -> None:
    """Write (tokens, heads, head size) to the slots of (slots, heads, head size) from `position[0]` on."""
    import torch

    if (
        keys.ndim != 3
        or key_cache.ndim != 3
        or keys.shape != values.shape
        or key_cache.shape != value_cache.shape
    ):
        raise ValueError("kv_cache_update needs keys and values of one shape, and caches of one shape")
    if keys.shape[1] != key_cache.shape[1] or keys.shape[2] != key_cache.shape[2]:
        raise ValueError("kv_cache_update needs as many heads and elements of a head in the caches")
    if keys.dtype != key_cache.dtype or values.dtype != value_cache.dtype:
        raise ValueError("kv_cache_update needs caches of the type of what is new")
    if position.ndim != 1 or position.shape[0] != 1 or position.dtype != torch.int32:
        raise ValueError("kv_cache_update needs one position, an int32")
    tokens, heads, width = keys.shape
    if tokens == 0 or heads == 0 or width == 0:
        return
    tile_h, tile_d = next_power_of_two(heads), next_power_of_two(width)
    tile_t = max(1, TILE_ELEMENTS // (tile_h * tile_d))
    grid = (ct.cdiv(tokens, tile_t), 1, 1)
    args = (keys, values, key_cache, value_cache, position, tile_t, tile_h, tile_d)
    tilecheck.launch(torch.cuda.current_stream(), grid, kv_cache_update_kernel, args)


def reference(new: np.ndarray[Any, Any], cache: np.ndarray[Any, Any], position: int) -> np.ndarray[Any, Any]:
    """What `kv_cache_update` makes of one of the caches."""
    out: np.ndarray[Any, Any] = cache.copy()
    if 0 <= position <= len(cache) - len(new):
        out[position : position + len(new)] = new
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Tokens that reach the last slot, in tiles that hang over the end of every axis."""
    rng = np.random.default_rng(0)
    keys, values = rng.standard_normal((2, 11, 5, 80)).astype(np.float16)
    key_cache, value_cache = rng.standard_normal((2, 40, 5, 80)).astype(np.float16)
    position = np.array([29], dtype=np.int32)
    tile_h, tile_d = 8, 128
    tile_t = TILE_ELEMENTS // (tile_h * tile_d)
    args = (keys, values, key_cache, value_cache, position, tile_t, tile_h, tile_d)
    expected = {
        "key_cache": reference(keys, key_cache, 29),
        "value_cache": reference(values, value_cache, 29),
    }
    yield tilecheck.Example(kv_cache_update_kernel, (ct.cdiv(11, tile_t),), args, expected)
