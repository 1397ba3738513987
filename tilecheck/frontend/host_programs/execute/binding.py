"""What assignments, deletions and `with` statements do to names, attributes and items."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tilecheck.frontend.host_programs.calls import streams
from tilecheck.frontend.host_programs.calls.dispatch import unknown_call
from tilecheck.frontend.host_programs.calls.launches import tensors_in
from tilecheck.frontend.host_programs.calls.tensors import compute, copy
from tilecheck.frontend.host_programs.calls.torch import check_indices
from tilecheck.frontend.host_programs.execute import generators, names
from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.execute.expressions import evaluate, held, indices_of
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values import views
from tilecheck.frontend.host_programs.values.graph_captures import keep, note_bound
from tilecheck.frontend.host_programs.values.items import item, key_text
from tilecheck.frontend.host_programs.values.kinds import as_number, as_tensor, key_of, place_of
from tilecheck.frontend.host_programs.values.undetermined import operand


def bind(m: Machine, target: cst.CSTNode, value: V.Value) -> None:
    """Give a value to what stands on the left of an assignment."""
    match target:
        case cst.Name(value=name):
            set_name(m, name, value, target)
        case cst.Attribute(attr=cst.Name(value=name)):
            (owner,) = held(m, [target.value])
            set_attribute(m, owner, name, value, target)
        case cst.Subscript():
            _set_item(m, target, value)
        case cst.Tuple() | cst.List():
            _unpack(m, target, value)
        case cst.StarredElement():
            bind(m, target.value, value)
        case _:
            raise m.unread(target, "this target is not read")


def set_name(m: Machine, name: str, value: V.Value, node: cst.CSTNode) -> None:
    scope = m.scope
    if name in scope.globals:
        scope = m.globals.setdefault(scope.table.file, V.Scope(scope.table, function="<module>"))
    elif name in scope.outside and scope.outer is not None:
        scope = scope.outer.find(name) or scope
    value = keep(m, node, value, name) if _is_other_name(scope, name, value) else value
    m.rebound = m.rebound or name in scope.names
    scope.names[name] = value
    note_bound(m, node, scope, name, value)


def _is_other_name(scope: V.Scope, name: str, value: V.Value) -> bool:
    """Whether the name does not stand for this memory already."""
    before = scope.names.get(name)
    same = isinstance(before, V.Tensor) and isinstance(value, V.Tensor) and before.memory == value.memory
    return not (same and isinstance(before, V.Tensor) and not before.kept)


def set_attribute(m: Machine, owner: V.Value, name: str, value: V.Value, node: cst.CSTNode) -> None:
    """`owner.name = value`."""
    m.rebound = True
    match owner:
        case V.Object():
            owner.fields[name] = value
            note_bound(m, node, owner, name, value)
        case V.Unknown() if name == "data" and isinstance(value, V.Tensor):
            raise m.unread(node, "the tensor gets other memory")
        case V.Unknown():
            m.stored[f"{owner.name}.{name}"] = value
            note_bound(m, node, owner.name, name, value)
        case V.Tensor() if name == "data":
            raise m.unread(node, "the tensor gets other memory")
        case V.Tensor() | V.Function() | V.Class() | V.Imported() | V.Library() | V.Kernel():
            if any(isinstance(part, V.Tensor | V.Stream | V.Event | V.Graph) for part in V.contents(value)):
                m.stored[m.unique(f"attribute {name}")] = value
        case _:
            m.stored[m.unique(f"attribute {name}")] = value


def _set_item(m: Machine, target: cst.Subscript, value: V.Value) -> None:
    m.rebound = True
    m.pending.append(value)
    try:
        (owner,) = held(m, [target.value])
        indices = indices_of(m, target)
    finally:
        m.pending.pop()
    first = indices[0] if len(indices) == 1 else None
    match owner:
        case V.Sequence(items=items):
            at = None if first is None or isinstance(first, V.Slice) else as_number(m, first)
            exact = None if at is None else m.settle(at.expr).value
            if exact is None or not -len(items) <= exact < len(items):
                raise m.unread(target, "which item this replaces is not known")
            items[exact] = keep(m, target, value, m.scope.table.text(target))
            note_bound(m, target, owner, repr(exact % len(items)), value)
        case V.Mapping(items=items):
            items[key_of(first)] = keep(m, target, value, m.scope.table.text(target))
            note_bound(m, target, owner, repr(key_of(first)), value)
        case V.Unknown(plain=False) if isinstance(value, V.Tensor) and owner.name in m.knowledge.tensor_names:
            _store(m, target, as_tensor(m, owner, target), indices, value)
        case V.Unknown(plain=False) if isinstance(first, V.Slice) or len(indices) > 1:
            _store(m, target, as_tensor(m, owner, target), indices, value)
        case V.Unknown():
            tensor = operand(m, owner, target) if isinstance(value, V.Const | V.Number) else None
            if tensor is not None:  # a list or a tensor
                compute(m, target, "setitem", [], [tensor])
            _into_unknown(m, target, owner, first, value)
        case V.Tensor():
            _store(m, target, owner, indices, value)
        case _:
            m.stored[m.unique("item")] = value


def _into_unknown(m: Machine, target: cst.Subscript, owner: V.Unknown, index: V.Value, value: V.Value) -> None:
    """An item of a container that is not in view. It keeps what it gets."""
    at = as_number(m, index) if isinstance(index, V.Number) else None
    text = repr(m.settle(at.expr)) if at is not None else key_text(index)
    m.stored[f"{owner.name}[{text}]"] = value
    note_bound(m, target, owner.name, f"[{text}]", value)


def _store(
    m: Machine,
    target: cst.Subscript,
    tensor: V.Tensor | None,
    indices: list[V.Value | V.Slice],
    value: V.Value,
) -> None:
    """`t[...] = value`: work that writes the view, or some of it where tensors are indices."""
    if tensor is None:
        return
    view = views.subscript(m, tensor, indices)
    others = [t for i in indices if not isinstance(i, V.Slice) and (t := as_tensor(m, i, target)) is not None]
    values = tensors_in(m, value, target)
    if values:  # a mask with one number is filled without waiting
        check_indices(m, target, others)
    sources = [*values, *others]
    to = view or tensor.mixed(holes=True)
    if len(sources) == 1 and not others and m.is_device(to) != m.is_device(sources[0]):
        copy(m, target, "copy_", to, sources[0], asynchronous=False)
    else:
        compute(m, target, "setitem", sources, [to])


def _unpack(m: Machine, target: cst.Tuple | cst.List, value: V.Value) -> None:
    elements = target.elements
    starred = [i for i, e in enumerate(elements) if isinstance(e, cst.StarredElement)]
    if isinstance(value, V.Sequence):
        items = list(value.items)
        if starred:
            at, behind = starred[0], len(elements) - starred[0] - 1
            middle = V.Sequence(items[at : len(items) - behind])
            items = [*items[:at], middle, *items[len(items) - behind :]]
        if len(items) != len(elements):
            raise m.unread(target, "as many targets as values")
    elif starred:
        raise m.unread(target, "how many values this takes is not known")
    else:
        shape = names.shape_items(m, value, len(elements))
        parts = range(len(elements))
        items = shape.items if shape is not None else [item(m, value, [V.number(i)], target) for i in parts]
    for element, part in zip(elements, items, strict=True):
        bind(m, element.value, part)


def delete(m: Machine, target: cst.BaseExpression) -> None:
    """`del target`."""
    m.rebound = True
    match target:
        case cst.Name(value=name):
            scope = m.scope.find(name) or m.scope
            if m.scope.names.pop(name, None) is None:
                scope.names.pop(name, None)
        case cst.Attribute(attr=cst.Name(value=name)):
            owner = evaluate(m, target.value)
            if isinstance(owner, V.Object):
                owner.fields.pop(name, None)
            elif isinstance(owner, V.Unknown):
                m.stored.pop(f"{owner.name}.{name}", None)
        case cst.Subscript():
            _delete_item(m, target)
        case _:
            raise m.unread(target, "this target is not read")


def _delete_item(m: Machine, target: cst.Subscript) -> None:
    owner, indices = evaluate(m, target.value), indices_of(m, target)
    first = indices[0] if len(indices) == 1 else None
    if isinstance(owner, V.Mapping):
        owner.items.pop(key_of(first), None)
    elif isinstance(owner, V.Sequence):
        at = None if isinstance(first, V.Slice) or first is None else as_number(m, first)
        exact = None if at is None else m.settle(at.expr).value
        if exact is None:
            raise m.unread(target, "which item this deletes is not known")
        del owner.items[exact]


# ---- contexts ----------------------------------------------------------------------------------------------


def within(m: Machine, part: cst.WithItem, context: V.Value, body: Callable[[], None]) -> None:
    """Run the body of a `with` statement inside a context.

    Raises:
        Unread: the context may change the current stream.
    """
    asname = None if part.asname is None else part.asname.name
    if isinstance(context, V.Stream):
        context = V.Context("stream", (context,))
    if isinstance(context, V.Context) and context.kind == "manager":
        _managed(m, asname, context, body)
        return
    if isinstance(context, V.Object):
        _entered(m, part, asname, context, body)
        return
    if isinstance(context, V.Const) and isinstance(context.value, str):
        _on_device(m, context, body)
        return
    if not isinstance(context, V.Context):
        if not (isinstance(context, V.Unknown) and (context.plain or "lock" in context.name.lower())):
            raise m.unread(part.item, "what this context does to the current stream is not known")
        context = V.Context("nothing")
    leave = streams.enter(m, part.item, context)
    if asname is not None:
        bind(m, asname, V.Unknown(m.unique("context"), given=False, plain=True))
    try:
        body()
    finally:
        leave()


def _on_device(m: Machine, device: V.Const, body: Callable[[], None]) -> None:
    """`with torch.device(...)`: what is allocated lies there."""
    before, m.default_place = m.default_place, place_of(m, device) or m.default_place
    try:
        body()
    finally:
        m.default_place = before


def _managed(m: Machine, asname: cst.CSTNode | None, context: V.Context, body: Callable[[], None]) -> None:
    """A function of the project that is a context manager: the body runs where it yields."""
    function, given = context.parts

    def at_yield(value: V.Value) -> None:
        if asname is not None:
            bind(m, asname, value)
        body()

    generators.manage(m, function, given, at_yield)


def _entered(
    m: Machine, part: cst.WithItem, asname: cst.CSTNode | None, context: V.Object, body: Callable[[], None]
) -> None:
    """An object of the project with `__enter__` and `__exit__`."""
    found = names.member_with_class(m, context.made_by, "__enter__")
    leaves = names.member_with_class(m, context.made_by, "__exit__")
    if found is None or leaves is None:
        unknown_call(m, "__enter__", Arguments(part.item))
        raise m.unread(part.item, "what this context does to the current stream is not known")
    value = _method(m, context, found, Arguments(part.item))
    if asname is not None:
        bind(m, asname, value)
    try:
        body()
    finally:
        _method(m, context, leaves, Arguments(part.item, (V.NONE, V.NONE, V.NONE)))


def _method(m: Machine, owner: V.Object, found: tuple[V.Class, cst.CSTNode], given: Arguments) -> V.Value:
    made_by, node = found
    if not isinstance(node, cst.FunctionDef):
        raise m.unread(given.node, "what this context does is not in view")
    return m.call_function(m, V.Function(node, made_by.table, None, owner), given)
