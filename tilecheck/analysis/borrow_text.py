"""The borrow graph as a tree and as DOT."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tilecheck.analysis.borrow import BLOCK, BorrowGraph, array_node
from tilecheck.ir.kernel import Access
from tilecheck.ir.printer import Names, access_text
from tilecheck.model import Site

Where = Callable[[Site], str]


def tree(borrows: BorrowGraph, where: Where) -> str:
    """Arrays with their ownership, below each its partitions and who borrows them; then the launches."""
    names = Names()
    lines = [f"{borrows.kernel.name} — {borrows.graph.nodes[BLOCK]['name']}"]
    arrays = borrows.arrays()
    for number, array in enumerate(arrays):
        last = number == len(arrays) - 1
        lines.append(f"{'└─' if last else '├─'} {array}: {borrows.ownership(array).value}")
        lines += [f"{'   ' if last else '│  '}{line}" for line in _partitions(borrows, array, names, where)]
    for group in borrows.alias_groups():
        lines.append(f"alias group: {', '.join(group)}")
    lines += _launches(borrows, where)
    return "\n".join(lines) + "\n"


def _partitions(borrows: BorrowGraph, array: str, names: Names, where: Where) -> Iterator[str]:
    graph = borrows.graph
    owned = [p for _, p, d in graph.out_edges(array_node(array), data=True) if d["kind"] == "owns"]
    for number, partition in enumerate(owned):
        last = number == len(owned) - 1
        access: Access = graph.nodes[partition]["access"]
        yield f"{'└─' if last else '├─'} owns {_region(access, names)}"
        for _, _, edge in graph.in_edges(partition, data=True):
            if edge["kind"] == "borrows":
                site = where(edge["access"].site)
                yield f"{'   ' if last else '│  '}borrowed {edge['mode']} by the block at {site}"


def _region(access: Access, names: Names) -> str:
    return access_text(access, names).split(" ", 1)[1]


def _launches(borrows: BorrowGraph, where: Where) -> Iterator[str]:
    graph = borrows.graph
    for node, data in graph.nodes(data=True):
        if data["kind"] != "launch":
            continue
        yield f"launch in {data['name']} at {where(data['site'])}"
        for _, buffer, _ in graph.out_edges(node, data=True):
            for _, array, move in graph.out_edges(buffer, data=True):
                if move["kind"] == "moves":
                    yield f"   {move['tensor'].name} moves into {graph.nodes[array]['name']}"


def dot(borrows: BorrowGraph) -> str:
    """The same graph for Graphviz."""
    names = Names()
    shapes = {"array": "box", "partition": "ellipse", "block": "hexagon", "launch": "house", "buffer": "box3d"}
    lines = [f"digraph {_quote(borrows.kernel.name)} {{", "  rankdir=LR;"]
    ids = {node: f"n{i}" for i, node in enumerate(borrows.graph.nodes)}
    for node, data in borrows.graph.nodes(data=True):
        label = _region(data["access"], names) if data["kind"] == "partition" else data["name"]
        lines.append(f"  {ids[node]} [shape={shapes[data['kind']]}, label={_quote(label)}];")
    for start, end, data in borrows.graph.edges(data=True):
        label = f"{data['kind']} {data['mode']}" if data["kind"] == "borrows" else data["kind"]
        style = ", style=dashed" if data["kind"] == "happens-before" else ""
        lines.append(f"  {ids[start]} -> {ids[end]} [label={_quote(label)}{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
