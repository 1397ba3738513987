"""Elementwise functions, those of `libdevice` too. Integers are exact; floats need not be to the last bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.triton import arithmetic
from tilecheck.reference.triton.arithmetic import absolute, binary, ceiling_division, runtime_binary
from tilecheck.reference.triton.dtypes import UINT32, UINT64
from tilecheck.reference.triton.operations import MEMBERS, operation
from tilecheck.reference.triton.values import as_tensor, operand
from tilecheck.reference.values.dtypes import (
    BOOL,
    DTYPES,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    Data,
    DType,
    round_float,
)
from tilecheck.reference.values.values import Operation, Tile, cast, describe, is_constant

_vector = np.frompyfunc


def _scalarwise(function: Callable[..., float], count: int) -> Callable[..., Data]:
    """A function of Python's floats, applied to every element; where it is undefined the result is NaN."""

    def safe(*values: Any) -> float:
        try:
            return float(function(*(float(value) for value in values)))
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan

    applied = _vector(safe, count, 1)
    return lambda *data: np.asarray(applied(*data), np.float64)


_UNARY: dict[str, Callable[[Data], Data]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "exp10": lambda x: np.power(10.0, x),
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "logb": lambda x: np.floor(np.log2(x)),
    "sqrt": np.sqrt, "sqrt_rn": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sinpi": lambda x: np.sin(np.pi * x), "cospi": lambda x: np.cos(np.pi * x),
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "fabs": np.abs, "saturatef": lambda x: np.clip(x, 0, 1),
    "erf": _scalarwise(math.erf, 1), "erfc": _scalarwise(math.erfc, 1), "tgamma": _scalarwise(math.gamma, 1),
    "lgamma": _scalarwise(math.lgamma, 1),
    "normcdf": _scalarwise(lambda x: math.erfc(-x / math.sqrt(2)) / 2, 1),
    "i0": np.i0,
}  # fmt: skip
_FAST = {
    "fast_sinf": "sin", "fast_cosf": "cos", "fast_tanf": "tan", "fast_expf": "exp", "fast_exp10f": "exp10",
    "fast_logf": "log", "fast_log2f": "log2", "fast_log10f": "log10", "fast_tanhf": "tanh", "rsqrt_rn": "rsqrt",
    "fast_tanh": "tanh",
}  # fmt: skip
_BINARY: dict[str, Callable[[Data, Data], Data]] = {
    "pow": np.power, "powi": np.power, "fast_powf": np.power, "fmod": np.fmod, "atan2": np.arctan2,
    "hypot": np.hypot, "copysign": np.copysign, "nextafter": np.nextafter, "fmax": np.fmax, "fmin": np.fmin,
    "fdim": lambda x, y: np.maximum(x - y, 0), "remainder": lambda x, y: x - y * np.rint(x / y),
    "fdiv": np.true_divide, "div_rn": np.true_divide, "div_rz": np.true_divide, "div_rd": np.true_divide,
    "div_ru": np.true_divide, "fast_dividef": np.true_divide, "fast_fdividef": np.true_divide,
    "add_rn": np.add, "add_rz": np.add, "mul_rn": np.multiply, "mul_rz": np.multiply, "sub_rn": np.subtract,
    "ldexp": lambda x, y: np.ldexp(x, y.astype(np.int32)),
}  # fmt: skip
_QUESTIONS: dict[str, Callable[[Data], Data]] = {
    "isnan": np.isnan, "isinf": np.isinf, "finitef": np.isfinite, "isfinited": np.isfinite,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
}  # fmt: skip


def _wide(tensor: Tile) -> Data:
    return tensor.data.astype(np.float64)


def _rounded(data: Data, dtype: DType) -> Tile:
    return Tile(round_float(np.asarray(data).astype(dtype.numpy), dtype), dtype)


def _float_type(tensor: Tile) -> DType:
    return tensor.dtype if tensor.dtype.is_float else FLOAT32


def _unary_function(name: str) -> Callable[..., Tile]:
    def run(machine: Machine, x: Any, **options: Any) -> Tile:
        tensor = as_tensor(x)
        return _rounded(_UNARY[name](_wide(tensor)), _float_type(tensor))

    return run


def _binary_function(name: str) -> Callable[..., Tile]:
    def run(machine: Machine, x: Any, y: Any, *rest: Any, **options: Any) -> Tile:
        dtype = arithmetic.common_type(x, y, division=True)
        dtype = dtype if dtype.is_float else FLOAT32
        left, right = operand(x, dtype), operand(y, dtype)
        return _rounded(_BINARY[name](_wide(left), _wide(right)), dtype)

    return run


def _question(name: str) -> Callable[..., Tile]:
    def run(machine: Machine, x: Any, **options: Any) -> Tile:
        return Tile(np.asarray(_QUESTIONS[name](_wide(as_tensor(x)))), BOOL)

    return run


_MEMBERS = frozenset(
    {"exp", "exp2", "log", "log2", "cos", "sin", "sqrt", "sqrt_rn", "rsqrt", "erf", "floor", "ceil", "fdiv"}
)
for _name in _UNARY:
    operation(_name, member=_name in _MEMBERS)(_unary_function(_name))
for _name, _target in _FAST.items():
    operation(_name)(_unary_function(_target))
for _name in _BINARY:
    operation(_name, member=_name in _MEMBERS)(_binary_function(_name))
for _name in _QUESTIONS:
    operation(_name)(_question(_name))

operation("abs", member=True)(absolute)
operation("cdiv", member=True)(ceiling_division)


@operation("minimum", member=True)
def minimum(machine: Machine, x: Any, y: Any, propagate_nan: Any = None) -> Any:
    """The smaller of two elements."""
    return runtime_binary(machine, "min", x, y)


