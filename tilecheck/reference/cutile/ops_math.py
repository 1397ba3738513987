"""Elementwise functions, reductions, scans and matrix products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilecheck.reference.cutile.operations import OPERATIONS, operation
from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.values.arithmetic import binary, select, unary, wrap
from tilecheck.reference.values.dtypes import FLOAT32, INT32, Category, Data, DType, promote, round_float
from tilecheck.reference.values.values import Operation, Tile, as_index, as_int, as_tile, cast, describe

_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "truediv", "floordiv": "floordiv", "mod": "mod",
    "pow": "pow", "atan2": "atan2", "cdiv": "cdiv", "minimum": "min", "maximum": "max", "bitwise_and": "and",
    "bitwise_or": "or", "bitwise_xor": "xor", "bitwise_lshift": "lshift", "bitwise_rshift": "rshift",
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip
_UNARY = {
    "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "sqrt": "sqrt", "rsqrt": "rsqrt", "sin": "sin",
    "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "floor": "floor",
    "ceil": "ceil",
    "abs": "abs", "negative": "neg", "isnan": "isnan", "bitwise_not": "invert",
}  # fmt: skip


def _binary_function(name: str) -> Callable[..., Any]:
    def run(
        machine: Machine,
        x: Any,
        y: Any,
        /,
        *,
        rounding_mode: Any = None,
        flush_to_zero: Any = False,
        propagate_nan: Any = False,
    ) -> Any:
        return binary(machine, name, x, y, propagate_nan=bool(propagate_nan))

    return run


def _unary_function(name: str) -> Callable[..., Any]:
    def run(machine: Machine, x: Any, /, *, rounding_mode: Any = None, flush_to_zero: Any = False) -> Any:
        return unary(machine, name, x)

    return run


for _public, _name in _BINARY.items():
    OPERATIONS[_public] = Operation(_public, _binary_function(_name))
for _public, _name in _UNARY.items():
    OPERATIONS[_public] = Operation(_public, _unary_function(_name))


@operation("divmod")
def divide_and_remainder(machine: Machine, x: Any, y: Any, /) -> tuple[Any, Any]:
    """Quotient and remainder."""
    return binary(machine, "floordiv", x, y), binary(machine, "mod", x, y)


@operation("where")
def where(machine: Machine, condition: Any, x: Any, y: Any, /) -> Tile:
    """Choose elements by a condition."""
    return select(condition, x, y)


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    axes = tuple(as_int(item) for item in as_index(axis))
    if any(not -rank <= item < rank for item in axes):
        raise Reject(f"axis {axis} of a tile of rank {rank}")
    return tuple(sorted({item % rank for item in axes}))


def _numeric(x: Any) -> Tile:
    tile = as_tile(x)
    return cast(tile, INT32) if tile.dtype.category is Category.BOOL else tile


def _accumulator(dtype: DType) -> Any:
    if dtype.is_float:
        return np.float64 if dtype.bitwidth == 64 else np.float32
    return np.int64 if dtype.bitwidth <= 32 else dtype.numpy


def _fold(machine: Machine, wide: Data, dtype: DType) -> Tile:
    if dtype.is_integer:
        return Tile(wrap(machine, wide, dtype), dtype)
    return Tile(round_float(np.asarray(wide).astype(dtype.numpy), dtype), dtype)


@operation("sum")
def reduce_sum(
    machine: Machine,
    x: Any,
    /,
    axis: Any = None,
    *,
    keepdims: Any = False,
    rounding_mode: Any = None,
    flush_to_zero: Any = False,
) -> Tile:
    """The sum along axes, accumulated wider than the elements."""
    tile = _numeric(x)
    axes = _axes(axis, len(tile.shape))
    wide = np.sum(tile.data, axis=axes, keepdims=bool(keepdims), dtype=_accumulator(tile.dtype))
    return _fold(machine, np.asarray(wide), tile.dtype)


@operation("prod")
def reduce_product(
    machine: Machine,
    x: Any,
    /,
    axis: Any = None,
    *,
    keepdims: Any = False,
    rounding_mode: Any = None,
    flush_to_zero: Any = False,
) -> Tile:
    """The product along axes. Integers multiply step by step, so that every wrap is seen."""
    tile = _numeric(x)
    axes = _axes(axis, len(tile.shape))
    if tile.dtype.is_integer:
        return _fold_pairwise(machine, tile, axes, "mul", keepdims=bool(keepdims))
    wide = np.prod(tile.data, axis=axes, keepdims=bool(keepdims), dtype=_accumulator(tile.dtype))
    return _fold(machine, np.asarray(wide), tile.dtype)


def _fold_pairwise(machine: Machine, tile: Tile, axes: Sequence[int], name: str, *, keepdims: bool) -> Tile:
    for axis in axes:
        total = Tile(np.take(tile.data, [0], axis=axis), tile.dtype)
        for at in range(1, tile.shape[axis]):
            total = binary(machine, name, total, Tile(np.take(tile.data, [at], axis=axis), tile.dtype))
        tile = total
    data = tile.data if keepdims else np.squeeze(tile.data, axis=tuple(axes))
    return Tile(np.asarray(data), tile.dtype)


def _extreme(name: str) -> Callable[..., Tile]:
    quiet: Any = np.fmax if name == "max" else np.fmin
    strict: Any = np.maximum if name == "max" else np.minimum

    def run(
        machine: Machine,
        x: Any,
        /,
        axis: Any = None,
        *,
        keepdims: Any = False,
        flush_to_zero: Any = False,
        propagate_nan: Any = False,
    ) -> Tile:
        tile = _numeric(x)
        function = strict if propagate_nan else quiet
        data = function.reduce(tile.data, axis=_axes(axis, len(tile.shape)), keepdims=bool(keepdims))
        return Tile(np.asarray(data, tile.dtype.numpy), tile.dtype)

    return run


def _position(name: str) -> Callable[..., Tile]:
    def run(
        machine: Machine, x: Any, /, axis: Any = None, *, keepdims: Any = False, propagate_nan: Any = False
    ) -> Tile:
        tile = _numeric(x)
        data, rank = tile.data, len(tile.shape)
        at = 0 if axis is None else _axes(axis, rank)[0]
        data = data.reshape(-1) if axis is None else data
        if tile.dtype.is_float and not propagate_nan:  # NaN is the worst value
            data = np.where(np.isnan(data), -np.inf if name == "argmax" else np.inf, data)
        found = np.asarray((np.argmax if name == "argmax" else np.argmin)(data, axis=at), np.int32)
        if keepdims:
            found = found.reshape((1,) * rank) if axis is None else np.expand_dims(found, at)
        return Tile(found, INT32)

    return run


for _public in ("max", "min"):
    OPERATIONS[_public] = Operation(_public, _extreme(_public))
for _public in ("argmax", "argmin"):
    OPERATIONS[_public] = Operation(_public, _position(_public))


def _running(name: str) -> Callable[..., Tile]:
    def run(
        machine: Machine,
        x: Any,
        /,
        axis: Any = 0,
        *,
        reverse: Any = False,
        rounding_mode: Any = None,
        flush_to_zero: Any = False,
    ) -> Tile:
        tile = _numeric(x)
        (at,) = _axes(axis, len(tile.shape))
        data = np.flip(tile.data, at) if reverse else tile.data
        if tile.dtype.is_integer:
            steps = _scan_steps(
                machine, (Tile(data, tile.dtype),), at, lambda a, b: (binary(machine, name, *a, *b),)
            )
            result = np.concatenate([step[0].data for step in steps], axis=at)
        else:
            function = np.cumsum if name == "add" else np.cumprod
            result = _fold(machine, function(data, axis=at, dtype=_accumulator(tile.dtype)), tile.dtype).data
        return Tile(np.flip(result, at) if reverse else result, tile.dtype)

    return run


OPERATIONS["cumsum"] = Operation("cumsum", _running("add"))
OPERATIONS["cumprod"] = Operation("cumprod", _running("mul"))

_Group = tuple[Tile, ...]


def _scan_steps(
    machine: Machine, tiles: _Group, axis: int, combine: Callable[[_Group, _Group], _Group]
) -> list[_Group]:
    """The inclusive prefixes along an axis, each with extent 1 there."""
    parts = [
        tuple(Tile(np.take(tile.data, [at], axis=axis), tile.dtype) for tile in tiles)
        for at in range(tiles[0].shape[axis])
    ]
    steps = [parts[0]]
    for part in parts[1:]:
        steps.append(combine(steps[-1], part))
    return steps


def _custom(machine: Machine, x: Any, axis: Any, function: Any) -> tuple[list[_Group], int, bool]:
    """The prefixes under a user's function, which sees all other axes at once: it is elementwise."""
    single = not isinstance(x, (tuple, list))
    tiles = [as_tile(item) for item in ((x,) if single else x)]
    shape = np.broadcast_shapes(*(tile.shape for tile in tiles))
    group = tuple(Tile(np.broadcast_to(tile.data, shape), tile.dtype) for tile in tiles)
    (at,) = _axes(axis, len(shape))

    def combine(left: _Group, right: _Group) -> _Group:
        result = machine.call(function, (*left, *right))
        items = (result,) if single else tuple(result)
        return tuple(cast(item, tile.dtype) for item, tile in zip(items, group, strict=True))

    return _scan_steps(machine, group, at, combine), at, single


