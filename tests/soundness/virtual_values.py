"""Numbers and tiles of a running kernel: integers of 32 or 64 bits that wrap, and floats without contents."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from soundness_virtual_machine import check_tile

_WRAP = 1 << 32
_HALF = 1 << 31


class Type:
    """An element type of either language."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.primitive_bitwidth = 64 if kind == "l" else 32

    def __call__(self, value: Any) -> Value:
        return lift(value).to(self)


TYPES = {
    **{n: Type(n, "f") for n in ("float16", "bfloat16", "float32", "float64", "float8e4nv", "tfloat32")},
    **{n: Type(n, "i") for n in ("int8", "int16", "int32", "uint8", "uint32")},
    **{n: Type(n, "l") for n in ("int64", "uint64")},
    **{n: Type(n, "b") for n in ("int1", "bool_")},
}


def kind_of(dtype: Any) -> str:
    """`f`, `i` (32 bits), `l` (64 bits) or `b`, also of a type of the host."""
    if isinstance(dtype, Type):
        return dtype.kind
    name = getattr(dtype, "name", str(dtype))
    return TYPES[name].kind if name in TYPES else "b" if name == "bool" else "f"


class Value:
    """A tile; of rank 0 where it is a number. `kind` as in `kind_of`."""

    floors = False  # cuTile's quotients floor, Triton's truncate

    def __init__(self, data: Any, kind: str) -> None:
        self.data, self.kind = data, kind

    shape = property(lambda self: self.data.shape)
    ndim = property(lambda self: self.data.ndim)
    dtype = property(lambda self: TYPES[{"f": "float32", "i": "int32", "l": "int64", "b": "int1"}[self.kind]])
    T = property(lambda self: self._made(self.data.T))

    def _made(self, data: Any) -> Value:
        return type(self)(data, self.kind)

    def to(self, dtype: Any, **options: Any) -> Value:
        kind = kind_of(dtype)
        if kind == "f":
            return type(self)(nothing(self.shape), "f")
        return type(self)(
            wrapped(self.data.astype(np.int64), kind) if kind != "b" else self.data.astype(bool), kind
        )

    astype = cast = to

    def __getitem__(self, index: Any) -> Value:
        return self._made(self.data[index])

    def reshape(self, *sizes: Any) -> Value:
        return self._made(self.data.reshape(sizes[0] if isinstance(sizes[0], (tuple, list)) else sizes))

    def __index__(self) -> int:
        return int(self.data)

    __int__ = __index__

    def __bool__(self) -> bool:
        return bool(self.data)

    def __hash__(self) -> int:
        return id(self)


