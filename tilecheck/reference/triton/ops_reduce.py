"""Reductions, scans, sorting, histograms and matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.triton.arithmetic import runtime_binary
from tilecheck.reference.triton.dtypes import UINT32, bits_of, is_integer, is_signed
from tilecheck.reference.triton.operations import operation
from tilecheck.reference.triton.values import as_mask, as_tensor, block_shape, require_size, static_int
from tilecheck.reference.values.arithmetic import wrap
from tilecheck.reference.values.dtypes import (
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT32,
    Category,
    Data,
    DType,
    round_float,
)
from tilecheck.reference.values.values import Tile, cast, describe

_Group = tuple[Tile, ...]
_Combine = Callable[[_Group, _Group], _Group]


def _axis(axis: Any, rank: int) -> int:
    at = static_int(axis)
    if not -rank <= at < rank:
        raise Reject(f"axis {at} of a tensor of rank {rank}")
    return at % rank


def _laid_out(data: Data, axis: Any, keep_dims: Any) -> tuple[Data, int, Callable[[Data], Data]]:
    """The elements, the axis to fold, and what makes the result's shape; no axis folds everything."""
    if axis is not None:
        at = _axis(axis, data.ndim)
        return data, at, (lambda folded: np.expand_dims(folded, at)) if keep_dims else (lambda folded: folded)
    ones = (1,) * data.ndim
    return data.reshape(-1), 0, (lambda folded: folded.reshape(ones)) if keep_dims else (lambda folded: folded)


def _sum_type(dtype: DType, wanted: Any) -> DType:
    if wanted is not None:
        if not isinstance(wanted, DType):
            raise Reject(f"{describe(wanted)} used as a data type")
        return wanted
    if is_integer(dtype) and bits_of(dtype) < 32:
        return INT32 if is_signed(dtype) else UINT32
    return dtype


def _accumulator(dtype: DType) -> Any:
    if dtype.is_float:
        return np.float64 if dtype == FLOAT64 else np.float32
    return np.int64 if dtype.bitwidth <= 32 else dtype.numpy


def _narrow(machine: Machine, wide: Any, dtype: DType) -> Tile:
    if dtype.is_float:
        return Tile(round_float(np.asarray(wide).astype(dtype.numpy), dtype), dtype)
    return Tile(wrap(machine, np.asarray(wide), dtype), dtype)


@operation("sum", member=True)
def reduce_sum(
    machine: Machine, input: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None
) -> Tile:
    """The sum along an axis, or of everything."""
    tensor = as_tensor(input)
    tensor = cast(tensor, _sum_type(tensor.dtype, dtype))
    data, at, finish = _laid_out(tensor.data, axis, keep_dims)
    return _narrow(
        machine, finish(np.asarray(data.sum(axis=at, dtype=_accumulator(tensor.dtype)))), tensor.dtype
    )


def _promoted(tensor: Tile) -> Tile:
    """Extremes are looked for in at least 32 bits."""
    if bits_of(tensor.dtype) >= 32:
        return tensor
    return cast(tensor, FLOAT32 if tensor.dtype.is_float else INT32)


def _position(name: str, data: Data, at: int) -> Data:
    if data.dtype.kind == "f":  # NaN is never the extreme
        data = np.where(np.isnan(data), -np.inf if name == "max" else np.inf, data)
    return np.asarray((np.argmax if name == "max" else np.argmin)(data, axis=at), np.int32)


def _extreme(name: str) -> Callable[..., Any]:
    function: Any = np.fmax if name == "max" else np.fmin

    def run(
        machine: Machine,
        input: Any,
        axis: Any = None,
        return_indices: Any = False,
        return_indices_tie_break_left: Any = True,
        keep_dims: Any = False,
    ) -> Any:
        tensor = _promoted(as_tensor(input))
        data, at, finish = _laid_out(tensor.data, axis, keep_dims)
        best = Tile(finish(np.asarray(function.reduce(data, axis=at), tensor.dtype.numpy)), tensor.dtype)
        if not return_indices:
            return best
        return best, Tile(finish(_position(name, data, at)), INT32)

    return run


def _arg_extreme(name: str) -> Callable[..., Tile]:
    def run(
        machine: Machine,
        input: Any,
        axis: Any,
        tie_break_left: Any = True,
        keep_dims: Any = False,
    ) -> Tile:
        data, at, finish = _laid_out(as_tensor(input).data, axis, keep_dims)
        return Tile(finish(_position(name, data, at)), INT32)

    return run


