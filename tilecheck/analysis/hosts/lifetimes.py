"""Misuse that no timing excuses: moved memory, what a graph holds, and what it froze."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.hosts.findings import HostFinding
from tilecheck.analysis.hosts.graph import Borrow, HostGraph, Order
from tilecheck.analysis.hosts.regions import Answer, Meeting, Overlap
from tilecheck.ir.host_program import (
    Allocate,
    Back,
    Capture,
    Destroy,
    Forbidden,
    Free,
    Join,
    Keep,
    Move,
    Place,
    Rebind,
    Replay,
    Touch,
    Work,
)

_CERTAIN = Meeting(Answer.MEET)


def moved(graph: HostGraph, order: Order) -> Iterator[HostFinding]:
    """Uses of memory between the step that moved it away and the step that gave it back, other than by what it
    was moved into (H2)."""
    for node in graph.of_kind("memory"):
        backs = graph.steps_to(node, Back)

        def away(step: str, use: str, backs: list[str] = backs) -> bool:
            returned = any(order.before(step, b) and order.before(b, use) for b in backs)
            return order.before(step, use) and not returned

        moves = graph.steps_from(node, Move)
        for step in moves:
            if any(away(other, step) for other in moves):
                continue  # what follows is held against the first move
            into = next(data["into"] for to, data in graph.edges_from(node, "moves") if to == step)
            for use, exact in (*_uses(graph, node, into), *((other, True) for other in moves)):
                if away(step, use):
                    yield _found(graph, "TC412", step, use, graph.memory(node).name, exact=exact)


def _uses(graph: HostGraph, memory: str, by: str) -> Iterator[tuple[str, bool]]:
    """The steps of the host that use memory, by work or by the replay of a graph, but for one user; and whether
    they surely do."""
    users = _users(graph, memory)
    for user, exact in users.items():
        action = graph.action(user)
        if len(graph.path(user)) == 1 and isinstance(action, Work | Touch) and action.name != by:
            yield graph.step_of(user), exact
    for replay, name in _replays(graph):
        if name != by:
            yield from ((graph.step_of(replay), users[c]) for c in graph.replayed(replay) if c in users)


def _users(graph: HostGraph, memory: str) -> dict[str, bool]:
    """The work and the steps that touch memory, but for its next owner and the caller; and whether they surely
    do."""
    found: dict[str, bool] = {}
    for borrow in graph.borrows(memory):
        if graph.node(borrow.holder)["kind"] in ("part", "step", "captured"):
            found[borrow.holder] = found.get(borrow.holder, False) or borrow.region.exact
    return found


def _replays(graph: HostGraph) -> Iterator[tuple[str, str]]:
    """What replays a graph, on the device or captured into another graph, and the name of the graph."""
    for kind in ("start", "captured"):
        for node in graph.of_kind(kind):
            action = graph.action(node)
            if len(graph.path(node)) == 1 and isinstance(action, Replay):
                yield node, action.graph


def returned_to_pool(graph: HostGraph, order: Order) -> Iterator[HostFinding]:
    """Uses by the program of memory that it gave back to the pool of a graph that still is (H3)."""
    for node in graph.of_kind("memory"):
        freed = graph.steps_from(node, Free)
        released = [
            s
            for owner, _ in graph.edges_to(node, "owns")
            if graph.node(owner)["kind"] == "graph"
            for s in graph.steps_from(owner, Destroy)
        ]
        for step in freed[:1]:
            for user, exact in _users(graph, node).items():
                use = graph.step_of(user)
                gone = any(order.before(step, s) and order.before(s, use) for s in released)
                if len(graph.path(user)) == 1 and order.before(step, use) and not gone:
                    yield _found(graph, "TC413", step, use, graph.memory(node).name, exact=exact)


def destroyed(graph: HostGraph, order: Order) -> Iterator[HostFinding]:
    """Replays of a graph that was released and not captured again (G1)."""
    for replay, name in _replays(graph):
        step = graph.step_of(replay)
        for node, _ in graph.edges_to(replay, "owns"):
            if graph.node(node)["name"] != name:
                continue
            gone = [s for s in graph.steps_from(node, Destroy) if order.before(s, step)]
            again = [s for s in graph.steps_to(node, Capture) if order.before(s, step)]
            if gone and not any(order.before(gone[-1], s) for s in again):
                yield _found(graph, "TC421", gone[-1], replay, name)


def forbidden(graph: HostGraph) -> Iterator[HostFinding]:
    """Steps that may not be captured (G2)."""
    for node in graph.of_kind("graph"):
        for owned, edge in graph.edges_from(node, "owns"):
            for what in _forbidden(graph, owned) if "since" in edge else ():
                yield _found(graph, "TC422", edge["since"], owned, what)


def _forbidden(graph: HostGraph, node: str) -> Iterator[str]:
    """What of a step may not be captured: the memory that it uses or allocates, or what it waits for."""
    if graph.node(node)["kind"] == "captured":
        owners = dict.fromkeys(owner for owner, _ in graph.borrowed_by(node))
        yield from (graph.memory(o).name for o in owners if graph.memory(o).place is Place.PAGEABLE)
        return
    match graph.action(node):
        case Allocate(memory=name):
            memory = graph.program.by_name[name]
            if memory.pool is None and memory.place is not Place.PAGEABLE:
                yield name
        case Forbidden(what=what):
            yield what
        case Join(stream=stream, event=event):
            yield stream or event or ""
        case Capture(graph=inner):
            yield inner


def frozen(graph: HostGraph, order: Order) -> Iterator[HostFinding]:
    """Replays after a host variable that the graph froze got another value (G3 for a tensor, G4)."""
    for replay, _ in _replays(graph):
        step = graph.step_of(replay)
        for captured in dict.fromkeys(graph.replayed(replay)):
            for variable, edge in graph.edges_from(captured, "borrows"):
                if edge["mode"] != "frozen":
                    continue
                since = graph.step_of(captured)
                bound = [s for s in graph.steps_from(variable, Rebind) if order.before(s, step)]
                if bound and order.before(since, bound[-1]):
                    name = graph.node(variable)["name"]
                    code = "TC423" if name in graph.program.by_name else "TC424"
                    yield _found(graph, code, bound[-1], replay, name)


def kept(graph: HostGraph, order: Order) -> Iterator[HostFinding]:
    """Results that are kept without a copy and used after a replay has written them again (G6)."""
    for node in graph.of_kind("kept"):
        keeps = [s for s, _ in graph.edges_from(node, "owns") if isinstance(graph.action(s), Keep)]
        for use, _ in graph.edges_to(node, "borrows"):
            earlier = [keep for keep in keeps if order.before(keep, use)]
            for memory, _ in graph.edges_from(earlier[-1], "borrows") if earlier else ():
                again = [r for r in _writers(graph, memory) if order.before(earlier[-1], r)]
                if again and order.before(graph.step_of(again[0]), use):
                    yield _found(graph, "TC426", again[0], use, graph.memory(memory).name)


def _writers(graph: HostGraph, memory: str) -> list[str]:
    """The replays on the device that write memory, in the order of the program."""
    writers = {b.holder for b in graph.borrows(memory) if b.mutable}
    replays = (r for r in graph.of_kind("start") if len(graph.path(r)) == 1)
    return sorted((r for r in replays if writers & set(graph.replayed(r))), key=graph.path)


def unwritten(graph: HostGraph, overlap: Overlap) -> Iterator[HostFinding]:
    """Reads of what only captured work of other graphs has written, none of which was replayed before (G6)."""
    for node in graph.of_kind("memory"):
        if graph.memory(node).handed_in:
            continue
        borrows = list(graph.borrows(node))
        done = [b for b in borrows if b.mutable and graph.node(b.holder)["kind"] in ("part", "step")]
        waiting = list(_captured_writes(graph, node, borrows))
        for read in borrows:
            if read.mutable or graph.node(read.holder)["kind"] not in ("part", "step"):
                continue
            earlier = [b for b in done if b.path < read.path]
            for holder, write in waiting:
                if graph.path(holder)[0] < read.path[0] and not _has_run(graph, holder, read):
                    yield from _unwritten(graph, (read, holder, write), earlier, overlap)


def _captured_writes(graph: HostGraph, memory: str, borrows: list[Borrow]) -> Iterator[tuple[str, Borrow]]:
    """Writes that a graph keeps for later, each with the captured action: a launch or a replay."""
    writes = [b for b in borrows if b.mutable and graph.node(b.holder)["kind"] == "captured"]
    for captured in graph.of_kind("captured"):
        inside = {captured, *graph.replayed(captured)}
        yield from ((captured, write) for write in writes if write.holder in inside)


def _has_run(graph: HostGraph, captured: str, read: Borrow) -> bool:
    """Whether a replay has run captured work before a read, or it is the replay of its own graph that reads."""
    replay = graph.program.actions[read.path[0]]
    if isinstance(replay, Replay) and replay.graph == graph.node(captured)["graph"]:
        return True
    # Whatever the work may write, it has written when it has run, or never does.
    starts = (s for s in graph.of_kind("start") if len(graph.path(s)) == 1 and graph.path(s) < read.path[:1])
    return any(captured in graph.replayed(start) for start in starts)


def _unwritten(
    graph: HostGraph, pair: tuple[Borrow, str, Borrow], earlier: list[Borrow], overlap: Overlap
) -> Iterator[HostFinding]:
    read, holder, write = pair
    meeting = overlap(read.region, write.region, tuple(b.region for b in earlier))
    exact = read.region.exact and write.region.exact
    if meeting.answer is Answer.APART:  # but what may be written need not be
        surely = tuple(b.region for b in earlier if b.region.exact)
        meeting, exact = overlap(read.region, write.region, surely), False
    if meeting.answer is not Answer.APART:
        yield HostFinding(
            "TC426",
            graph.path(holder)[0],
            read.path[0],
            read.region.memory,
            exact,
            meeting,
            (holder, read.holder),
        )


def _found(
    graph: HostGraph, code: str, first: str, second: str, what: str, *, exact: bool = True
) -> HostFinding:
    places = graph.path(first)[0], graph.path(second)[0]
    return HostFinding(code, *places, what, exact, _CERTAIN, (first, second))
