"""Small launches of element-wise kernels, normalisations and the loss: ragged, strided, with extreme values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from kernel_cases import Array, Case, cdiv, poisoned, reference, values


def axpy(n: int, a: float) -> Case:
    x, y = values(n), values(n)[::-1].copy()
    arguments = {"a": a, "x": x, "y": y, "out": poisoned(n), "TILE": 16}
    return Case(
        "axpy", "axpy_kernel", (cdiv(n, 16), 1, 1), arguments, {"out": reference("axpy")(a, x, y)}, 1e-6
    )


def silu_mul(gate: Array, up: Array) -> Case:
    arguments = {"gate": gate, "up": up, "out": poisoned(*gate.shape), "TILE_M": 2, "TILE_N": 8}
    grid = (cdiv(gate.shape[0], 2) * cdiv(gate.shape[1], 8), 1, 1)
    expected = {"out": reference("silu_mul")(gate, up)}
    return Case("silu_mul", "silu_mul_kernel", grid, arguments, expected, 1e-5)


def silu_mul_packed(rows: int, columns: int) -> Case:
    packed = values(rows, 2 * columns)
    return silu_mul(packed[:, :columns], packed[:, columns:])


def add_rms_norm(rows: int, columns: int) -> Case:
    x, residual = values(2, rows, columns)
    weight = values(columns)
    out, new = reference("add_rms_norm")(x, residual, weight)
    arguments: dict[str, Any] = {"x": x, "residual": residual, "weight": weight, "out": poisoned(rows, columns)}
    arguments |= {"eps": 1e-6, "TILE_M": 2, "TILE_N": 16}
    grid = (cdiv(rows, 2), 1, 1)
    return Case("add_rms_norm", "add_rms_norm_kernel", grid, arguments, {"out": out, "residual": new}, 1e-5)


def layer_norm(rows: int, columns: int, mean: float) -> Case:
    x = values(rows, columns) + np.float32(mean)
    weight, bias = values(2, columns)
    arguments: dict[str, Any] = {"x": x, "weight": weight, "bias": bias, "out": poisoned(rows, columns)}
    arguments |= {"eps": 1e-5, "TILE_M": 2, "TILE_N": 16}
    expected = {"out": reference("layer_norm")(x, weight, bias)}
    return Case("layer_norm", "layer_norm_kernel", (cdiv(rows, 2), 1, 1), arguments, expected, 1e-4)


def cross_entropy(logits: Array, targets: list[int], dtype: type[np.integer[Any]], ignored: int = -100) -> Case:
    named = np.array(targets, dtype=dtype)
    rows = len(targets)
    arguments = {"logits": logits, "targets": named, "losses": poisoned(rows)}
    arguments |= {"ignore_index": ignored, "LANES": 4, "WIDTH": 2}
    expected = {"losses": reference("cross_entropy")(logits, named, ignored)}
    return Case("cross_entropy", "cross_entropy_kernel", (rows, 1, 1), arguments, expected, 1e-5)


def masked(logits: Array) -> Array:
    """Whole tiles of -inf before the first finite logit, and logits whose exponentials overflow."""
    logits[:, :9] = -np.inf
    logits[0, 9:] += 1000
    return logits


CASES: dict[str, Callable[[], Case]] = {
    "axpy-one-element": lambda: axpy(1, 2.0),
    "axpy-exact": lambda: axpy(64, -0.5),
    "axpy-ragged": lambda: axpy(50, 3.25),
    "silu_mul-exact": lambda: silu_mul(values(4, 16), values(4, 16)[::-1].copy()),
    "silu_mul-ragged": lambda: silu_mul(values(5, 19), values(5, 19)[::-1].copy()),
    "silu_mul-packed": lambda: silu_mul_packed(5, 19),
    "silu_mul-transposed": lambda: silu_mul(values(11, 6).T, values(11, 6)[::-1].T),
    "silu_mul-large": lambda: silu_mul(80 * values(3, 11), values(3, 11)),
    "add_rms_norm-exact": lambda: add_rms_norm(4, 16),
    "add_rms_norm-ragged": lambda: add_rms_norm(5, 13),
    "layer_norm-exact": lambda: layer_norm(4, 16, 0),
    "layer_norm-ragged-far-from-zero": lambda: layer_norm(5, 13, 100),
    "layer_norm-one-column": lambda: layer_norm(3, 1, 2),
    "cross_entropy-exact": lambda: cross_entropy(values(3, 16), [0, 15, 7], np.int32),
    "cross_entropy-ragged": lambda: cross_entropy(values(4, 21), [20, 0, -100, 8], np.int64),
    "cross_entropy-masked": lambda: cross_entropy(masked(values(3, 21)), [20, 9, -100], np.int64),
    "cross_entropy-no-columns": lambda: cross_entropy(values(4, 21), [-1, 21, 2**31 - 1, -(2**31)], np.int32),
    "cross_entropy-wide-targets": lambda: cross_entropy(values(4, 21), [2**40, -(2**40), 2**32, 3], np.int64),
    "cross_entropy-another-ignored": lambda: cross_entropy(values(3, 5), [4, 2, 0], np.int64, ignored=2),
}