for _name in ("max", "min"):
    operation(_name, member=True)(_extreme(_name))
    operation(f"arg{_name}", member=True)(_arg_extreme(_name))


def _bitwise(function: Any) -> Callable[..., Tile]:
    def run(machine: Machine, input: Any, axis: Any = None, keep_dims: Any = False) -> Tile:
        tensor = as_tensor(input)
        if not is_integer(tensor.dtype):
            raise Reject(f"the bits of {describe(tensor)}")
        data, at, finish = _laid_out(tensor.data, axis, keep_dims)
        return Tile(finish(np.asarray(function.reduce(data, axis=at), tensor.dtype.numpy)), tensor.dtype)

    return run


operation("xor_sum", member=True)(_bitwise(np.bitwise_xor))
operation("reduce_or", member=True)(_bitwise(np.bitwise_or))


def _prefixes(group: _Group, axis: int, combine: _Combine) -> list[_Group]:
    """The inclusive prefixes along an axis, each without it."""
    parts = [
        tuple(Tile(np.asarray(np.take(tile.data, at, axis=axis)), tile.dtype) for tile in group)
        for at in range(group[0].shape[axis])
    ]
    found = [parts[0]]
    for part in parts[1:]:
        found.append(combine(found[-1], part))
    return found


def _group(value: Any) -> tuple[_Group, bool]:
    single = not isinstance(value, (tuple, list))
    tiles = [as_tensor(item) for item in ((value,) if single else value)]
    shape = np.broadcast_shapes(*(tile.shape for tile in tiles))
    return tuple(Tile(np.broadcast_to(tile.data, shape), tile.dtype) for tile in tiles), single


def _user_combine(machine: Machine, group: _Group, function: Any) -> _Combine:
    """A user's function of two elements; it sees all other axes at once, because it is elementwise."""

    def combine(left: _Group, right: _Group) -> _Group:
        result = machine.call(function, (*left, *right))
        items = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        return tuple(cast(item, tile.dtype) for item, tile in zip(items, group, strict=True))

    return combine


@operation("reduce", member=True)
def reduce(machine: Machine, input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False) -> Any:
    """Fold along an axis with a user's function."""
    group, single = _group(input)
    laid = [_laid_out(tile.data, axis, keep_dims) for tile in group]
    flat = tuple(Tile(data, tile.dtype) for (data, _, _), tile in zip(laid, group, strict=True))
    _, at, finish = laid[0]
    last = _prefixes(flat, at, _user_combine(machine, group, combine_fn))[-1]
    result = tuple(Tile(np.asarray(finish(tile.data)), tile.dtype) for tile in last)
    return result[0] if single else result


@operation("associative_scan", member=True)
def associative_scan(machine: Machine, input: Any, axis: Any, combine_fn: Any, reverse: Any = False) -> Any:
    """Prefixes along an axis under a user's function."""
    group, single = _group(input)
    result = _scan(group, axis, reverse, _user_combine(machine, group, combine_fn))
    return result[0] if single else result


def _scan(group: _Group, axis: Any, reverse: Any, combine: _Combine) -> _Group:
    at = _axis(axis, len(group[0].shape))
    turned = tuple(Tile(np.flip(tile.data, at), tile.dtype) for tile in group) if reverse else group
    found = _prefixes(turned, at, combine)
    joined = [np.stack([step[item].data for step in found], axis=at) for item in range(len(group))]
    return tuple(
        Tile(np.asarray(np.flip(data, at) if reverse else data), tile.dtype)
        for data, tile in zip(joined, group, strict=True)
    )


def _running(name: str) -> Callable[..., Tile]:
    def run(machine: Machine, input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None) -> Tile:
        tensor = as_tensor(input)
        tensor = cast(tensor, _sum_type(tensor.dtype, dtype))
        if tensor.dtype.category is Category.BOOL:
            raise Reject(f"a running {name} of booleans")

        def combine(left: _Group, right: _Group) -> _Group:
            return (runtime_binary(machine, name, left[0], right[0]),)

        return _scan((tensor,), axis, reverse, combine)[0]

    return run


operation("cumsum", member=True)(_running("add"))
operation("cumprod", member=True)(_running("mul"))


