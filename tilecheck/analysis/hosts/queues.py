"""Streams as queues: what each item waits for, on the device or inside a replay of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any

import networkx as nx

from tilecheck.analysis.hosts.graph import Path
from tilecheck.dataclass import dataclass
from tilecheck.ir.host_program import Action, Await, Record, Replay, Work


@dataclass(frozen=True, slots=True)
class Held:
    """The region nodes that a piece of work borrows, each with the mode, before and after its wait."""

    before: tuple[tuple[str, str], ...] = ()
    after: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """An action that puts an item into a stream. `inside` is what the graph of a replay holds then."""

    index: int
    action: Action
    held: Held = Held()
    inside: tuple[Item, ...] = ()


@dataclass(slots=True)
class Queue:
    """The items of one stream: the end of the last one, its start if it is a launch, and the `ends` after which
    all items have ended. The last item may end before one further back."""

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
class World:
    """The streams and events of the device, or of one replay of a graph, whose items start after `root`."""

    path: Path = ()
    root: str | None = None
    queues: dict[str, Queue] = field(default_factory=dict)
    events: dict[str, str | None] = field(default_factory=dict)

    def queue(self, stream: str) -> Queue:
        return self.queues.setdefault(stream, Queue())

    def ends(self) -> Iterator[str]:
        for queue in self.queues.values():
            yield from queue.ends


@dataclass(slots=True)
class Streams:
    """Adds items of streams to the graph. Mutable: remembers what the streams hold."""

    graph: nx.MultiDiGraph
    device: World = field(default_factory=World)
    replayed: dict[str, str] = field(default_factory=dict)  # by graph: the end of its last replay

    def node(self, name: str, kind: str, path: Path, **data: Any) -> str:
        self.graph.add_node(name, kind=kind, path=path, **data)
        return name

    def named(self, kind: str, name: str) -> str:
        """The node of a stream, graph, variable or kept result."""
        node = f"{kind}:{name}"
        if node not in self.graph:
            self.graph.add_node(node, kind=kind, name=name)
        return node

    def precede(self, first: str | None, second: str, why: str) -> None:
        if first is not None:
            self.graph.add_edge(first, second, kind="happens-before", why=why)

    def own(self, owner: str, owned: str, **data: Any) -> None:
        self.graph.add_edge(owner, owned, kind="owns", **data)

    def borrow(self, holder: str, held: Iterable[tuple[str, str]]) -> None:
        for region, mode in held:
            self.graph.add_edge(holder, region, kind="borrows", mode=mode)

    def enqueue(self, world: World, item: Item, root: str) -> str | None:
        """Add an item to its stream. It starts after `root`: the host's step, or the start of a replay.

        Returns:
            The end of the item; None for what is no item.
        """
        path = (*world.path, item.index)
        key = ".".join(map(str, path))
        match item.action:
            case Work():
                return self._work(world, item, item.action, path, root)
            case Record(event=event, stream=stream):
                node = self.node(f"event:{key}", "event", path, event=event)
                self.precede(world.queue(stream).last, node, f"event `{event}`")
                world.events[event] = node
            case Await(stream=stream, event=event):
                node = self.node(f"await:{key}", "await", path)
                queue = world.queue(stream)
                self.precede(root, node, self._why(world))
                self.precede(queue.last, node, f"stream `{stream}`")
                self.precede(world.events.get(event), node, f"event `{event}`")
                queue.push(node)
                return node
            case Replay(graph=graph, stream=stream):
                return self._replay(world, item, graph, stream, path, root)
        return None

    def _why(self, world: World) -> str:
        return "the host" if world is self.device else "replay"

    def _work(self, world: World, item: Item, action: Work, path: Path, root: str) -> str:
        """The parts of a piece of work. Only a dependent launch right after a launch starts before its end."""
        key = ".".join(map(str, path))
        queue = world.queue(action.stream)
        overlaps = queue.last if action.dependent and queue.launch is not None else None
        certain = action.waits or overlaps is None
        start = self.node(f"start:{key}", "start", path, overlaps=overlaps)
        before = self.node(f"before:{key}", "part", path)
        wait = self.node(f"wait:{key}", "wait", path)
        after = self.node(f"after:{key}", "part", path, certain=certain)
        end = self.node(f"end:{key}", "end", path)
        self.own(self.named("stream", action.stream), start)
        self.precede(root, start, self._why(world))
        stream = f"stream `{action.stream}`"
        self.precede(queue.last if overlaps is None else queue.launch, start, stream)
        self.precede(start, before, "start")
        self.precede(start, wait, "start")
        self.precede(overlaps, wait, f"wait for the launch before it on {stream}")
        self.precede(wait, after, "start" if overlaps is None else "wait")
        self.precede(before, end, "end")
        self.precede(after, end, "end")
        self.borrow(before, item.held.before)
        self.borrow(after, item.held.after)
        queue.push(end, start if action.is_launch else None, implies=certain)
        return end

    def _replay(self, world: World, item: Item, graph: str, stream: str, path: Path, root: str) -> str:
        """A graph as one item, with all that was captured into it."""
        key = ".".join(map(str, path))
        start, end = self.node(f"start:{key}", "start", path), self.node(f"end:{key}", "end", path)
        self.own(self.named("stream", stream), start)
        queue = world.queue(stream)
        self.precede(root, start, self._why(world))
        self.precede(queue.last, start, f"stream `{stream}`")
        if world is self.device:
            self.precede(self.replayed.get(graph), start, f"replays of graph `{graph}` do not overlap")
            self.replayed[graph] = end
        inside = World(path)
        for captured in item.inside:
            self.enqueue(inside, captured, start)
        self.precede(start, end, "replay")
        for last in inside.ends():
            self.precede(last, end, "replay")
        queue.push(end)
        return end
