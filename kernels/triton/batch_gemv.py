"""Products of a weight with the vectors of a few sequences, as decoding a batch needs them: those of `gemv.py`.

Each piece of the weight is read once for all sequences, and multiplied by tensor cores, which take the vectors
as the columns of a matrix. A dependent launch loads its first weights before it waits for the launch before; no
launch writes a weight.
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

ROWS, COLUMNS = 16, 256  # of the weight, held by a program at once
LEAST = 8  # columns of the smallest matrix product of Triton 3.5: sequences, and idle columns
MAX_SEQUENCES = 16


@triton.jit
def vectors(x_ptr, start, columns, SEQUENCES: tl.constexpr, BATCH: tl.constexpr, COLUMNS: tl.constexpr):
    """Some elements of each vector, [BATCH, COLUMNS], in float32; zeros beyond the last sequence."""
    sequence = tl.arange(0, BATCH)
    lanes = start + tl.arange(0, COLUMNS)
    at = sequence.to(tl.int64)[:, None] * columns + lanes[None, :]
    mask = (sequence < SEQUENCES)[:, None] & (lanes < columns)[None, :]
    return tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def norm_gemv_batch_kernel(
    x_ptr,
    gain_ptr,
    w_ptr,
    out_ptr,
    rows,
    columns,
    eps,
    SEQUENCES: tl.constexpr,
    BATCH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """`out[s] = w @ norm(x[s])`, by pieces of `COLUMNS` columns; the root mean squares divide the sums."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lanes = tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None]
    at = row.to(tl.int64)[:, None] * columns + lanes[None, :]
    w = tl.load(w_ptr + at, mask=inside & (lanes < columns)[None, :], other=0.0, eviction_policy="evict_first")
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    gain = tl.load(gain_ptr + lanes, mask=lanes < columns, other=0.0).to(tl.float32)
    x = vectors(x_ptr, 0, columns, SEQUENCES, BATCH, COLUMNS)
    squares = x * x
    total = tl.dot(w, tl.trans((x * gain[None, :]).to(w.dtype)))
    for start in tl.range(COLUMNS, columns, COLUMNS, num_stages=4):
        mask = start + lanes < columns
        w = tl.load(w_ptr + at + start, mask=inside & mask[None, :], other=0.0, eviction_policy="evict_first")
        gain = tl.load(gain_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        x = vectors(x_ptr, start, columns, SEQUENCES, BATCH, COLUMNS)
        squares += x * x
        total = tl.dot(w, tl.trans((x * gain[None, :]).to(w.dtype)), total)
    scale = tl.rsqrt(tl.sum(squares, axis=1) / columns + eps)
    sequence = tl.arange(0, BATCH)
    out = out_ptr + sequence.to(tl.int64)[None, :] * rows + row[:, None]
    tl.store(out, total * scale[None, :], mask=inside & (sequence < SEQUENCES)[None, :])


@triton.jit
def norm_gate_up_batch_kernel(
    x_ptr,
    gain_ptr,
    w_ptr,
    out_ptr,
    rows,
    columns,
    eps,
    SEQUENCES: tl.constexpr,
    BATCH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """`out[s] = silu(gate @ norm(x[s])) * (up @ norm(x[s]))`; the weight holds `gate` above `up`."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lanes = tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None]
    at = row.to(tl.int64)[:, None] * columns + lanes[None, :]
    below = (row.to(tl.int64) + rows)[:, None] * columns + lanes[None, :]
    both = inside & (lanes < columns)[None, :]
    gate = tl.load(w_ptr + at, mask=both, other=0.0, eviction_policy="evict_first")
    up = tl.load(w_ptr + below, mask=both, other=0.0, eviction_policy="evict_first")
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    gain = tl.load(gain_ptr + lanes, mask=lanes < columns, other=0.0).to(tl.float32)
    x = vectors(x_ptr, 0, columns, SEQUENCES, BATCH, COLUMNS)
    squares = x * x
    y = tl.trans((x * gain[None, :]).to(gate.dtype))
    g, u = tl.dot(gate, y), tl.dot(up, y)
    for start in tl.range(COLUMNS, columns, COLUMNS, num_stages=4):
        mask = start + lanes < columns
        both = inside & mask[None, :]
        gate = tl.load(w_ptr + at + start, mask=both, other=0.0, eviction_policy="evict_first")
        up = tl.load(w_ptr + below + start, mask=both, other=0.0, eviction_policy="evict_first")
        gain = tl.load(gain_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        x = vectors(x_ptr, start, columns, SEQUENCES, BATCH, COLUMNS)
        squares += x * x
        y = tl.trans((x * gain[None, :]).to(gate.dtype))
        g, u = tl.dot(gate, y, g), tl.dot(up, y, u)
    scale = tl.rsqrt(tl.sum(squares, axis=1) / columns + eps)[None, :]
    g, u = g * scale, u * scale
    sequence = tl.arange(0, BATCH)
    out = out_ptr + sequence.to(tl.int64)[None, :] * rows + row[:, None]
    tl.store(out, g * tl.sigmoid(g) * u, mask=inside & (sequence < SEQUENCES)[None, :])


@triton.jit
def gemv_add_batch_kernel(
    x_ptr,
    w_ptr,
    residual_ptr,
    rows,
    columns,
    SEQUENCES: tl.constexpr,
    BATCH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """`residual[s] += w @ x[s]`, by pieces of `COLUMNS` columns."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lanes = tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None]
    at = row.to(tl.int64)[:, None] * columns + lanes[None, :]
    w = tl.load(w_ptr + at, mask=inside & (lanes < columns)[None, :], other=0.0, eviction_policy="evict_first")
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    x = vectors(x_ptr, 0, columns, SEQUENCES, BATCH, COLUMNS)
    total = tl.dot(w, tl.trans(x.to(w.dtype)))
    for start in tl.range(COLUMNS, columns, COLUMNS, num_stages=4):
        mask = inside & (start + lanes < columns)[None, :]
        w = tl.load(w_ptr + at + start, mask=mask, other=0.0, eviction_policy="evict_first")
        x = vectors(x_ptr, start, columns, SEQUENCES, BATCH, COLUMNS)
        total = tl.dot(w, tl.trans(x.to(w.dtype)), total)
    sequence = tl.arange(0, BATCH)
    out = residual_ptr + sequence.to(tl.int64)[None, :] * rows + row[:, None]
    mask = inside & (sequence < SEQUENCES)[None, :]
    before = tl.load(out, mask=mask, other=0.0).to(tl.float32)
    tl.store(out, before + total, mask=mask)


def norm_gemv_batch(
    x: torch.Tensor, gain: torch.Tensor, weight: torch.Tensor, out: torch.Tensor, eps: float = 1e-6
) -> None:
    """`out = rms_norm(x) * gain @ weight.T` for `x` [sequences, columns] and `weight` [rows, columns].

    Args:
        x: the vectors.
        gain: of the norm, [columns].
        weight: not of type float16: it has no room for products that are not divided by the norm yet.
        out: [sequences, rows].
        eps: added to mean squares.
    """
    sequences, rows, columns = _checked(x, weight)
    _check_norm(gain, weight)
    if out.shape != (sequences, rows) or not out.is_contiguous():
        raise ValueError("norm_gemv_batch needs an output with an element for each row of the weight")
    if sequences == 0 or rows == 0 or columns == 0:
        return
    tilecheck.verified(norm_gemv_batch_kernel)[(triton.cdiv(rows, ROWS),)](
        x,
        gain,
        weight,
        out,
        rows,
        columns,
        eps,
        SEQUENCES=sequences,
        BATCH=max(LEAST, triton.next_power_of_2(sequences)),
        ROWS=ROWS,
        COLUMNS=COLUMNS,
        DEPENDENT=False,
    )


def norm_gate_up_batch(
    x: torch.Tensor, gain: torch.Tensor, weight: torch.Tensor, out: torch.Tensor, eps: float = 1e-6
) -> None:
    """`out = silu(gate) * up`, the halves of `rms_norm(x) * gain @ weight.T`; `weight` [2 * rows, columns].

    Args:
        x: the vectors, [sequences, columns].
        gain: of the norm, [columns].
        weight: not of type float16: it has no room for products that are not divided by the norm yet.
        out: [sequences, rows].
        eps: added to mean squares.
    """
    sequences, both, columns = _checked(x, weight)
    _check_norm(gain, weight)
    rows = both // 2
    if both != 2 * rows or out.shape != (sequences, rows) or not out.is_contiguous():
        raise ValueError("norm_gate_up_batch needs an output with an element for every two rows of the weight")
    if sequences == 0 or rows == 0 or columns == 0:
        return
    tilecheck.verified(norm_gate_up_batch_kernel)[(triton.cdiv(rows, ROWS),)](
        x,
        gain,
        weight,
        out,
        rows,
        columns,
        eps,
        SEQUENCES=sequences,
        BATCH=max(LEAST, triton.next_power_of_2(sequences)),
        ROWS=ROWS,
        COLUMNS=COLUMNS,
        DEPENDENT=False,
    )


def gemv_add_batch(x: torch.Tensor, weight: torch.Tensor, residual: torch.Tensor) -> None:
    """`residual += x @ weight.T` for `x` [sequences, columns] and `weight` [rows, columns]."""
    sequences, rows, columns = _checked(x, weight)
    if residual.shape != (sequences, rows) or not residual.is_contiguous():
        raise ValueError("gemv_add_batch needs a residual with an element for each row of the weight")
    if sequences == 0 or rows == 0 or columns == 0:
        return
    tilecheck.verified(gemv_add_batch_kernel)[(triton.cdiv(rows, ROWS),)](
        x,
        weight,
        residual,
        rows,
        columns,
        SEQUENCES=sequences,
        BATCH=max(LEAST, triton.next_power_of_2(sequences)),
        ROWS=ROWS,
        COLUMNS=COLUMNS,
        DEPENDENT=False,
    )


def _checked(x: torch.Tensor, weight: torch.Tensor) -> tuple[int, int, int]:
    """The sequences, and the rows and columns of a weight that fits their vectors."""
    if x.ndim != 2 or weight.ndim != 2 or weight.shape[1] != x.shape[1]:
        raise ValueError("a product needs vectors with an element for each column of the weight")
    if not x.is_contiguous() or not weight.is_contiguous():
        raise ValueError("a product needs contiguous vectors and a contiguous weight")
    if x.shape[0] > MAX_SEQUENCES:
        raise ValueError(f"a product takes the vectors of at most {MAX_SEQUENCES} sequences")
    return x.shape[0], weight.shape[0], weight.shape[1]


def _check_norm(gain: torch.Tensor, weight: torch.Tensor) -> None:
    import torch

    if gain.shape != (weight.shape[1],) or not gain.is_contiguous():
        raise ValueError("the gain of a norm needs as many elements as a vector")
    if weight.dtype == torch.float16:
        raise ValueError("a product behind a norm needs a weight of type bfloat16 or float32")


def reference(
    x: np.ndarray[Any, Any], gain: np.ndarray[Any, Any], weight: np.ndarray[Any, Any], eps: float = 1e-6
) -> np.ndarray[Any, Any]:
    """What `norm_gemv_batch` computes, in float32."""
    values = x.astype(np.float32)
    squares = np.mean(values * values, axis=1, keepdims=True)
    values = values / np.sqrt(squares + np.float32(eps)) * gain.astype(np.float32)
    out: np.ndarray[Any, Any] = values @ weight.astype(np.float32).T
    return out


def reference_gate_up(
    x: np.ndarray[Any, Any], gain: np.ndarray[Any, Any], weight: np.ndarray[Any, Any], eps: float = 1e-6
) -> np.ndarray[Any, Any]:
    """What `norm_gate_up_batch` computes, in float32."""
    gate, up = np.split(reference(x, gain, weight, eps), 2, axis=1)
    out: np.ndarray[Any, Any] = gate / (1 + np.exp(-gate)) * up
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Three sequences; rows that no tile divides, and a last piece of columns that is short."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 100)).astype(np.float16)
    gain = rng.standard_normal(100).astype(np.float16)
    weight = rng.standard_normal((38, 100)).astype(np.float16)
    sizes = (3, 8, 16, 32, False)
    expected = {"out_ptr": reference(x, gain, weight).astype(np.float16)}
    args: tuple[Any, ...] = (x, gain, weight, np.empty((3, 38), np.float16), 38, 100, 1e-6, *sizes)
    yield tilecheck.Example(norm_gemv_batch_kernel, (3,), args, expected, 5e-2)
    expected = {"out_ptr": reference_gate_up(x, gain, weight).astype(np.float16)}
    args = (x, gain, weight, np.empty((3, 19), np.float16), 19, 100, 1e-6, *sizes)
    yield tilecheck.Example(norm_gate_up_batch_kernel, (2,), args, expected, 1e-1)
    residual = rng.standard_normal((3, 38)).astype(np.float16)
    total = residual.astype(np.float32) + x.astype(np.float32) @ weight.astype(np.float32).T
    args = (x, weight, residual, 38, 100, *sizes)
    yield tilecheck.Example(gemv_add_batch_kernel, (3,), args, {"residual_ptr": total.astype(np.float16)}, 2e-2)
