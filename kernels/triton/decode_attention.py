"""Attention of one new token of each sequence over a cache of keys and values.

The heads of the token come as one product: its queries, its keys, its values. Queries and keys are normalised
and turned to the position of the token, and its keys and values go into the cache, all in one kernel. Short
contexts take one program a head of queries (`attention_kernel`); long ones are split over the keys
(`split_attention_kernel`) and merged (`merge_kernel`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import triton
import triton.language as tl

import tilecheck

from ..sizes import may_depend  # noqa: TID252 - the folder has another name in a checkout

if TYPE_CHECKING:
    import torch

KEYS = 32  # loaded at once
SPLITS, SPLIT_KEYS, STAGES = 16, 64, 3  # of a long context: parts, keys loaded at once, loads on their way
ROWS = 16  # of the smallest matrix product: queries that share keys, and idle rows


@triton.jit
def turned(a, b, a_gain, b_gain, cos, sin, eps):
    """Both halves of heads, [..., HALF], over their root mean square, times their gain, turned by angles."""
    squares = tl.sum(a * a, axis=-1, keep_dims=True) + tl.sum(b * b, axis=-1, keep_dims=True)
    scale = tl.rsqrt(squares / (2 * a.shape[-1]) + eps)
    a = a * scale * a_gain
    b = b * scale * b_gain
    return a * cos - b * sin, b * cos + a * sin


@triton.jit
def turned_head(x_ptr, gain_ptr, cos, sin, eps, HALF: tl.constexpr):
    """Both halves of the head at an address, as `turned` gives them."""
    lane = tl.arange(0, HALF)
    return turned(
        tl.load(x_ptr + lane).to(tl.float32),
        tl.load(x_ptr + HALF + lane).to(tl.float32),
        tl.load(gain_ptr + lane).to(tl.float32),
        tl.load(gain_ptr + HALF + lane).to(tl.float32),
        cos,
        sin,
        eps,
    )


@triton.jit
def attention_kernel(
    qkv_ptr,
    q_gain_ptr,
    k_gain_ptr,
    cos_ptr,
    sin_ptr,
    position_ptr,
    key_ptr,
    value_ptr,
    out_ptr,
    kv_heads,
    slots,
    scale,
    eps,
    GROUP: tl.constexpr,
    HALF: tl.constexpr,
    KEYS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One program for each head of queries of each sequence; the first of those that share keys stores them."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    width: tl.constexpr = 2 * HALF
    member = tl.program_id(0)
    kv = tl.program_id(1)
    sequence = tl.program_id(2).to(tl.int64)
    head = kv * GROUP + member
    position = tl.minimum(tl.maximum(tl.load(position_ptr + sequence), 0), slots - 1)
    lane = tl.arange(0, HALF)
    whole = tl.arange(0, width)
    n = tl.arange(0, KEYS)
    cache = (sequence * kv_heads + kv) * slots
    # The first keys are on their way while the token's own are computed: one wait for the memory, not two.
    old = (n < position)[:, None]
    at = (cache + n)[:, None] * width
    a = tl.load(key_ptr + at + lane[None, :], mask=old, other=0.0)
    b = tl.load(key_ptr + at + HALF + lane[None, :], mask=old, other=0.0)
    values = tl.load(value_ptr + at + whole[None, :], mask=old, other=0.0)
    token = qkv_ptr + sequence * (GROUP + 2) * kv_heads * width
    turn = position.to(tl.int64) * HALF + lane
    cos, sin = tl.load(cos_ptr + turn), tl.load(sin_ptr + turn)
    v = tl.load(token + ((GROUP + 1) * kv_heads + kv) * width + whole)
    qa, qb = turned_head(token + head * width, q_gain_ptr, cos, sin, eps, HALF)
    ka, kb = turned_head(token + (GROUP * kv_heads + kv) * width, k_gain_ptr, cos, sin, eps, HALF)
    if member == 0:
        new = (cache + position) * width
        tl.store(key_ptr + new + lane, ka)
        tl.store(key_ptr + new + HALF + lane, kb)
        tl.store(value_ptr + new + whole, v)
    best = (tl.sum(qa * ka, axis=0) + tl.sum(qb * kb, axis=0)) * scale
    total = 1.0
    result = v.to(tl.float32)
    for start in range(0, position, KEYS):
        s = tl.sum(a.to(tl.float32) * qa[None, :], axis=1) + tl.sum(b.to(tl.float32) * qb[None, :], axis=1)
        s = tl.where(start + n < position, s * scale, -float("inf"))
        highest = tl.maximum(best, tl.max(s, axis=0))
        fade = tl.exp(best - highest)
        p = tl.exp(s - highest)
        result = result * fade + tl.sum(values.to(tl.float32) * p[:, None], axis=0)
        total = total * fade + tl.sum(p, axis=0)
        best = highest
        old = (start + KEYS + n < position)[:, None]
        at = (cache + start + KEYS + n)[:, None] * width
        a = tl.load(key_ptr + at + lane[None, :], mask=old, other=0.0)
        b = tl.load(key_ptr + at + HALF + lane[None, :], mask=old, other=0.0)
        values = tl.load(value_ptr + at + whole[None, :], mask=old, other=0.0)
    tl.store(out_ptr + (sequence * GROUP * kv_heads + head) * width + whole, result / total)


@triton.jit
def split_attention_kernel(
    qkv_ptr,
    q_gain_ptr,
    k_gain_ptr,
    cos_ptr,
    sin_ptr,
    position_ptr,
    key_ptr,
    value_ptr,
    partial_ptr,
    weight_ptr,
    kv_heads,
    slots,
    scale,
    eps,
    GROUP: tl.constexpr,
    HALF: tl.constexpr,
    KEYS: tl.constexpr,
    SPLITS: tl.constexpr,
    ROWS: tl.constexpr,
    STAGES: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One program for each head of keys, each part of the context and each sequence; idle ones end at once."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    width: tl.constexpr = 2 * HALF
    kv, split = tl.program_id(0), tl.program_id(1)
    sequence = tl.program_id(2).to(tl.int64)
    position = tl.minimum(tl.maximum(tl.load(position_ptr + sequence), 0), slots - 1)
    part = tl.maximum(tl.cdiv(tl.cdiv(position, SPLITS), KEYS) * KEYS, KEYS)
    first = split * part
    last = tl.minimum(first + part, position)
    if (first >= position) & (split > 0):
        return
    lane, whole, r = tl.arange(0, HALF), tl.arange(0, width), tl.arange(0, ROWS)
    cache, token = (sequence * kv_heads + kv) * slots, qkv_ptr + sequence * (GROUP + 2) * kv_heads * width
    turn = position.to(tl.int64) * HALF + lane
    cos, sin = tl.load(cos_ptr + turn), tl.load(sin_ptr + turn)
    mine = (r < GROUP)[:, None]
    q = token + (kv * GROUP + r)[:, None] * width + lane[None, :]
    qa, qb = turned(
        tl.load(q, mask=mine, other=0.0).to(tl.float32),
        tl.load(q + HALF, mask=mine, other=0.0).to(tl.float32),
        tl.load(q_gain_ptr + lane).to(tl.float32)[None, :],
        tl.load(q_gain_ptr + HALF + lane).to(tl.float32)[None, :],
        cos[None, :],
        sin[None, :],
        eps,
    )
    best = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    result = tl.zeros((ROWS, width), tl.float32)
    if split == 0:
        v = tl.load(token + ((GROUP + 1) * kv_heads + kv) * width + whole)
        ka, kb = turned_head(token + (GROUP * kv_heads + kv) * width, k_gain_ptr, cos, sin, eps, HALF)
        new = (cache + position) * width
        tl.store(key_ptr + new + lane, ka)
        tl.store(key_ptr + new + HALF + lane, kb)
        tl.store(value_ptr + new + whole, v)
        best = (tl.sum(qa * ka[None, :], axis=1) + tl.sum(qb * kb[None, :], axis=1)) * scale
        total = tl.full((ROWS,), 1.0, tl.float32)
        result = result + v.to(tl.float32)[None, :]
    qa, qb = qa.to(key_ptr.dtype.element_ty), qb.to(key_ptr.dtype.element_ty)
    for start in tl.range(first, last, KEYS, num_stages=STAGES):
        n = start + tl.arange(0, KEYS)
        old = n < last
        at = (cache + n)[:, None] * width
        a = tl.load(key_ptr + at + lane[None, :], mask=old[:, None], other=0.0)
        b = tl.load(key_ptr + at + HALF + lane[None, :], mask=old[:, None], other=0.0)
        values = tl.load(value_ptr + at + whole[None, :], mask=old[:, None], other=0.0)
        s = tl.dot(qb, tl.trans(b), tl.dot(qa, tl.trans(a))) * scale
        s = tl.where(old[None, :], s, -float("inf"))
        highest = tl.maximum(best, tl.max(s, axis=1))
        fade = tl.exp(best - highest)
        p = tl.exp(s - highest[:, None])
        result = tl.dot(p.to(values.dtype), values, result * fade[:, None])
        total = total * fade + tl.sum(p, axis=1)
        best = highest
    at = ((sequence * kv_heads + kv) * GROUP + r) * SPLITS + split
    tl.store(partial_ptr + at[:, None] * width + whole[None, :], result / total[:, None], mask=mine)
    tl.store(weight_ptr + at, best + tl.log(total), mask=r < GROUP)


@triton.jit
def merge_kernel(
    partial_ptr,
    weight_ptr,
    position_ptr,
    out_ptr,
    slots,
    D: tl.constexpr,
    KEYS: tl.constexpr,
    SPLITS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """The parts of one head of one sequence, by the logarithms of their weights; idle parts are left out."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    sequence = tl.program_id(1).to(tl.int64)
    head = sequence * tl.num_programs(0) + tl.program_id(0)
    position = tl.minimum(tl.maximum(tl.load(position_ptr + sequence), 0), slots - 1)
    part = tl.maximum(tl.cdiv(tl.cdiv(position, SPLITS), KEYS) * KEYS, KEYS)
    split = tl.arange(0, SPLITS)
    whole = tl.arange(0, D)
    used = (split * part < position) | (split == 0)
    at = head * SPLITS + split
    weight = tl.load(weight_ptr + at, mask=used, other=-float("inf"))
    parts = tl.load(partial_ptr + at[:, None] * D + whole[None, :], mask=used[:, None], other=0.0)
    p = tl.exp(weight - tl.max(weight, axis=0))
    tl.store(out_ptr + head * D + whole, tl.sum(parts * p[:, None], axis=0) / tl.sum(p, axis=0))


