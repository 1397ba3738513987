"""Misuse that no timing excuses: moved memory, what a graph holds, and what it froze."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.hosts.findings import HostFinding
from tilecheck.analysis.hosts.graph import HostGraph, Order, memory_node
from tilecheck.analysis.hosts.regions import Answer, Meeting
from tilecheck.ir.host_program import Back, Destroy, Forbidden, Move

_CERTAIN = Meeting(Answer.MEET)


def moved(graph: HostGraph, order: Order) -> Iterator[HostFinding]:
    """Uses of memory between the step that moved it away and the step that gave it back (H2)."""
    for memory in graph.memories():
        node = memory_node(memory.name)
        taken = [s for s, _ in graph.edges_from(node, "moves") if isinstance(graph.action(s), Move)]
        backs = [s for s, _ in graph.edges_to(node, "moves") if isinstance(graph.action(s), Back)]
        uses = dict.fromkeys(
            b.holder for b in graph.borrows(memory.name) if graph.node(b.holder).get("replay") is None
        )
        for step in taken:
            for use in (*uses, *taken):
                returned = any(order.before(step, b) and order.before(b, use) for b in backs)
                if order.before(step, use) and not returned:
                    yield _found(graph, "TC412", step, use, memory.name)


def destroyed(graph: HostGraph, order: Order) -> Iterator[HostFinding]:
    """Replays of a graph that was released, and uses of memory in its pool (G1)."""
    for node in graph.of_kind("graph"):
        name = graph.node(node)["name"]
        for step, _ in graph.edges_from(node, "moves"):
            if not isinstance(graph.action(step), Destroy):
                continue
            for start in graph.of_kind("start"):
                data = graph.node(start)
                if data["graph"] == name and data["replay"] == data["index"] and order.before(step, start):
                    yield _found(graph, "TC421", step, start, "")
            for owned in graph.owned(node, "memory"):
                memory = graph.node(owned)["memory"].name
                for borrow in graph.borrows(memory):
                    if order.before(step, borrow.holder) and graph.node(borrow.holder).get("graph") != name:
                        yield _found(graph, "TC421", step, borrow.holder, memory)


def forbidden(graph: HostGraph) -> Iterator[HostFinding]:
    """Steps that may not be captured (G2)."""
    for node in graph.of_kind("graph"):
        steps = list(graph.owned(node, "step"))
        for step in steps:
            if isinstance(graph.action(step), Forbidden):
                yield _found(graph, "TC422", steps[0], step, "")


def frozen(graph: HostGraph, order: Order) -> Iterator[HostFinding]:
    """Replays after a host variable that the graph froze got another value (G3 for a tensor, G4)."""
    for variable in graph.of_kind("variable"):
        name = graph.node(variable)["name"]
        code = "TC423" if name in graph.program.by_name else "TC424"
        keepers = [c for c, data in graph.edges_to(variable, "borrows") if data["mode"] == "frozen"]
        for rebound, _ in graph.edges_from(variable, "moves"):
            for captured in keepers:
                for start in _replays_of(graph, captured):
                    if order.before(graph.step_of(captured), rebound) and order.before(rebound, start):
                        yield _found(graph, code, rebound, start, name)


def _replays_of(graph: HostGraph, captured: str) -> Iterator[str]:
    index = graph.node(captured)["index"]
    for start in graph.of_kind("start"):
        data = graph.node(start)
        if data["index"] == index and data.get("replay") is not None:
            yield start


def kept(graph: HostGraph, order: Order) -> Iterator[HostFinding]:
    """Results that are kept without a copy and used after a replay has written them again (G6)."""
    for node in graph.of_kind("kept"):
        uses = [s for s, _ in graph.edges_to(node, "borrows")]
        for keep in graph.owned(node, "step"):
            for held, _ in graph.edges_from(keep, "borrows"):
                memory = graph.node(held)["memory"].name
                for borrow in graph.borrows(memory):
                    if not borrow.mutable or graph.node(borrow.holder).get("replay") is None:
                        continue
                    for use in uses:
                        if order.before(keep, borrow.holder) and order.before(
                            graph.step_of(borrow.holder), use
                        ):
                            yield _found(graph, "TC426", borrow.holder, use, memory)


def _found(graph: HostGraph, code: str, first: str, second: str, memory: str) -> HostFinding:
    pair = (first, second)
    return HostFinding(code, graph.place(first)[0], graph.place(second)[0], memory, True, _CERTAIN, pair)
