"""Builds the host borrow graph of a program by walking its actions once, as the machine would enqueue them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import networkx as nx

from tilecheck.analysis.hosts.graph import (
    AFTER,
    BEFORE,
    HostGraph,
    memory_node,
    step_node,
)
from tilecheck.ir.host_program import (
    Action,
    Allocate,
    Await,
    Back,
    Capture,
    Destroy,
    EndCapture,
    Footprint,
    Free,
    HostProgram,
    Join,
    Keep,
    Memory,
    Move,
    Place,
    Rebind,
    Record,
    Region,
    Replay,
    Touch,
    UseKept,
    Work,
)

_Captured = list[tuple[int, Action]]


def build(program: HostProgram) -> HostGraph:
    """The borrow graph of a host program."""
    builder = _Builder(program)
    builder.add_memories()
    for index, action in enumerate(program.actions):
        builder.step(index, action)
    builder.add_return()
    return HostGraph(program, builder.graph)


@dataclass(slots=True)
class _Queue:
    """The items of one stream. `last` is the end of the last one, `launch` its start if it is a launch. `ends`
    have ended only when all items have: the last item may end before one further back."""

    last: str | None = None
    launch: str | None = None
    ends: list[str] = field(default_factory=list)

    def push(self, end: str, launch: str | None = None, *, implies: bool = True) -> None:
        """Add an item whose end, if it `implies` so, follows that of the item before it."""
        if implies and self.last in self.ends:
            self.ends.remove(self.last)
        self.ends.append(end)
        self.last, self.launch = end, launch


@dataclass(slots=True)
class _World:
    """Streams and events as the device sees them, or as one replay of a graph sees those captured into it.
    `prefix` tells the items of different replays apart."""

    prefix: str = ""
    graph: str = ""
    replay: int | None = None
    queues: dict[str, _Queue] = field(default_factory=dict)
    events: dict[str, str] = field(default_factory=dict)

    def queue(self, stream: str) -> _Queue:
        return self.queues.setdefault(stream, _Queue())

    def ends(self, streams: Iterable[str]) -> list[str]:
        return [end for stream in streams for end in self.queue(stream).ends]


@dataclass(slots=True)
class _Builder:
    """The state of the walk. Mutable: streams, events and graphs change from action to action."""

    program: HostProgram
    graph: nx.MultiDiGraph = field(default_factory=nx.MultiDiGraph)
    device: _World = field(default_factory=_World)
    capturing: dict[str, str] = field(default_factory=dict)  # by stream: the graph that it is captured into
    recorded_in: dict[str, str] = field(default_factory=dict)  # by event: the same for its last record
    captured: dict[str, _Captured] = field(default_factory=dict)
    replayed: dict[str, str] = field(default_factory=dict)  # by graph: the end of its last replay
    regions: dict[Region, str] = field(default_factory=dict)

    # ---- nodes and edges -----------------------------------------------------------------------------------

    def precede(self, first: str | None, second: str, why: str) -> None:
        if first is not None:
            self.graph.add_edge(first, second, kind="happens-before", why=why)

    def borrow(self, holder: str, footprint: Footprint) -> None:
        for region, written in footprint.regions():
            node = self.region(region)
            self.graph.add_edge(holder, node, kind="borrows", mode="mutable" if written else "shared")

    def region(self, region: Region) -> str:
        if region not in self.regions:
            node = self.regions[region] = f"region:{len(self.regions)}"
            self.graph.add_node(node, kind="region", region=region)
            self.graph.add_edge(memory_node(region.memory), node, kind="owns")
        return self.regions[region]

    def own(self, owner: str, owned: str) -> None:
        self.graph.add_edge(owner, owned, kind="owns")

    def named(self, kind: str, name: str) -> str:
        """The node of a stream, graph, variable or kept result."""
        node = f"{kind}:{name}"
        if node not in self.graph:
            self.graph.add_node(node, kind=kind, name=name)
        return node

    def add_memories(self) -> None:
        """The memories, and the caller's work that wrote those on the device."""
        for memory in self.program.memories:
            self.graph.add_node(memory_node(memory.name), kind="memory", memory=memory)
            if memory.pool is not None:
                self.own(self.named("graph", memory.pool), memory_node(memory.name))
        self.graph.add_node(BEFORE, kind="caller")
        self.borrow(BEFORE, Footprint(writes=tuple(Region(m.name) for m in self.handed_in())))
        self.device.queue(self.program.caller).push(BEFORE)

    def handed_in(self) -> list[Memory]:
        return [m for m in self.program.memories if m.handed_in and m.place is Place.DEVICE]

    def add_return(self) -> None:
        """The caller's work that uses what it gets back."""
        self.graph.add_node(AFTER, kind="caller")
        back = tuple(Region(m.name) for m in self.handed_in())
        self.borrow(AFTER, Footprint(reads=self.program.returned, writes=back))
        self.precede(self.device.queue(self.program.caller).last, AFTER, "the caller's stream")
        if self.program.actions:
            self.precede(step_node(len(self.program.actions) - 1), AFTER, "the host")

    # ---- actions -------------------------------------------------------------------------------------------

    def step(self, index: int, action: Action) -> None:
        """One action of the host, and what it enqueues."""
        here = step_node(index)
        self.graph.add_node(here, kind="step", index=index)
        if index:
            self.precede(step_node(index - 1), here, "the host")
        for graph in dict.fromkeys(self.capturing.values()):
            self.own(self.named("graph", graph), here)
        into = self.into(action)
        if into is not None:
            self.capture(into, index, action)
        elif isinstance(action, Work | Record | Await | Replay):
            self.enqueue(self.device, index, action, here)
        else:
            self.host(index, action, here)

    def into(self, action: Action) -> str | None:
        """The graph that an action is captured into. A stream that awaits an event of a captured stream is
        captured from there on."""
        if not isinstance(action, Work | Record | Await | Replay):
            return None
        if isinstance(action, Await) and action.stream not in self.capturing:
            joined = self.recorded_in.get(action.event)
            if joined in self.capturing.values():
                self.capturing[action.stream] = str(joined)
        return self.capturing.get(action.stream)

    def capture(self, graph: str, index: int, action: Action) -> None:
        """Write an item into a graph."""
        self.captured[graph].append((index, action))
        node = f"captured:{index}"
        self.graph.add_node(node, kind="captured", index=index)
        self.own(self.named("graph", graph), node)
        self.precede(step_node(index), node, "capture")
        if isinstance(action, Record):
            self.recorded_in[action.event] = graph
            self.device.events.pop(action.event, None)
        elif isinstance(action, Work):
            self.borrow(node, action.before)
            self.borrow(node, action.after)
            for name in action.frozen:
                self.graph.add_edge(node, self.named("variable", name), kind="borrows", mode="frozen")

    def host(self, index: int, action: Action, here: str) -> None:
        """What the host does itself."""
        match action:
            case Join(stream=stream, event=event):
                self.join(here, stream, event)
            case Touch(footprint=footprint):
                self.borrow(here, footprint)
            case Capture(graph=graph, stream=stream):
                self.capturing[stream] = graph
                self.captured[graph] = []
                self.own(self.named("graph", graph), here)
            case EndCapture(graph=graph):
                self.capturing = {s: g for s, g in self.capturing.items() if g != graph}
            case Free(memory=memory, also_after=streams):
                self.free(index, memory, streams)
            case Move(memory=memory):
                self.graph.add_edge(memory_node(memory), here, kind="moves")
            case Back(memory=memory) | Allocate(memory=memory):
                self.graph.add_edge(here, memory_node(memory), kind="moves")
            case Rebind(name=name):
                self.graph.add_edge(self.named("variable", name), here, kind="moves")
            case Destroy(graph=graph):
                self.graph.add_edge(self.named("graph", graph), here, kind="moves")
            case Keep(memory=memory, name=name):
                self.own(self.named("kept", name), here)
                self.graph.add_edge(here, memory_node(memory), kind="borrows", mode="kept")
            case UseKept(name=name):
                self.graph.add_edge(here, self.named("kept", name), kind="borrows", mode="shared")
            case _:
                pass

    def join(self, here: str, stream: str | None, event: str | None) -> None:
        """Keep the host from going on."""
        if event is not None:
            self.precede(self.device.events.get(event), here, f"the host waits for event `{event}`")
            return
        streams = list(self.device.queues) if stream is None else [stream]
        why = "the host waits for " + ("the device" if stream is None else f"stream `{stream}`")
        for end in self.device.ends(streams):
            self.precede(end, here, why)

    def free(self, index: int, memory: str, also_after: tuple[str, ...]) -> None:
        """The next owner of memory. No work comes after its own: it may write at any time from then on."""
        freed = self.program.by_name[memory]
        node = f"free:{index}"
        self.graph.add_node(node, kind="free", index=index)
        self.borrow(node, Footprint(writes=(Region(memory),)))
        self.precede(step_node(index), node, "the host")
        streams = (*([] if freed.stream is None else [freed.stream]), *also_after)
        if freed.place is Place.DEVICE:
            for stream in streams:
                for end in self.device.queue(stream).ends:
                    self.precede(end, node, f"the allocator reuses memory in the order of stream `{stream}`")

    # ---- items of streams ----------------------------------------------------------------------------------

    def enqueue(self, world: _World, index: int, action: Action, root: str) -> None:
        """Add an item to its stream. It starts after `root`: the host's step, or the start of a replay."""
        match action:
            case Work():
                self.work(world, index, action, root)
            case Record(event=event, stream=stream):
                node = f"event:{world.prefix}{index}"
                self.graph.add_node(node, kind="event", index=index, name=event)
                self.precede(world.queue(stream).last, node, f"event `{event}`")
                world.events[event] = node
                if world is self.device:
                    self.recorded_in.pop(event, None)
            case Await(stream=stream, event=event):
                node = f"await:{world.prefix}{index}"
                self.graph.add_node(node, kind="await", index=index)
                queue = world.queue(stream)
                self.precede(root, node, self.why_root(world))
                self.precede(queue.last, node, f"stream `{stream}`")
                self.precede(world.events.get(event), node, f"event `{event}`")
                queue.push(node)
            case Replay(graph=graph, stream=stream):
                self.replay(world, index, graph, stream, root)

    def why_root(self, world: _World) -> str:
        return "the host" if world is self.device else "replay"

    def work(self, world: _World, index: int, action: Work, root: str) -> None:
        """The parts of a piece of work. Only a dependent launch right after a launch starts before its end."""
        key = f"{world.prefix}{index}"
        queue = world.queue(action.stream)
        overlaps = action.dependent and queue.launch is not None
        start, before, wait, after, end = (
            f"{part}:{key}" for part in ("start", "before", "wait", "after", "end")
        )
        data = {"index": index, "graph": world.graph, "replay": world.replay, "overlaps": overlaps}
        certain = action.waits or not overlaps
        for node, kind, sure in (
            (start, "start", True),
            (before, "part", True),
            (wait, "wait", True),
            (after, "part", certain),
            (end, "end", True),
        ):
            self.graph.add_node(node, kind=kind, certain=sure, **data)
        self.own(self.named("stream", action.stream), start)
        self.precede(root, start, self.why_root(world))
        stream = f"stream `{action.stream}`"
        self.precede(queue.launch if overlaps else queue.last, start, stream)
        self.precede(start, before, "start")
        self.precede(start, wait, "start")
        if overlaps:
            self.precede(queue.last, wait, "wait of a dependent launch")
        self.precede(wait, after, "wait" if overlaps else "start")
        self.precede(before, end, "end")
        self.precede(after, end, "end")
        self.borrow(before, action.before)
        self.borrow(after, action.after)
        queue.push(end, start if action.is_launch else None, implies=certain)

    def replay(self, world: _World, index: int, graph: str, stream: str, root: str) -> None:
        """A graph as one item, with all that was captured into it."""
        key = f"{world.prefix}{index}"
        start, end = f"start:{key}", f"end:{key}"
        for node, kind in ((start, "start"), (end, "end")):
            self.graph.add_node(node, kind=kind, index=index, graph=graph, replay=index)
        self.own(self.named("stream", stream), start)
        queue = world.queue(stream)
        self.precede(root, start, self.why_root(world))
        self.precede(queue.last, start, f"stream `{stream}`")
        self.precede(self.replayed.get(graph), start, f"replays of graph `{graph}` do not overlap")
        inside = _World(f"{key}.", graph, index)
        for number, action in self.captured.get(graph, []):
            self.enqueue(inside, number, action, start)
        self.precede(start, end, "replay")
        for last in inside.ends(list(inside.queues)):
            self.precede(last, end, "replay")
        queue.push(end)
        self.replayed[graph] = end
