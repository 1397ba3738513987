"""Who else may hold a tensor that host code allocates, and which operations give back what they are given.

A tensor that a function allocates is another than every tensor that its caller passes. That is no longer sure
once code that is not read has it, or an object that the caller holds as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host_values import Pair, Pieces, Split, Table, Tensor, named_in
from tilecheck.frontend.values import Choice, Frame, Function, Method, Record, Seq

if TYPE_CHECKING:
    from tilecheck.frontend.executor import Arguments
    from tilecheck.frontend.host import HostExecutor

CACHED = ("functools.lru_cache", "functools.cache")  # what they decorate returns one object many times


def hand_on(x: HostExecutor, *values: Any) -> None:
    """Other code may keep the tensors in `values`, those that functions among them close over included."""
    stack, seen = list(values), set[int]()
    while stack:
        match stack.pop():
            case Tensor() as t:
                x.handed_on.update(t.among or (t.storage,))
                x.exposed.update(t.among or (t.storage,))
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


def hand_on_named(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> None:
    """Code that is not read stands in `node`, and may keep what is named there."""
    hand_on(x, *named_in(node, frame))


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