def decode_attention(
    qkv: torch.Tensor,
    q_gain: torch.Tensor,
    k_gain: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    group: int,
    eps: float = 1e-6,
    *,
    split: bool,
) -> torch.Tensor:
    """The attention of the new token of each sequence, whose key and value are put into the caches.

    Args:
        qkv: the heads of the new tokens, [sequences, (group + 2) * kv_heads, width].
        q_gain: gains of the norm of queries, [width]; `k_gain` those of keys.
        k_gain: gains of the norm of keys, [width].
        cos: cosines of the angles of each position, float32, [slots, width // 2].
        sin: their sines, float32, [slots, width // 2].
        positions: of the new tokens, int32, [sequences]; others than those of slots are clamped.
        keys: the cache, [sequences, kv_heads, slots, width]; `values` likewise.
        values: the cache, [sequences, kv_heads, slots, width].
        group: heads of queries for each head of keys.
        eps: added to mean squares.
        split: split the context over programs: for long ones.
    """
    import torch

    sequences, kv_heads, slots, width = keys.shape
    if group < 1 or group > ROWS:
        raise ValueError(f"decode_attention takes from 1 to {ROWS} heads of queries for each head of keys")
    if qkv.shape != (sequences, (group + 2) * kv_heads, width) or values.shape != keys.shape:
        raise ValueError("decode_attention needs heads and caches of one width for every sequence")
    half = width // 2
    if width != 2 * half or width != triton.next_power_of_2(width) or width < 2 * ROWS:
        raise ValueError(f"decode_attention needs heads whose width is a power of two, at least {2 * ROWS}")
    if q_gain.shape != (width,) or k_gain.shape != (width,):
        raise ValueError("decode_attention needs a gain for each element of a head")
    if cos.shape != (slots, half) or sin.shape != (slots, half):
        raise ValueError("decode_attention needs an angle for each two elements of a head, for each slot")
    if positions.shape != (sequences,) or slots < 1 or positions.dtype != torch.int32:
        raise ValueError("decode_attention needs a slot, and one position of type int32 for each sequence")
    for tensor in (qkv, q_gain, k_gain, cos, sin, positions, keys, values):
        if not tensor.is_contiguous():
            raise ValueError("decode_attention needs contiguous tensors")
    heads = group * kv_heads
    out = torch.empty((sequences, heads, width), dtype=qkv.dtype, device=qkv.device)
    if sequences == 0 or kv_heads == 0:
        return out
    dependent = may_depend(qkv.device)
    if not split:
        tilecheck.verified(attention_kernel)[(group, kv_heads, sequences)](
            qkv,
            q_gain,
            k_gain,
            cos,
            sin,
            positions,
            keys,
            values,
            out,
            kv_heads,
            slots,
            width**-0.5,
            eps,
            GROUP=group,
            HALF=half,
            KEYS=KEYS,
            DEPENDENT=dependent,
            launch_pdl=dependent,
        )
        return out
    partial = torch.empty((sequences, heads, SPLITS, width), dtype=torch.float32, device=qkv.device)
    weights = torch.empty((sequences, heads, SPLITS), dtype=torch.float32, device=qkv.device)
    tilecheck.verified(split_attention_kernel)[(kv_heads, SPLITS, sequences)](
        qkv,
        q_gain,
        k_gain,
        cos,
        sin,
        positions,
        keys,
        values,
        partial,
        weights,
        kv_heads,
        slots,
        width**-0.5,
        eps,
        GROUP=group,
        HALF=half,
        KEYS=SPLIT_KEYS,
        SPLITS=SPLITS,
        ROWS=ROWS,
        STAGES=STAGES,
        DEPENDENT=dependent,
        launch_pdl=dependent,
    )
    tilecheck.verified(merge_kernel)[(heads, sequences)](
        partial,
        weights,
        positions,
        out,
        slots,
        D=width,
        KEYS=SPLIT_KEYS,
        SPLITS=SPLITS,
        DEPENDENT=dependent,
        launch_pdl=dependent,
    )
    return out