@operation("reduce")
def reduce(machine: Machine, x: Any, /, axis: Any, func: Any, identity: Any, *, keepdims: Any = False) -> Any:
    """Fold along an axis with a user's function."""
    steps, at, single = _custom(machine, x, axis, func)
    last = steps[-1]
    result = last if keepdims else tuple(Tile(np.squeeze(tile.data, at), tile.dtype) for tile in last)
    return result[0] if single else result


@operation("scan")
def scan(machine: Machine, x: Any, /, axis: Any, func: Any, identity: Any, *, reverse: Any = False) -> Any:
    """Prefixes along an axis under a user's function."""
    flipped = _flip(x, axis) if reverse else x
    steps, at, single = _custom(machine, flipped, axis, func)
    joined = tuple(
        Tile(np.concatenate([step[item].data for step in steps], axis=at), steps[0][item].dtype)
        for item in range(len(steps[0]))
    )
    result = _flip(joined, axis) if reverse else joined
    return result[0] if single else result


def _flip(x: Any, axis: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return tuple(_flip(item, axis) for item in x)
    tile = as_tile(x)
    return Tile(np.flip(tile.data, as_int(axis)), tile.dtype)


def _product(x: Tile, y: Tile, accumulator: DType) -> Data:
    if accumulator.is_integer:
        return np.asarray(np.matmul(x.data.astype(np.int64), y.data.astype(np.int64)))
    kind = np.float64 if accumulator.bitwidth == 64 else np.float32
    return np.asarray(np.matmul(x.data.astype(kind), y.data.astype(kind)))


@operation("mma")
def mma(machine: Machine, x: Any, y: Any, /, acc: Any, *, use_fast_acc: Any = False) -> Tile:
    """`x @ y + acc` in the accumulator's type."""
    left, right, total = as_tile(x), as_tile(y), as_tile(acc)
    if min(len(left.shape), len(right.shape)) < 2:
        raise Reject(f"mma of {describe(left)} and {describe(right)}")
    product = _product(left, right, total.dtype)
    if product.shape != total.shape:
        raise Reject(f"mma of shape {product.shape} into {describe(total)}")
    if total.dtype.is_integer:
        wide = product + total.data.astype(np.int64)
        return Tile(wide.astype(total.dtype.numpy), total.dtype)
    wide = product + total.data.astype(product.dtype)
    return Tile(round_float(wide.astype(total.dtype.numpy), total.dtype), total.dtype)


@operation("matmul")
def matmul(machine: Machine, x: Any, y: Any, /) -> Tile:
    """`x @ y` in the promoted type of both."""
    left, right = as_tile(x), as_tile(y)
    dtype = promote(left.dtype, right.dtype)
    accumulator = INT32 if dtype.is_integer else dtype
    product = _product(left, right, accumulator)
    return Tile(round_float(product.astype(dtype.numpy), dtype), dtype)


@operation("mma_scaled")
def mma_scaled(machine: Machine, x: Any, x_scale: Any, y: Any, y_scale: Any, /, acc: Any) -> Tile:
    """`mma` of inputs that are scaled block by block along K."""
    left, right = as_tile(x), as_tile(y)
    scaled_left = left.data.astype(np.float32) * _spread(as_tile(x_scale).data, left.shape[-1], -1)
    scaled_right = right.data.astype(np.float32) * _spread(as_tile(y_scale).data, right.shape[-2], -2)
    return mma(machine, Tile(scaled_left, FLOAT32), Tile(scaled_right, FLOAT32), acc)


def _spread(scale: Data, length: int, axis: int) -> Data:
    blocks = scale.shape[axis]
    if length % blocks:
        raise Reject(f"{blocks} scales for {length} elements")
    return np.repeat(scale.astype(np.float32), length // blocks, axis=axis)
