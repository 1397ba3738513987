"""Windows of strided arrays: block pointers, and tensor descriptors, whose every access is checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilecheck.reference.cutile.ops_atomic import CHANGES
from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.triton.arithmetic import convert
from tilecheck.reference.triton.operations import METHODS, method, operation
from tilecheck.reference.triton.values import (
    BlockPointer,
    Descriptor,
    HostDescriptor,
    Pointer,
    as_tensor,
    block_shape,
    runtime_int,
    static_int,
)
from tilecheck.reference.values.dtypes import BOOL, INT64, Data
from tilecheck.reference.values.lanes import (
    Lanes,
    active_lanes,
    element_lanes,
    read_lanes,
    update_lanes,
    write_lanes,
)
from tilecheck.reference.values.memory import Order
from tilecheck.reference.values.values import Operation, Tile, describe

_LEAST_BITS = 128  # of the last dimension of a descriptor's block


def _base(value: Any) -> Pointer:
    if not isinstance(value, Pointer) or value.shape != ():
        raise Reject(f"{describe(value)} used as a base pointer")
    return value


def _integers(values: Any, rank: int, widest: int = 64) -> tuple[int, ...]:
    items = tuple(values) if isinstance(values, (tuple, list)) else (values,)
    if len(items) != rank:
        raise Reject(f"{len(items)} numbers for rank {rank}")
    return tuple(runtime_int(item, widest) for item in items)


@operation("make_block_ptr")
def make_block_ptr(
    machine: Machine, base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any
) -> BlockPointer:
    """A window of a strided array."""
    sizes = _shape(block_shape)
    rank = len(sizes)
    if sorted(static_int(axis) for axis in order) != list(range(rank)):
        raise Reject(f"order {tuple(order)} of rank {rank}")
    return BlockPointer(
        _base(base), _integers(shape, rank), _integers(strides, rank), _integers(offsets, rank, 32), sizes
    )


_shape = block_shape  # a parameter has its name


@operation("advance", member=True)
def advance(machine: Machine, base: Any, offsets: Any) -> BlockPointer:
    """The window moved by a distance per dimension."""
    if not isinstance(base, BlockPointer):
        raise Reject(f"{describe(base)} used as a block pointer")
    moves = _integers(offsets, len(base.offsets), 32)
    return replace(base, offsets=tuple(at + move for at, move in zip(base.offsets, moves, strict=True)))


METHODS["BlockPointer", "advance"] = Operation("advance", advance)


def _window(
    machine: Machine, block: BlockPointer | Descriptor, indices: Sequence[Data], checked: Sequence[int]
) -> Lanes:
    """The lanes of a window whose index along each dimension is given, ready to broadcast."""
    base = block.base
    flat: Data = np.asarray(base.offsets, np.int64)
    wanted: Data = np.ones((), bool)
    for axis, index in enumerate(indices):
        flat = flat + index * block.strides[axis]
        if axis in checked:
            wanted = wanted & (index >= 0) & (index < block.shape[axis])
    memory = base.array.data
    if base.element != base.array.dtype:
        raise Reject(f"a window of {base.element} in `{base.array.name}` of {base.array.dtype}")
    inside = np.asarray((flat >= 0) & (flat < memory.size))
    return active_lanes(
        machine, base.array, memory, [flat], inside, Tile(np.asarray(wanted), BOOL), check_bounds=False
    )


def _box(offsets: Sequence[int], shape: Sequence[int]) -> list[Data]:
    rank = len(shape)
    return [
        (np.arange(extent, dtype=np.int64) + start).reshape(
            tuple(extent if other == axis else 1 for other in range(rank))
        )
        for axis, (start, extent) in enumerate(zip(offsets, shape, strict=True))
    ]


def _block_window(machine: Machine, block: BlockPointer, boundary_check: Any) -> Lanes:
    items = boundary_check if isinstance(boundary_check, (tuple, list)) else (boundary_check,)
    checked = [static_int(axis) for axis in items]
    if any(not 0 <= axis < len(block.shape) for axis in checked) or len(set(checked)) != len(checked):
        raise Reject(f"boundary_check {checked} of rank {len(block.shape)}")
    return _window(machine, block, _box(block.offsets, block.block_shape), checked)


def load_block(machine: Machine, block: BlockPointer, boundary_check: Any, padding: Any) -> Tile:
    """Read a window; what the checked dimensions leave out is padding, and undefined without an option."""
    if padding not in ("", "zero", "nan"):
        raise Reject(f"padding option {padding!r}")
    target = _block_window(machine, block, boundary_check)
    return read_lanes(machine, target, _padding(block, padding) if padding else None)


def _padding(block: BlockPointer | Descriptor, padding: str) -> float:
    return float("nan") if padding == "nan" and block.base.element.is_float else 0


def store_block(machine: Machine, block: BlockPointer, value: Tile, boundary_check: Any) -> None:
    """Write a window."""
    data = np.broadcast_to(value.data, block.block_shape)
    target = _block_window(machine, block, boundary_check)
    write_lanes(machine, target, convert(Tile(data, value.dtype), block.base.element))


@operation("make_tensor_descriptor", "_experimental_make_tensor_descriptor")
def make_tensor_descriptor(
    machine: Machine, base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any = "zero"
) -> Descriptor:
    """A descriptor of a strided array; its last stride is 1."""
    sizes = _shape(block_shape)
    steps = _integers(strides, len(sizes))
    pointer = _base(base)
    if steps[-1:] != (1,) or sizes[-1] * pointer.element.bitwidth < _LEAST_BITS:
        raise Reject(f"a tensor descriptor of shape {sizes} with strides {steps}")
    if padding_option not in ("zero", "nan"):
        raise Reject(f"padding option {padding_option!r}")
    return Descriptor(pointer, _integers(shape, len(sizes)), steps, sizes, padding_option)


def _descriptor(value: Any) -> Descriptor | HostDescriptor:
    if not isinstance(value, (Descriptor, HostDescriptor)):
        raise Reject(f"{describe(value)} used as a tensor descriptor")
    return value


def _checked(machine: Machine, desc: Descriptor | HostDescriptor, indices: Sequence[Data]) -> Lanes:
    """The lanes of a block, each inside the shape; an array that the host described has a rank of its own."""
    if isinstance(desc, Descriptor):
        return _window(machine, desc, indices, range(len(indices)))
    return element_lanes(machine, desc.array, [Tile(i, INT64) for i in indices], None, check_bounds=True)


def _block(machine: Machine, desc: Descriptor | HostDescriptor, offsets: Any, shape: tuple[int, ...]) -> Lanes:
    if not shape:
        raise Reject("a tensor descriptor of the host whose block shape the launch does not say")
    return _checked(machine, desc, _box(_integers(offsets, len(shape), 32), shape))


def _fill(desc: Descriptor | HostDescriptor) -> float:
    return _padding(desc, desc.padding) if isinstance(desc, Descriptor) else 0


@method("Descriptor", "load")
@operation("load_tensor_descriptor")
def descriptor_load(machine: Machine, desc: Any, offsets: Any, **options: Any) -> Tile:
    """Read a block; what lies outside the shape is padding."""
    desc = _descriptor(desc)
    return read_lanes(machine, _block(machine, desc, offsets, desc.block_shape), _fill(desc))


@operation("_experimental_descriptor_load")
def experimental_load(machine: Machine, desc: Any, offsets: Any, block_shape: Any, dtype: Any) -> Tile:
    """The older spelling: shape and type are said again."""
    if _descriptor(desc).block_shape not in ((), _shape(block_shape)):
        raise Reject(f"a block of shape {block_shape} through a descriptor of another one")
    return read_lanes(machine, _block(machine, desc, offsets, _shape(block_shape)), _fill(desc))


@method("Descriptor", "store")
@operation("store_tensor_descriptor")
def descriptor_store(machine: Machine, desc: Any, offsets: Any, value: Any, **options: Any) -> None:
    """Write a block; what lies outside the shape is left out."""
    desc = _descriptor(desc)
    source = _value(desc, value, desc.block_shape)
    write_lanes(machine, _block(machine, desc, offsets, source.shape), source)


@operation("_experimental_descriptor_store")
def experimental_store(machine: Machine, desc: Any, value: Any, offsets: Any) -> None:
    """The older spelling: the value comes first."""
    descriptor_store(machine, desc, offsets, value)


def _value(desc: Descriptor | HostDescriptor, value: Any, shape: tuple[int, ...]) -> Tile:
    tensor = as_tensor(value)
    if shape and tensor.shape != shape:
        raise Reject(f"{describe(tensor)} stored as a block of shape {shape}")
    return convert(tensor, desc.base.element if isinstance(desc, Descriptor) else desc.array.dtype)


def _reduction(name: str) -> Any:
    def run(machine: Machine, desc: Descriptor | HostDescriptor, offsets: Any, value: Any) -> None:
        source = _value(desc, value, desc.block_shape)
        target = _block(machine, desc, offsets, source.shape)
        update_lanes(machine, target, (source,), CHANGES[name], 0, Order("RELAXED", "DEVICE"))

    return run


for _name in ("add", "min", "max", "and", "or", "xor"):
    method("Descriptor", f"atomic_{_name}")(_reduction(_name))


def _rows(machine: Machine, desc: Descriptor | HostDescriptor, x_offsets: Any, y_offset: Any) -> Lanes:
    rows = as_tensor(x_offsets)
    if len(desc.block_shape) != 2 or desc.block_shape[0] != 1 or len(rows.shape) != 1:
        raise Reject("rows by index through a descriptor of another shape")
    columns = np.arange(desc.block_shape[1], dtype=np.int64) + runtime_int(y_offset, 32)
    return _checked(machine, desc, [rows.data.astype(np.int64)[:, None], columns[None, :]])


@method("Descriptor", "gather")
def descriptor_gather(machine: Machine, desc: Any, x_offsets: Any, y_offset: Any) -> Tile:
    """Read rows that an index tensor names."""
    return read_lanes(machine, _rows(machine, desc, x_offsets, y_offset), _fill(desc))


@method("Descriptor", "scatter")
def descriptor_scatter(machine: Machine, desc: Any, value: Any, x_offsets: Any, y_offset: Any) -> None:
    """Write rows that an index tensor names."""
    target = _rows(machine, desc, x_offsets, y_offset)
    write_lanes(machine, target, _value(desc, value, target.shape))
