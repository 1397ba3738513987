"""What a value is, decided by what is done with it: a tensor, a stream, an event, a number, a truth."""

from __future__ import annotations

from typing import Any

import libcst as cst

from tilecheck.frontend.host_programs.calls.tensors import read_on_host
from tilecheck.frontend.host_programs.knowledge import Relearn
from tilecheck.frontend.host_programs.loops.round_conditions import holds, origin_of
from tilecheck.frontend.host_programs.machine import CURRENT, Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.undetermined import learn_number
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol
from tilecheck.ir.host_program import Place


def as_tensor(m: Machine, value: V.Value, node: cst.CSTNode) -> V.Tensor | None:
    """The value as a tensor; None if it is none.

    Raises:
        Relearn: it is the result of a call that was not taken to give a tensor.
    """
    if isinstance(value, V.Tensor):
        return value
    value = _of_module(value)
    if not isinstance(value, V.Unknown) or value.plain or value.name in m.modules:
        return None
    if value.name not in m.given:
        if value.site is not None:
            m.knowledge.tensors.add(value.site)
            raise Relearn
        m.given[value.name] = m.handed_in(value.name, node)
    found = m.given[value.name]
    return found if isinstance(found, V.Tensor) else None


def _of_module(value: V.Value) -> V.Value:
    """A value of another module: one that the caller gives, for what is read here."""
    return V.Unknown(value.name) if isinstance(value, V.Imported) else value


def memory_behind(m: Machine, value: V.Value, node: cst.CSTNode) -> V.Tensor | None:
    """The memory that a value handed to unread code may be. It may be no tensor: nothing else is said of it."""
    if isinstance(value, V.Unknown) and value.given and not value.plain and value.name not in m.given:
        return m.handed_in(value.name, node)
    return as_tensor(m, value, node) if isinstance(value, V.Tensor | V.Unknown) else None


def as_stream(m: Machine, value: V.Value, node: cst.CSTNode) -> V.Stream | None:
    """The value as a stream; None for `None`.

    A parameter may be the stream that was current when the function was entered: both are paths.

    Raises:
        Unread: it is not known which stream it is.
    """
    if isinstance(value, V.Stream):
        return value
    value = _of_module(value)
    if value == V.NONE:
        return None
    if isinstance(value, V.Unknown) and not value.plain:
        if value.name not in m.given and value.given:
            may_be_current = value.name in m.parameters
            same = may_be_current and m.choose(("is current", value.name), 2) == 1
            m.given[value.name] = V.Stream(CURRENT if same else value.name)
        found = m.given.get(value.name)
        if isinstance(found, V.Stream):
            return found
    raise m.unread(node, "it is not known which stream this is")


def as_event(m: Machine, value: V.Value, node: cst.CSTNode) -> V.Event:
    """The value as an event.

    Raises:
        Unread: it is not known which event it is.
    """
    if isinstance(value, V.Event):
        return value
    value = _of_module(value)
    if isinstance(value, V.Unknown) and not value.plain:
        if value.name not in m.given and value.given:
            m.given[value.name] = V.Event(value.name)
        found = m.given.get(value.name)
        if isinstance(found, V.Event):
            return found
    raise m.unread(node, "it is not known which event this is")


def resolved(m: Machine, value: V.Value) -> V.Value:
    """What an unknown value was found to be, or itself."""
    if isinstance(value, V.Unknown):
        return m.given.get(value.name, value)
    return value


def as_number(m: Machine, value: V.Value) -> V.Number | None:
    """The value as an integer; None if it is none. An unknown one gets a symbol of its own."""
    if isinstance(value, V.Number):
        return value
    if isinstance(value, V.Tensor):
        learn_number(m, value)
    value = _of_module(value)
    if isinstance(value, V.Const) and isinstance(value.value, bool):
        return V.number(int(value.value))
    if isinstance(value, V.Unknown) and value.name not in m.given:
        return V.Number(E.sym(Symbol(value.name, Kind.HOST)))
    return None


def truth(m: Machine, value: V.Value, node: cst.CSTNode) -> bool:
    """Whether Python takes the value for true; what is open is chosen, and the same choice made again."""
    value = resolved(m, value)
    match value:
        case V.Const(value=constant):
            return bool(constant)
        case V.Number(expr=expr):
            origin = origin_of(value)
            return holds(m, E.ne(expr, 0), value, f"{origin} NotEqual 0" if origin else "")
        case V.Sequence(items=items) | V.Mapping(items=items):
            return bool(items)
        case V.Unknown(name=name):
            if name in m.tests and ("truth", name) not in m.decided:
                m.decided["truth", name] = 0 if m.tests[name]() else 1
            return m.choose(("truth", name), 2) == 0
        case V.Tensor(perhaps=perhaps):
            learn_number(m, value)
            if not perhaps:  # the host waits only if it is one
                read_on_host(m, node, "bool", value)
            return m.choose(None, 2) == 0
        case _:
            return True


def is_none(m: Machine, value: V.Value) -> bool:
    """Whether the value is `None`: for an unknown one both are paths."""
    value = resolved(m, value)
    if isinstance(value, V.Unknown):
        none = m.choose(("none", value.name), 2) == 1
        if none:
            m.given[value.name] = V.NONE
        return none
    return value == V.NONE if isinstance(value, V.Const) else False


def key_of(value: V.Value) -> object:
    """What tells a key of a dictionary, or a compared value, from others by its text."""
    match value:
        case V.Const(value=constant):
            return constant if isinstance(constant, (str, bool, float, bytes, type(None))) else repr(constant)
        case V.Number(expr=expr):
            return expr
        case V.Unknown(name=name):
            return ("unknown", name)
        case V.Tensor(memory=memory):
            return ("tensor", memory)
        case V.Stream() | V.Event() | V.Graph() | V.Library() | V.Imported():
            name = value.name
            return (type(value).__name__, name)
        case V.Sequence(items=items, is_tuple=True):
            return tuple(map(key_of, items))
        case V.Method(owner=owner, name=name):
            return ("method", key_of(owner), name)
        case _:
            return ("object", value)


SEVERAL_DEVICES = "streams of several devices are not told apart"


def note_device(m: Machine, device: V.Value) -> None:
    """The text names a device by its index."""
    match device:
        case V.Const(value=str(name)) if name.startswith("cuda:"):
            m.devices[name.removeprefix("cuda:")] = None
        case V.Number(expr=expr) if expr.value is not None:
            m.devices[str(expr.value)] = None


def place_of(m: Machine, device: Any) -> Place | None:
    """Where `device=` puts a tensor; None if it is not given. An unknown device is the GPU."""
    device = resolved(m, device)
    note_device(m, device)
    match device:
        case None | V.Const(value=None):
            return None
        case V.Const(value=str(text)):
            return Place.PAGEABLE if text.startswith("cpu") else Place.DEVICE
        case V.Library(name=name):
            return Place.PAGEABLE if name == "device:cpu" else Place.DEVICE
        case V.Method(owner=V.Tensor(memory=memory), name="device"):
            return m.place(memory) if m.place(memory) is Place.DEVICE else Place.PAGEABLE
        case _:
            return Place.DEVICE
