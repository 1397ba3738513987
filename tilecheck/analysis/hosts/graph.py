"""The host borrow graph of a program: memory and its owners, work and what it borrows, and the order of both.

Nodes are intervals of time. A `happens-before` edge from one to another says that the first has ended when
the second starts; its `why` names the reason. Each item of a stream has a node for its start and one for its
end, with the parts of its work before and after its wait between them. A part that is not `certain` (a wait
that only some programs reach) hands no order on: a path may begin or end there, but not lead through.

A `borrows` edge leads from whoever touches memory to the region, `mode` shared or mutable. `owns` leads from a
memory to its regions, from a stream to its items, and from a graph to what was captured into it. `moves` leads
from a memory or a host variable to the step that takes it away, and back from the step that returns it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx

from tilecheck.ir.host_program import Action, HostProgram, Memory, Region

BEFORE, AFTER = "caller:before", "caller:after"


@dataclass(frozen=True, slots=True)
class Borrow:
    """A region that a node holds, and how."""

    holder: str
    region: Region
    mutable: bool


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

    def action(self, node: str) -> Action | None:
        """The action that a node belongs to; None for what the caller does."""
        index = self.graph.nodes[node].get("index")
        return None if index is None else self.program.actions[index]

    def edges_from(self, node: str, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Where the edges of one kind lead from a node."""
        return ((to, data) for _, to, data in self.graph.out_edges(node, data=True) if data["kind"] == kind)

    def edges_to(self, node: str, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Where the edges of one kind come from that lead to a node."""
        return (
            (start, data) for start, _, data in self.graph.in_edges(node, data=True) if data["kind"] == kind
        )

    def place(self, holder: str) -> tuple[int, int]:
        """Where a holder stands in the program: what a replay runs stands at the replay."""
        if holder in (BEFORE, AFTER):
            return (-1, 0) if holder == BEFORE else (len(self.program.actions), 0)
        data = self.graph.nodes[holder]
        replay = data.get("replay")
        return (data["index"], 0) if replay is None else (replay, data["index"])

    def step_of(self, holder: str) -> str:
        """The step of the host that enqueued it."""
        return step_node(self.place(holder)[0])

    def memories(self) -> Iterator[Memory]:
        """The memories, in the order of the program."""
        return (self.graph.nodes[node]["memory"] for node in self.of_kind("memory"))

    def borrows(self, memory: str) -> Iterator[Borrow]:
        """Who borrows a region that the memory owns, shared or mutably."""
        for region, _ in self.edges_from(memory_node(memory), "owns"):
            for holder, edge in self.edges_to(region, "borrows"):
                yield Borrow(holder, self.graph.nodes[region]["region"], edge["mode"] == "mutable")

    def owned(self, owner: str, kind: str) -> Iterator[str]:
        """The nodes of one kind that a node owns."""
        return (n for n, _ in self.edges_from(owner, "owns") if self.graph.nodes[n]["kind"] == kind)

    def order(self) -> Order:
        """The happens-before order as the edges have it now."""
        return Order.of(self.graph)


@dataclass(frozen=True, slots=True)
class Order:
    """The transitive closure of the happens-before edges: for each node a bit set of what comes after it."""

    position: Mapping[str, int]
    later: Mapping[str, int]

    @classmethod
    def of(cls, graph: nx.MultiDiGraph) -> Order:
        steps = nx.DiGraph()
        steps.add_nodes_from(graph)
        steps.add_edges_from((u, v) for u, v, kind in graph.edges(data="kind") if kind == "happens-before")
        ordered = list(nx.topological_sort(steps))
        position = {node: index for index, node in enumerate(ordered)}
        later: dict[str, int] = {}
        for node in reversed(ordered):
            reached = 0
            for after in steps.successors(node):
                reached |= 1 << position[after]
                if graph.nodes[after].get("certain", True):
                    reached |= later[after]
            later[node] = reached
        return cls(position, later)

    def before(self, first: str, second: str) -> bool:
        """Whether the first has always ended when the second starts."""
        return bool(self.later[first] >> self.position[second] & 1)

    def ordered(self, first: str, second: str) -> bool:
        """Whether one of them has always ended when the other starts."""
        return self.before(first, second) or self.before(second, first)


def memory_node(name: str) -> str:
    return f"memory:{name}"


def step_node(index: int) -> str:
    return f"step:{index}"
