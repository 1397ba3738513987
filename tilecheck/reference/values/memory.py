"""Arrays as a whole: what may be written, their slices, the members of a list, memory orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilecheck.reference.machine import Abandoned, Machine, Reject
from tilecheck.reference.values.dtypes import Data
from tilecheck.reference.values.values import Array, ArrayList, as_int


@dataclass(frozen=True, slots=True)
class Order:
    """Memory order and scope, as cuTile names them."""

    order: str = "WEAK"
    scope: str = "NONE"


def writable(memory: Data, array: Array) -> Data:
    """The memory, if it may be written."""
    if not memory.flags.writeable:
        raise Reject(f"a write to `{array.name}`, whose memory is read-only")
    return memory


def member(machine: Machine, arrays: ArrayList | tuple[Any, ...], index: int, name: str = "") -> Any:
    """One array of a list. Past its end nothing that the block does has a meaning."""
    members = arrays.members if isinstance(arrays, ArrayList) else arrays
    if not 0 <= index < len(members):
        label = arrays.name if isinstance(arrays, ArrayList) else name
        machine.undefined("member", array=label, element=(index,), detail=f"of {len(members)}")
        raise Abandoned
    return members[index]


def slice_array(machine: Machine, array: Array, axis: int, start: Any, stop: Any) -> Array:
    """`Array.slice`: bounds that break its preconditions are logged and clamped to the array."""
    rank = len(array.shape)
    if not -rank <= axis < rank:
        raise Reject(f"slice axis {axis} of an array of rank {rank}")
    axis %= rank
    extent = array.shape[axis]
    first, last = as_int(start), as_int(stop)
    if not (0 <= first < extent and first <= last <= extent):
        element = [first if other == axis else 0 for other in range(rank)]
        detail = f"[{first}:{last}] of {extent}"
        machine.undefined("slice", array=array.name, element=element, detail=detail)
        first = min(max(first, 0), extent)
        last = min(max(last, first), extent)
    part = tuple(slice(first, last) if other == axis else slice(None) for other in range(rank))
    origin = tuple(at + first if other == axis else at for other, at in enumerate(array.origin))
    constant = isinstance(start, int) and isinstance(stop, int)
    static = array.static_shape | {axis} if constant else array.static_shape - {axis}
    return Array(
        array.name,
        array.member,
        array.root,
        array.data[part],
        array.dtype,
        origin,
        array.index_dtype,
        static,
        array.static_strides,
    )
