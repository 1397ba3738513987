"""Races: two borrows of one memory that no order keeps apart, and the rule that each of them breaks."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.hosts.findings import HostFinding
from tilecheck.analysis.hosts.graph import AFTER, Borrow, HostGraph, Order
from tilecheck.analysis.hosts.regions import Answer, Overlap
from tilecheck.ir.host_program import Place, Touch, Work


def races(graph: HostGraph, order: Order, overlap: Overlap) -> Iterator[HostFinding]:
    """Every two borrows of one memory, one of them mutable, that may be held at once (H1, H3-H5, G5, P1-P3)."""
    for memory in graph.memories():
        # What is captured runs in the replays alone.
        borrows = [b for b in graph.borrows(memory.name) if graph.node(b.holder)["kind"] != "captured"]
        borrows.sort(key=lambda b: graph.place(b.holder))
        for number, first in enumerate(borrows):
            for second in borrows[number + 1 :]:
                if not (first.mutable or second.mutable) or order.ordered(first.holder, second.holder):
                    continue
                if not _is_one_piece(graph, first.holder, second.holder):
                    yield from _race(graph, memory.place, first, second, overlap)


def _race(
    graph: HostGraph, where: Place, first: Borrow, second: Borrow, overlap: Overlap
) -> Iterator[HostFinding]:
    meeting = overlap(first.region, second.region)
    if meeting.answer is Answer.APART:
        return
    pair = (first.holder, second.holder)
    indices = _indices(graph, *pair)
    exact = first.region.exact and second.region.exact
    yield HostFinding(_code(graph, where, *pair), *indices, first.region.memory, exact, meeting, pair)


def _is_one_piece(graph: HostGraph, first: str, second: str) -> bool:
    """Whether both are parts of one launch: what its programs do to each other is judged in the kernel."""
    keys = {holder.partition(":")[2] for holder in (first, second)}
    return len(keys) == 1 and {graph.node(first)["kind"], graph.node(second)["kind"]} == {"part"}


def _indices(graph: HostGraph, first: str, second: str) -> tuple[int, int]:
    """The actions that a finding names: for what a replay runs the replay, but for two pieces of work of one
    replay what was captured."""
    places = graph.place(first), graph.place(second)
    return (places[0][1], places[1][1]) if places[0][0] == places[1][0] else (places[0][0], places[1][0])


def _code(graph: HostGraph, where: Place, first: str, second: str) -> str:
    """The rule that a race breaks, by what the two are."""
    data = [graph.node(first), graph.node(second)]
    replays = [d.get("replay") for d in data]
    if "free" in (d["kind"] for d in data):
        if where is not Place.DEVICE:
            return "TC415"
        return "TC413" if replays == [None, None] else "TC421"
    if AFTER in (first, second):
        return "TC414"
    if any(isinstance(graph.action(holder), Touch) for holder in (first, second)):
        return "TC415"
    if None not in replays and data[0]["graph"] != data[1]["graph"]:
        return "TC425"
    return _dependent_code(graph, first, second)


def _dependent_code(graph: HostGraph, first: str, second: str) -> str:
    overlapping = [h for h in (second, first) if graph.node(h).get("overlaps")]
    for holder in overlapping:
        action = graph.action(holder)
        if isinstance(action, Work) and holder.startswith("before:"):
            return "TC431" if action.waits else "TC432"
    return "TC433" if overlapping else "TC411"
