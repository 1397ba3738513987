"""A directed multigraph, asked as networkx is asked; networkx itself is loaded for paths and components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx as nx

Data = dict[str, Any]


class Nodes(dict[str, Data]):
    """The nodes by name, in the order in which they were added."""

    def __call__(self, *, data: bool) -> Iterable[Any]:
        return self.items() if data else self.keys()


class Edges:
    """Nodes and edges with their data. Mutable: filled once. Edges come in the order of networkx: by the other
    node, in the order in which these were first met; a name that is no node has none, as there."""

    __slots__ = ("_after", "_before", "_made", "nodes")

    def __init__(self) -> None:
        self.nodes = Nodes()
        self._made: list[tuple[str, str, Data]] = []
        self._after: dict[str, dict[str, list[Data]]] = {}
        self._before: dict[str, dict[str, list[Data]]] = {}

    def __contains__(self, node: str) -> bool:
        return node in self.nodes

    def add_node(self, node: str, **data: Any) -> None:
        """Add a node that is not there yet."""
        self.nodes[node] = data
        self._after[node], self._before[node] = {}, {}

    def add_edge(self, start: str, end: str, **data: Any) -> None:
        """Add an edge between two nodes that are there."""
        self._made.append((start, end, data))
        self._after[start].setdefault(end, []).append(data)
        self._before[end].setdefault(start, []).append(data)

    def out_edges(self, node: str, *, data: bool = False) -> Iterator[Any]:
        """The edges that begin at a node, each with its data if `data` is asked for."""
        for end, every in self._after.get(node, {}).items():
            for one in every:
                yield (node, end, one) if data else (node, end)

    def in_edges(self, node: str, *, data: bool = False) -> Iterator[Any]:
        """The edges that end at a node, likewise."""
        for start, every in self._before.get(node, {}).items():
            for one in every:
                yield (start, node, one) if data else (start, node)

    def as_networkx(self) -> nx.MultiDiGraph:
        """The graph as networkx has it."""
        import networkx as nx  # lazy: takes longer than a small kernel

        graph = nx.MultiDiGraph()
        for node, data in self.nodes.items():
            graph.add_node(node, **data)
        for start, end, data in self._made:
            graph.add_edge(start, end, **data)
        return graph
