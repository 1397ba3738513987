"""What host code assigns to, and binds: attributes, items, starred names, parameters, containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute import statements
from tilecheck.frontend.execute.expressions import evaluate
from tilecheck.frontend.host.arguments import literal
from tilecheck.frontend.host.memory import sharing
from tilecheck.frontend.host.memory.mutations import (
    MUTATORS,
    anything_changed,
    attribute_stored,
    elements_changed,
    holds_mutable,
    item_stored,
    lose_objects,
    used_up,
)
from tilecheck.frontend.host.memory.unread_effects import forget_effects
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.tensors import reshaping
from tilecheck.frontend.host.values import Dims, HostShape, Starred, Table, Tensor, Unknown
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.text.syntax import has_kind, names_touched, walk_kind
from tilecheck.frontend.values.values import Choice, Const, Frame, Function, Num, Poison, Record, Seq
from tilecheck.ir import expr as E

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor

UNKNOWN_KEYWORDS = "**"  # stands for keyword arguments whose names are not known


# Functions and methods that assign to no attribute of what they are given.
_KEEPING = frozenset(
    "isinstance hasattr getattr len print type id save_for_backward mark_dirty mark_non_differentiable "
    "set_materialize_grads".split()
)


def forget(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> None:
    """Make everything that `node` may assign unknown."""
    sharing.flows(x, node, frame)
    lose_changed(x, node, frame)
    for name in assigned(node):
        forget_inside(x, name, frame)
        frame.names[name] = x.unread(name)
    forget_effects(x, node, frame)


_CHANGING = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.Del, cst.For, cst.CompFor, cst.Call)


def lose_changed(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> None:
    """Lists and objects that `node` may change in place, under whatever names, are unknown: where it changes
    anything, also those that it gives other names, or puts somewhere."""
    if not any(_changes_in_place(n, frame) for n in walk_kind(node, *_CHANGING)):
        return
    lose_objects(x, [frame.find(name) for name in names_touched(node)], frame)


def _changes_in_place(node: cst.CSTNode, frame: Frame) -> bool:
    match node:
        case cst.AugAssign(target=cst.Name(name)):  # a number is not changed but replaced
            return not isinstance(frame.find(name), Num | Const | Tensor)
        case cst.AssignTarget() | cst.AnnAssign() | cst.AugAssign() | cst.Del() | cst.For() | cst.CompFor():
            return has_kind(node.target, cst.Attribute, cst.Subscript)
        case cst.Call(func=cst.Attribute(attr=cst.Name(method))):
            return method in MUTATORS
    return False


def forget_inside(x: HostExecutor, name: str, frame: Frame) -> None:
    """`t` is another object than before, or may have changed: what `t.out` is, is unknown."""
    at: Frame | None = frame
    while at is not None:
        for path in [n for n in at.names if n.startswith(f"{name}.")]:
            at.names[path] = sharing.unread_of(x, path, at.names[path])
        at = at.parent


def forget_attributes(x: HostExecutor, node: cst.Call, frame: Frame) -> None:
    """A call may assign to the attributes of objects that it is given by name, or whose method it is, under
    whatever names these are known."""
    if dotted(node.func).rpartition(".")[2] in _KEEPING:
        return
    given = [dotted(a.value) for a in node.args]
    if isinstance(node.func, cst.Attribute):
        given.append(dotted(node.func.value))
    for name in filter(None, given):
        held = frame.find(name)
        for other in (name, *(_names_of(held, frame) if held is not None else ())):
            forget_inside(x, other, frame)


def _names_of(held: Any, frame: Frame) -> list[str]:
    found: list[str] = []
    at: Frame | None = frame
    while at is not None:
        found += [name for name, other in at.names.items() if other is held]
        at = at.parent
    return found


def kept_attribute(path: str, frame: Frame) -> Any | None:
    """What was assigned to an attribute of the object that a name stands for."""
    at: Frame | None = frame
    while at is not None:
        if path in at.names:
            return at.names[path]
        if path.partition(".")[0] in at.names:
            return None  # of another object than one of that name further out
        at = at.parent
    return None


def forget_named(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> None:
    """What `:=` binds in an expression that is not read, or around a comprehension, is unknown."""
    for inner in walk_kind(node, cst.NamedExpr):
        name = dotted(inner.target)
        frame.names[name] = x.unread(name)


_ASSIGNING = (
    *(cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr, cst.WithItem, cst.FunctionDef),
    *(cst.ClassDef, cst.MatchAs, cst.MatchStar, cst.ExceptHandler, cst.Call),
)


def assigned(node: cst.CSTNode) -> list[str]:
    """The names, attribute paths included, that a statement may assign."""
    found: dict[str, None] = {}
    for inner in walk_kind(node, *_ASSIGNING):
        match inner:
            case cst.AssignTarget() | cst.AnnAssign() | cst.AugAssign() | cst.For() | cst.NamedExpr():
                _names(inner.target, found)
            case cst.WithItem() if inner.asname is not None:
                _names(inner.asname.name, found)
            case cst.FunctionDef() | cst.ClassDef():
                found[inner.name.value] = None
            case cst.MatchAs() | cst.MatchStar() if inner.name is not None:
                found[inner.name.value] = None
            case cst.ExceptHandler() if inner.name is not None:
                _names(inner.name.name, found)
            case cst.Call(func=cst.Attribute(value=cst.Name(held), attr=cst.Name(method))) if (
                method in MUTATORS
            ):
                found[held] = None
    return list(found)


def _names(target: cst.CSTNode, found: dict[str, None]) -> None:
    match target:
        case cst.Name() | cst.Attribute():
            found[dotted(target)] = None
        case cst.Subscript():
            _names(target.value, found)
        case cst.Tuple() | cst.List():
            for element in target.elements:
                _names(element.value, found)


# ---- assignment --------------------------------------------------------------------------------------------


def assign_target(x: HostExecutor, target: cst.BaseExpression, value: Any, frame: Frame) -> bool:
    """Targets that kernels may not have: attributes, items, starred names."""
    if isinstance(target, cst.Name):
        if (frame.table.file, target.value) in x.events.rebound:  # functions around or inside find it
            sharing.hand_on(x, value)
        forget_inside(x, target.value, frame)
    elif isinstance(target, cst.Tuple | cst.List):
        value = _of_length(x, value, target)
        used_up(x, value, frame)
    match target:
        case cst.Name() if isinstance(value, Poison):
            frame.names[target.value] = x.unread(target.value)
        case cst.Attribute():
            _assign_attribute(x, target, value, frame)
        case cst.Subscript():
            _assign_item(x, target, value, frame)
        case cst.Tuple() | cst.List() if any(isinstance(e, cst.StarredElement) for e in target.elements):
            _unpack_starred(x, target, value, frame)
        case cst.Tuple() | cst.List() if isinstance(value, Tensor):
            unpack_unknown(x, target, frame, value)
        case cst.Tuple() | cst.List() if isinstance(value, Seq) and len(value.items) != len(target.elements):
            x.guard = E.FALSE  # Python raises
            unpack_unknown(x, target, frame)
        case _:
            return False
    return True


def _of_length(x: HostExecutor, value: Any, target: cst.Tuple | cst.List) -> Any:
    """Of two sequences the one that is as long as there are targets: of the other Python raises."""
    if not isinstance(value, Choice) or any(isinstance(e, cst.StarredElement) for e in target.elements):
        return value
    ways = (value.first, value.second)
    if not all(isinstance(way, Seq) for way in ways):
        return value
    fits = [len(way.items) == len(target.elements) for way in ways]
    if fits[0] == fits[1]:
        return value
    x.assume(value.cond if fits[0] else E.negate(value.cond))
    return ways[0] if fits[0] else ways[1]


def _assign_attribute(x: HostExecutor, target: cst.Attribute, value: Any, frame: Frame) -> None:
    of_context = x.context != "" and dotted(target.value) == x.context  # no tensor
    if target.attr.value in ("data", "shape", "strides") and not of_context:
        if not reshaping.can_follow(x, target, target.value, frame):
            x.stop(f"`.{target.attr.value}` of a tensor is assigned")
        sharing.hand_on(x, value)
        reshaping.changed(x, evaluate(x, target.value, frame), (value,), frame)
        return
    sharing.hand_on(x, value)
    holder = evaluate(x, target.value, frame)
    if isinstance(holder, Tensor) and holder.described:
        x.stop("a descriptor is changed")
    if isinstance(holder, Record):
        change(x, holder, Record({**holder.fields, target.attr.value: value}), frame)
        return
    attribute_stored(x, target.attr.value, frame)
    if isinstance(target.value, cst.Attribute) and target.value.attr.value == "__dict__":
        anything_changed(x, frame)
    if dotted(target):
        forget_inside(x, dotted(target), frame)
        frame.names[dotted(target)] = value


def _assign_item(x: HostExecutor, target: cst.Subscript, value: Any, frame: Frame) -> None:
    """`d[k] = v`: a tensor keeps its shape, a display with literal keys is followed, others are lost."""
    sharing.hand_on(x, value)
    name = dotted(target.value)
    owner = evaluate(x, target.value.value, frame) if isinstance(target.value, cst.Attribute) else None
    if isinstance(owner, Tensor) and owner.described:
        x.stop("a descriptor is changed")
    held = frame.find(name) if name else None
    if held is None and isinstance(target.value, cst.Name):
        kept = x.stored.setdefault((frame.table.file, name), {})
        kept[frame.table.span(target).start] = form_of(value)
    held = evaluate(x, target.value, frame) if held is None or isinstance(held, Choice) else held
    if isinstance(held, Table) and len(target.slice) == 1 and isinstance(target.slice[0].slice, cst.Index):
        key = literal(evaluate(x, target.slice[0].slice.value, frame))
        lost = sharing.unread_of(x, name or "dictionary", held, value)
        change(x, held, lost if key is None else Table({**held.items, key: value}), frame)
    elif isinstance(held, Dims) and len(target.slice) == 1 and isinstance(target.slice[0].slice, cst.Index):
        index = x.scalar(evaluate(x, target.slice[0].slice.value, frame), "axis")
        parts = None
        if isinstance(value, Num) and index.value is not None:
            parts = unknown_ranks.replaced(held.parts, index.value, x.scalar(value, "extent"))
        elif isinstance(value, Num):
            parts = unknown_ranks.replaced_somewhere(x, held.parts, index, x.scalar(value, "extent"))
        lost = x.unread(name or "list")
        change(x, held, lost if parts is None else unknown_ranks.shape_of_parts(parts, is_list=True), frame)
    elif isinstance(held, Seq) and (items := _replaced(x, held, target, value, frame)) is not None:
        change(x, held, items, frame)
    elif isinstance(held, Table | Seq | Dims):
        change(x, held, sharing.unread_of(x, name or "list", held, value), frame)
    elif isinstance(held, Tensor) or any(isinstance(part.slice, cst.Slice) for part in target.slice):
        elements_changed(x, (held,), certainly=True)
    else:
        item_stored(x, held, frame)


def _replaced(x: HostExecutor, held: Seq, target: cst.Subscript, value: Any, frame: Frame) -> Seq | None:
    """A list after `items[k] = value`; None where the text does not say which item that is."""
    index = target.slice[0].slice
    if len(target.slice) != 1 or not isinstance(index, cst.Index) or not held.is_list:
        return None
    k = literal(evaluate(x, index.value, frame))
    if not isinstance(k, int) or not -len(held.items) <= k < len(held.items):
        return None
    items = list(held.items)
    items[k] = value
    return Seq(tuple(items), True)


def delete(x: HostExecutor, target: cst.CSTNode, frame: Frame) -> None:
    """`del name, obj.attribute, items[k]`."""
    match target:
        case cst.Name(name):
            forget_inside(x, name, frame)
            frame.names.pop(name, None)
        case cst.Attribute(attr=cst.Name(name)):
            lose_objects(x, (evaluate(x, target.value, frame),), frame)
            attribute_stored(x, name, frame)
        case cst.Subscript():
            held = evaluate(x, target.value, frame)
            lose_objects(x, (held,), frame)
            item_stored(x, held, frame)
        case cst.Tuple() | cst.List():
            for element in target.elements:
                delete(x, element.value, frame)


def form_of(value: Any) -> Any:
    """What of a stored value is the same whenever it is stored: kernels, and how many items there are."""
    match value:
        case Function():
            return value
        case Seq() if not value.is_list:
            return Seq(tuple(form_of(item) for item in value.items))
        case _:
            return None


def of_form(x: HostExecutor, form: Any, text: str) -> Any:
    """A value of that form; all but kernels is unknown."""
    match form:
        case Function():
            return form
        case Seq():
            return Seq(tuple(of_form(x, item, f"{text}[{k}]") for k, item in enumerate(form.items)))
        case _:
            return Unknown(text, opaque=True)


def bind_starred(x: HostExecutor, function: Function, args: Arguments) -> Frame | None:
    """The frame of a call whose function takes `*args` or `**kwargs`; None if it takes neither."""
    params = function.node.params
    star = params.star_arg if isinstance(params.star_arg, cst.Param) else None
    rest = params.star_kwarg
    if star is None and rest is None:
        return None
    plain = [*params.posonly_params, *params.params]
    known = {p.name.value for p in (*plain, *params.kwonly_params)}
    extra = tuple(args.positional[len(plain) :])
    others = {k: v for k, v in args.keywords if k not in known}
    if (extra and star is None) or (others and rest is None):
        raise UnsupportedConstruct(f"call of `{function.name}` with more arguments than it takes")
    named = params.with_changes(star_arg=cst.MaybeSentinel.DEFAULT, star_kwarg=None)
    simple = Function(function.node.with_changes(params=named), function.table, function.closure)
    keywords = tuple((k, v) for k, v in args.keywords if k in known)
    frame = statements.bind_parameters(
        x, simple, type(args)(args.positional[: len(plain)], keywords, args.node, args.table)
    )
    if star is not None:
        alone = extra[0] if extra else None
        frame.names[star.name.value] = alone.value if isinstance(alone, Starred) else Seq(extra)
    if rest is not None:
        whole = UNKNOWN_KEYWORDS not in others
        frame.names[rest.name.value] = (
            Table(others) if whole else sharing.unread_of(x, rest.name.value, *others.values())
        )
    return frame


def bound(x: HostExecutor, function: Function, args: Arguments) -> Frame:
    """The frame of a call. Defaults are made once, when the function is: calls share them, and what an earlier
    call left in one that can be changed is not known."""
    frame = bind_starred(x, function, args) or statements.bind_parameters(x, function, args)
    params = function.node.params
    plain = (*params.posonly_params, *params.params)
    given = {p.name.value for p in plain[: len(args.positional)]} | {name for name, _ in args.keywords}
    for p in (*plain, *params.kwonly_params):
        name = p.name.value
        if p.default is None or name in given:
            continue
        if holds_mutable(frame.names[name]):
            frame.names[name] = x.unread(name)
        elif has_kind(p.default, cst.Call):
            made = sharing.kept(frame.names[name])
            frame.names[name] = x.defaults.setdefault((function.node, name), made)
    return frame


def _unpack_starred(x: HostExecutor, target: cst.Tuple | cst.List, value: Any, frame: Frame) -> None:
    """`*batch, n = x.shape`: the names after the star count from the end."""
    elements = target.elements
    star = next(k for k, e in enumerate(elements) if isinstance(e, cst.StarredElement))
    rest = dotted(elements[star].value) or "rest"
    for element, item in zip(elements, _starred(x, value, len(elements), star, rest).items, strict=True):
        statements.assign(x, element.value, item, frame)


def _starred(x: HostExecutor, value: Any, count: int, star: int, rest: str) -> Seq:
    """What each of `count` targets gets, of which one takes a list of all that the others leave."""
    if isinstance(value, Choice):
        ways = (lambda way=way: _starred(x, way, count, star, rest) for way in (value.first, value.second))
        merged: Seq = x.split(value.cond, *ways)
        return merged
    after = count - star - 1
    held: Any = None
    if isinstance(value, HostShape | Dims):
        parts = unknown_ranks.parts_of(x, value)
        left = None if parts is None else unknown_ranks.sliced(parts, star or None, -after or None)
        if parts is not None and left is not None:
            x.assume(E.le(count - 1, unknown_ranks.rank(parts)))  # else Python raises
            held = unknown_ranks.shape_of_parts(left, is_list=True)
    elif isinstance(value, Seq) and len(value.items) >= count - 1:
        stop = len(value.items) - after
        return Seq((*value.items[:star], Seq(value.items[star:stop], True), *value.items[stop:]))
    if held is None:
        held = sharing.unread_of(x, rest, value)
    items = (_item_of(x, value, k if k < star else k - count) for k in range(count) if k != star)
    found = list(items)
    return Seq((*found[:star], held, *found[star:]))


def _item_of(x: HostExecutor, value: Any, position: int) -> Any:
    try:
        return x.dialect.subscript(x, value, Num((), E.const(position), "int", None))
    except UnsupportedConstruct:
        return sharing.unread_of(x, "item", value)


def unpack_unknown(x: HostExecutor, target: cst.Tuple | cst.List, frame: Frame, value: Any = None) -> None:
    found: dict[str, None] = {}
    _names(target, found)
    for name in found:
        forget_inside(x, name, frame)
        frame.names[name] = sharing.unread_of(x, name, value)


def change(x: HostExecutor, held: Any, value: Any, frame: Frame) -> None:
    """A container or an object changes in place: all names of it here show the new value. What else holds it,
    other containers and the callers' names, is unknown from here on: on another path it may not have changed.
    """
    own = [name for name, other in frame.names.items() if other is held]
    for name in own:
        frame.names[name] = value
    lose_objects(x, (held,), frame, deep=False)
