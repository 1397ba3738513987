"""Loads, stores and atomic operations through pointers, and through block pointers where those are allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tilecheck.reference.cutile.ops_atomic import CHANGES
from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.triton.arithmetic import convert
from tilecheck.reference.triton.dtypes import PointerType
from tilecheck.reference.triton.operations import operation
from tilecheck.reference.triton.ops_block import load_block, store_block
from tilecheck.reference.triton.values import BlockPointer, Pointer, as_mask, as_tensor, require_size, truth
from tilecheck.reference.values.dtypes import BFLOAT16, BOOL, FLOAT16
from tilecheck.reference.values.lanes import Lanes, active_lanes, read_lanes, update_lanes, write_lanes
from tilecheck.reference.values.memory import Order
from tilecheck.reference.values.values import Array, Tile, describe

_ORDERS = {"relaxed": "RELAXED", "acquire": "ACQUIRE", "release": "RELEASE", "acq_rel": "ACQ_REL"}
_VOLATILE = Order("RELAXED", "DEVICE")  # it may see what another block wrote, in no order
_SCOPES = {"cta": "BLOCK", "gpu": "DEVICE", "sys": "SYS"}


def require_pointer(value: Any) -> Pointer:
    if not isinstance(value, Pointer):
        raise Reject(f"{describe(value)} used as a pointer")
    return value


def pointed(pointer: Pointer) -> Array:
    """The array behind a pointer, seen as elements of the pointer's type."""
    array = pointer.array
    if pointer.element == array.dtype:
        return array
    for dtype in (pointer.element, array.dtype):
        if dtype.numpy.itemsize * 8 != dtype.bitwidth:
            raise Reject(f"a pointer to {dtype} into an array of another type")
    if pointer.element.bitwidth != array.dtype.bitwidth:
        raise Reject(f"a pointer to {pointer.element} into `{array.name}` of {array.dtype}")
    return replace(array, data=array.data.view(pointer.element.numpy), dtype=pointer.element)


def pointer_lanes(machine: Machine, pointer: Pointer, mask: Tile | None) -> Lanes:
    """The lanes of an access. One that is active and outside the array is logged and not performed."""
    array = pointed(pointer)
    inside = np.asarray((pointer.offsets >= 0) & (pointer.offsets < array.data.size))
    return active_lanes(machine, array, array.data, [pointer.offsets], inside, mask, check_bounds=False)


def _broadcast_pointer(pointer: Pointer, *others: Any) -> Pointer:
    """The pointer in the shape that it has together with the other operands; one pointer stays one."""
    shapes = [other.shape for other in others if other is not None]
    if all(shape == pointer.shape for shape in shapes):
        require_size(pointer.offsets)
        return pointer
    if pointer.shape == ():
        raise Reject("a block accessed through one pointer")
    shape = np.broadcast_shapes(pointer.shape, *shapes)
    return replace(pointer, offsets=require_size(np.broadcast_to(pointer.offsets, shape)))


@operation("load")
def load(
    machine: Machine,
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: Any = "",
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
    **options: Any,
) -> Tile:
    """Read; a lane that is masked off gives `other`, and is undefined without one."""
    if isinstance(pointer, BlockPointer):
        if mask is not None or other is not None:
            raise Reject("a block pointer with a mask")
        return load_block(machine, pointer, boundary_check, padding_option)
    chosen = as_mask(mask)
    if chosen is None and other is not None:
        raise Reject("`other` without `mask`")
    idle = None if other is None else as_tensor(other)
    target = _broadcast_pointer(require_pointer(pointer), chosen, idle)
    lanes = pointer_lanes(machine, target, chosen)
    padding = None if idle is None else convert(idle, lanes.array.dtype)
    return read_lanes(machine, lanes, padding, _VOLATILE if truth(volatile)[0] else None)


