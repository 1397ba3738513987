"""Subscripts of host values: slices of tensors, extents of shapes, items of dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilecheck.frontend.host.arguments import literal, number, unsupported
from tilecheck.frontend.host.memory.mutations import read_item
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.tensors.methods import DEVICE_COUNTS, device_count, one_of
from tilecheck.frontend.host.tensors.views import split_piece
from tilecheck.frontend.host.values import Dims, HostShape, Pair, Pieces, Split, Table, Tensor, Unknown
from tilecheck.frontend.values.values import Const, Named, Num, Seq
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr
from tilecheck.ir.host import host_stride, host_test

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor


def subscript(x: HostExecutor, value: Any, index: Any) -> Any:
    """`value[index]`."""
    match value:
        case HostShape() | Dims():
            return _shape_item(x, value, index)
        case Pair() if literal(index) in (0, 1):
            return value.indices if literal(index) else value.values
        case Split():
            key = literal(index)
            if not isinstance(key, int) or key < 0:
                raise unsupported("one of an unknown number of pieces")
            return split_piece(x, value, key)
        case Table():
            return _lookup_or_fail(x, value, index)
        case Pieces():
            key = literal(index)
            if not isinstance(key, int) or not 0 <= key < len(value.items):
                raise unsupported("one of an unknown number of pieces")
            return value.items[key]
        case Tensor():
            return _slice(x, x.known_rank(value), index)
        case Unknown() if _is_slice(index):
            return _slice(x, x.known_rank(x.tensor(value)), index)
        case Unknown():
            key = literal(index)
            made, item = x.mapped.get(value.name, (-1, None))
            if item is not None and isinstance(key, int) and made == x.events.now:
                return item(key)  # nothing has changed since the list was made
            known = x.known_rank(x.tensor(value))
            if known.shape is not None and isinstance(key, int):
                return _slice(x, known, index)
            if value.name.endswith(".needs_input_grad"):  # which gradients are asked for is no matter of sizes
                return Num((), host_test(f"{value.name}[{key}]"), "bool", None)
            if key in DEVICE_COUNTS:
                return device_count(key)
            if key is not None:
                return read_item(x, value, key)
            raise unsupported("subscript with a computed key")
        case _:
            raise unsupported("subscript of this value")


def _lookup_or_fail(x: HostExecutor, table: Table, index: Any) -> Any:
    key = literal(index)
    if key is None:
        return one_of(x, table, index)
    if key not in table.items:
        raise unsupported("dictionary with a computed key")
    return table.items[key]


def _shape_item(x: HostExecutor, value: HostShape | Dims, index: Any) -> Any:
    """An extent of a shape, or a slice of it; of strides, one of them."""
    strides = isinstance(value, HostShape) and value.strides
    if isinstance(index, Seq):
        return _shape_slice(x, value, index)
    asked = x.scalar(index, "axis")
    axis = asked.value
    if isinstance(value, HostShape) and strides:
        return x.natural("stride") if axis is None else number(E.sym(host_stride(value.of, axis)))
    parts = unknown_ranks.parts_of(x, value) or ()
    found = unknown_ranks.item_somewhere(x, parts, asked)
    if axis is None and parts and unknown_ranks.is_read(asked):  # Python raises where there is no such axis
        axes = unknown_ranks.rank(parts)
        x.assume(E.all_of(E.le(E.neg(axes), asked), E.lt(asked, axes)))
    return x.natural("extent") if found is None else number(found)


def _shape_slice(x: HostExecutor, value: HostShape | Dims, index: Seq) -> Any:
    parts = unknown_ranks.parts_of(x, value)
    if parts is None or not _is_part(index):
        raise unsupported("part of a shape of unknown length")
    start, stop, step = (None if isinstance(e, Const) else x.scalar(e, "slice") for e in index.items[1:])
    if step not in (None, E.ONE):
        raise unsupported("part of a shape of unknown length")
    return _between(x, value, parts, start or E.ZERO, stop)


def _between(
    x: HostExecutor, value: HostShape | Dims, parts: unknown_ranks.Parts, start: Expr, stop: Expr | None
) -> Any:
    """`shape[start:stop]`."""

    def cut(start: Expr, stop: Expr | None) -> Any:
        return _part(x, value, parts, start, stop)

    counts = unknown_ranks.wraps(x, parts, start)
    if counts is not None:
        return x.split(counts, lambda: cut(start, stop), lambda: cut(E.ZERO, stop))
    counts = None if stop is None else unknown_ranks.wraps(x, parts, stop)
    if counts is not None:
        return x.split(counts, lambda: cut(start, stop), lambda: cut(start, E.ZERO))
    return cut(start, stop)


def _part(
    x: HostExecutor, value: HostShape | Dims, parts: unknown_ranks.Parts, start: Expr, stop: Expr | None
) -> Any:
    if start.value is not None and (stop is None or stop.value is not None):
        found = unknown_ranks.sliced(parts, start.value, None if stop is None else stop.value)
    else:
        found = unknown_ranks.between(x, parts, start, stop)
    if found is None:
        raise unsupported("part of a shape of unknown length")
    return unknown_ranks.shape_of_parts(found, is_list=isinstance(value, Dims) and value.is_list)


def _is_slice(index: Any) -> bool:
    parts = index.items if isinstance(index, Seq) else (index,)
    return _is_part(index) or any(
        _is_part(p) or (isinstance(p, Const) and p.value in (..., None)) for p in parts
    )


def _is_part(index: Any) -> bool:
    return isinstance(index, Seq) and index.items[:1] == (Named("slice"),)


def _slice(x: HostExecutor, t: Tensor, index: Any) -> Any:
    """Basic indexing; with a tensor or a list as an index the result is an unknown copy."""
    parts = (index,) if not isinstance(index, Seq) or _is_part(index) else index.items
    if t.shape is None and all(_is_basic(p) for p in parts):
        return _piece(x, t, parts)
    if t.shape is None:
        raise unsupported("slice of a tensor of unknown rank")
    axis = 0
    for part in parts:
        if isinstance(part, Const) and part.value is ...:
            axis = len(t.shape or ()) - _axes_after(parts, part)
            continue
        found, axis = _one(x, t, axis, part)
        if found is None:
            raise unsupported("slice")
        t = found
    return t


def _piece(x: HostExecutor, t: Tensor, parts: Sequence[Any]) -> Tensor:
    """A view of a tensor of unknown rank: items of its first axis have the shape of its other axes."""
    found = x.unread_view(t, f"{t.name}[...]")
    if not x.computed.isdisjoint((t.name, t.shape_of)):
        x.computed.add(found.name)
    whole = unknown_ranks.parts_of(x, HostShape(t.shape_of)) if t.shape_of else None
    rest = None if whole is None else unknown_ranks.sliced(whole, len(parts), None)
    if whole is None or rest is None:
        return found
    if all(isinstance(part, Num) for part in parts):
        return replace(found, shape_of=unknown_ranks.named(x, rest))
    size = unknown_ranks.item(whole, 0)
    if len(parts) != 1 or not _is_part(parts[0]) or size is None:
        return found
    start, stop, step = _ends(x, parts[0])
    if step not in (None, E.ONE):
        return found
    # The first rows of a contiguous tensor are contiguous.
    rows = replace(found, contiguous=t.contiguous, dense=t.contiguous)
    return x.shaped(rows, (T.length_between(*T.bounds(size, start, stop)), *rest))


def _is_basic(part: Any) -> bool:
    return _is_part(part) or isinstance(part, Num) or (isinstance(part, Const) and part.value in (..., None))


def _ends(x: HostExecutor, part: Any) -> tuple[Expr | None, Expr | None, Expr | None]:
    """The start, the end and the step of a slice."""
    ends = [None if isinstance(e, Const) and e.value is None else x.scalar(e, "slice") for e in part.items[1:]]
    return ends[0], ends[1], ends[2]


def _axes_after(parts: Sequence[Any], ellipsis: Any) -> int:
    rest = parts[list(parts).index(ellipsis) + 1 :]
    return sum(1 for p in rest if not (isinstance(p, Const) and p.value is None))


def _one(x: HostExecutor, t: Tensor, axis: int, part: Any) -> tuple[Tensor | None, int]:
    if isinstance(part, Const) and part.value is None:
        return T.unsqueezed(t, axis), axis + 1
    if _is_part(part):
        return T.sliced(t, axis, _ends(x, part)), axis + 1
    if isinstance(part, Num) and part.kind in ("int", "any") and part.elem is not None:
        return T.selected(t, axis, part.elem), axis
    return None, axis
