"""The heads of a prompt, on their way from one product to attention: queries and keys normalised and turned.

Queries are laid out by heads, as attention reads them; keys and values go into the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import triton
import triton.language as tl

import tilecheck

if TYPE_CHECKING:
    import torch

TOKENS = 16  # of a program


@triton.jit
def turned(a, b, gain_ptr, cos_ptr, sin_ptr, token, mask, eps, HALF: tl.constexpr):
    """Both halves of a head of tokens, [TOKENS, HALF]: normalised, times the gain, turned to its position."""
    lane = tl.arange(0, HALF)
    squares = tl.sum(a * a, axis=1, keep_dims=True) + tl.sum(b * b, axis=1, keep_dims=True)
    scale = tl.rsqrt(squares / (2 * HALF) + eps)
    a = a * scale * tl.load(gain_ptr + lane).to(tl.float32)[None, :]
    b = b * scale * tl.load(gain_ptr + HALF + lane).to(tl.float32)[None, :]
    turn = token[:, None] * HALF + lane[None, :]
    cos = tl.load(cos_ptr + turn, mask=mask, other=0.0)
    sin = tl.load(sin_ptr + turn, mask=mask, other=0.0)
    return a * cos - b * sin, b * cos + a * sin


@triton.jit
def prefill_heads_kernel(
    qkv_ptr,
    q_gain_ptr,
    k_gain_ptr,
    cos_ptr,
    sin_ptr,
    query_ptr,
    key_ptr,
    value_ptr,
    tokens,
    heads,
    kv_heads,
    all_heads,
    slots,
    eps,
    HALF: tl.constexpr,
    TOKENS: tl.constexpr,
):
    """A program takes one head of some tokens: of queries, then of keys, then of values."""
    width: tl.constexpr = 2 * HALF
    head = tl.program_id(1)
    token = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    lane = tl.arange(0, HALF)
    mask = (token < tokens)[:, None]
    given = qkv_ptr + (token * all_heads + head)[:, None] * width + lane[None, :]
    a = tl.load(given, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(given + HALF, mask=mask, other=0.0).to(tl.float32)
    if head < heads:
        a, b = turned(a, b, q_gain_ptr, cos_ptr, sin_ptr, token, mask, eps, HALF)
        at = (head * tokens + token)[:, None] * width + lane[None, :]
        tl.store(query_ptr + at, a, mask=mask)
        tl.store(query_ptr + at + HALF, b, mask=mask)
    elif head < heads + kv_heads:
        a, b = turned(a, b, k_gain_ptr, cos_ptr, sin_ptr, token, mask, eps, HALF)
        at = ((head - heads) * slots + token)[:, None] * width + lane[None, :]
        tl.store(key_ptr + at, a, mask=mask)
        tl.store(key_ptr + at + HALF, b, mask=mask)
    else:
        at = ((head - heads - kv_heads) * slots + token)[:, None] * width + lane[None, :]
        tl.store(value_ptr + at, a, mask=mask)
        tl.store(value_ptr + at + HALF, b, mask=mask)


def prefill_heads(
    qkv: torch.Tensor,
    q_gain: torch.Tensor,
    k_gain: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    group: int,
    eps: float = 1e-6,
) -> torch.Tensor:
    """The queries of a prompt, [heads, tokens, width]; its keys and values go into the cache's first slots.

    Args:
        qkv: the heads of the prompt, [tokens, (group + 2) * kv_heads, width].
        q_gain: gains of the norm of queries, [width].
        k_gain: gains of the norm of keys, [width].
        cos: cosines of the angles of each position, float32, [slots, width // 2].
        sin: their sines, float32, [slots, width // 2].
        keys: the cache, [kv_heads, slots, width].
        values: the cache, [kv_heads, slots, width].
        group: heads of queries for each head of keys.
        eps: added to mean squares.
    """
    import torch

    kv_heads, slots, width = keys.shape
    half = width // 2
    tokens = qkv.shape[0]
    if group < 1 or qkv.shape != (tokens, (group + 2) * kv_heads, width) or values.shape != keys.shape:
        raise ValueError("prefill_heads needs heads and caches of one width")
    if width != 2 * half or width != triton.next_power_of_2(width):
        raise ValueError("prefill_heads needs heads whose width is a power of two")
    if q_gain.shape != (width,) or k_gain.shape != (width,):
        raise ValueError("prefill_heads needs a gain for each element of a head")
    if cos.shape != (slots, half) or sin.shape != (slots, half):
        raise ValueError("prefill_heads needs an angle for each two elements of a head, for each slot")
    if tokens > slots:
        raise ValueError("prefill_heads needs a slot for each token")
    for tensor in (qkv, q_gain, k_gain, cos, sin, keys, values):
        if not tensor.is_contiguous():
            raise ValueError("prefill_heads needs contiguous tensors")
    heads = group * kv_heads
    queries = torch.empty((heads, tokens, width), dtype=qkv.dtype, device=qkv.device)
    if tokens == 0 or kv_heads == 0:
        return queries
    tilecheck.verified(prefill_heads_kernel)[(triton.cdiv(tokens, TOKENS), (group + 2) * kv_heads)](
        qkv,
        q_gain,
        k_gain,
        cos,
        sin,
        queries,
        keys,
        values,
        tokens,
        heads,
        kv_heads,
        (group + 2) * kv_heads,
        slots,
        eps,
        HALF=half,
        TOKENS=TOKENS,
    )
    return queries


def reference(
    qkv: np.ndarray[Any, Any],
    q_gain: np.ndarray[Any, Any],
    k_gain: np.ndarray[Any, Any],
    cos: np.ndarray[Any, Any],
    sin: np.ndarray[Any, Any],
    kv_heads: int,
    eps: float = 1e-6,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Queries, keys and values of a prompt, each [heads, tokens, width], in float32."""
    heads = qkv.shape[1] - 2 * kv_heads
    queries, keys, values = np.split(qkv.astype(np.float32), [heads, heads + kv_heads], axis=1)
    cos, sin = cos[: len(qkv), None], sin[: len(qkv), None]
    turned = []
    for x, gain in ((queries, q_gain), (keys, k_gain)):
        scale = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
        a, b = np.split(x * scale * gain.astype(np.float32), 2, axis=-1)
        turned.append(np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1).swapaxes(0, 1))
    return turned[0], turned[1], values.swapaxes(0, 1)


def examples() -> Iterator[tilecheck.Example]:
    """Tokens that no tile divides, in a cache with slots to spare."""
    rng = np.random.default_rng(0)
    tokens, heads, kv_heads, slots, width = 21, 4, 2, 30, 16
    qkv = rng.standard_normal((tokens, heads + 2 * kv_heads, width)).astype(np.float32)
    q_gain, k_gain = rng.standard_normal((2, width)).astype(np.float32)
    angles = np.arange(slots)[:, None] * 10000.0 ** (-np.arange(width // 2) / (width // 2))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    queries, *new = reference(qkv, q_gain, k_gain, cos, sin, kv_heads)
    cache = rng.standard_normal((2, kv_heads, slots, width)).astype(np.float32)
    filled = cache.copy()
    filled[:, :, :tokens] = new
    sizes = (tokens, heads, kv_heads, heads + 2 * kv_heads, slots, 1e-6, width // 2, 8)
    args: tuple[Any, ...] = (qkv, q_gain, k_gain, cos, sin, np.empty(queries.shape, np.float32))
    args = (*args, cache[0].copy(), cache[1].copy(), *sizes)
    expected = {"query_ptr": queries, "key_ptr": filled[0], "value_ptr": filled[1]}
    yield tilecheck.Example(prefill_heads_kernel, (3, heads + 2 * kv_heads), args, expected, 1e-5)
