"""Streams, events and graphs of PyTorch: what each call adds to the host program."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.knowledge import OpenCapture, Relearn
from tilecheck.frontend.host_programs.machine import CURRENT, Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.graph_captures import note_replay
from tilecheck.frontend.host_programs.values.kinds import (
    SEVERAL_DEVICES,
    as_event,
    as_stream,
    note_device,
    resolved,
)
from tilecheck.ir import host_program as H

DEFAULT = "default"  # the default stream, where the function may be entered on another
_CAPTURE = "the capture stream"  # which `torch.cuda.graph` enters, one for all graphs

_Function = Callable[[Machine, Arguments], V.Value]


def wait_event(m: Machine, node: cst.CSTNode, stream: str, event: str) -> None:
    m.act(H.Await(m.site(node), stream, event))


def wait_stream(m: Machine, node: cst.CSTNode, stream: str, other: str) -> None:
    """A stream waits for what another holds now: torch records an event of its own and awaits it."""
    event = m.unique(f"{stream} after {other}")
    m.act(H.Record(m.site(node), event, other))
    wait_event(m, node, stream, event)


def note_given_events(m: Machine, begin: int) -> None:
    """Events that the caller hands to the call that begins with an action mark what its stream held then."""
    given = {value.name for value in m.given.values() if isinstance(value, V.Event)}
    marked: dict[str, H.Action] = {}
    for action in m.actions[begin:]:
        if isinstance(action, H.Record | H.Await | H.Join) and action.event in given:
            marked.setdefault(action.event, action)
    waited = [(name, action.site) for name, action in marked.items() if not isinstance(action, H.Record)]
    m.actions[begin:begin] = [H.Record(site, name, m.caller) for name, site in waited]


# ---- functions ---------------------------------------------------------------------------------------------


def _note_device(m: Machine, a: Arguments) -> None:
    """Raises: Unread, if this is of another device than what came before: all streams count as of one."""
    note_device(m, resolved(m, a.get(0, "device")))
    if len(m.devices) > 1:
        raise m.unread(a.node, SEVERAL_DEVICES)


def _stream(m: Machine, a: Arguments) -> V.Value:
    _note_device(m, a)
    return V.Stream(m.unique(m.target or "stream"))


def _event(m: Machine, a: Arguments) -> V.Value:
    return V.Event(m.unique(m.target or "event"))


def _graph(m: Machine, a: Arguments) -> V.Value:
    found = V.Graph(m.unique(m.target or "graph"))
    m.live_graphs[found.name] = None
    return found


def _current(m: Machine, a: Arguments) -> V.Value:
    _note_device(m, a)
    return V.Stream(m.stream)


def _default(m: Machine, a: Arguments) -> V.Value:
    """Module code is entered on the default stream; a function may be entered on another: both are paths."""
    _note_device(m, a)
    same = m.enters_on_default or m.choose("default stream", 2) == 0
    return V.Stream(CURRENT if same else DEFAULT)


def _set_stream(m: Machine, a: Arguments) -> V.Value:
    found = as_stream(m, a.get(0, "stream"), a.node)
    m.stream = m.stream if found is None else found.name
    return V.NONE


def _synchronize(m: Machine, a: Arguments) -> V.Value:
    _note_device(m, a)
    m.join(a.node, "torch.cuda.synchronize")
    return V.NONE


def _device_module(m: Machine, a: Arguments) -> V.Value:
    """`torch.cuda`, or the module of another accelerator, whose streams have the same rules."""
    _note_device(m, a)
    return V.Library("torch.cuda")


def _pool_handle(m: Machine, a: Arguments) -> V.Value:
    return V.Pool(m.unique(m.target or "pool"))


def _capturing(m: Machine, a: Arguments) -> V.Value:
    return V.Const(value=bool(m.captures))


def _unread(m: Machine, a: Arguments) -> V.Value:
    raise m.unread(a.node, "what this captures or runs on is not read")


def _stream_context(m: Machine, a: Arguments) -> V.Value:
    return V.Context("stream", (a.get(0, "stream"),))


def _device_context(m: Machine, a: Arguments) -> V.Value:
    _note_device(m, a)
    return V.Context("nothing")


def _graph_context(m: Machine, a: Arguments) -> V.Value:
    return V.Context("graph", (a.get(0, "cuda_graph"), a.get(1, "pool"), a.get(2, "stream")))


FUNCTIONS: dict[str, _Function] = {
    "torch.cuda.Stream": _stream,
    "torch.Stream": _stream,
    "torch.cuda.Event": _event,
    "torch.Event": _event,
    "torch.cuda.CUDAGraph": _graph,
    "torch.cuda.current_stream": _current,
    "torch.accelerator.current_stream": _current,
    "torch.cuda.default_stream": _default,
    "torch.cuda.set_stream": _set_stream,
    "torch.cuda.synchronize": _synchronize,
    "torch.accelerator.synchronize": _synchronize,
    "torch.get_device_module": _device_module,
    "torch.cuda.graph_pool_handle": _pool_handle,
    "torch.cuda.is_current_stream_capturing": _capturing,
    "torch.cuda.stream": _stream_context,
    "torch.cuda.StreamContext": _stream_context,
    "torch.cuda.device": _device_context,
    "torch.cuda.graph": _graph_context,
    "torch.cuda.make_graphed_callables": _unread,
    "torch.cuda.ExternalStream": _unread,
    "torch.cuda.get_stream_from_external": _unread,
    "torch.cuda.MemPool": _unread,
    "torch.cuda.use_mem_pool": _unread,
}


# ---- methods -----------------------------------------------------------------------------------------------


def stream_method(m: Machine, stream: V.Stream, name: str, a: Arguments) -> V.Value:
    """A call of a method of a stream.

    Raises:
        Unread: the method is not known.
    """
    match name:
        case "wait_stream":
            other = as_stream(m, a.get(0, "stream"), a.node)
            if other is not None:
                wait_stream(m, a.node, stream.name, other.name)
            return V.NONE
        case "wait_event":
            wait_event(m, a.node, stream.name, as_event(m, a.get(0, "event"), a.node).name)
            return V.NONE
        case "record_event":
            given = a.get(0, "event")
            event = (
                V.Event(m.unique(m.target or "event"))
                if given in (None, V.NONE)
                else as_event(m, given, a.node)
            )
            m.act(H.Record(m.site(a.node), event.name, stream.name))
            return event
        case "synchronize":
            m.join(a.node, "Stream.synchronize", stream=stream.name)
            return V.NONE
        case "query":
            return _query(m, a, stream=stream.name)
        case _:
            raise m.unread(a.node, f"what `{name}` of a stream does is not known")


def event_method(m: Machine, event: V.Event, name: str, a: Arguments) -> V.Value:
    """A call of a method of an event.

    Raises:
        Unread: the method is not known.
    """
    match name:
        case "record" | "wait":
            given = a.get(0, "stream")
            stream = None if given is None else as_stream(m, given, a.node)
            of = m.stream if stream is None else stream.name
            if name == "record":
                m.act(H.Record(m.site(a.node), event.name, of))
            else:
                wait_event(m, a.node, of, event.name)
            return V.NONE
        case "synchronize":
            m.join(a.node, "Event.synchronize", event=event.name)
            return V.NONE
        case "query":
            return _query(m, a, event=event.name)
        case "elapsed_time":
            return V.Unknown(m.unique("elapsed time"), given=False, plain=True)
        case _:
            raise m.unread(a.node, f"what `{name}` of an event does is not known")


def _query(m: Machine, a: Arguments, *, stream: str | None = None, event: str | None = None) -> V.Value:
    """Whether all of it has ended: where the host sees that it has, it needs to wait no more."""
    if m.captures:
        m.forbid(a.node, "query", "it asks for the state of the device")
        return V.Const(value=True)
    ended = m.choose(None, 2) == 0
    if ended:
        m.join(a.node, "query", stream=stream, event=event)
    return V.Const(value=ended)


def graph_method(m: Machine, graph: V.Graph, name: str, a: Arguments) -> V.Value:
    """A call of a method of a graph.

    Raises:
        Unread: the method is not known.
    """
    match name:
        case "replay":
            replay(m, a.node, graph.name)
        case "reset":
            m.act(H.Destroy(m.site(a.node), graph.name))
        case "capture_begin":
            begin_capture(m, a.node, graph.name, a.get(0, "pool"))
        case "capture_end":
            end_capture(m, a.node)
        case "pool":
            found = V.Pool(f"the pool of {graph.name}")
            m.pools[found.name] = m.pools.get(graph.name, graph.name)
            return found
        case "enable_debug_mode" | "debug_dump" | "register_generator_state" | "instantiate":
            pass
        case _:
            raise m.unread(a.node, f"what `{name}` of a graph does is not known")
    return V.NONE


def replay(m: Machine, node: cst.CSTNode, graph: str) -> None:
    if m.captures:
        raise m.unread(node, "a graph is replayed inside a capture")
    for loop in m.loops:
        if loop.site not in m.knowledge.replaying:
            m.knowledge.replaying.add(loop.site)
            raise Relearn
    note_replay(m, graph)
    m.act(H.Replay(m.site(node), graph, m.stream))
    for memory in m.graph_writes.get(graph, ()):
        m.replays[memory] = m.replays.get(memory, 0) + 1


def begin_capture(m: Machine, node: cst.CSTNode, graph: str, pool: V.Value | None) -> None:
    """Work goes into the graph from here on; `pool` is the handle that it shares memory by, if any."""
    if m.captures:
        raise m.unread(node, "a capture begins inside another")
    own = graph
    if isinstance(pool, (V.Pool, V.Unknown)):
        own = m.pools.setdefault(pool.name, graph)
    m.pools[graph] = own
    m.graph_writes[graph], m.graph_made[graph], m.branched = {}, {}, {}
    m.captures.append(OpenCapture(graph, m.stream, own, tuple(loop.site for loop in m.loops)))
    m.act(H.Capture(m.site(node), graph, m.stream))


def end_capture(m: Machine, node: cst.CSTNode) -> None:
    if not m.captures:
        raise m.unread(node, "no capture is open here")
    capture = m.captures.pop()
    for stream in _unjoined(m, capture):
        m.forbid(node, stream, "it is not joined before the capture ends")
    m.act(H.EndCapture(m.site(node), capture.graph))


def _unjoined(m: Machine, capture: OpenCapture) -> list[str]:
    """The streams that the capture forked to, whose last work its own stream does not come after."""
    begin = max(at for at, action in enumerate(m.actions) if isinstance(action, H.Capture))
    last: dict[str, int] = {}  # by stream, what it got last
    behind: dict[str, dict[str, int]] = {}  # by stream, how far it comes after others
    events: dict[str, dict[str, int]] = {}
    for at, action in enumerate(m.actions[begin:]):
        match action:
            case H.Work(stream=stream):
                last[stream] = at
            case H.Record(event=event, stream=stream):
                events[event] = {**behind.get(stream, {}), stream: at}
            case H.Await(event=event, stream=stream) if event in events:
                last[stream] = at
                known = behind.setdefault(stream, {})
                known.update({s: max(n, known.get(s, 0)) for s, n in events[event].items()})
    joined = behind.get(capture.stream, {})
    return [s for s, at in last.items() if s != capture.stream and joined.get(s, -1) < at]


def enter(m: Machine, node: cst.CSTNode, context: V.Context) -> Callable[[], None]:
    """Enter a stream or a capture; what is given back leaves it."""
    before = m.stream

    def leave_stream() -> None:
        m.stream = before

    def leave_graph() -> None:
        end_capture(m, node)
        m.stream = before

    if context.kind == "stream":
        stream = as_stream(m, context.parts[0], node)
        m.stream = before if stream is None else stream.name
        return leave_stream
    if context.kind == "graph":
        graph, pool, given = context.parts
        if not isinstance(graph, V.Graph):
            raise m.unread(node, "it is not known which graph is captured")
        stream = None if given is None else as_stream(m, given, node)
        m.join(node, "torch.cuda.graph")  # it waits for the device before the capture begins
        m.stream = _CAPTURE if stream is None else stream.name
        begin_capture(m, node, graph.name, pool)
        return leave_graph
    return lambda: None
