"""The host borrow graph as a tree with the order of each pair of borrows, and as DOT."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import networkx as nx

from tilecheck.analysis.hosts.findings import HostFinding
from tilecheck.analysis.hosts.graph import AFTER, BEFORE, Borrow, HostGraph, Order, parting
from tilecheck.dataclass import dataclass
from tilecheck.ir.host_program import Free, Memory, Replay, Touch, Work
from tilecheck.ir.host_text import region_text
from tilecheck.model import Site

Where = Callable[[Site], str]
_ALONE = frozenset({"TC412", "TC422", "TC423", "TC424", "TC426"})  # of which no race is a part
# Steps inside an item, which say nothing of why two items are in order.
_INNER = frozenset({"start", "end", "the host", "replay", "wait"})


def tree(graph: HostGraph, found: Sequence[HostFinding], where: Where) -> str:
    """Memories, below each who borrows it, in the order of the program, and below each borrow what orders it
    after the borrows that it conflicts with, or the rule that the two break; then what else is found."""
    order = graph.order()
    lines = [f"{graph.program.function}, called on stream `{graph.program.caller}`"]
    branches = [
        [_owner(graph.memory(node)), *_borrows(graph, order, node, found, where)]
        for node in graph.of_kind("memory")
        if any(graph.borrows(node))
    ]
    branches += [[f"{f.code} on {f.memory}: {_pair(graph, f, where)}"] for f in found if f.code in _ALONE]
    for number, (head, *below) in enumerate(branches):
        last = number == len(branches) - 1
        lines.append(f"{'└─' if last else '├─'} {head}")
        lines += [f"{'   ' if last else '│  '}{line}" for line in below]
    return "\n".join(lines) + "\n"


def _owner(memory: Memory) -> str:
    parts = [f"{memory.name}: {memory.place.value} memory"]
    parts += [f"of stream `{memory.stream}`"] if memory.stream is not None else []
    parts += [f"in the pool of graph `{memory.pool}`"] if memory.pool is not None else []
    parts += ["handed in"] if memory.handed_in else []
    return ", ".join([" ".join(parts[:2]), *parts[2:]])


@dataclass(frozen=True, slots=True)
class _Holder:
    """All that one node borrows of a memory."""

    node: str
    borrows: tuple[Borrow, ...]

    @property
    def mutable(self) -> bool:
        return any(borrow.mutable for borrow in self.borrows)


def _borrows(
    graph: HostGraph, order: Order, memory: str, found: Sequence[HostFinding], where: Where
) -> Iterator[str]:
    held: dict[str, list[Borrow]] = {}
    for borrow in sorted(graph.borrows(memory), key=lambda b: b.path):
        if graph.node(borrow.holder)["kind"] != "captured":
            held.setdefault(borrow.holder, []).append(borrow)
    holders = [_Holder(node, tuple(borrows)) for node, borrows in held.items()]
    for number, holder in enumerate(holders):
        last = number == len(holders) - 1
        mode = "mutable" if holder.mutable else "shared"
        regions = ", ".join(dict.fromkeys(region_text(borrow.region) for borrow in holder.borrows))
        yield f"{'└─' if last else '├─'} borrowed {mode} by {holder_text(graph, holder.node, where)}: {regions}"
        for line in _relations(graph, order, holders[:number], holder, found, where):
            yield f"{'   ' if last else '│  '}   {line}"


def _relations(
    graph: HostGraph,
    order: Order,
    earlier: Sequence[_Holder],
    holder: _Holder,
    found: Sequence[HostFinding],
    where: Where,
) -> Iterator[str]:
    """What keeps a borrow apart from earlier ones that it conflicts with, but for those that another of them
    follows."""
    path = graph.path(holder.node)
    others = [o for o in earlier if (o.mutable or holder.mutable) and graph.path(o.node) != path]
    for other in others:
        paths = (graph.path(other.node), path)
        steps = {one[parting(*paths)] for one in paths}
        here = {borrow.region.memory for borrow in holder.borrows}
        codes = [f.code for f in found if {f.first, f.second} == steps and f.memory in here]
        name = holder_text(graph, other.node, where)
        if codes:
            yield f"{codes[0]}: in no order with {name}"
        elif not order.before(other.node, holder.node):
            yield f"apart from {name}"
        elif not any(order.before(other.node, o.node) and order.before(o.node, holder.node) for o in others):
            yield f"after {name}: {', '.join(reasons(graph, other.node, holder.node))}"


def reasons(graph: HostGraph, first: str, second: str) -> tuple[str, ...]:
    """Why the first has ended when the second starts: the reasons along the shortest path of happens-before
    edges."""

    def leads(u: str, v: str, key: int) -> bool:
        sure = v == second or graph.graph.nodes[v].get("certain", True)
        return graph.graph[u][v][key]["kind"] == "happens-before" and sure

    order = nx.subgraph_view(graph.graph, filter_edge=leads)
    path = nx.shortest_path(order, first, second)
    found = [
        edge["why"]
        for u, v in itertools.pairwise(path)
        for edge in list(graph.graph[u][v].values())[:1]
        if edge["why"] not in _INNER
    ]
    return tuple(dict.fromkeys(found)) or ("the host waits",)


def holder_text(graph: HostGraph, holder: str, where: Where) -> str:
    """Who holds a borrow: `` `scale` on stream `side` at 12:5 ``."""
    if holder in (BEFORE, AFTER):
        return "the caller before the call" if holder == BEFORE else "the caller after the return"
    action = graph.action(holder)
    path = graph.path(holder)
    replayed = f" in the replay at {where(graph.program.actions[path[0]].site)}" if len(path) > 1 else ""
    assert action is not None
    place = f"at {where(action.site)}{replayed}"
    match action:
        case Work(name=name, stream=stream):
            early = " before its wait" if holder.startswith("before:") and action.dependent else ""
            return f"`{name}` on stream `{stream}` {place}{early}"
        case Replay(graph=name):
            return f"the replay of `{name}` {place}"
        case Touch(name=name):
            return f"the host (`{name}`) {place}"
        case Free():
            return f"the next owner, freed {place}"
        case _:
            return f"the step {place}"


def _pair(graph: HostGraph, found: HostFinding, where: Where) -> str:
    return " and ".join(holder_text(graph, holder, where) for holder in found.holders)


# ---- DOT ---------------------------------------------------------------------------------------------------

_SHAPES = {
    "memory": "box3d",
    "region": "ellipse",
    "stream": "cds",
    "graph": "folder",
    "step": "plaintext",
    "event": "diamond",
    "await": "diamond",
    "caller": "house",
    "free": "octagon",
    "variable": "note",
    "kept": "note",
}


def dot(graphs: Iterable[HostGraph], where: Where) -> str:
    """The graphs for Graphviz, one cluster for each path through the function."""
    lines = ["digraph host {", "  rankdir=LR;"]
    for number, graph in enumerate(graphs):
        ids = {node: f"n{number}_{i}" for i, node in enumerate(graph.graph.nodes)}
        lines += [f"  subgraph cluster_{number} {{", f"    label={_quote(f'path {number + 1}')};"]
        for node, data in graph.graph.nodes(data=True):
            shape = _SHAPES.get(data["kind"], "box")
            lines.append(f"    {ids[node]} [shape={shape}, label={_quote(_label(graph, node, where))}];")
        for start, end, data in graph.graph.edges(data=True):
            label = data.get("why") or f"{data['kind']} {data.get('mode', '')}".rstrip()
            style = ", style=dashed" if data["kind"] == "happens-before" else ""
            lines.append(f"    {ids[start]} -> {ids[end]} [label={_quote(label)}{style}];")
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _label(graph: HostGraph, node: str, where: Where) -> str:
    data = graph.node(node)
    if data["kind"] == "memory":
        return _owner(graph.memory(node))
    if data["kind"] == "region":
        return region_text(data["region"])
    if data["kind"] in ("part", "captured", "free", "caller"):
        return holder_text(graph, node, where)
    action = graph.action(node) if "path" in data else None
    return node if action is None else f"{node}\n{where(action.site)}"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
