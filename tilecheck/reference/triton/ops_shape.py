"""Operations that make tensors, change their shape or type, or only say something about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.triton.arithmetic import convert, select
from tilecheck.reference.triton.dtypes import PointerType
from tilecheck.reference.triton.operations import operation
from tilecheck.reference.triton.ops_memory import pointer_cast
from tilecheck.reference.triton.values import (
    Pointer,
    as_tensor,
    block_shape,
    flatten_shape,
    operand,
    remap,
    require_size,
    static_int,
    to_tensor,
    truth,
)
from tilecheck.reference.values.bits import from_bits, to_bits
from tilecheck.reference.values.dtypes import BOOL, INT32, DType
from tilecheck.reference.values.values import Tile, describe, scalar


def require_dtype(value: Any) -> DType:
    if not isinstance(value, DType):
        raise Reject(f"{describe(value)} used as a data type")
    return value


@operation("program_id")
def program_id(machine: Machine, axis: Any) -> Tile:
    """The index of the running block."""
    return scalar(machine.block[_grid_axis(axis)], INT32)


@operation("num_programs")
def num_programs(machine: Machine, axis: Any) -> Tile:
    """The number of blocks of the launch."""
    return scalar(machine.grid[_grid_axis(axis)], INT32)


def _grid_axis(axis: Any) -> int:
    at = static_int(axis)
    if at not in (0, 1, 2):
        raise Reject(f"grid axis {at}")
    return at


@operation("arange")
def arange(machine: Machine, start: Any, end: Any) -> Tile:
    """`start, start + 1, ...`: as many as a power of two."""
    first, last = static_int(start), static_int(end)
    if not -(2**31) <= first < last < 2**31:
        raise Reject(f"arange({first}, {last})")
    block_shape((last - first,))
    return Tile(np.arange(first, last, dtype=np.int32), INT32)


@operation("full")
def full(machine: Machine, shape: Any, value: Any, dtype: Any) -> Tile:
    """One value everywhere."""
    kind = require_dtype(dtype)
    tensor = as_tensor(value)
    if tensor.data.size != 1:
        raise Reject(f"{describe(value)} used as a fill value")
    data = operand(value, kind).data.reshape(())
    return Tile(np.broadcast_to(data, block_shape(shape)), kind)


@operation("zeros")
def zeros(machine: Machine, shape: Any, dtype: Any) -> Tile:
    return full(machine, shape, 0, dtype)


@operation("zeros_like")
def zeros_like(machine: Machine, input: Any) -> Tile:
    tensor = as_tensor(input)
    return full(machine, tensor.shape, 0, tensor.dtype)


@operation("to_tensor")
def as_runtime_value(machine: Machine, value: Any) -> Any:
    """A compile-time number as a scalar tensor."""
    return to_tensor(value)


@operation("constexpr")
def constexpr(machine: Machine, value: Any) -> Any:
    """A compile-time value: what it is already."""
    return value


@operation("cast", "to", member=True)
def cast(
    machine: Machine, input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False
) -> Any:
    """Convert the elements, or reinterpret their bits."""
    if isinstance(input, Pointer):
        return pointer_cast(input, dtype)
    if isinstance(dtype, PointerType):
        raise Reject("a number used as an address")
    kind, tensor = require_dtype(dtype), as_tensor(input)
    if not bitcast or tensor.dtype == kind:
        return convert(tensor, kind)
    if BOOL in (tensor.dtype, kind) or tensor.dtype.bitwidth != kind.bitwidth:
        raise Reject(f"bitcast from {tensor.dtype} to {kind}")
    return Tile(from_bits(to_bits(tensor.data, tensor.dtype), kind), kind)


@operation("reshape", "view", member=True)
def reshape(machine: Machine, input: Any, *shape: Any, can_reorder: Any = False) -> Any:
    """The same elements in another shape."""
    sizes = flatten_shape(shape)
    return remap(input, lambda data: data.reshape(sizes))


@operation("ravel", member=True)
def ravel(machine: Machine, x: Any, can_reorder: Any = False) -> Any:
    """One dimension."""
    return remap(x, lambda data: data.reshape(-1))


@operation("expand_dims", member=True)
def expand_dims(machine: Machine, input: Any, axis: Any) -> Any:
    """New axes of length 1."""
    axes = flatten_shape((axis,) if isinstance(axis, (tuple, list)) else ((axis,),))
    return remap(input, lambda data: np.expand_dims(data, axes))


@operation("unsqueeze")
def unsqueeze(machine: Machine, x: Any, dim: Any) -> Any:
    return expand_dims(machine, x, dim)


@operation("squeeze")
def squeeze(machine: Machine, x: Any, dim: Any) -> Any:
    """Remove an axis of length 1."""
    return remap(x, lambda data: np.squeeze(data, axis=static_int(dim)))


def _shape_of(value: Any) -> tuple[int, ...]:
    return value.shape if isinstance(value, (Pointer, Tile)) else ()


@operation("broadcast_to", member=True)
def broadcast_to(machine: Machine, input: Any, *shape: Any) -> Any:
    """Repeat along axes of length 1; the rank stays, except that a scalar fills any shape."""
    sizes = block_shape(flatten_shape(shape))
    if len(_shape_of(input)) not in (0, len(sizes)):
        raise Reject(f"{describe(input)} broadcast to shape {sizes}")
    return remap(input, lambda data: np.broadcast_to(data, sizes))


@operation("broadcast")
def broadcast(machine: Machine, input: Any, other: Any) -> tuple[Any, Any]:
    """Both in their common shape."""
    first = input if isinstance(input, Pointer) else as_tensor(input)
    second = other if isinstance(other, Pointer) else as_tensor(other)
    shape = np.broadcast_shapes(first.shape, second.shape)
    return (
        remap(first, lambda data: np.broadcast_to(data, shape)),
        remap(second, lambda data: np.broadcast_to(data, shape)),
    )


@operation("permute", member=True)
def permute(machine: Machine, input: Any, *dims: Any) -> Any:
    """The axes in another order."""
    axes = flatten_shape(dims)
    return remap(input, lambda data: data.transpose(axes))


@operation("trans", member=True)
def trans(machine: Machine, input: Any, *dims: Any) -> Any:
    """The axes in another order; without one, the last two swapped."""
    if dims:
        return permute(machine, input, *dims)
    if len(_shape_of(input)) < 2:
        raise Reject(f"the transpose of {describe(input)}")
    return remap(input, lambda data: data.swapaxes(-1, -2))


@operation("cat")
def cat(machine: Machine, input: Any, other: Any, can_reorder: Any = False, dim: Any = 0) -> Tile:
    """Two tensors, one after the other."""
    first, second = as_tensor(input), as_tensor(other)
    if first.dtype != second.dtype:
        raise Reject(f"cat of {describe(first)} and {describe(second)}")
    return Tile(require_size(np.concatenate([first.data, second.data], axis=static_int(dim))), first.dtype)


@operation("join")
def join(machine: Machine, a: Any, b: Any) -> Tile:
    """Two tensors along a new last axis."""
    first, second = as_tensor(a), as_tensor(b)
    if first.dtype != second.dtype:
        raise Reject(f"join of {describe(first)} and {describe(second)}")
    pair = np.broadcast_arrays(first.data, second.data)
    return Tile(require_size(np.stack(pair, axis=-1)), first.dtype)


@operation("split", member=True)
def split(machine: Machine, a: Any) -> tuple[Tile, Tile]:
    """The inverse of `join`."""
    tensor = as_tensor(a)
    if tensor.shape[-1:] != (2,):
        raise Reject(f"split of {describe(tensor)}")
    return (
        Tile(np.asarray(tensor.data[..., 0]), tensor.dtype),
        Tile(np.asarray(tensor.data[..., 1]), tensor.dtype),
    )


@operation("interleave")
def interleave(machine: Machine, a: Any, b: Any) -> Tile:
    """The elements of two tensors in turn along the last axis."""
    joined = join(machine, a, b)
    if len(joined.shape) == 1:
        return joined
    shape = (*joined.shape[:-2], 2 * joined.shape[-2])
    return Tile(joined.data.reshape(shape), joined.dtype)


@operation("item", member=True)
def item(machine: Machine, input: Any) -> Any:
    """The only element."""
    return remap(input, lambda data: data.reshape(()))


@operation("where", member=True)
def where(machine: Machine, condition: Any, x: Any, y: Any) -> Any:
    """Choose elements by a condition."""
    return select(condition, x, y)


@operation("expect_zero", "multiple_of", "max_contiguous", "max_constancy", member=True)
def hint(machine: Machine, input: Any, values: Any = None, *rest: Any) -> Any:
    """A promise to the compiler; the value is unchanged."""
    return input


@operation("assume", "debug_barrier", "device_print", "device_assert", "static_print")
def nothing(machine: Machine, *values: Any, **options: Any) -> None:
    """Operations without an effect on memory; their arguments have been evaluated."""


@operation("static_assert")
def static_assert(machine: Machine, cond: Any, msg: Any = None) -> None:
    """A kernel whose static assertion fails does not compile."""
    holds, runtime = truth(cond)
    if runtime:
        raise Reject("a static assertion about a runtime value")
    if not holds:
        raise Reject("a static assertion that fails")


def _joined(name: str) -> Any:
    function = np.logical_and if name == "logical_and" else np.logical_or

    def run(machine: Machine, input: Any, other: Any) -> Tile:
        return Tile(np.asarray(function(as_tensor(input).data, as_tensor(other).data)), BOOL)

    return run


for _name in ("logical_and", "logical_or"):
    operation(_name, member=True)(_joined(_name))


@operation("gather", member=True)
def gather(machine: Machine, src: Any, index: Any, axis: Any) -> Tile:
    """Elements of a tensor by their position along an axis; positions outside give any element."""
    tensor, positions, at = as_tensor(src), as_tensor(index), static_int(axis)
    inside = np.clip(positions.data.astype(np.int64), 0, tensor.shape[at] - 1)
    return Tile(np.asarray(np.take_along_axis(tensor.data, inside, axis=at)), tensor.dtype)


@operation("flip", member=True)
def flip(machine: Machine, x: Any, dim: Any = None) -> Tile:
    """The elements in the opposite order along an axis; the last one if none is given."""
    tensor = as_tensor(x)
    at = -1 if dim is None else static_int(dim)
    return Tile(np.asarray(np.flip(tensor.data, at)), tensor.dtype)


@operation("map_elementwise")
def map_elementwise(machine: Machine, scalar_fn: Any, *args: Any, pack: Any = 1) -> Any:
    """A user's function of the elements; it sees all of them at once."""
    tensors = [as_tensor(argument) for argument in args]
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    spread = [Tile(np.broadcast_to(tensor.data, shape), tensor.dtype) for tensor in tensors]
    if static_int(pack) != 1:
        raise Reject("map_elementwise of packs of elements")
    return machine.call(scalar_fn, spread)
