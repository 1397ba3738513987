"""Calls: which function is called, and what code that is not in view may do."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from tilecheck.frontend.host_programs.calls import host_library, python, streams, torch, torch_names
from tilecheck.frontend.host_programs.calls.launches import launch, launch_by_call, unread_launch
from tilecheck.frontend.host_programs.calls.tensors import unknown_work
from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.execute.code_texts import names_in, once
from tilecheck.frontend.host_programs.knowledge import PathEnds
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import objects
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.kinds import (
    as_event,
    as_stream,
    as_tensor,
    memory_behind,
    resolved,
)
from tilecheck.frontend.host_programs.values.undetermined import learn_tensor

_LAUNCHERS = ("cuda.tile.launch", "cuda.tile._execution.launch", "tilecheck.launch")
_WRAPPERS = (
    "tilecheck.verified",
    "torch.compile",
    "triton.testing.perf_report",
    "torch.utils.dlpack.from_dlpack",
)


def call(m: Machine, function: V.Value, a: Arguments) -> V.Value:
    """What a call gives."""
    match function:
        case V.Library(name=name):
            return _library(m, name, a)
        case V.Function():
            return m.call_function(m, function, a)
        case V.Class() | V.Object():
            return m.call_object(m, function, a)
        case V.Gridded(kernel=V.Kernel() as kernel, grid=grid):
            return launch(m, kernel, a, grid)
        case V.Gridded(kernel=V.Function() as kernel):
            return unread_launch(m, kernel.name, a)
        case V.Kernel():
            return unread_launch(m, function.definition.name, a)
        case V.Partial(given=given):
            first, *rest = given.positional
            merged = (*rest, *a.positional), given.keywords | a.keywords, (*given.more, *a.more)
            return call(m, first, Arguments(a.node, *merged))
        case V.Method(owner=owner, name=name):
            return _method(m, owner, name, a)
        case V.Const(value=None):
            raise PathEnds("None is called")
        case V.Unknown() | V.Imported() if _is_gridded(a.node):
            return unread_launch(m, function.name, a)
        case V.Unknown(name=name):
            return unknown_call(m, name, a, owner=function)
        case V.Imported(name=name):
            return unknown_call(m, name, a)
        case V.Tensor(memory=memory):
            return unknown_call(m, memory, replace(a, more=(*a.more, function)))
        case _:
            return unknown_call(m, "a value", a)


def _is_gridded(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Subscript)


def _library(m: Machine, name: str, a: Arguments) -> V.Value:
    if name in streams.FUNCTIONS:
        return streams.FUNCTIONS[name](m, a)
    if name in _LAUNCHERS:
        return launch_by_call(m, a)
    if name in _WRAPPERS and a.positional:
        return a.positional[0]
    if name.startswith(host_library.PREFIX):
        return host_library.function(m, name, a)
    if name.startswith("builtins."):
        found = python.builtin(m, name.removeprefix("builtins."), a)
        return unknown_call(m, name.removeprefix("builtins."), a) if found is None else found
    found = python.standard(m, name, a)
    if found is None:
        found = torch.function(m, name, a)
    if found is not None:
        return found
    if name.startswith(torch_names.HARMLESS_CONTEXTS):
        return V.Context("nothing")
    if name.startswith((*torch_names.PLAIN_PREFIXES, *torch_names.HARMLESS_PREFIXES)):
        return V.Unknown(m.unique(f"{name}()"), given=False, plain=True)
    if name.startswith(torch_names.CONCURRENT):
        raise m.unread(a.node, "what this does goes on behind the call")
    if name == "functools.partial" and a.positional:
        return V.Partial(a)
    if name.endswith(("Stream", "Event", "Graph", "stream", "graph")):
        raise m.unread(a.node, "streams and graphs of this library are not read")
    given = unknown_call(m, name.rpartition(".")[2], a)
    if isinstance(given, V.Unknown) and objects.only_reads(name, a):
        m.readers.add(given.name)
    return given


# ---- methods -----------------------------------------------------------------------------------------------

_OF_STREAMS = frozenset("wait_stream wait_event record_event".split())
_OF_DEVICE_MODULES = frozenset(
    "Stream ExternalStream CUDAGraph set_stream current_stream default_stream".split()
)
_OF_EVENTS = frozenset("record query elapsed_time".split())
_OF_TENSORS = frozenset(
    "record_stream contiguous view reshape transpose permute unsqueeze squeeze flatten narrow chunk expand "
    "clone detach item tolist numpy data_ptr stride numel element_size matmul mm softmax half float bfloat16 "
    "cpu cuda to pin_memory is_contiguous size dim nonzero masked_fill index_select masked_select "
    "backward".split()
)
_MODULES = ("model", "module", "net", "layer", "optimizer", "engine")


def _method(m: Machine, owner: V.Value, name: str, a: Arguments) -> V.Value:
    match owner:
        case V.Stream():
            return streams.stream_method(m, owner, name, a)
        case V.Event():
            return streams.event_method(m, owner, name, a)
        case V.Graph():
            return streams.graph_method(m, owner, name, a)
        case V.Tensor():
            return torch.method(m, owner, name, a)
        case V.Handle() | V.Operation():
            return host_library.METHODS[type(owner)](m, owner, name, a)
        case V.Sequence() | V.Mapping():
            return python.container_method(m, owner, name, a)
        case V.Method(owner=V.Tensor()):  # of a shape, a type, a device
            return V.Unknown(m.unique(name), given=False, plain=True)
        case V.Kernel() | V.Function() | V.Gridded():
            return _of_kernel(m, owner, name, a)
        case V.Const():
            return V.Unknown(m.unique(name), given=False, plain=True)
        case V.Context(kind="stream" | "graph" | "nothing") if name == "__enter__":
            m.entered.append((owner, streams.enter(m, a.node, owner)))
            return owner
        case V.Context() if name == "__exit__" and m.entered and m.entered[-1][0] == owner:
            m.entered.pop()[1]()
            return V.NONE
        case _:
            return unknown_call(m, name, a)


def _of_kernel(m: Machine, owner: V.Value, name: str, a: Arguments) -> V.Value:
    """`kernel.run(..., grid=...)` is not followed; `kernel.warmup(...)` only compiles."""
    if name in ("warmup", "preload", "cache_clear", "replace_hints", "with_options"):
        return owner
    if isinstance(owner, V.Kernel):
        return unread_launch(m, owner.definition.name, a)
    return unknown_call(m, name, a)


def method_of_unknown(m: Machine, owner: V.Unknown, name: str, a: Arguments) -> V.Value:
    """A call of a method of an unknown value: its name may say what the value is."""
    if name in _OF_DEVICE_MODULES:
        raise m.unread(a.node, "which streams and graphs this gives is not known")
    if not owner.plain:
        if name in _OF_STREAMS or (name == "synchronize" and "ev" not in owner.name.lower()):
            stream = as_stream(m, owner, a.node)
            return V.NONE if stream is None else streams.stream_method(m, stream, name, a)
        is_event = "ev" in owner.name.lower() and name in ("wait", "synchronize")
        if (name in _OF_EVENTS and owner.given) or is_event:
            return streams.event_method(m, as_event(m, owner, a.node), name, a)
        if name in ("replay", "capture_begin", "capture_end"):
            raise m.unread(a.node, "what this graph holds is not in view")
        in_place = name.endswith("_") and not name.endswith("__") and not name.startswith("_")
        is_module = owner.name in m.modules or any(word in owner.name.lower() for word in _MODULES)
        if (name in _OF_TENSORS and not is_module) or in_place or name.startswith("new_"):
            learn_tensor(m, owner)
            tensor = as_tensor(m, owner, a.node)
            if tensor is not None:
                return torch.method(m, tensor, name, a)
        if name in objects.GROWING:
            for value in a.every():  # it holds them from here on
                m.stored[m.unique(objects.anywhere(owner))] = value
        if name in objects.LISTING:
            return V.NONE
        if name in objects.TAKING and objects.kept_in(m, owner):
            return objects.taken(m, owner, m.fresh(m.target or f"{name}()", given=True))
    return unknown_call(m, name, a, owner=owner, method=name)


# ---- code that is not in view ------------------------------------------------------------------------------


def unknown_call(
    m: Machine, name: str, a: Arguments, *, owner: V.Unknown | None = None, method: str = ""
) -> V.Value:
    """A call of code that is not in view: of an object (`owner`) or of a `method` of it, or of a function.

    It may read and write the tensors that it is given, on the current stream; what it leaves on other streams
    it orders before that, as every function here must. It may do anything with a stream that it is given.
    It also touches what the object holds.

    Raises:
        Unread: it is given a stream, an event, a graph, or code that uses them, or is told not to wait.
    """
    tensors: list[V.Tensor] = []
    if any(option in a.keywords for option in ("launch_pdl", "programmatic_dependent_launch")):
        raise m.unread(a.node, "what this launches to depend on work before it is not in view")
    if a.keywords.get("async_op", V.Const(value=False)) != V.Const(value=False):
        raise m.unread(a.node, "what this does goes on behind the call")
    for value in a.every():
        for part in _parts(m, value):
            if isinstance(part, (V.Stream, V.Event, V.Graph, V.Pool, V.Context, V.Operation)):
                raise m.unread(a.node, "code that is not in view gets a stream, an event or a graph")
            if isinstance(part, V.Function) and m.is_relevant(part.node):
                raise m.unread(a.node, "code that is not in view gets a function that uses streams")
            found = memory_behind(m, part, a.node)
            tensors += [] if found is None or found in tensors else [found]
    site = m.site(a.node)
    gives = bool(tensors) or site in m.knowledge.tensors
    own = ([], []) if owner is None else objects.held(m, owner, a.node, method)
    only_reads = owner is not None and owner.name in m.readers and not method
    given = unknown_work(m, a.node, name, tensors, gives=gives, held=own, only_reads=only_reads)
    result = V.Unknown(m.unique(f"{name}()"), given=False, site=site) if given is None else given
    if owner is not None:
        m.sources[result.memory if isinstance(result, V.Tensor) else result.name] = owner.name
    return result


def _parts(m: Machine, value: V.Value) -> list[V.Value]:
    """A value and what it holds; of a function, the values of the names that its text mentions."""
    found: list[V.Value] = []
    for part in (V.NONE,) if isinstance(value, V.Library) else V.contents(value, set()):
        found.append(resolved(m, part))
        if isinstance(part, V.Function) and part.closure is not None:
            scopes = [(word, part.closure.find(word)) for word in sorted(once(m, names_in, part.node))]
            found += [resolved(m, scope.names[word]) for word, scope in scopes if scope is not None]
    return [part for part in found if not isinstance(part, V.Scope)]
