"""The borrow graph: who owns which part of which array, and who borrows it how.

Kernel level. An array owns partitions (families of regions indexed by block); the block borrows each
partition shared, mutably, or atomically, once for each access; accesses of one array within one block are
ordered by a happens-before edge (cuTile orders them by tokens). Host level. A launch borrows buffers; each
borrow moves a buffer into a parameter. Ownership, conflicts and aliasing are queries over the edges, and
nothing else: take an edge away and the answer changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tilecheck.analysis.edges import Edges
from tilecheck.dataclass import dataclass
from tilecheck.ir.kernel import Access, Effect, Kernel, Ownership
from tilecheck.ir.launch import HostList, HostTensor, HostValue, Launch
from tilecheck.ir.overlap import Overlap
from tilecheck.ir.sharing import Sharing, sharing

if TYPE_CHECKING:
    import networkx as nx

MODES = {Effect.READ: "shared", Effect.ATOMIC: "atomic", Effect.WRITE: "mutable"}
BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two borrows of one array that blocks may hold at once although one of them is not shared."""

    array: str
    first: Access
    second: Access


@dataclass(frozen=True, slots=True)
class Alias:
    """One launch whose arguments for two parameters may share memory, of which `mutable` is written. `tensors`
    are these arguments, in that order."""

    launch: Launch
    buffer: str
    mutable: str
    other: str
    sharing: Sharing
    tensors: tuple[HostTensor, HostTensor]

    @property
    def partial(self) -> bool:
        """Whether they are not surely one piece of the buffer."""
        return self.sharing.overlap is not Overlap.SAME


@dataclass(slots=True, eq=False)
class BorrowGraph:
    """The graph and the queries over it. Mutable: a query that needs networkx replaces `edges` by its graph."""

    kernel: Kernel
    edges: Edges | nx.MultiDiGraph

    @property
    def graph(self) -> nx.MultiDiGraph:
        """The graph as networkx has it. Whoever edits it changes what the queries find."""
        if isinstance(self.edges, Edges):
            self.edges = self.edges.as_networkx()
        return self.edges

    def arrays(self) -> tuple[str, ...]:
        return tuple(d["name"] for _, d in self.edges.nodes(data=True) if d["kind"] == "array")

    def borrows(self, array: str) -> tuple[Access, ...]:
        """The accesses with which the block borrows an array's partitions, in program order."""
        found = []
        for _, partition, owns in self.edges.out_edges(array_node(array), data=True):
            if owns["kind"] == "owns":
                for _, _, borrow in self.edges.in_edges(partition, data=True):
                    if borrow["kind"] == "borrows":
                        found.append(borrow["access"])
        return tuple(sorted(found, key=lambda a: (a.position, a.site.file, a.site.span.start)))

    def ownership(self, array: str) -> Ownership:
        """What the kernel does with an array, inferred from its borrows."""
        effects = [a.effect for a in self.borrows(array)]
        if not effects:
            return Ownership.UNUSED
        return Ownership.SHARED if max(effects) is Effect.READ else Ownership.MUT

    def conflicts(self) -> Iterator[Conflict]:
        """Every pair of borrows of one array of which at least one is not shared, itself included."""
        for array in self.arrays():
            borrows = self.borrows(array)
            for i, first in enumerate(borrows):
                for second in borrows[i:]:
                    if first.effect is not Effect.READ or second.effect is not Effect.READ:
                        yield Conflict(array, first, second)

    def ordered(self, first: Access, second: Access) -> bool:
        """Whether a happens-before path leads from one access of a block to the other."""
        a, b = _partition_of(self.edges, first), _partition_of(self.edges, second)
        if a is None or b is None:
            return False
        import networkx as nx  # lazy: most kernels have one access of each array

        order = nx.subgraph_view(
            self.graph, filter_edge=lambda u, v, k: self.graph[u][v][k]["kind"] == "happens-before"
        )
        if a == b:
            return bool(order.has_edge(a, a))
        return bool(nx.has_path(order, a, b) or nx.has_path(order, b, a))

    def alias_groups(self) -> tuple[tuple[str, ...], ...]:
        """The parameters that share a buffer in some launch; only groups of two and more."""
        import networkx as nx  # lazy: as above

        moves = nx.Graph()
        for buffer, array, data in self.graph.edges(data=True):
            if data["kind"] == "moves":
                moves.add_edge(buffer, array)
        groups = []
        for component in nx.connected_components(moves):
            names = sorted(
                self.edges.nodes[n]["name"] for n in component if self.edges.nodes[n]["kind"] == "array"
            )
            if len(names) > 1:
                groups.append(tuple(names))
        return tuple(sorted(groups))

    def aliases(self) -> Iterator[Alias]:
        """Launches whose arguments may share memory while one of the two parameters is borrowed mutably."""
        for node, data in self.edges.nodes(data=True):
            if data["kind"] != "launch":
                continue
            moves = list(self._moves(node))
            for i, first in enumerate(moves):
                for second in moves[i + 1 :]:
                    yield from self._alias(first, second)

    def _moves(self, launch: str) -> Iterator[tuple[Any, str, HostTensor]]:
        """The buffers that a launch moves, with the name of the parameter and the tensor."""
        for _, buffer in self.edges.out_edges(launch):
            for _, array, move in self.edges.out_edges(buffer, data=True):
                if move["kind"] == "moves":
                    yield self.edges.nodes[buffer], self.edges.nodes[array]["name"], move["tensor"]

    def _alias(
        self, first: tuple[Any, str, HostTensor], second: tuple[Any, str, HostTensor]
    ) -> Iterator[Alias]:
        names = [first[1], second[1]]
        written = [n for n in names if self.ownership(n) is Ownership.MUT]
        if written:
            other = next((n for n in names if n != written[0]), written[0])
            launch = first[0]["launch"]
            found = sharing(first[2], second[2], launch.facts)
            if found is not None:
                tensors_ = (first[2], second[2]) if names[0] == written[0] else (second[2], first[2])
                yield Alias(launch, first[0]["name"], written[0], other, found, tensors_)


