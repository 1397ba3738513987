"""Who else may hold a tensor that host code allocates, and which operations give back what they are given.

A tensor that a function allocates is another than every tensor that its caller passes. That is no longer sure
once code that is not read has it, or an object that the caller holds as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host.values import Pair, Pieces, Split, Table, Tensor, Unknown, named_in
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.text.syntax import walk_kind
from tilecheck.frontend.values.values import Choice, Frame, Function, Method, Record, Seq
from tilecheck.ir.sharing import wholes

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor

CACHED = ("functools.lru_cache", "functools.cache")  # what they decorate returns one object many times


def hand_on(x: HostExecutor, *values: Any) -> None:
    """Other code may keep and write the tensors in `values`, with those that functions in it close over."""
    storages = set(storages_in(values))
    x.handed_on |= storages
    x.exposed |= storages


def hand_on_named(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> None:
    """Code that is not read stands in `node`, and may keep what is named there."""
    hand_on(x, *named_in(node, frame))


def flows(x: HostExecutor, loop: cst.CSTNode, frame: Frame) -> None:
    """A variable that a loop assigns may hold, in or after it, any tensor that one of these is made of."""
    names: set[str] = set()
    held: list[Any] = []
    for node in walk_kind(loop, cst.AssignTarget, cst.For, cst.NamedExpr, cst.AnnAssign, cst.AugAssign):
        match node:
            case cst.AssignTarget(target=target) | cst.For(target=target) | cst.NamedExpr(target=target):
                names.update(n.value for n in walk_kind(target, cst.Name))
                names.add(dotted(target))
            case cst.AnnAssign(target=target) | cst.AugAssign(target=target):
                names.add(dotted(target))
    for name, roots in _copies(loop).items():
        x.may_view.setdefault(name, set()).update(storages_in(frame.find(r) for r in roots))
    if names:
        held = [v for v in named_in(loop, frame) if not isinstance(v, Function)]
        storages = set(storages_in(held))
        for name in names - {""}:
            x.may_hold.setdefault(name, set()).update(storages)


def _copies(loop: cst.CSTNode) -> dict[str, set[str]]:
    """The variables that a loop makes others, or views of others: `a = b`, `a = b[0]`. Those that change places
    stay apart."""
    found: dict[str, set[str]] = {}
    for node in walk_kind(loop, cst.Assign):
        for target in node.targets:
            pairs = _pairs(target.target, node.value)
            if {name for name, _ in pairs} != {
                value.value for _, value in pairs if isinstance(value, cst.Name)
            }:
                for name, value in pairs:
                    found.setdefault(name, set()).update(_root(value))
    for _ in found:
        for roots in found.values():
            roots.update(*(found[r] for r in tuple(roots) if r in found))
    return found


def _pairs(target: cst.BaseExpression, value: cst.BaseExpression) -> list[tuple[str, cst.BaseExpression]]:
    """The names that an assignment binds, with what each gets."""
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        both = zip(target.elements, value.elements, strict=False)
        return [(t.value.value, v.value) for t, v in both if isinstance(t.value, cst.Name)]
    return [(target.value, value)] if isinstance(target, cst.Name) else []


def _root(value: cst.BaseExpression) -> set[str]:
    """The variable that a value is, or may be a view of."""
    node = value
    while True:
        match node:
            case (
                cst.Attribute(value=inner)
                | cst.Subscript(value=inner)
                | cst.Call(func=cst.Attribute(value=inner))
            ):
                node = inner
            case cst.Name(name):
                return {name}
            case _:
                return set()


def unread_of(x: HostExecutor, text: str, *values: Any) -> Unknown:
    """An unread value that may be, or hold, what `values` hold."""
    found = x.unread(text)
    given_back(x, found.name, *values)
    return found


def given_back(x: HostExecutor, name: str, *values: Any, in_view: bool = True) -> None:
    """A value that is not read may be, or hold, what `values` hold, and what these may be: by the text that is
    `in_view`, or as the code that computed it was given them."""
    storages = frozenset(storages_in(values)) - {name}
    sources = [source for s in storages for source in _sources(x, s)]
    for known in (x.givers, x.may_be) if in_view else (x.givers,):
        further = (known.get(source, frozenset()) for source in sources)
        known[name] = known.get(name, frozenset()).union(storages, *further)
    x.origins[name] = x.origins.get(name, frozenset()) | x.givers[name]


def storages_in(values: Iterable[Any]) -> Iterator[str]:
    """The storages of the tensors in values, those that functions among them close over included."""
    stack, seen = list(values), set[int]()
    while stack:
        match stack.pop():
            case Tensor() as t:
                yield from t.among or (t.storage,)
            case Unknown() as unknown:
                yield unknown.name
            case Seq() as items:
                stack += items.items
            case Split() | Pieces() | Pair() as several:
                stack += tensors_of(several)
            case Table() as table:
                stack += table.items.values()
            case Record() as record:
                stack += record.fields.values()
            case Choice() as choice:
                stack += [choice.first, choice.second]
            case Method() as method:
                stack.append(method.value)
            case Function() as function if function.closure is not None and id(function.node) not in seen:
                seen.add(id(function.node))
                stack += named_in(function.node, function.closure)


def tensors_of(value: Split | Pieces | Pair) -> list[Tensor]:
    """The tensors that several results of one operation are, or are views of."""
    match value:
        case Split():
            return [value.tensor]
        case Pieces():
            return list(value.items)
        case Pair():
            return [value.values, value.indices]


def reachable(x: HostExecutor, storages: Iterable[str]) -> tuple[str, ...]:
    """Further storages that a tensor with one of these may share: those that the code that computed it, or the
    object that it lies in, could reach."""
    found: dict[str, None] = {}
    for storage in storages:
        found.update(dict.fromkeys(sorted(x.fields.get(storage, ()))))
        for name in _sources(x, storage):
            found.update(dict.fromkeys(sorted(x.origins[name])))
    return tuple(name for name in found if name not in storages)


def givers(x: HostExecutor, storages: Iterable[str]) -> tuple[str, ...]:
    """What unread code was given that computed a tensor with one of these storages."""
    sources = (name for storage in storages for name in _sources(x, storage))
    return tuple(sorted({s for name in sources for s in x.givers.get(name, ())}.difference(storages)))


def may_be(x: HostExecutor, storages: Iterable[str]) -> tuple[str, ...]:
    """Storages that a tensor with one of these may have by the text, and unread values that it lies in."""
    found: set[str] = set()
    for storage in storages:
        found |= x.viewed_fields.get(storage, frozenset())
        for name in _sources(x, storage):
            found |= x.may_be.get(name, frozenset())
            found |= {name} - x.allocated
    return tuple(sorted(found.difference(storages)))


def is_opaque(x: HostExecutor, storage: str) -> bool:
    """Whether code that is not read computed a storage, or an object that it lies in."""
    return storage not in x.allocated and any(name not in x.allocated for name in _sources(x, storage))


def _sources(x: HostExecutor, storage: str) -> list[str]:
    """The unread values that a storage is, or lies in."""
    if storage in x.origins:
        return [storage]
    found = {name for name in wholes(storage) if name in x.origins}
    return list(found) if len(found) < 2 else [name for name in x.origins if name in found]


def kept(value: Any) -> Any:
    """A value that is made once and found again: its tensors are new to nobody."""
    match value:
        case Tensor():
            return replace(value, fresh=False)
        case Seq():
            return Seq(tuple(map(kept, value.items)), value.is_list)
        case Split():
            return replace(value, tensor=kept(value.tensor))
        case Pieces():
            return Pieces(tuple(map(kept, value.items)))
        case Pair():
            return Pair(kept(value.values), kept(value.indices))
        case Table():
            return Table({key: kept(item) for key, item in value.items.items()})
        case Record():
            return Record({key: kept(item) for key, item in value.fields.items()})
        case Choice():
            return Choice(value.cond, kept(value.first), kept(value.second))
        case _:
            return value


def into(
    x: HostExecutor, out: Any, handler: Callable[[HostExecutor, Arguments], Any] | None, args: Arguments
) -> Any:
    """`torch.zeros(n, out=t)`: `t`, in the shape of what is computed where that is known.

    Raises:
        UnsupportedConstruct: `out` is no tensor.
    """
    t = x.tensor(out)
    if any(size.value == 0 for size in t.shape or ()):
        x.stop("`out=` changes a tensor's shape")
    found = None
    if handler is not None:
        rest = tuple((k, v) for k, v in args.keywords if k != "out")
        try:
            found = handler(x, type(args)(args.positional, rest, args.node, args.table))
        except UnsupportedConstruct:
            found = None
    if not isinstance(found, Tensor) or found.shape is None or found.shape == t.shape:
        return t
    own = replace(t, shape=found.shape, shape_of="", strides=None, strides_of="", contiguous=False)
    return replace(own, dense=False, expanded=False, span_of="")
