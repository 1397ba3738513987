"""Operations of `tilecheck.host`: handles that move into operations and come back.

The library itself orders work on its streams, or refuses it as it runs. What it cannot know before it runs is
what is read here: a handle that is used after it was moved, and an operation that is run twice.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tilecheck.frontend.host_programs.calls.launches import footprint_at
from tilecheck.frontend.host_programs.calls.streams import wait_stream
from tilecheck.frontend.host_programs.calls.tensors import compute, read_on_host
from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.kinds import as_stream, as_tensor, place_of, resolved
from tilecheck.ir import host_program as H
from tilecheck.ir.host_program import Place

PREFIX = "tilecheck.host."
_STREAM = "a stream of tilecheck.host"
_WORKS = ("fill", "full", "zeros", "arange")  # what allocates, or is given, memory and writes it


def function(m: Machine, name: str, a: Arguments) -> V.Value:
    """A call of a function of the library.

    Raises:
        Unread: it is not followed.
    """
    short = name.removeprefix(PREFIX)
    match short:
        case "own" | "share":
            return _handle(m, a, shared=short == "share")
        case "launch":
            return _launch(m, a)
        case "empty" | "full" | "zeros" | "arange":
            place = place_of(m, a.keywords.get("device")) or Place.DEVICE
            memory = m.allocate(a.node, m.target or short, place)
            return _operation(m, a, short, [V.Handle(memory)], writes=short in _WORKS)
        case "fill":
            return _operation(m, a, short, [_taken(m, a.get(0), a.node)], writes=True)
        case "value":
            return V.Operation(m.unique(m.target or "value"), result=a.get(0))
        case "zip":
            parts = [resolved(m, value) for value in a.positional]
            if not all(isinstance(part, V.Operation) for part in parts):
                raise m.unread(a.node, "what these operations do is not followed")
            return V.Operation(m.unique(m.target or "zip"), parts=parts)
        case "synchronize":
            m.join(a.node, name)
            return V.NONE
        case _:
            raise m.unread(a.node, "this operation of tilecheck.host is checked as it runs")


def _handle(m: Machine, a: Arguments, *, shared: bool) -> V.Value:
    given = resolved(m, a.get(0))
    if isinstance(given, V.Handle):
        return _shared(m, given, a.node) if shared else given
    tensor = as_tensor(m, given, a.node)
    if tensor is None:
        raise m.unread(a.node, "it is not known which array this is")
    return V.Handle(tensor, is_shared=shared)


def _shared(m: Machine, handle: V.Handle, node: cst.CSTNode) -> V.Handle:
    _move(m, node, handle, "a shared handle")
    return V.Handle(handle.tensor, is_shared=True, owner=handle)


def _move(m: Machine, node: cst.CSTNode, handle: V.Handle, into: str) -> None:
    m.act(H.Move(m.site(node), handle.tensor.memory, into))


def _taken(m: Machine, value: V.Value, node: cst.CSTNode) -> V.Handle:
    value = resolved(m, value)
    if isinstance(value, V.Handle):
        return value
    tensor = as_tensor(m, value, node)
    if tensor is None:
        raise m.unread(node, "it is not known which array this is")
    return V.Handle(tensor)


def _operation(m: Machine, a: Arguments, name: str, handles: list[V.Handle], *, writes: bool) -> V.Value:
    found = V.Operation(m.unique(m.target or name), result=handles[0])
    if writes:
        regions = [region for handle in handles for region in m.regions(handle.tensor)]
        found.work = (name, H.Footprint((), tuple(regions)))
        if name == "fill":
            _take(m, a.node, found, handles)
    return found


def _launch(m: Machine, a: Arguments) -> V.Value:
    """A launch: arrays that the kernel writes move into it."""
    kernel, given = resolved(m, a.get(0, "kernel")), resolved(m, a.get(2, "args"))
    if "dependent" in a.keywords:
        raise m.unread(a.node, "dependent launches of tilecheck.host are checked as they run")
    if not isinstance(kernel, V.Kernel) or not isinstance(given, V.Sequence):
        raise m.unread(a.node, "the kernel or its arguments are not in view")
    items = [resolved(m, item) for item in given.items]
    plain = [item.tensor if isinstance(item, V.Handle) else item for item in items]
    options = {name: value for name, value in a.keywords.items() if name not in ("kernel", "grid", "args")}
    grid = resolved(m, a.get(1, "grid"))
    footprint = footprint_at(m, kernel, Arguments(a.node, tuple(plain), options), grid)
    found = V.Operation(m.unique(m.target or kernel.definition.name), result=V.Sequence(items, is_tuple=True))
    found.work = (kernel.definition.name, footprint)
    written = {region.memory for region in footprint.writes}
    handles = [item for item in items if isinstance(item, V.Handle)]
    _take(m, a.node, found, [h for h in handles if h.tensor.memory in written])
    return found


def _take(m: Machine, node: cst.CSTNode, operation: V.Operation, handles: list[V.Handle]) -> None:
    for handle in handles:
        _move(m, node, handle, operation.name)
        operation.taken.append(handle)


# ---- methods -----------------------------------------------------------------------------------------------


def handle_method(m: Machine, handle: V.Handle, name: str, a: Arguments) -> V.Value:
    """A call of a method of a handle."""
    match name:
        case "share":
            return _shared(m, handle, a.node)
        case "unshare" if handle.owner is not None:
            m.act(H.Back(m.site(a.node), handle.tensor.memory))
            return handle.owner
        case "clone":
            return handle
        case "tensor":
            wait_stream(m, a.node, m.stream, _STREAM)
            compute(m, a.node, "tensor", [handle.tensor])
            return handle.tensor
        case "tolist" | "item":
            wait_stream(m, a.node, m.stream, _STREAM)
            read_on_host(m, a.node, name, handle.tensor)
            return V.Unknown(m.unique(f"{handle.tensor.memory}.{name}()"), given=False, plain=True)
        case _:
            raise m.unread(a.node, "this use of a handle is checked as it runs")


def operation_method(m: Machine, operation: V.Operation, name: str, a: Arguments) -> V.Value:
    """A call of a method of an operation."""
    match name:
        case "submit" | "sync" | "sync_on":
            given = a.get(0, "stream") if name != "sync" else None
            stream = None if given is None else as_stream(m, given, a.node)
            on = _STREAM if stream is None else stream.name
            value = _run(m, operation, a.node, on)
            if name != "submit":
                m.join(a.node, name, stream=on)
            return value
        case "shared":
            operation.is_once = True
            return operation
        case "then" | "map":
            function = a.get(0)
            _use_up(m, operation, a.node)
            return V.Operation(m.unique(name), parts=[operation], follows=(name, function))
        case "cancel":
            _give_back(m, operation, a.node)
            return V.NONE
        case _:
            raise m.unread(a.node, "this use of an operation is checked as it runs")


def _use_up(m: Machine, operation: V.Operation, node: cst.CSTNode) -> None:
    """An operation is used once, unless it is shared: it moves away like memory."""
    if operation.is_once:
        return
    if operation.name not in m.memories:
        m.memories[operation.name] = H.Memory(operation.name, m.site(node), Place.PAGEABLE)
    m.act(H.Move(m.site(node), operation.name, "its run"))


def _give_back(m: Machine, operation: V.Operation, node: cst.CSTNode) -> None:
    for handle in operation.taken:
        m.act(H.Back(m.site(node), handle.tensor.memory))
    operation.taken.clear()


def _run(m: Machine, operation: V.Operation, node: cst.CSTNode, stream: str, *, inner: bool = False) -> V.Value:
    """Enqueue an operation and its parts on one stream; what it gives."""
    if operation.is_once and operation.has_run:
        return operation.result
    if not inner:
        _use_up(m, operation, node)
        wait_stream(m, node, stream, m.stream)
    operation.has_run = True
    results = [_run(m, part, node, stream, inner=True) for part in operation.parts]
    _give_back(m, operation, node)
    if operation.work is not None:
        name, footprint = operation.work
        m.enqueue(node, name, footprint.reads, footprint.writes, stream=stream)
    if operation.follows is not None:
        return _followed(m, operation.follows, results[0], node, stream)
    if operation.parts:
        operation.result = V.Sequence(results, is_tuple=True)
    return operation.result


def _followed(
    m: Machine, follows: tuple[str, V.Value], value: V.Value, node: cst.CSTNode, stream: str
) -> V.Value:
    kind, function = follows
    if not isinstance(function, V.Function):
        raise m.unread(node, "what follows is not in view")
    found = m.call_function(m, function, Arguments(node, (value,)))
    if kind == "map":
        return found
    if not isinstance(found, V.Operation):
        raise m.unread(node, "which operation follows is not followed")
    return _run(m, found, node, stream, inner=True)


METHODS: dict[type, Callable[..., V.Value]] = {V.Handle: handle_method, V.Operation: operation_method}