def array_node(name: str) -> str:
    return f"array:{name}"


def _partition_of(edges: Edges | nx.MultiDiGraph, access: Access) -> str | None:
    for _, partition, data in edges.out_edges(BLOCK, data=True):
        if data["kind"] == "borrows" and data["access"] is access:
            return str(partition)
    return None


# ---- building ----------------------------------------------------------------------------------------------


def build(kernel: Kernel, launches: Sequence[Launch] = ()) -> BorrowGraph:
    """The borrow graph of a kernel and of its visible launches."""
    graph = Edges()
    graph.add_node(BLOCK, kind="block", name=_block_name(kernel))
    for param in kernel.params:
        if param.is_array:
            graph.add_node(array_node(param.name), kind="array", name=param.name, site=param.site)
    _add_accesses(graph, kernel.accesses)
    for number, launch in enumerate(launches):
        _add_launch(graph, launch, number)
    return BorrowGraph(kernel, graph)


def _block_name(kernel: Kernel) -> str:
    return f"block ({', '.join(f'ct.bid({k})' for k in kernel.grid_axes)})" if kernel.grid_axes else "block"


def _add_accesses(graph: Edges, accesses: Sequence[Access]) -> None:
    partitions: dict[object, str] = {}
    counts: dict[str, int] = {}
    last: dict[str, str] = {}
    for access in accesses:
        owner = array_node(access.array)
        if owner not in graph:
            graph.add_node(owner, kind="array", name=access.array, site=access.site)
        key = (access.array, access.member, access.space, access.axes, access.mask, access.guard)
        if key not in partitions:
            number = counts[access.array] = counts.get(access.array, -1) + 1
            node = f"partition:{access.array}:{number}"
            partitions[key] = node
            graph.add_node(node, kind="partition", name=access.array, access=access)
            graph.add_edge(owner, node, kind="owns")
        node = partitions[key]
        graph.add_edge(BLOCK, node, kind="borrows", mode=MODES[access.effect], access=access)
        # Tokens chain the accesses of one array in program order, views and raw memory included.
        if access.array in last:
            graph.add_edge(last[access.array], node, kind="happens-before")
        last[access.array] = node


def _add_launch(graph: Edges, launch: Launch, number: int) -> None:
    node = f"launch:{number}"
    graph.add_node(node, kind="launch", name=f"{launch.function}", site=launch.site)
    for param, value in launch.arguments:
        for tensor in tensors(value):
            buffer = f"buffer:{number}:{tensor.storage}"
            if buffer not in graph:
                graph.add_node(buffer, kind="buffer", name=tensor.storage, launch=launch)
                graph.add_edge(node, buffer, kind="borrows", mode="launch")
            if array_node(param) in graph:
                graph.add_edge(buffer, array_node(param), kind="moves", tensor=tensor)


def tensors(value: HostValue) -> Iterator[HostTensor]:
    """The tensors in an argument, those of lists included."""
    if isinstance(value, HostTensor):
        yield value
    elif isinstance(value, HostList):
        for item in value.items:
            yield from tensors(item)
