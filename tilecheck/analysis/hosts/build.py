"""Builds the host borrow graph of a program by walking its actions once, as the machine would take them."""

from __future__ import annotations

from dataclasses import field

import networkx as nx

from tilecheck.analysis.hosts.graph import AFTER, BEFORE, HostGraph, step_node
from tilecheck.analysis.hosts.queues import Held, Item, Streams
from tilecheck.dataclass import dataclass
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


def build(program: HostProgram) -> HostGraph:
    """The borrow graph of a host program."""
    graph = nx.MultiDiGraph()
    builder = _Builder(program, Streams(graph))
    builder.begin()
    for index, action in enumerate(program.actions):
        builder.step(index, action)
    builder.end()
    return HostGraph(program, graph)


@dataclass(slots=True, eq=False)
class _Capturing:
    """One capture: the graph, the step that began it, and what it holds so far."""

    graph: str
    begun: str
    items: list[Item] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Pooled:
    """Memory that was given back to the pool of a graph, during the capture `by` if one went on. It is `shared`
    if other streams than its own had used it."""

    node: str
    memory: Memory
    by: _Capturing | None
    shared: bool


@dataclass(slots=True)
class _Builder:
    """The state of the walk. Mutable: streams, events, graphs and memories change from action to action."""

    program: HostProgram
    streams: Streams
    captures: dict[str, _Capturing] = field(default_factory=dict)  # by graph: those that go on
    captured: dict[str, _Capturing] = field(default_factory=dict)  # by stream: the same
    recorded_in: dict[str, _Capturing] = field(default_factory=dict)  # by event: where it was recorded last
    graphs: dict[str, _Capturing] = field(default_factory=dict)  # those that are complete
    destroyed: set[str] = field(default_factory=set)
    memories: dict[str, str] = field(default_factory=dict)  # by name: the node of the memory that it means now
    regions: dict[tuple[str, Region], str] = field(default_factory=dict)
    pooled: list[_Pooled] = field(default_factory=list)
    waits: list[tuple[str, str]] = field(default_factory=list)  # what the next step of the host comes after

    # ---- memory --------------------------------------------------------------------------------------------

    def add_memory(self, memory: Memory) -> str:
        """A node for memory that a name means from here on: each allocation is memory of its own."""
        graph = self.streams.graph
        known = self.memories.get(memory.name)
        if known is not None and graph.degree(known) == (memory.pool is not None):  # nothing has used it yet
            return known
        node = f"memory:{memory.name}" + ("" if known is None else f"#{graph.number_of_nodes()}")
        graph.add_node(node, kind="memory", memory=memory)
        if memory.pool is not None:
            self.streams.own(self.streams.named("graph", memory.pool), node)
        self.memories[memory.name] = node
        return node

    def held(self, footprint: Footprint) -> tuple[tuple[str, str], ...]:
        return tuple(
            (self.region(self.memories[region.memory], region), "mutable" if write else "shared")
            for region, write in footprint.regions()
        )

    def region(self, owner: str, region: Region) -> str:
        if (owner, region) not in self.regions:
            node = self.regions[owner, region] = f"region:{len(self.regions)}"
            self.streams.graph.add_node(node, kind="region", region=region)
            self.streams.own(owner, node)
        return self.regions[owner, region]

    # ---- the caller ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """The memories, and the caller's work that wrote those on the device."""
        for memory in self.program.memories:
            self.add_memory(memory)
        given = tuple(Region(m.name) for m in self.handed_in() if m.place is Place.DEVICE)
        self.streams.node(BEFORE, "caller", (-1,))
        self.streams.borrow(BEFORE, self.held(Footprint(writes=given)))
        self.streams.device.queue(self.program.caller).push(BEFORE)

    def handed_in(self) -> list[Memory]:
        return [memory for memory in self.program.memories if memory.handed_in]

    def end(self) -> None:
        """The caller's work that uses what it gets back."""
        self.streams.node(AFTER, "caller", (len(self.program.actions),))
        back = tuple(Region(memory.name) for memory in self.handed_in())
        self.streams.borrow(AFTER, self.held(Footprint(reads=(*self.program.returned, *back))))
        self.streams.precede(self.streams.device.queue(self.program.caller).last, AFTER, "the caller's stream")
        self.go_on(AFTER, len(self.program.actions))

    # ---- the host ------------------------------------------------------------------------------------------

    def go_on(self, here: str, index: int) -> None:
        """The host gets to a step after the step before it, and after what it waits for there."""
        if index:
            self.streams.precede(step_node(index - 1), here, "the host")
        for node, why in self.waits:
            self.streams.precede(node, here, why)
        self.waits = []

    def step(self, index: int, action: Action) -> None:
        """One action of the host, and what it enqueues."""
        here = self.streams.node(step_node(index), "step", (index,))
        self.go_on(here, index)
        within = next(reversed(self.captures.values()), None)
        if within is not None:
            self.streams.own(self.streams.named("graph", within.graph), here, since=within.begun)
        if isinstance(action, Work | Record | Await | Replay):
            self.enqueue(index, action, here)
        else:
            self.host(index, action, here)

    def host(self, index: int, action: Action, here: str) -> None:
        """What the host does itself."""
        streams, graph = self.streams, self.streams.graph
        match action:
            case Join(stream=stream, event=event):
                self.join(here, stream, event)
            case Touch(footprint=footprint):
                streams.borrow(here, self.held(footprint))
            case Capture(graph=name, stream=stream):
                self.captures[name] = self.captured[stream] = _Capturing(name, here)
                self.destroyed.discard(name)
                graph.add_edge(here, streams.named("graph", name), kind="moves")
            case EndCapture(graph=name):
                self.graphs[name] = self.captures.pop(name)
                self.captured = {s: c for s, c in self.captured.items() if c.graph != name}
            case Allocate(memory=name):
                self.allocate(name, here)
            case Free(memory=name, also_after=others):
                self.free(index, name, others, here)
            case Move(memory=name, into=into):
                graph.add_edge(self.memories[name], here, kind="moves", into=into)
            case Back(memory=name):
                graph.add_edge(here, self.memories[name], kind="moves")
            case Rebind(name=name):
                graph.add_edge(streams.named("variable", name), here, kind="moves")
            case Destroy(graph=name):
                self.destroy(index, name, here)
            case Keep(memory=name, name=result):
                streams.own(streams.named("kept", result), here)
                graph.add_edge(here, self.memories[name], kind="borrows", mode="kept")
            case UseKept(name=result):
                graph.add_edge(here, streams.named("kept", result), kind="borrows", mode="shared")
            case _:
                pass

    def join(self, here: str, stream: str | None, event: str | None) -> None:
        """Keep the host from going on before a stream, an event or the device has ended."""
        device = self.streams.device
        if event is not None:
            self.streams.precede(device.events.get(event), here, f"the host waits for event `{event}`")
            return
        why = "the host waits for " + ("the device" if stream is None else f"stream `{stream}`")
        for end in device.ends() if stream is None else device.queue(stream).ends:
            self.streams.precede(end, here, why)

    # ---- allocation ----------------------------------------------------------------------------------------

    def allocate(self, name: str, here: str) -> None:
        """New memory. During a capture it may lie in memory that the same stream gave back to the pool; but not
        where other streams had used that in the same capture, in which no event ends."""
        memory = self.program.by_name[name]
        node = self.add_memory(memory)
        self.streams.graph.add_edge(here, node, kind="moves")
        if memory.pool is None or not self.captures:
            return
        for old in self.pooled:
            alike = (old.memory.pool, old.memory.stream) == (memory.pool, memory.stream)
            if alike and not (old.shared and old.by in self.captures.values()):
                self.streams.graph.add_edge(old.node, node, kind="moves")

    def free(self, index: int, name: str, others: tuple[str, ...], here: str) -> None:
        """Give memory back, to the pool that it came from or to the allocator."""
        memory = self.program.by_name[name]
        if memory.pool is not None and memory.pool not in self.destroyed:
            self.streams.graph.add_edge(self.memories[name], here, kind="moves")
            by = next(iter(self.captures.values()), None)
            shared = bool(set(others) - {memory.stream})
            self.pooled.append(_Pooled(self.memories[name], memory, by, shared))
            return
        owner = self.next_owner(f"free:{index}", index, self.memories[name], here)
        for stream in (memory.stream, *others):
            if stream is not None:
                why = f"the allocator reuses memory in the order of stream `{stream}`"
                self.streams.precede(self.streams.device.queue(stream).last, owner, why)

    def next_owner(self, node: str, index: int, memory: str, here: str) -> str:
        """The next owner of memory. No work comes after its own: it may write at any time from then on."""
        self.streams.node(node, "free", (index,))
        whole = self.region(memory, Region(self.streams.graph.nodes[memory]["memory"].name))
        self.streams.borrow(node, [(whole, "mutable")])
        self.streams.precede(here, node, "the host")
        return node

    def destroy(self, index: int, name: str, here: str) -> None:
        """Release a graph. What was freed to its pool goes to the next owner, after all that was enqueued."""
        self.streams.graph.add_edge(self.streams.named("graph", name), here, kind="moves")
        self.graphs.pop(name, None)
        self.destroyed.add(name)
        for old in [old for old in self.pooled if old.memory.pool == name]:
            self.pooled.remove(old)
            owner = self.next_owner(f"free:{index}.{old.node}", index, old.node, here)
            for end in self.streams.device.ends():
                self.streams.precede(end, owner, "the pool is released")

    # ---- items of streams ----------------------------------------------------------------------------------

    def enqueue(self, index: int, action: Work | Record | Await | Replay, here: str) -> None:
        """Put an item into its stream, or into the graph that the stream is captured into."""
        into = self.into(action)
        if into is not None:
            self.capture(into, index, action, here)
            return
        if isinstance(action, Record):
            self.recorded_in.pop(action.event, None)
        item = self.item(index, action)
        match action:
            case Replay(graph=graph) if graph not in self.graphs:  # released: nothing is left that would run
                start = self.streams.node(f"start:{index}", "start", (index,))
                self.streams.precede(here, start, "the host")
                self.streams.own(self.streams.named("graph", graph), start)
            case Work(is_launch=False):
                end = self.streams.enqueue(self.streams.device, self.copied(item, here), here)
                if end is not None and self.writes_pageable(action):
                    self.waits.append((end, "the host waits for a copy to pageable memory"))
            case _:
                self.streams.enqueue(self.streams.device, item, here)
                if isinstance(action, Replay):
                    self.runs(f"start:{index}", action)

    def item(self, index: int, action: Action) -> Item:
        if isinstance(action, Work):
            return Item(index, action, Held(self.held(action.before), self.held(action.after)))
        if isinstance(action, Replay) and action.graph in self.graphs:
            return Item(index, action, inside=tuple(self.graphs[action.graph].items))
        return Item(index, action)

    def into(self, action: Work | Record | Await | Replay) -> _Capturing | None:
        """The capture that an item goes into. A stream that awaits an event of a captured stream is captured
        from there on."""
        if isinstance(action, Await) and action.stream not in self.captured:
            recorded = self.recorded_in.get(action.event)
            if recorded in self.captures.values() and recorded is not None:
                self.captured[action.stream] = recorded
        return self.captured.get(action.stream)

    def capture(self, into: _Capturing, index: int, action: Work | Record | Await | Replay, here: str) -> None:
        """Write an item into a graph."""
        item = self.item(index, action)
        into.items.append(item)
        node = self.streams.node(f"captured:{index}", "captured", (index,), graph=into.graph)
        self.streams.own(self.streams.named("graph", into.graph), node, since=into.begun)
        self.streams.precede(here, node, "capture")
        match action:
            case Record(event=event):
                self.recorded_in[event] = into
                self.streams.device.events.pop(event, None)
            case Work():
                self.streams.borrow(node, (*item.held.before, *item.held.after))
                frozen = ((self.streams.named("variable", name), "frozen") for name in action.frozen)
                self.streams.borrow(node, frozen)
            case Replay():
                self.runs(node, action)
            case _:
                pass

    def runs(self, node: str, action: Replay) -> None:
        """A replay borrows the captured work that it runs."""
        self.streams.own(self.streams.named("graph", action.graph), node)
        held = self.graphs.get(action.graph)
        for item in held.items if held is not None else ():
            if isinstance(item.action, Work | Replay):
                self.streams.borrow(node, [(f"captured:{item.index}", "replay")])

    # ---- copies of ordinary host memory --------------------------------------------------------------------

    def copied(self, item: Item, here: str) -> Item:
        """The host itself reads the pageable memory of a copy before it goes on."""
        read = [
            (r, m) for r, m in (*item.held.before, *item.held.after) if m == "shared" and self.lies_there(r)
        ]
        self.streams.borrow(here, read)
        before, after = (
            tuple(h for h in held if h not in read) for held in (item.held.before, item.held.after)
        )
        return Item(item.index, item.action, Held(before, after))

    def lies_there(self, region: str) -> bool:
        name = self.streams.graph.nodes[region]["region"].memory
        return self.program.by_name[name].place is Place.PAGEABLE

    def writes_pageable(self, action: Work) -> bool:
        regions = (*action.before.writes, *action.after.writes)
        return any(self.program.by_name[region.memory].place is Place.PAGEABLE for region in regions)
