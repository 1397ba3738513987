"""Arithmetic of Triton: promotion, two's complement that wraps, division that truncates, pointers.

Two compile-time numbers are computed as Python does, unbounded. An int32 result that does not fit is
wrapped and logged; so is a divisor that is not positive.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tilecheck.reference.interpret.interpreter import Interpreter
from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.triton.dtypes import (
    BlockType,
    PointerType,
    computation_type,
    dtype_from_text,
    is_integer,
    is_signed,
    type_of_constant,
)
from tilecheck.reference.triton.values import (
    Pointer,
    as_tensor,
    operand,
    remap,
    require_joint_size,
    to_tensor,
    truth,
)
from tilecheck.reference.values import arithmetic, comparisons
from tilecheck.reference.values.arithmetic import COMPARISONS, DIVISIONS, wrap
from tilecheck.reference.values.dtypes import BOOL, FLOAT32, Category, Data, DType, round_float
from tilecheck.reference.values.values import Tile, cast, describe, is_constant

_NUMPY: dict[str, Callable[[Data, Data], Data]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "mod": np.fmod,
    "min": np.fmin,
    "max": np.fmax,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_BITWISE = frozenset({"and", "or", "xor", "lshift", "rshift"})


def binary(machine: Machine, name: str, x: Any, y: Any) -> Any:
    """One binary operation; two compile-time numbers stay one."""
    if is_constant(x) and is_constant(y):
        return arithmetic.binary(machine, name, x, y)
    return runtime_binary(machine, name, x, y)


def runtime_binary(machine: Machine, name: str, x: Any, y: Any) -> Any:
    """One binary operation that gives a tensor, whatever its operands are."""
    if isinstance(x, Pointer) or isinstance(y, Pointer):
        return _pointers(name, x, y)
    for value in (x, y):
        if not is_constant(value) and not isinstance(value, Tile):
            raise Reject(f"`{name}` on {describe(x)} and {describe(y)}")
    dtype = common_type(x, y, division=name in DIVISIONS or name == "truediv")
    if name == "truediv" and not dtype.is_float:
        left, right = cast(operand(x, dtype), FLOAT32), cast(operand(y, dtype), FLOAT32)
        dtype = FLOAT32
    else:
        left, right = operand(x, dtype), operand(y, dtype)
    require_joint_size(left.data, right.data)
    if name in COMPARISONS:
        return Tile(np.asarray(_NUMPY[name](left.data, right.data)), BOOL)
    if dtype.is_float:
        return Tile(_floats(name, dtype, left.data, right.data), dtype)
    return Tile(_integers(machine, name, dtype, left.data, right.data), dtype)


def common_type(x: Any, y: Any, *, division: bool = False) -> DType:
    """The type in which an operation on two values runs."""
    first = type_of_constant(x) if is_constant(x) else as_tensor(x).dtype
    second = type_of_constant(y) if is_constant(y) else as_tensor(y).dtype
    return computation_type(
        first, second, first_constant=is_constant(x), second_constant=is_constant(y), division=division
    )


def _floats(name: str, dtype: DType, x: Data, y: Data) -> Data:
    if name in _BITWISE or name not in _NUMPY:
        raise Reject(f"`{name}` on {dtype}")
    return round_float(np.asarray(_NUMPY[name](x, y), dtype.numpy), dtype)


def _integers(machine: Machine, name: str, dtype: DType, x: Data, y: Data) -> Data:
    """An integer operation, computed exactly in 64 bits where the type is narrower, then wrapped."""
    if name not in DIVISIONS | _BITWISE and name not in _NUMPY:
        raise Reject(f"`{name}` on {dtype}")
    narrow = dtype.bitwidth <= 32
    wide_x, wide_y = (x.astype(np.int64), y.astype(np.int64)) if narrow else (x, y)
    if name in DIVISIONS:
        exact = _divide(machine, name, wide_x, wide_y)
    elif name in ("lshift", "rshift"):
        exact = arithmetic.shift(machine, name, dtype, wide_x, wide_y)
    else:
        exact = np.asarray(_NUMPY[name](wide_x, wide_y))
    if dtype.category is Category.BOOL:
        return np.asarray(exact & 1, bool)
    return wrap(machine, exact, dtype)


def _divide(machine: Machine, name: str, x: Data, y: Data) -> Data:
    """Division that truncates toward zero; the remainder has the sign of the dividend. It is defined for
    negative divisors, which no proof covers."""
    zero = y == 0
    if zero.any():
        machine.undefined("divisor", detail="0")
    divisor = np.where(zero, np.ones_like(y), y)
    quotient = np.floor_divide(x, divisor)
    inexact = np.asarray(quotient * divisor != x)
    quotient = quotient + (inexact & ((x < 0) != (divisor < 0))).astype(quotient.dtype)
    result = quotient if name == "floordiv" else x - quotient * divisor
    return np.asarray(np.where(zero, np.zeros_like(result), result))


def _pointers(name: str, x: Any, y: Any) -> Any:
    """Pointer arithmetic counts elements, in 64 bits."""
    if isinstance(x, Pointer) and isinstance(y, Pointer):
        if x.array is not y.array or name not in COMPARISONS:
            raise Reject(f"`{name}` on pointers")
        require_joint_size(x.offsets, y.offsets)
        return Tile(np.asarray(_NUMPY[name](x.offsets, y.offsets)), BOOL)
    if name not in ("add", "sub") or (name == "sub" and isinstance(y, Pointer)):
        raise Reject(f"`{name}` on {describe(x)} and {describe(y)}")
    pointer, offset = (x, as_tensor(y)) if isinstance(x, Pointer) else (y, as_tensor(x))
    if not is_integer(offset.dtype):
        raise Reject(f"an offset that is {describe(offset)}")
    distance = offset.data.astype(np.int64)
    require_joint_size(pointer.offsets, distance)
    moved = pointer.offsets + (distance if name == "add" else -distance)
    return Pointer(pointer.array, np.asarray(moved), pointer.element)


def unary(machine: Machine, name: str, x: Any) -> Any:
    """`-x`, `~x`."""
    if is_constant(x):
        return arithmetic.unary(machine, name, x)
    tensor = as_tensor(x)
    if name == "neg":
        if tensor.dtype.is_float:
            return Tile(np.asarray(np.negative(tensor.data)), tensor.dtype)
        return runtime_binary(machine, "sub", Tile(np.zeros((), tensor.dtype.numpy), tensor.dtype), tensor)
    if tensor.dtype.is_float:
        raise Reject(f"`~` on {tensor.dtype}")
    return Tile(np.asarray(np.invert(tensor.data)), tensor.dtype)


def absolute(machine: Machine, x: Any) -> Tile:
    """`tl.abs`."""
    tensor = as_tensor(x)
    if tensor.dtype.is_float:
        return Tile(np.asarray(np.abs(tensor.data)), tensor.dtype)
    if not is_signed(tensor.dtype):
        return tensor
    wide = tensor.data.astype(np.int64)
    return Tile(wrap(machine, np.asarray(np.abs(wide)), tensor.dtype), tensor.dtype)


def compare(machine: Machine, operator: ast.cmpop, x: Any, y: Any) -> Any:
    """One comparison. Types compare with types and with their spellings."""
    if isinstance(x, Pointer) and isinstance(y, Pointer) and not isinstance(operator, (ast.Is, ast.IsNot)):
        return _pointers(comparisons.NAMES.get(type(operator), ""), x, y)
    kinds = (DType, PointerType, BlockType)
    if isinstance(operator, (ast.Eq, ast.NotEq)) and (isinstance(x, kinds) or isinstance(y, kinds)):
        left = dtype_from_text(x) if isinstance(x, str) else x
        right = dtype_from_text(y) if isinstance(y, str) else y
        return (left == right) is isinstance(operator, ast.Eq)
    if isinstance(x, Tile) or isinstance(y, Tile):
        name = comparisons.NAMES.get(type(operator))
        if name is not None:
            return runtime_binary(machine, name, x, y)
    return comparisons.compare(machine, operator, x, y)


def negated(machine: Machine, value: Any) -> Any:
    """`not x`, elementwise on a tensor."""
    return Tile(np.asarray(value.data == 0), BOOL) if isinstance(value, Tile) else not truth(value)[0]


def boolean(interpreter: Interpreter, operands: Iterator[Any], stop_at: bool) -> Any:
    """`and`, `or`: compile-time operands end them early, runtime ones are all evaluated."""
    runtime: list[Tile] = []
    value: Any = not stop_at
    for value in operands:
        if isinstance(value, Pointer):
            runtime.append(Tile(np.ones(value.shape, bool), BOOL))
        elif isinstance(value, Tile):
            runtime.append(value)
        elif truth(value)[0] is stop_at:
            return value
    if len(runtime) < 2:
        return runtime[0] if runtime else value
    joined = functools.reduce(np.logical_or if stop_at else np.logical_and, [x.data != 0 for x in runtime])
    return Tile(np.asarray(joined), BOOL)


def chain(interpreter: Interpreter, results: Iterator[Any]) -> Any:
    """`a < b < c`."""
    return boolean(interpreter, results, False)


def select(condition: Any, x: Any, y: Any) -> Any:
    """`tl.where`, of pointers too where every lane points into one array."""
    chosen = cast(as_tensor(condition), BOOL).data
    if isinstance(x, Pointer) and isinstance(y, Pointer):
        return _select_pointers(chosen, x, y)
    dtype = common_type(x, y)
    left, right = operand(x, dtype), operand(y, dtype)
    require_joint_size(chosen, left.data, right.data)
    return Tile(np.asarray(np.where(chosen, left.data, right.data), dtype.numpy), dtype)


def _select_pointers(chosen: Data, x: Pointer, y: Pointer) -> Pointer:
    require_joint_size(chosen, x.offsets, y.offsets)
    offsets = np.asarray(np.where(chosen, x.offsets, y.offsets))
    if x.element != y.element:
        raise Reject("a choice between pointers of different types")
    if x.array is y.array or chosen.all():
        return Pointer(x.array, offsets, x.element)
    if chosen.any():
        raise Reject("a tensor of pointers into different arrays")
    return Pointer(y.array, offsets, y.element)


def convert(value: Any, dtype: DType) -> Tile:
    """`x.to(dtype)`: integers wrap without a record, because that is what a conversion asks for."""
    return cast(to_tensor(value), dtype)


def ceiling_division(machine: Machine, x: Any, y: Any) -> Any:
    """`tl.cdiv`, as it is defined: through the dividend, which may wrap."""
    total = binary(machine, "add", x, binary(machine, "sub", y, 1))
    return binary(machine, "floordiv", total, y)


def expand(machine: Machine, x: Any, axes: tuple[Any, ...]) -> Any:
    """`x[:, None]`: new axes and full slices, of which a scalar has none."""
    for part in axes:
        if not (part is None or part is Ellipsis or part == slice(None)):
            raise Reject("indexing into a tensor")
    if not x.shape and sum(part is None for part in axes) == 1 and Ellipsis not in axes:
        axes = (None,)  # a scalar becomes a tensor of one element
    if len([part for part in axes if part is not None]) > len(x.shape):
        raise Reject(f"{len(axes)} indices for {describe(x)}")
    return remap(x, lambda data: data[axes])