@operation("maximum", member=True)
def maximum(machine: Machine, x: Any, y: Any, propagate_nan: Any = None) -> Any:
    """The larger of two elements."""
    return runtime_binary(machine, "max", x, y)


def _operator(name: str) -> Callable[..., Any]:
    def run(machine: Machine, x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
        return runtime_binary(machine, name, x, y)

    return run


for _name in ("add", "sub", "mul"):
    operation(_name)(_operator(_name))
for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv", "and", "or", "xor", "lshift", "rshift"):
    MEMBERS[f"__{_name}__"] = Operation(f"__{_name}__", _operator(_name))


@operation("clamp")
def clamp(machine: Machine, x: Any, min: Any, max: Any, propagate_nan: Any = None) -> Any:
    """`x` between two bounds."""
    return runtime_binary(machine, "min", runtime_binary(machine, "max", x, min), max)


@operation("fma")
def fma(machine: Machine, x: Any, y: Any, z: Any) -> Any:
    """`x * y + z`."""
    return runtime_binary(machine, "add", runtime_binary(machine, "mul", x, y), z)


@operation("sigmoid", member=True)
def sigmoid(machine: Machine, x: Any) -> Tile:
    """`1 / (1 + exp(-x))`."""
    tensor = as_tensor(x)
    return _rounded(1 / (1 + np.exp(-_wide(tensor))), _float_type(tensor))


@operation("softmax", member=True)
def softmax(
    machine: Machine, x: Any, dim: Any = None, keep_dims: Any = False, ieee_rounding: Any = False
) -> Tile:
    """The softmax along an axis, the first if none is given."""
    tensor = as_tensor(x)
    data = _wide(tensor)
    axis = 0 if dim is None else dim
    power = np.exp(data - np.max(data, axis=axis, keepdims=True))
    return _rounded(power / np.sum(power, axis=axis, keepdims=True), _float_type(tensor))


@operation("umulhi", "mulhi", member=True)
def umulhi(machine: Machine, x: Any, y: Any) -> Tile:
    """The upper half of the product of two unsigned integers."""
    dtype = arithmetic.common_type(x, y)
    if dtype not in (INT32, UINT32, INT64, UINT64):
        raise Reject(f"umulhi of {describe(x)} and {describe(y)}")
    unsigned = np.uint32 if dtype.bitwidth == 32 else np.uint64
    left, right = (cast(operand(v, dtype), dtype).data.astype(unsigned) for v in (x, y))
    if dtype.bitwidth == 32:
        high = np.asarray((left.astype(np.uint64) * right.astype(np.uint64)) >> np.uint64(32))
    else:
        high = _high_half(left, right)
    return Tile(high.astype(dtype.numpy), dtype)


def _high_half(x: Data, y: Data) -> Data:
    """The upper 64 bits of a product of 64-bit integers."""
    multiply = _vector(lambda a, b: (int(a) * int(b)) >> 64, 2, 1)
    return np.asarray(multiply(x, y)).astype(np.uint64)


def _bits(function: Callable[[int, int], int]) -> Callable[..., Tile]:
    def run(machine: Machine, x: Any) -> Tile:
        tensor = as_tensor(x)
        if not tensor.dtype.is_integer or tensor.dtype.bitwidth not in (32, 64):
            raise Reject(f"the bits of {describe(tensor)}")
        width = tensor.dtype.bitwidth
        applied = _vector(lambda value: function(int(value) & ((1 << width) - 1), width), 1, 1)
        return Tile(np.asarray(applied(tensor.data)).astype(np.int32), INT32)

    return run


operation("popc")(_bits(lambda value, width: value.bit_count()))
operation("clz")(_bits(lambda value, width: width - value.bit_length()))
operation("ffs")(_bits(lambda value, width: (value & -value).bit_length()))

_ROUNDED_TO_INTEGER = {
    "float2int_rn": ("rint", "int32"), "float2int_rz": ("trunc", "int32"), "float2int_rd": ("floor", "int32"),
    "float2int_ru": ("ceil", "int32"), "llrint": ("rint", "int64"), "llround": ("round", "int64"),
}  # fmt: skip


def _to_integer(name: str) -> Callable[..., Tile]:
    function, target = _ROUNDED_TO_INTEGER[name]

    def run(machine: Machine, x: Any) -> Tile:
        tensor = as_tensor(x)
        return cast(Tile(np.asarray(_UNARY[function](_wide(tensor))), FLOAT64), DTYPES[target])

    return run


for _name in _ROUNDED_TO_INTEGER:
    operation(_name)(_to_integer(_name))


def smaller_constant(machine: Machine, x: Any, y: Any) -> Any:
    """Python's `min` in a kernel: of two compile-time numbers it is one."""
    return min(x, y) if is_constant(x) and is_constant(y) else runtime_binary(machine, "min", x, y)


def larger_constant(machine: Machine, x: Any, y: Any) -> Any:
    """Python's `max` in a kernel."""
    return max(x, y) if is_constant(x) and is_constant(y) else runtime_binary(machine, "max", x, y)


@operation("swizzle2d")
def swizzle2d(machine: Machine, i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
    """The row and column of a tile when `size_g` rows are walked column by column."""

    def op(name: str, x: Any, y: Any) -> Any:
        return binary(machine, name, x, y)

    linear = op("add", op("mul", i, size_j), j)
    per_group = op("mul", size_g, size_j)
    first_row = op("mul", op("floordiv", linear, per_group), size_g)
    rows = minimum(machine, op("sub", size_i, first_row), size_g)
    within = op("mod", linear, per_group)
    return op("add", first_row, op("mod", within, rows)), op("floordiv", within, rows)
