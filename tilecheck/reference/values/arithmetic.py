"""Scalar and elementwise arithmetic: machine integers that wrap, floor division, promotion, comparisons.

Two constants are computed as Python does, unbounded. Everything else takes the machine type that cuTile
gives it. An int32 result that does not fit is wrapped and logged; so is a divisor that is not positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.values.dtypes import (
    BOOL,
    FLOAT32,
    INT32,
    Category,
    Data,
    DType,
    dtype_of_constant,
    promote,
    promote_constant,
    round_float,
)
from tilecheck.reference.values.values import Tile, as_tile, cast, describe, is_constant

DIVISIONS = frozenset({"floordiv", "mod", "cdiv"})
COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_BITWISE = frozenset({"and", "or", "xor"})
_SHIFTS = frozenset({"lshift", "rshift"})

_CONSTANT: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "truediv": lambda x, y: x / y,
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "cdiv": lambda x, y: -((-x) // y),
    "pow": lambda x, y: x**y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "lshift": lambda x, y: x << y,
    "rshift": lambda x, y: x >> y,
    "min": min,
    "max": max,
    "atan2": math.atan2,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}

_NUMPY: dict[str, Callable[[Data, Data], Data]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.fmin,
    "max": np.fmax,
    "atan2": np.arctan2,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def common_type(x: Any, y: Any, *, force_float: bool = False) -> DType:
    """The type in which an operation on two values runs."""
    if is_constant(x) and is_constant(y):
        found = promote(dtype_of_constant(x), dtype_of_constant(y))
    elif is_constant(x):
        found = promote_constant(as_tile(y).dtype, x, force_float=force_float)
    elif is_constant(y):
        found = promote_constant(as_tile(x).dtype, y, force_float=force_float)
    else:
        found = promote(as_tile(x).dtype, as_tile(y).dtype)
    return FLOAT32 if force_float and not found.is_float else found


def binary(machine: Machine, name: str, x: Any, y: Any, *, propagate_nan: bool = False) -> Any:
    """One binary operation on constants, scalars or tiles."""
    if is_constant(x) and is_constant(y):
        return _constant_binary(machine, name, x, y)
    if not (is_constant(x) or isinstance(x, Tile)) or not (is_constant(y) or isinstance(y, Tile)):
        raise Reject(f"`{name}` on {describe(x)} and {describe(y)}")
    dtype = common_type(x, y, force_float=name == "truediv")
    left, right = cast(x, dtype).data, cast(y, dtype).data
    if name in COMPARISONS:
        return Tile(np.asarray(_NUMPY[name](left, right)), BOOL)
    return Tile(_compute(machine, name, dtype, left, right, propagate_nan=propagate_nan), dtype)


def _constant_binary(machine: Machine, name: str, x: Any, y: Any) -> Any:
    if name in DIVISIONS and isinstance(x, int) and isinstance(y, int) and y <= 0:
        machine.undefined("divisor", detail=str(y))
        if y == 0:
            return 0
    if name in ("pow", "lshift") and isinstance(x, int) and isinstance(y, int) and y > 4096:
        raise Reject(f"constant {name} by {y}")
    return _CONSTANT[name](x, y)


def _compute(machine: Machine, name: str, dtype: DType, x: Data, y: Data, *, propagate_nan: bool) -> Data:
    if dtype.category is Category.BOOL and name not in _BITWISE and name not in ("min", "max"):
        raise Reject(f"`{name}` on booleans")
    if dtype.is_float:
        return _float(name, dtype, x, y, propagate_nan=propagate_nan)
    if name in ("truediv", "atan2"):
        raise Reject(f"`{name}` on {dtype}")
    return _integer(machine, name, dtype, x, y)


def _float(name: str, dtype: DType, x: Data, y: Data, *, propagate_nan: bool) -> Data:
    if name in _BITWISE or name in _SHIFTS or name == "cdiv":
        raise Reject(f"`{name}` on {dtype}")
    if name == "floordiv":
        result = np.floor(x / y)
    elif name == "mod":
        result = np.mod(x, y)
    elif propagate_nan and name in ("min", "max"):
        result = np.minimum(x, y) if name == "min" else np.maximum(x, y)
    else:
        result = _NUMPY[name](x, y)
    return round_float(np.asarray(result, dtype.numpy), dtype)


def _integer(machine: Machine, name: str, dtype: DType, x: Data, y: Data) -> Data:
    """An integer operation, computed exactly in 64 bits where the type is narrower, then wrapped."""
    narrow = dtype.bitwidth <= 32 and dtype.is_integer
    wide_x, wide_y = (x.astype(np.int64), y.astype(np.int64)) if narrow else (x, y)
    if name in DIVISIONS:
        exact = _divide(machine, name, wide_x, wide_y)
    elif name in _SHIFTS:
        exact = shift(machine, name, dtype, wide_x, wide_y)
    elif name == "pow":
        exact = _power(wide_x, wide_y)
    else:
        exact = _NUMPY[name](wide_x, wide_y)
    return wrap(machine, exact, dtype)


def wrap(machine: Machine, exact: Data, dtype: DType) -> Data:
    """Fit exact results into their type; a signed 32-bit result that does not fit is logged."""
    wrapped = np.asarray(exact).astype(dtype.numpy)
    if dtype == INT32 and (changed := wrapped != exact).any():
        first = np.asarray(exact)[changed].flat[0]
        machine.undefined("overflow", detail=str(int(first)))
    return wrapped


def _divide(machine: Machine, name: str, x: Data, y: Data) -> Data:
    if (y <= 0).any():
        machine.undefined("divisor", detail=str(int(np.asarray(y)[y <= 0].flat[0])))
    zero = y == 0
    divisor = np.where(zero, 1, y)
    if name == "mod":
        result = np.mod(x, divisor)
    elif name == "floordiv":
        result = np.floor_divide(x, divisor)
    else:
        remainder = np.mod(x, divisor)
        result = np.floor_divide(x, divisor) + (remainder != 0)
    return np.asarray(np.where(zero, 0, result))


def shift(machine: Machine, name: str, dtype: DType, x: Data, y: Data) -> Data:
    """A shift; a count outside the width is logged."""
    bad = (y < 0) | (y >= dtype.bitwidth)
    if dtype == INT32 and bad.any():
        machine.undefined("overflow", detail=f"shift by {int(np.asarray(y)[bad].flat[0])}")
    count = np.clip(y, 0, dtype.bitwidth - 1)
    if name == "rshift":
        return np.asarray(np.right_shift(x, count))
    return np.asarray(np.where(bad, 0, np.left_shift(x, count)))


def _power(x: Data, y: Data) -> Data:
    if np.any(y < 0):
        raise Reject("a negative power of an integer")
    return np.asarray(np.power(x, y))


_UNARY_FLOAT: dict[str, Callable[[Data], Data]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "floor": np.floor,
    "ceil": np.ceil,
}
_UNARY_CONSTANT: dict[str, Callable[[Any], Any]] = {
    "exp": math.exp,
    "exp2": lambda x: 2**x,
    "log": math.log,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: x**-0.5,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "floor": math.floor,
    "ceil": math.ceil,
    "isnan": math.isnan,
    "neg": lambda x: -x,
    "abs": abs,
    "invert": lambda x: (not x) if isinstance(x, bool) else ~x,
}


def unary(machine: Machine, name: str, x: Any) -> Any:
    """One elementwise unary operation."""
    if is_constant(x):
        return _UNARY_CONSTANT[name](x)
    tile = as_tile(x)
    if name == "isnan":
        return Tile(
            np.asarray(np.isnan(tile.data)) if tile.dtype.is_float else np.zeros(tile.shape, bool), BOOL
        )
    if name in _UNARY_FLOAT:
        return _float_function(name, tile)
    if name == "invert":
        if tile.dtype.is_float:
            raise Reject(f"`~` on {tile.dtype}")
        return Tile(np.asarray(np.invert(tile.data)), tile.dtype)
    if tile.dtype.category is Category.BOOL:
        tile = cast(tile, INT32)
    function = np.negative if name == "neg" else np.abs
    if tile.dtype.is_float:
        return Tile(np.asarray(function(tile.data)), tile.dtype)
    wide = tile.data.astype(np.int64) if tile.dtype.bitwidth <= 32 else tile.data
    return Tile(wrap(machine, np.asarray(function(wide)), tile.dtype), tile.dtype)


def _float_function(name: str, tile: Tile) -> Tile:
    if not tile.dtype.is_float:
        if name in ("floor", "ceil"):
            raise Reject(f"`{name}` on {tile.dtype}")
        tile = cast(tile, FLOAT32)
    wide = tile.data.astype(np.float64 if tile.dtype.bitwidth >= 32 else np.float32)
    result = np.asarray(_UNARY_FLOAT[name](wide)).astype(tile.dtype.numpy)
    return Tile(round_float(result, tile.dtype), tile.dtype)


def logical_not(x: Any) -> Any:
    """`not x` on a constant or a scalar."""
    if isinstance(x, Tile):
        return Tile(np.asarray(x.data == 0), BOOL)
    return not x


def select(condition: Any, x: Any, y: Any) -> Tile:
    """`where`."""
    dtype = common_type(x, y)
    chosen = np.where(cast(condition, BOOL).data, cast(x, dtype).data, cast(y, dtype).data)
    return Tile(np.asarray(chosen, dtype.numpy), dtype)
