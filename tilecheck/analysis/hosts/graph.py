"""The host borrow graph of a program: memory and its owners, work and what it borrows, and the order of both.

Nodes are intervals of time. A `happens-before` edge from one to another says that the first has ended when the
second starts; its `why` names the reason. Each item of a stream has a node for its start and one for its end,
with the parts of its work before and after its wait between them. A part that is not `certain` (a wait that
only some programs reach) hands no order on: a path may begin or end there, but not lead through.

A `borrows` edge leads from whoever touches memory to the region (`mode` shared or mutable), from captured work
to the host variables that it froze, from a replay to the captured work that it runs, and from a step to a
result that it keeps or uses. `owns` leads from a memory to its regions, from a stream to its items, and from a
graph to what was captured into it. `moves` leads from a memory, a host variable or a graph to the step that
takes it away, from a step to the memory that it gives, and from freed memory of a pool to the memory that may
get its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import networkx as nx

from tilecheck.dataclass import dataclass
from tilecheck.ir.host_program import Action, HostProgram, Memory, Region

BEFORE, AFTER = "caller:before", "caller:after"
Path = tuple[int, ...]  # an action; of what a replay runs, the replay and then the captured action


@dataclass(frozen=True, slots=True)
class Borrow:
    """A region that a node holds, and how."""

    holder: str
    region: Region
    mutable: bool
    path: Path


@dataclass(frozen=True, slots=True, eq=False)
class HostGraph:
    """The graph and what can be asked of its edges. `graph` is a networkx multigraph that tests may edit."""

    program: HostProgram
    graph: nx.MultiDiGraph

    def of_kind(self, kind: str) -> Iterator[str]:
        """The nodes of one kind, in the order in which they were added."""
        return (node for node, data in self.graph.nodes(data=True) if data["kind"] == kind)

    def node(self, name: str) -> Mapping[str, Any]:
        """What is known of a node."""
        found: Mapping[str, Any] = self.graph.nodes[name]
        return found

    def path(self, node: str) -> Path:
        """Where a node stands in the program."""
        found: Path = self.graph.nodes[node]["path"]
        return found

    def action(self, node: str) -> Action | None:
        """The action that a node belongs to; None for what the caller does."""
        index = self.path(node)[-1]
        return self.program.actions[index] if 0 <= index < len(self.program.actions) else None

    def step_of(self, node: str) -> str:
        """The step of the host that enqueued a node."""
        return step_node(self.path(node)[0])

    def memory(self, node: str) -> Memory:
        """The memory of a node."""
        found: Memory = self.graph.nodes[node]["memory"]
        return found

    def edges_from(self, node: str, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Where the edges of one kind lead from a node."""
        return ((to, data) for _, to, data in self.graph.out_edges(node, data=True) if data["kind"] == kind)

    def edges_to(self, node: str, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Where the edges of one kind come from that lead to a node."""
        return (
            (start, data) for start, _, data in self.graph.in_edges(node, data=True) if data["kind"] == kind
        )

    def steps_from(self, node: str, kind: type[Action]) -> list[str]:
        """The steps of one kind that take a memory, a variable or a graph away."""
        return [
            to
            for to, _ in self.edges_from(node, "moves")
            if self.graph.nodes[to]["kind"] == "step" and isinstance(self.action(to), kind)
        ]

    def steps_to(self, node: str, kind: type[Action]) -> list[str]:
        """The steps of one kind that give a memory or a graph."""
        return [
            start
            for start, _ in self.edges_to(node, "moves")
            if self.graph.nodes[start]["kind"] == "step" and isinstance(self.action(start), kind)
        ]

    def borrows(self, memory: str) -> Iterator[Borrow]:
        """Who borrows a region that the memory (its node) owns, shared or mutably."""
        for region, _ in self.edges_from(memory, "owns"):
            for holder, edge in self.edges_to(region, "borrows"):
                found = self.graph.nodes[region]["region"]
                yield Borrow(holder, found, edge["mode"] == "mutable", self.path(holder))

    def borrowed_by(self, holder: str) -> Iterator[tuple[str, Borrow]]:
        """The regions that a node borrows, each with the node of the memory that owns it."""
        for region, edge in self.edges_from(holder, "borrows"):
            if self.graph.nodes[region]["kind"] == "region":
                found = self.graph.nodes[region]["region"]
                for owner, _ in self.edges_to(region, "owns"):
                    yield owner, Borrow(holder, found, edge["mode"] == "mutable", self.path(holder))

    def replayed(self, node: str) -> Iterator[str]:
        """The captured work that a replay runs, that of graphs inside its graph included."""
        for captured, edge in self.edges_from(node, "borrows"):
            if edge["mode"] == "replay":
                yield captured
                yield from self.replayed(captured)

    def order(self, *, plain: bool = False) -> Order:
        """The happens-before order as the edges have it now.

        Args:
            plain: the order as it would be if no launch started before the one before it has ended.
        """
        return Order.of(self.graph, plain=plain)


@dataclass(frozen=True, slots=True)
class Order:
    """The transitive closure of the happens-before edges: for each node a bit set of what comes after it."""

    position: Mapping[str, int]
    later: Mapping[str, int]

    @classmethod
    def of(cls, graph: nx.MultiDiGraph, *, plain: bool) -> Order:
        steps = nx.DiGraph()
        steps.add_nodes_from(graph)
        steps.add_edges_from((u, v) for u, v, kind in graph.edges(data="kind") if kind == "happens-before")
        if plain:
            overlapped = ((node, data.get("overlaps")) for node, data in graph.nodes(data=True))
            steps.add_edges_from((last, node) for node, last in overlapped if last is not None)
        ordered = list(nx.topological_sort(steps))
        position = {node: index for index, node in enumerate(ordered)}
        later: dict[str, int] = {}
        for node in reversed(ordered):
            reached = 0
            for after in steps.successors(node):
                reached |= 1 << position[after]
                if plain or graph.nodes[after].get("certain", True):
                    reached |= later[after]
            later[node] = reached
        return cls(position, later)

    def before(self, first: str, second: str) -> bool:
        """Whether the first has always ended when the second starts."""
        return bool(self.later[first] >> self.position[second] & 1)

    def ordered(self, first: str, second: str) -> bool:
        """Whether one of them has always ended when the other starts."""
        return self.before(first, second) or self.before(second, first)


def parting(first: Path, second: Path) -> int:
    """Where two paths part: after the replay that they have in common, if they have one."""
    return next(k for k, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)


def step_node(index: int) -> str:
    return f"step:{index}"