Caches = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


def reference(
    qkv: np.ndarray[Any, Any],
    q_gain: np.ndarray[Any, Any],
    k_gain: np.ndarray[Any, Any],
    cos: np.ndarray[Any, Any],
    sin: np.ndarray[Any, Any],
    positions: np.ndarray[Any, Any],
    keys: np.ndarray[Any, Any],
    values: np.ndarray[Any, Any],
    eps: float = 1e-6,
) -> Caches:
    """The result of `decode_attention` in float32, and the caches after it."""
    keys, values = keys.astype(np.float32), values.astype(np.float32)
    sequences, kv_heads, slots, width = keys.shape
    heads = qkv.shape[1] - 2 * kv_heads
    out = np.empty((sequences, heads, width), dtype=np.float32)
    for sequence, given in enumerate(positions):
        position = min(max(int(given), 0), slots - 1)
        queries, new, fresh = np.split(qkv[sequence].astype(np.float32), [heads, heads + kv_heads])
        queries = _turned(queries, q_gain, cos[position], sin[position], eps)
        keys[sequence, :, position] = _turned(new, k_gain, cos[position], sin[position], eps)
        values[sequence, :, position] = fresh
        for head in range(heads):
            kv = head // (heads // kv_heads)
            scores = keys[sequence, kv, : position + 1] @ queries[head] * width**-0.5
            powers = np.exp(scores - scores.max())
            out[sequence, head] = powers / powers.sum() @ values[sequence, kv, : position + 1]
    return out, keys, values


