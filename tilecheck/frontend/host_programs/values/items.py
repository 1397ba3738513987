"""Items of values: of lists, dictionaries, shapes, tensors, and of what the caller gives."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tilecheck.frontend.host_programs.calls.torch import gather
from tilecheck.frontend.host_programs.execute import names
from tilecheck.frontend.host_programs.knowledge import PathEnds
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values import views
from tilecheck.frontend.host_programs.values.graph_captures import note_read
from tilecheck.frontend.host_programs.values.kinds import as_number, as_tensor, key_of, resolved
from tilecheck.frontend.host_programs.values.objects import taken


def plain(m: Machine, node: cst.CSTNode) -> V.Unknown:
    """A value that holds no tensor, stream or graph, and of which no more is known."""
    return V.Unknown(m.scope.table.text(node), given=False, plain=True)


_OF_DEVICE = (V.Tensor, V.Stream, V.Event, V.Graph, V.Pool, V.Function, V.Handle, V.Operation)


def lost(m: Machine, value: V.Value, node: cst.CSTNode, why: str) -> V.Unknown:
    """A value of which no more is known than that it is made of another.

    Raises:
        Unread: the other holds tensors, streams or graphs.
    """
    for part in V.contents(value):
        if isinstance(part, _OF_DEVICE) or (isinstance(part, V.Unknown) and not part.plain):
            raise m.unread(node, why)
    return plain(m, node)


def item(m: Machine, value: V.Value, indices: list[V.Value | V.Slice], node: cst.CSTNode) -> V.Value:
    """`value[indices]`."""
    first = indices[0] if len(indices) == 1 else None
    match value:
        case V.Sequence(items=items):
            return _of_items(m, value, items, first, node)
        case V.Mapping():
            found = _of_mapping(m, value, first)
            note_read(m, value, repr(key_of(first)), m.scope.table.text(node), resolved(m, found))
            return found
        case V.Method(owner=V.Tensor() as tensor, name="shape"):
            at = None if first is None or isinstance(first, V.Slice) else as_number(m, first)
            if at is None or at.value is None:
                return plain(m, node)
            return names.shape_number(m, tensor, at.value)
        case V.Tensor():
            return _of_tensor(m, value, indices, node)
        case V.Unknown() if not value.plain:
            by_slices = len(indices) > 1 or isinstance(first, V.Slice)
            if by_slices or value.name in m.knowledge.tensor_names:
                whole = as_tensor(m, value, node)
                return plain(m, node) if whole is None else _of_tensor(m, whole, indices, node)
            return _of_unknown(m, value, first, node)
        case V.Const(value=None):
            raise PathEnds("None has no items")
        case V.Library() | V.Class() | V.Imported():
            return value
        case _:
            return plain(m, node)


def _of_unknown(m: Machine, value: V.Unknown, index: V.Value, node: cst.CSTNode) -> V.Value:
    """An item of something unknown: the same item wherever the same is asked for."""
    at = as_number(m, index) if isinstance(index, V.Number) else None
    text = repr(m.settle(at.expr)) if at is not None else str(key_text(index))
    path = f"{value.name}[{text}]"
    m.elements[path] = value.name
    if at is not None and (at.slopes or at.curved):
        if at.curved or len(at.slopes) > 1 or value.name in m.knowledge.spread:
            raise m.unread(node, "which items the rounds of this loop take is not followed")
        m.note_cut(value.name, at)
    other = V.Unknown(path, value.given, value.plain, value.site)
    found = resolved(m, m.stored[path] if path in m.stored else taken(m, value, other))
    note_read(m, value.name, f"[{text}]", path, found)
    return found


def key_text(index: V.Value) -> str:
    """A key of an unknown container as text."""
    match index:
        case V.Const(value=value):
            return repr(value)
        case V.Unknown(name=name):
            return name
        case _:
            return str(key_of(index))


def _of_items(
    m: Machine, value: V.Sequence, items: list[V.Value], index: V.Value | V.Slice | None, node: cst.CSTNode
) -> V.Value:
    if isinstance(index, V.Slice):
        low, high = (None if b is None or b == V.NONE else as_number(m, b) for b in (index.start, index.stop))
        bounds = [None if b is None else m.settle(b.expr).value for b in (low, high)]
        if index.holes or (low is not None and bounds[0] is None) or (high is not None and bounds[1] is None):
            return lost(m, value, node, "which items of the list this takes is not known")
        return V.Sequence(items[bounds[0] : bounds[1]], value.is_tuple)
    at = None if index is None else as_number(m, index)
    if at is None or not items:
        if not items:
            raise _no_item(m, node, 0)
        m.knowledge.items.add((m.site(node), 0))
        return lost(m, value, node, "which item of the list this takes is not known")
    if at.curved:
        raise m.unread(node, "which items the rounds of this loop take is not followed")
    exact = m.settle(at.expr).value
    if exact is None:  # any of them: each is a path
        exact = m.choose(("item", len(items), at.expr), len(items))
    if not -len(items) <= exact < len(items):
        raise _no_item(m, node, exact)
    m.knowledge.items |= {(m.site(node), exact), (m.site(node), 0)}
    note_read(m, value, repr(exact % len(items)), m.scope.table.text(node), resolved(m, items[exact]))
    return items[exact]


def _no_item(m: Machine, node: cst.CSTNode, index: int) -> PathEnds:
    """A list has no such item: it raises, or only so many rounds of what fills the list are read."""
    text = m.scope.table.text(node)
    m.knowledge.missing[m.site(node), index] = f"no list that is read here has the item `{text}`"
    return PathEnds("index out of range")


def _of_mapping(m: Machine, value: V.Mapping, index: V.Value) -> V.Value:
    items = value.items
    key = key_of(index)
    if key in items:
        return items[key]
    if not items or (isinstance(key, str) and all(isinstance(k, str) for k in items)):
        raise PathEnds("no such key")
    return list(items.values())[m.choose(("item", tuple(items), key), len(items))]


def _of_tensor(
    m: Machine, tensor: V.Tensor, indices: Sequence[V.Value | V.Slice], node: cst.CSTNode
) -> V.Value:
    view = views.subscript(m, tensor, indices)
    if view is not None:
        return view
    # Tensors as indices gather: a copy, on the current stream.
    others = [t for i in indices if not isinstance(i, V.Slice) and (t := as_tensor(m, i, node)) is not None]
    return gather(m, node, tensor, others)