@operation("store", member=True)
def store(
    machine: Machine,
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    **options: Any,
) -> None:
    """Write; the value takes the type and the shape of the pointers."""
    if isinstance(pointer, BlockPointer):
        if mask is not None:
            raise Reject("a block pointer with a mask")
        store_block(machine, pointer, as_tensor(value), boundary_check)
        return
    target, tensor, chosen = _update_operands(pointer, value, mask)
    write_lanes(machine, pointer_lanes(machine, target, chosen), tensor)


def _update_operands(pointer: Any, value: Any, mask: Any) -> tuple[Pointer, Tile, Tile | None]:
    target, tensor, chosen = require_pointer(pointer), as_tensor(value), as_mask(mask)
    if _broadcast_pointer(target, tensor, chosen).shape != target.shape:
        raise Reject(f"{describe(value)} written through pointers of shape {target.shape}")
    return target, convert(tensor, target.element), chosen


def memory_order(sem: Any, scope: Any, default: str = "acq_rel") -> Order:
    """A memory order and scope, by the names of the log."""
    order, area = _ORDERS.get(sem or default), _SCOPES.get(scope or "gpu")
    if order is None or area is None:
        raise Reject(f"memory order {sem!r} with scope {scope!r}")
    return Order(order, area)


def _supported(name: str, pointer: Pointer) -> None:
    dtype = pointer.element
    if dtype.bitwidth < 16 or dtype == BOOL or (dtype.is_integer and dtype.bitwidth < 32):
        raise Reject(f"atomic {name} on {dtype}")
    if dtype.is_float and (name in ("and", "or", "xor") or (dtype in (FLOAT16, BFLOAT16) and name != "add")):
        raise Reject(f"atomic {name} on {dtype}")


def _atomic(name: str) -> Callable[..., Tile]:
    def run(
        machine: Machine, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None
    ) -> Tile:
        target, tensor, chosen = _update_operands(pointer, val, mask)
        _supported(name, target)
        lanes = pointer_lanes(machine, target, chosen)
        return update_lanes(machine, lanes, (tensor,), CHANGES[name], 0, memory_order(sem, scope))

    return run


for _name in CHANGES:
    operation(f"atomic_{_name}", member=True)(_atomic(_name))


@operation("atomic_cas", member=True)
def atomic_cas(
    machine: Machine,
    pointer: Any,
    cmp: Any,
    val: Any,
    mask: Any = None,
    sem: Any = None,
    scope: Any = None,
) -> Tile:
    """Compare and swap."""
    target, expected, chosen = _update_operands(pointer, cmp, mask)
    _, desired, _ = _update_operands(pointer, val, None)
    lanes = pointer_lanes(machine, target, chosen)

    def change(old: Any, wanted: Any, new: Any) -> Any:
        return new if old == wanted else old

    return update_lanes(machine, lanes, (expected, desired), change, 0, memory_order(sem, scope))


@operation("atomic_load", member=True)
def atomic_load(machine: Machine, pointer: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Tile:
    """An atomic read: logged as an atomic access that changes nothing."""
    chosen = as_mask(mask)
    lanes = pointer_lanes(machine, _broadcast_pointer(require_pointer(pointer), chosen), chosen)
    return update_lanes(machine, lanes, (), lambda old: old, 0, memory_order(sem, scope, "acquire"))


@operation("atomic_store", member=True)
def atomic_store(
    machine: Machine, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None
) -> None:
    """An atomic write."""
    target, tensor, chosen = _update_operands(pointer, val, mask)
    lanes = pointer_lanes(machine, target, chosen)
    update_lanes(machine, lanes, (tensor,), CHANGES["xchg"], 0, memory_order(sem, scope, "release"))


def pointer_cast(pointer: Pointer, kind: Any) -> Pointer:
    """`p.to(tl.pointer_type(t))`."""
    if not isinstance(kind, PointerType):
        raise Reject("the address of a pointer as a number")
    if kind.element.bitwidth != pointer.element.bitwidth:
        raise Reject(f"a pointer to {pointer.element} as one to {kind.element}")
    return replace(pointer, element=kind.element)