def _turned(
    x: np.ndarray[Any, Any],
    gain: np.ndarray[Any, Any],
    cos: np.ndarray[Any, Any],
    sin: np.ndarray[Any, Any],
    eps: float,
) -> np.ndarray[Any, Any]:
    x = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * gain.astype(np.float32)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def examples() -> Iterator[tilecheck.Example]:
    """Two sequences in the middle and at the end of their slots, whole and split; both kernels of the split."""
    rng = np.random.default_rng(0)
    sequences, kv_heads, group, slots, width = 2, 2, 2, 70, 32
    heads = group * kv_heads
    qkv = rng.standard_normal((sequences, heads + 2 * kv_heads, width)).astype(np.float32)
    q_gain, k_gain = rng.standard_normal((2, width)).astype(np.float32)
    angles = np.arange(slots)[:, None] * 10000.0 ** (-np.arange(width // 2) / (width // 2))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    positions = np.array([37, 69], dtype=np.int32)
    keys, values = rng.standard_normal((2, sequences, kv_heads, slots, width)).astype(np.float32)
    out, new_keys, new_values = reference(qkv, q_gain, k_gain, cos, sin, positions, keys, values)
    given = (qkv, q_gain, k_gain, cos, sin, positions)
    sizes = (kv_heads, slots, width**-0.5, 1e-6, group, width // 2, 16)
    expected = {"key_ptr": new_keys, "value_ptr": new_values}
    args: tuple[Any, ...] = (*given, keys.copy(), values.copy(), np.empty_like(out), *sizes, False)
    yield tilecheck.Example(
        attention_kernel, (group, kv_heads, sequences), args, {**expected, "out_ptr": out}, 1e-4
    )
    partial = np.zeros((sequences, heads, 4, width), dtype=np.float32)
    weights = np.zeros((sequences, heads, 4), dtype=np.float32)
    args = (*given, keys.copy(), values.copy(), partial, weights, *sizes, 4, ROWS, STAGES, False)
    yield tilecheck.Example(split_attention_kernel, (kv_heads, 4, sequences), args, expected, 1e-4)
    partial = rng.standard_normal((sequences, heads, 4, width)).astype(np.float32)
    weights = rng.standard_normal((sequences, heads, 4)).astype(np.float32)
    powers = np.exp(weights) * (np.arange(4) < 3)  # three parts of 16 keys hold 37, three of 32 hold 69
    merged = np.einsum("bhs,bhsd->bhd", powers, partial) / powers.sum(axis=2)[..., None]
    args = (partial, weights, positions, np.empty_like(out), slots, width, 16, 4, False)
    yield tilecheck.Example(merge_kernel, (heads, sequences), args, {"out_ptr": merged}, 1e-5)
