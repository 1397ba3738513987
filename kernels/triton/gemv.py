"""Products of a weight with one vector, as decoding needs them: behind a norm, with SiLU, onto a residual.

All of them are bound by the bytes of the weight. A dependent launch loads its first weights before it waits for
the launch before, so that the memory never rests between two kernels; no launch writes a weight. The products
do not wait for the norm either: its scale is one number, and multiplies their sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import triton
import triton.language as tl

import tilecheck

from ..sizes import power_of_two_below  # noqa: TID252 - the folder has another name in a checkout

if TYPE_CHECKING:
    import torch

ROWS, COLUMNS = 2, 1024  # of the weight, held by a program at once
MAX_COLUMNS = 8192  # of a weight behind a norm, whose rows are held whole


@triton.jit
def tile_of(w_ptr, row, lanes, inside, columns):
    """Some columns of some rows of a weight; zeros outside of it."""
    at = row.to(tl.int64)[:, None] * columns + lanes[None, :]
    mask = inside[:, None] & (lanes < columns)[None, :]
    return tl.load(w_ptr + at, mask=mask, other=0.0, eviction_policy="evict_first")


@triton.jit
def elements_of(x_ptr, lanes, columns):
    """Some elements of a vector in float32; zeros outside of it."""
    return tl.load(x_ptr + lanes, mask=lanes < columns, other=0.0).to(tl.float32)


@triton.jit
def norm_gemv_kernel(
    x_ptr,
    gain_ptr,
    w_ptr,
    out_ptr,
    rows,
    columns,
    eps,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    REST: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """`out = w @ norm(x)`; every program computes the norm for itself.

    It holds whole rows, in a tile of `COLUMNS` and, unless `REST` is 0, one of the rest.
    """
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    lanes = tl.arange(0, COLUMNS)
    w = tile_of(w_ptr, row, lanes, inside, columns)
    gain = elements_of(gain_ptr, lanes, columns)
    if REST:
        rest = COLUMNS + tl.arange(0, REST)
        w_rest = tile_of(w_ptr, row, rest, inside, columns)
        gain_rest = elements_of(gain_ptr, rest, columns)
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    x = elements_of(x_ptr, lanes, columns)
    squares = tl.sum(x * x, axis=0)
    if REST:
        x_rest = elements_of(x_ptr, rest, columns)
        squares += tl.sum(x_rest * x_rest, axis=0)
    scale = tl.rsqrt(squares / columns + eps)
    total = tl.sum(w.to(tl.float32) * (x * gain)[None, :], axis=1)
    if REST:
        total += tl.sum(w_rest.to(tl.float32) * (x_rest * gain_rest)[None, :], axis=1)
    tl.store(out_ptr + row, total * scale, mask=inside)


@triton.jit
def norm_gate_up_kernel(
    x_ptr,
    gain_ptr,
    w_ptr,
    out_ptr,
    rows,
    columns,
    eps,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    REST: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """`out = silu(gate @ norm(x)) * (up @ norm(x))`; the weight holds the rows of `gate`, then of `up`."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    lanes = tl.arange(0, COLUMNS)
    gate = tile_of(w_ptr, row, lanes, inside, columns)
    up = tile_of(w_ptr, row.to(tl.int64) + rows, lanes, inside, columns)
    gain = elements_of(gain_ptr, lanes, columns)
    if REST:
        rest = COLUMNS + tl.arange(0, REST)
        gate_rest = tile_of(w_ptr, row, rest, inside, columns)
        up_rest = tile_of(w_ptr, row.to(tl.int64) + rows, rest, inside, columns)
        gain_rest = elements_of(gain_ptr, rest, columns)
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    x = elements_of(x_ptr, lanes, columns)
    squares = tl.sum(x * x, axis=0)
    if REST:
        x_rest = elements_of(x_ptr, rest, columns)
        squares += tl.sum(x_rest * x_rest, axis=0)
    scale = tl.rsqrt(squares / columns + eps)
    g = tl.sum(gate.to(tl.float32) * (x * gain)[None, :], axis=1)
    u = tl.sum(up.to(tl.float32) * (x * gain)[None, :], axis=1)
    if REST:
        g += tl.sum(gate_rest.to(tl.float32) * (x_rest * gain_rest)[None, :], axis=1)
        u += tl.sum(up_rest.to(tl.float32) * (x_rest * gain_rest)[None, :], axis=1)
    g *= scale
    u *= scale
    tl.store(out_ptr + row, g * tl.sigmoid(g) * u, mask=inside)


