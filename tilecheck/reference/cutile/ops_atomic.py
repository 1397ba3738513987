"""Atomic operations on elements, on raw offsets and on tiles of a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilecheck.reference.cutile.operations import METHODS, OPERATIONS
from tilecheck.reference.cutile.ops_memory import memory_order as checked_order
from tilecheck.reference.cutile.ops_memory import require_array, view_window
from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.values.lanes import Lanes, element_lanes, raw_lanes, update_lanes
from tilecheck.reference.values.memory import Order
from tilecheck.reference.values.values import EnumMember, Operation, RawMemory, Tile, TiledView, as_index, cast
from tilecheck.reference.values.windows import update_window

_ACQ_REL = EnumMember("MemoryOrder", "ACQ_REL")
_DEVICE = EnumMember("MemoryScope", "DEVICE")
_ORDERS = ("RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL")

CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "xchg": lambda old, new: new,
    "add": lambda old, new: old + new,
    "max": max,
    "min": min,
    "and": lambda old, new: old & new,
    "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new,
}


def _supported(name: str, lanes: Any) -> None:
    dtype = lanes.array.dtype
    if name in ("and", "or", "xor", "min", "max") and not dtype.is_integer:
        raise Reject(f"atomic {name} on {dtype}")


def _update(machine: Machine, name: str, target: Lanes, update: Any, order: Order) -> Tile:
    _supported(name, target)
    return update_lanes(machine, target, (update,), CHANGES[name], 0, order)


def _compare_and_swap(machine: Machine, target: Lanes, expected: Any, desired: Any, order: Order) -> Tile:
    def change(old: Any, wanted: Any, new: Any) -> Any:
        return new if old == wanted else old

    return update_lanes(machine, target, (expected, desired), change, expected, order)


def _element_operation(name: str) -> Callable[..., Tile]:
    def atomic(
        machine: Machine,
        array: Any,
        indices: Any,
        update: Any,
        /,
        *,
        check_bounds: Any = True,
        memory_order: Any = _ACQ_REL,
        memory_scope: Any = _DEVICE,
    ) -> Tile:
        target = element_lanes(
            machine, require_array(array), as_index(indices), None, check_bounds=bool(check_bounds)
        )
        return _update(machine, name, target, update, checked_order(memory_order, memory_scope, _ORDERS))

    return atomic


def _raw_operation(name: str) -> Callable[..., Tile]:
    def atomic(
        machine: Machine,
        memory: RawMemory,
        offset: Any,
        update: Any,
        /,
        *,
        mask: Any = None,
        memory_order: Any = _ACQ_REL,
        memory_scope: Any = _DEVICE,
    ) -> Tile:
        target = raw_lanes(machine, memory, offset, mask)
        return _update(machine, name, target, update, checked_order(memory_order, memory_scope, _ORDERS))

    return atomic


def _view_operation(name: str) -> Callable[..., None]:
    def atomic(machine: Machine, view: TiledView, index: Any, update: Any, /) -> None:
        target = view_window(machine, view, index)
        _supported(name, target)
        data = np.broadcast_to(cast(update, view.array.dtype).data, view.tile_shape)
        update_window(machine, target, data, len(view.tile_shape), CHANGES[name], Order("RELAXED", "DEVICE"))

    return atomic


def atomic_cas(
    machine: Machine,
    array: Any,
    indices: Any,
    expected: Any,
    desired: Any,
    /,
    *,
    check_bounds: Any = True,
    memory_order: Any = _ACQ_REL,
    memory_scope: Any = _DEVICE,
) -> Tile:
    """Compare and swap elements."""
    target = element_lanes(
        machine, require_array(array), as_index(indices), None, check_bounds=bool(check_bounds)
    )
    return _compare_and_swap(
        machine, target, expected, desired, checked_order(memory_order, memory_scope, _ORDERS)
    )


def atomic_cas_offset(
    machine: Machine,
    memory: RawMemory,
    offset: Any,
    expected: Any,
    desired: Any,
    /,
    *,
    mask: Any = None,
    memory_order: Any = _ACQ_REL,
    memory_scope: Any = _DEVICE,
) -> Tile:
    """Compare and swap by element offset, unchecked."""
    target = raw_lanes(machine, memory, offset, mask)
    return _compare_and_swap(
        machine, target, expected, desired, checked_order(memory_order, memory_scope, _ORDERS)
    )


OPERATIONS["atomic_cas"] = Operation("atomic_cas", atomic_cas)
METHODS["RawMemory", "atomic_cas_offset"] = Operation("atomic_cas_offset", atomic_cas_offset)
for _name in CHANGES:
    OPERATIONS[f"atomic_{_name}"] = Operation(f"atomic_{_name}", _element_operation(_name))
    _raw_name = f"atomic_{_name}_offset"
    METHODS["RawMemory", _raw_name] = Operation(_raw_name, _raw_operation(_name))
    if _name != "xchg":
        _view_name = f"atomic_store_{_name}"
        METHODS["TiledView", _view_name] = Operation(_view_name, _view_operation(_name))