@cache  # nobody can write to it
def nothing(shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(np.float32(0), shape)


joined = cache(np.broadcast_shapes)  # a kernel joins the same few shapes in every block


def wrapped(data: np.ndarray, kind: str) -> np.ndarray:
    """What of a result fits the width of its type."""
    if kind != "i" or (data.size and int(data.min()) >= -_HALF and int(data.max()) < _HALF) or not data.size:
        return data
    return (data + _HALF) % _WRAP - _HALF


def lift(value: Any) -> Value:
    if isinstance(value, Value):
        return value
    if isinstance(value, (bool, np.bool_)):
        return Value(np.asarray(value), "b")
    if isinstance(value, (int, np.integer)):
        return Value(np.asarray(int(value), np.int64), "i" if -_HALF <= value < _HALF else "l")
    return Value(nothing(np.shape(value)), "f")


def _kind(a: Value, b: Value) -> str:
    kinds = {a.kind, b.kind}
    return "f" if "f" in kinds else "l" if "l" in kinds else "i"


def _truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    sign = np.where((a < 0) != (b < 0), -1, 1)
    return sign * (np.abs(a) // np.maximum(np.abs(b), 1))


def quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if np.any(b == 0):
        raise ZeroDivisionError
    return (
        a // b if Value.floors or (np.min(a, initial=0) >= 0 and np.min(b, initial=1) > 0) else _truncated(a, b)
    )


def _operator(compute: Callable[[Any, Any], Any], *, swapped: bool = False) -> Any:
    def apply(self: Value, other: Any) -> Any:
        if not isinstance(other, Value):
            if hasattr(other, "offsets"):
                return NotImplemented
            other = lift(other)
        a, b = (other, self) if swapped else (self, other)
        kind = _kind(a, b)
        if kind == "f":
            return Value(nothing(joined(a.shape, b.shape)), "f")
        return Value(wrapped(compute(a.data.astype(np.int64), b.data.astype(np.int64)), kind), kind)

    return apply


def _comparison(compute: Callable[[Any, Any], Any]) -> Any:
    def apply(self: Value, other: Any) -> Any:
        other = lift(other)
        return Value(compute(self.data, other.data), "b")

    return apply


def _logic(compute: Callable[[Any, Any], Any]) -> Any:
    def apply(self: Value, other: Any) -> Any:
        other = lift(other)
        return Value(
            compute(self.data, other.data), "b" if "b" == self.kind == other.kind else _kind(self, other)
        )

    return apply


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": quotient,
    "mod": lambda a, b: a - quotient(a, b) * b,
    "truediv": lambda a, b: np.zeros(np.broadcast_shapes(a.shape, b.shape), np.int64),
    "pow": lambda a, b: a**b,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "xor": np.bitwise_xor,
}
for _name, _compute in _ARITHMETIC.items():
    setattr(Value, f"__{_name}__", _operator(_compute))
    setattr(Value, f"__r{_name}__", _operator(_compute, swapped=True))
for _name, _compare in {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}.items():
    setattr(Value, f"__{_name}__", _comparison(_compare))
for _name, _combine in {"and": np.bitwise_and, "or": np.bitwise_or}.items():
    setattr(Value, f"__{_name}__", _logic(_combine))
    setattr(Value, f"__r{_name}__", _logic(_combine))
Value.__neg__ = lambda self: Value(-self.data, self.kind)  # type: ignore[attr-defined]
Value.__invert__ = lambda self: Value(~self.data, self.kind)  # type: ignore[attr-defined]


# ---- functions that both languages have ----------------------------------------------------------------------


def where(condition: Any, yes: Any, no: Any) -> Value:
    c, a, b = lift(condition), lift(yes), lift(no)
    kind = _kind(a, b)
    if kind == "f":
        return Value(nothing(np.broadcast_shapes(c.shape, a.shape, b.shape)), "f")
    return Value(np.where(c.data.astype(bool), a.data, b.data), kind)


def extreme(compute: Callable[[Any, Any], Any]) -> Callable[..., Value]:
    def apply(a: Any, b: Any, **options: Any) -> Any:
        if all(isinstance(v, (int, np.integer)) for v in (a, b)):
            return int(compute(a, b))
        first, second = lift(a), lift(b)
        kind = _kind(first, second)
        if kind == "f":
            return Value(nothing(np.broadcast_shapes(first.shape, second.shape)), "f")
        return Value(compute(first.data, second.data), kind)

    return apply


minimum, maximum = extreme(np.minimum), extreme(np.maximum)


def reduced(compute: Callable[..., Any]) -> Callable[..., Value]:
    def apply(
        tile: Any, axis: Any = None, keepdims: bool = False, keep_dims: bool = False, **options: Any
    ) -> Value:
        value = lift(tile)
        data = np.zeros(value.shape, np.int64) if value.kind == "f" else value.data.astype(np.int64)
        made = np.asarray(compute(data, axis=axis, keepdims=keepdims or keep_dims))
        return Value(
            nothing(made.shape) if value.kind == "f" else made, "i" if value.kind == "b" else value.kind
        )

    return apply


def unary(tile: Any, *others: Any, **options: Any) -> Value:
    """A function whose result has the shape of its operand."""
    value = lift(tile)
    return value if value.kind != "f" else Value(nothing(value.shape), "f")


def filled(shape: Any, value: Any, dtype: Any) -> Value:
    sizes = tuple(int(s) for s in shape) if isinstance(shape, (tuple, list)) else (int(shape),)
    check_tile(sizes)
    kind = kind_of(dtype)
    if kind == "f":
        return Value(nothing(sizes), "f")
    return Value(np.full(sizes, int(lift(value).data), np.int64), kind)


def numbers(low: int, high: int) -> Value:
    """The tile of consecutive integers."""
    check_tile((high - low,))
    return Value(np.arange(low, high, dtype=np.int64), "i")


def cdiv(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return (lift(a) + lift(b) - 1) // lift(b)