@triton.jit
def gemv_add_kernel(
    x_ptr,
    w_ptr,
    residual_ptr,
    rows,
    columns,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """`residual += w @ x`, by pieces of `COLUMNS` columns. With the helpers above its loop takes 8 % longer."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lanes = tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None]
    at = row.to(tl.int64)[:, None] * columns + lanes[None, :]
    w = tl.load(w_ptr + at, mask=inside & (lanes < columns)[None, :], other=0.0, eviction_policy="evict_first")
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    x = tl.load(x_ptr + lanes, mask=lanes < columns, other=0.0).to(tl.float32)
    total = w.to(tl.float32) * x[None, :]
    for start in range(COLUMNS, columns, COLUMNS):
        mask = start + lanes < columns
        w = tl.load(w_ptr + at + start, mask=inside & mask[None, :], other=0.0, eviction_policy="evict_first")
        x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        total += w.to(tl.float32) * x[None, :]
    before = tl.load(residual_ptr + row, mask=row < rows, other=0.0).to(tl.float32)
    tl.store(residual_ptr + row, before + tl.sum(total, axis=1), mask=row < rows)


def norm_gemv(
    x: torch.Tensor, gain: torch.Tensor, weight: torch.Tensor, out: torch.Tensor, eps: float = 1e-6
) -> None:
    """`out = weight @ (rms_norm(x) * gain)`; `x`, `gain` [columns], `weight` [rows, columns], `out` [rows]."""
    rows, columns = _checked(x, weight)
    if gain.shape != x.shape or not gain.is_contiguous():
        raise ValueError("the gain of a norm needs as many elements as the vector")
    if out.shape != (rows,) or not out.is_contiguous():
        raise ValueError("norm_gemv needs an output with an element for each row of the weight")
    if columns > MAX_COLUMNS:
        raise ValueError(f"norm_gemv holds whole rows: at most {MAX_COLUMNS} columns")
    if rows == 0 or columns == 0:
        return
    first = power_of_two_below(columns)
    tilecheck.verified(norm_gemv_kernel)[(triton.cdiv(rows, ROWS),)](
        x,
        gain,
        weight,
        out,
        rows,
        columns,
        eps,
        ROWS=ROWS,
        COLUMNS=first,
        REST=triton.next_power_of_2(columns - first),
        DEPENDENT=False,
    )


def norm_gate_up(
    x: torch.Tensor, gain: torch.Tensor, weight: torch.Tensor, out: torch.Tensor, eps: float = 1e-6
) -> None:
    """`out = silu(gate) * up`, the halves of `weight @ (rms_norm(x) * gain)`; `weight` [2 * rows, columns]."""
    both, columns = _checked(x, weight)
    if gain.shape != x.shape or not gain.is_contiguous():
        raise ValueError("the gain of a norm needs as many elements as the vector")
    rows = both // 2
    if both != 2 * rows or out.shape != (rows,) or not out.is_contiguous():
        raise ValueError("norm_gate_up needs an output with an element for every two rows of the weight")
    if columns > MAX_COLUMNS:
        raise ValueError(f"norm_gate_up holds whole rows: at most {MAX_COLUMNS} columns")
    if rows == 0 or columns == 0:
        return
    first = power_of_two_below(columns)
    tilecheck.verified(norm_gate_up_kernel)[(triton.cdiv(rows, ROWS),)](
        x,
        gain,
        weight,
        out,
        rows,
        columns,
        eps,
        ROWS=ROWS,
        COLUMNS=first,
        REST=triton.next_power_of_2(columns - first),
        DEPENDENT=False,
    )


def gemv_add(x: torch.Tensor, weight: torch.Tensor, residual: torch.Tensor) -> None:
    """`residual += weight @ x` for `x` [columns], `weight` [rows, columns], `residual` [rows]."""
    rows, columns = _checked(x, weight)
    if residual.shape != (rows,) or not residual.is_contiguous():
        raise ValueError("gemv_add needs a residual with an element for each row of the weight")
    if rows == 0 or columns == 0:
        return
    tilecheck.verified(gemv_add_kernel)[(triton.cdiv(rows, ROWS),)](
        x, weight, residual, rows, columns, ROWS=ROWS, COLUMNS=COLUMNS, DEPENDENT=False
    )


def _checked(x: torch.Tensor, weight: torch.Tensor) -> tuple[int, int]:
    """The rows and columns of a weight that fits the vector."""
    if x.ndim != 1 or weight.ndim != 2 or weight.shape[1] != x.shape[0]:
        raise ValueError("a product needs a vector with an element for each column of the weight")
    if not x.is_contiguous() or not weight.is_contiguous():
        raise ValueError("a product needs a contiguous vector and weight")
    return weight.shape[0], weight.shape[1]


def reference(
    x: np.ndarray[Any, Any], gain: np.ndarray[Any, Any], weight: np.ndarray[Any, Any], eps: float = 1e-6
) -> np.ndarray[Any, Any]:
    """What `norm_gemv` computes, in float32."""
    values = x.astype(np.float32)
    values = values / np.sqrt(np.mean(values * values) + np.float32(eps)) * gain.astype(np.float32)
    out: np.ndarray[Any, Any] = weight.astype(np.float32) @ values
    return out


def reference_gate_up(
    x: np.ndarray[Any, Any], gain: np.ndarray[Any, Any], weight: np.ndarray[Any, Any], eps: float = 1e-6
) -> np.ndarray[Any, Any]:
    """What `norm_gate_up` computes, in float32."""
    gate, up = np.split(reference(x, gain, weight, eps), 2)
    out: np.ndarray[Any, Any] = gate / (1 + np.exp(-gate)) * up
    return out


def examples() -> Iterator[tilecheck.Example]:
    """Rows that no tile divides, columns that are no power of two, and a last piece that is short."""
    rng = np.random.default_rng(0)
    x, gain = rng.standard_normal((2, 100)).astype(np.float16)
    weight = rng.standard_normal((14, 100)).astype(np.float16)
    out = np.empty(14, dtype=np.float16)
    expected = {"out_ptr": reference(x, gain, weight).astype(np.float16)}
    args: tuple[Any, ...] = (x, gain, weight, out, 14, 100, 1e-6, 4, 64, 64, False)
    yield tilecheck.Example(norm_gemv_kernel, (4,), args, expected, 2e-2)
    out = np.empty(7, dtype=np.float16)
    expected = {"out_ptr": reference_gate_up(x, gain, weight).astype(np.float16)}
    args = (x, gain, weight, out, 7, 100, 1e-6, 2, 64, 64, False)
    yield tilecheck.Example(norm_gate_up_kernel, (4,), args, expected, 5e-2)
    residual = rng.standard_normal(14).astype(np.float16)
    total = residual.astype(np.float32) + weight.astype(np.float32) @ x.astype(np.float32)
    args = (x, weight, residual, 14, 100, 4, 32, False)
    yield tilecheck.Example(gemv_add_kernel, (4,), args, {"residual_ptr": total.astype(np.float16)}, 2e-2)
