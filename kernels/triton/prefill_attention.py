"""Attention of a prompt to itself, over keys and values that lie in the first slots of a cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import triton
import triton.language as tl

import tilecheck

if TYPE_CHECKING:
    import torch

QUERIES, KEYS = 64, 64  # of a program at once


@triton.jit
def prefill_attention_kernel(
    query_ptr,
    key_ptr,
    value_ptr,
    out_ptr,
    tokens,
    slots,
    scale,
    GROUP: tl.constexpr,
    WIDTH: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
):
    """Some queries of one head; the last ones begin, which see most keys."""
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    member = tl.program_id(1)
    kv = tl.program_id(2).to(tl.int64)
    head = kv * GROUP + member
    token = block * QUERIES + tl.arange(0, QUERIES)
    lane = tl.arange(0, WIDTH)
    mask = (token < tokens)[:, None]
    q = tl.load(query_ptr + (head * tokens + token)[:, None] * WIDTH + lane[None, :], mask=mask, other=0.0)
    best = tl.full((QUERIES,), -1.0e30, tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    result = tl.zeros((QUERIES, WIDTH), tl.float32)
    for start in range(0, tl.minimum(block * QUERIES + QUERIES, tokens), KEYS):
        n = start + tl.arange(0, KEYS)
        at = (kv * slots + n)[:, None] * WIDTH + lane[None, :]
        keys = tl.load(key_ptr + at, mask=(n < tokens)[:, None], other=0.0)
        values = tl.load(value_ptr + at, mask=(n < tokens)[:, None], other=0.0)
        s = tl.dot(q, tl.trans(keys)) * scale
        s = tl.where(n[None, :] <= token[:, None], s, -float("inf"))
        highest = tl.maximum(best, tl.max(s, axis=1))
        fade = tl.exp(best - highest)
        p = tl.exp(s - highest[:, None])
        result = tl.dot(p.to(values.dtype), values, result * fade[:, None])
        total = total * fade + tl.sum(p, axis=1)
        best = highest
    at = (token.to(tl.int64) * (tl.num_programs(2) * GROUP) + head)[:, None] * WIDTH + lane[None, :]
    tl.store(out_ptr + at, result / total[:, None], mask=mask)


def prefill_attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """What each token of a prompt sees of those before it and of itself, [tokens, heads, width].

    Args:
        queries: [kv_heads, heads for each of them, tokens, width].
        keys: the cache, [kv_heads, slots, width], whose first slots hold the prompt.
        values: the cache, [kv_heads, slots, width].
    """
    import torch

    kv_heads, group, tokens, width = queries.shape
    slots = keys.shape[1]
    if keys.shape != (kv_heads, slots, width) or values.shape != keys.shape or tokens > slots:
        raise ValueError("prefill_attention needs a cache with a slot for each token, and heads of one width")
    if width != triton.next_power_of_2(width) or width < 16:
        raise ValueError("prefill_attention needs heads whose width is a power of two, at least 16")
    for tensor in (queries, keys, values):
        if not tensor.is_contiguous():
            raise ValueError("prefill_attention needs contiguous tensors")
    out = torch.empty((tokens, kv_heads * group, width), dtype=queries.dtype, device=queries.device)
    if tokens == 0 or group == 0 or kv_heads == 0:
        return out
    tilecheck.verified(prefill_attention_kernel)[(triton.cdiv(tokens, QUERIES), group, kv_heads)](
        queries,
        keys,
        values,
        out,
        tokens,
        slots,
        width**-0.5,
        GROUP=group,
        WIDTH=width,
        QUERIES=QUERIES,
        KEYS=KEYS,
    )
    return out


def reference(
    queries: np.ndarray[Any, Any], keys: np.ndarray[Any, Any], values: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """What `prefill_attention` computes, in float32."""
    kv_heads, group, tokens, width = queries.shape
    keys, values = keys[:, None, :tokens].astype(np.float32), values[:, None, :tokens].astype(np.float32)
    scores = queries.astype(np.float32) @ keys.swapaxes(2, 3) * np.float32(width**-0.5)
    scores = np.where(np.tri(tokens, dtype=bool), scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=3, keepdims=True))
    seen = (powers / powers.sum(axis=3, keepdims=True)) @ values
    out: np.ndarray[Any, Any] = np.moveaxis(seen.reshape(kv_heads * group, tokens, width), 0, 1)
    return np.ascontiguousarray(out)


def examples() -> Iterator[tilecheck.Example]:
    """Tokens that no tile divides, tiles of queries and keys that differ, slots to spare."""
    rng = np.random.default_rng(0)
    queries = rng.standard_normal((2, 2, 50, 16)).astype(np.float16)
    keys, values = rng.standard_normal((2, 2, 60, 16)).astype(np.float16)
    expected = reference(queries, keys, values)
    args = (queries, keys, values, np.empty_like(expected), 50, 60, 16**-0.5, 2, 16, 32, 16)
    yield tilecheck.Example(prefill_attention_kernel, (2, 2, 2), args, {"out_ptr": expected}, 1e-2)