def _sorted(tensor: Tile, dim: Any, descending: Any) -> Data:
    if dim is not None and _axis(dim, len(tensor.shape)) != len(tensor.shape) - 1:
        raise Reject("a sort along another axis than the last")
    ordered = np.sort(tensor.data, axis=-1)
    return np.asarray(np.flip(ordered, -1) if descending else ordered)


@operation("sort", member=True)
def sort(machine: Machine, x: Any, dim: Any = None, descending: Any = False) -> Tile:
    """The elements in order along the last axis."""
    tensor = as_tensor(x)
    return Tile(_sorted(tensor, dim, descending), tensor.dtype)


@operation("topk")
def topk(machine: Machine, x: Any, k: Any, dim: Any = None, descending: Any = True) -> Tile:
    """The first elements in order."""
    tensor = as_tensor(x)
    (count,) = block_shape((k,))
    return Tile(np.asarray(_sorted(tensor, dim, descending)[..., :count]), tensor.dtype)


@operation("bitonic_merge")
def bitonic_merge(machine: Machine, x: Any, dim: Any = None, descending: Any = False) -> Tile:
    """The last step of a sort: of a bitonic sequence it gives the ordered one."""
    return sort(machine, x, dim, descending)


@operation("histogram", member=True)
def histogram(machine: Machine, input: Any, num_bins: Any, mask: Any = None) -> Tile:
    """How often each of `0 ... num_bins - 1` occurs."""
    tensor, chosen = as_tensor(input), as_mask(mask)
    (bins,) = block_shape((num_bins,))
    values = tensor.data if chosen is None else tensor.data[np.broadcast_to(chosen.data, tensor.shape)]
    inside = values[(values >= 0) & (values < bins)].astype(np.int64)
    return Tile(np.bincount(inside.reshape(-1), minlength=bins).astype(np.int32), INT32)


@operation("dot")
def dot(
    machine: Machine,
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = None,
    **options: Any,
) -> Tile:
    """`input @ other + acc`."""
    left, right = as_tensor(input), as_tensor(other)
    if len(left.shape) != len(right.shape) or len(left.shape) not in (2, 3):
        raise Reject(f"dot of {describe(left)} and {describe(right)}")
    dtype = _product_type(left.dtype, right.dtype, out_dtype, acc)
    kind = np.int64 if not dtype.is_float else (np.float64 if dtype == FLOAT64 else np.float32)
    wide = np.matmul(left.data.astype(kind), right.data.astype(kind))
    if acc is not None:
        total = as_tensor(acc)
        if total.shape != wide.shape:
            raise Reject(f"dot of shape {wide.shape} into {describe(total)}")
        wide = wide + total.data.astype(kind)
    require_size(wide)
    return _narrow(machine, wide, dtype)


def _product_type(first: DType, second: DType, out: Any, acc: Any) -> DType:
    """The type of a product. Inputs of unlike types are floats whose type the launch did not say."""
    if first.is_integer and second.is_integer and first.bitwidth == second.bitwidth == 8:
        return INT32
    if FLOAT64 in (first, second):
        return FLOAT64
    wanted = out if isinstance(out, DType) else (as_tensor(acc).dtype if acc is not None else FLOAT32)
    return FLOAT16 if wanted == FLOAT16 and first == second == FLOAT16 else FLOAT32


@operation("dot_scaled")
def dot_scaled(
    machine: Machine,
    lhs: Any,
    lhs_scale: Any,
    lhs_format: Any,
    rhs: Any,
    rhs_scale: Any,
    rhs_format: Any,
    acc: Any = None,
    fast_math: Any = False,
    lhs_k_pack: Any = True,
    rhs_k_pack: Any = True,
    out_dtype: Any = FLOAT32,
) -> Tile:
    """A product of scaled inputs. Only its shape is right: no integer ever comes of it."""
    left, right = as_tensor(lhs), as_tensor(rhs)
    rows = left.shape[-2] * (2 if lhs_format == "e2m1" and not lhs_k_pack else 1)
    columns = right.shape[-1] * (2 if rhs_format == "e2m1" and not rhs_k_pack else 1)
    shape = (*left.shape[:-2], rows, columns)
    data = np.zeros(shape, np.float32) if acc is None else np.broadcast_to(as_tensor(acc).data, shape)
    return Tile(np.asarray(data, np.float32), FLOAT32)
