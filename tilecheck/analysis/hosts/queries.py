"""All queries over a host borrow graph, and what they find."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.hosts.conflicts import Races
from tilecheck.analysis.hosts.findings import HostFinding
from tilecheck.analysis.hosts.graph import HostGraph
from tilecheck.analysis.hosts.lifetimes import (
    destroyed,
    forbidden,
    frozen,
    kept,
    moved,
    returned_to_pool,
    unwritten,
)
from tilecheck.analysis.hosts.regions import Overlap, by_text


def findings(graph: HostGraph, overlap: Overlap | None = None) -> tuple[HostFinding, ...]:
    """What the edges of the graph show, in the order of the program: for each rule, pair of actions and memory
    the most certain finding.

    Args:
        graph: the graph as it is now.
        overlap: decides whether two regions meet; by default by their text alone.
    """
    best: dict[tuple[object, ...], HostFinding] = {}
    for found in _all(graph, by_text(graph.program) if overlap is None else overlap):
        key = (found.code, found.first, found.second, found.memory)
        if key not in best or found.certainty > best[key].certainty:
            best[key] = found
    return tuple(sorted(best.values(), key=lambda f: (f.second, f.first, f.code, f.memory)))


def _all(graph: HostGraph, overlap: Overlap) -> Iterator[HostFinding]:
    order = graph.order()
    yield from Races(graph, order, graph.order(plain=True), overlap).found()
    for query in (moved, returned_to_pool, destroyed, frozen, kept):
        yield from query(graph, order)
    yield from forbidden(graph)
    yield from unwritten(graph, overlap)
