"""What a graph holds, for people and programs: its nodes, their order, and the memory that it owns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict

from tilecheck.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """One piece of captured work. `name` is the kernel or the call; `site` is the line that submitted it."""

    number: int
    kind: str  # kernel | copy | fill | call
    name: str
    site: str
    stream: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """One node comes after another: when that has ended, or, if it is programmatic, when that has started."""

    first: int
    second: int
    programmatic: bool = False


@dataclass(frozen=True, slots=True)
class OwnedBuffer:
    """Memory that lives as long as the graph."""

    name: str
    nbytes: int
    place: str  # device | pinned
    written: bool
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """A captured graph. A `call` is one node here, whatever the code in it has enqueued."""

    name: str
    site: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    buffers: tuple[OwnedBuffer, ...]

    @property
    def kinds(self) -> Mapping[str, int]:
        """How many nodes there are of each kind."""
        return Counter(node.kind for node in self.nodes)

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "kinds": dict(self.kinds)}, indent=2)

    def to_dot(self) -> str:
        """The graph in the language of Graphviz; programmatic edges are dashed."""
        lines = [f"digraph {_quoted(self.name)} {{", "  node [shape=box];"]
        for node in self.nodes:
            touched = [*(f"reads {name}" for name in node.reads), *(f"writes {name}" for name in node.writes)]
            lines.append(f"  n{node.number} [label={_quoted(chr(10).join([node.name, *touched]))}];")
        for edge in self.edges:
            style = " [style=dashed]" if edge.programmatic else ""
            lines.append(f"  n{edge.first} -> n{edge.second}{style};")
        return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
