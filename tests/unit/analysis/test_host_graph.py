"""The host borrow graph: each rule is a query over its edges, so that one edge more or less changes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilecheck.analysis.hosts.build import build
from tilecheck.analysis.hosts.graph import AFTER, BEFORE, HostGraph
from tilecheck.analysis.hosts.queries import findings
from tilecheck.analysis.hosts.regions import Answer, by_text
from tilecheck.ir.expr import Kind, Symbol, add, const, le, sym
from tilecheck.ir.host_program import (
    Action,
    Allocate,
    Await,
    Back,
    Capture,
    Destroy,
    EndCapture,
    Footprint,
    Forbidden,
    Free,
    HostProgram,
    Join,
    Keep,
    Memory,
    Move,
    Place,
    Rebind,
    Record,
    Region,
    Replay,
    Touch,
    UseKept,
    Work,
)
from tilecheck.model import Site, Span

SITE = Site("host.py", Span(0, 1))
X, Y = Region("x"), Region("y")
MEMORIES = (Memory("x", SITE, stream="a"), Memory("y", SITE, stream="a"))
Found = list[tuple[str, int, int]]


def work(stream: str, reads: tuple[Region, ...] = (), writes: tuple[Region, ...] = (), **more: object) -> Work:
    return Work(SITE, "kernel", stream, Footprint(reads, writes), **more)  # type: ignore[arg-type]


NOTHING = Footprint()


def dependent(before: Footprint = NOTHING, after: Footprint = NOTHING, *, waits: bool = True) -> Work:
    return Work(SITE, "kernel", "a", after, before, dependent=True, waits=waits)


def graph_of(
    *actions: Action, memories: tuple[Memory, ...] = MEMORIES, returned: tuple[Region, ...] = ()
) -> HostGraph:
    return build(HostProgram("run", SITE, memories, actions, returned=returned))


def found(graph: HostGraph) -> Found:
    return [(f.code, f.first, f.second) for f in findings(graph)]


def edge(graph: HostGraph, first: str, second: str) -> None:
    graph.graph.add_edge(first, second, kind="happens-before", why="a test")


def cut(graph: HostGraph, first: str, second: str, kind: str) -> None:
    keys = [k for k, d in graph.graph[first][second].items() if d["kind"] == kind]
    assert len(keys) == 1
    graph.graph.remove_edge(first, second, keys[0])


WRITE_A, READ_B = work("a", writes=(X,)), work("b", reads=(X,))


def test_two_streams_have_no_order_of_their_own() -> None:
    graph = graph_of(WRITE_A, READ_B)
    assert found(graph) == [("TC411", 0, 1)]
    edge(graph, "end:0", "start:1")
    assert found(graph) == []


def test_an_event_orders_two_streams() -> None:
    graph = graph_of(WRITE_A, Record(SITE, "e", "a"), Await(SITE, "b", "e"), READ_B)
    assert found(graph) == []
    cut(graph, "event:1", "await:2", "happens-before")
    assert found(graph) == [("TC411", 0, 3)]


def test_an_event_marks_what_was_enqueued_before_it() -> None:
    early = graph_of(Record(SITE, "e", "a"), WRITE_A, Await(SITE, "b", "e"), READ_B)
    assert found(early) == [("TC411", 1, 3)]
    again = graph_of(Record(SITE, "e", "a"), WRITE_A, Record(SITE, "e", "a"), Await(SITE, "b", "e"), READ_B)
    assert found(again) == []


@pytest.mark.parametrize("join", [Join(SITE), Join(SITE, stream="a")])
def test_the_host_can_wait(join: Join) -> None:
    graph = graph_of(WRITE_A, join, READ_B)
    assert found(graph) == []
    cut(graph, "end:0", "step:1", "happens-before")
    assert found(graph) == [("TC411", 0, 2)]


def test_the_host_waits_for_an_event() -> None:
    graph = graph_of(WRITE_A, Record(SITE, "e", "a"), Join(SITE, event="e"), READ_B)
    assert found(graph) == []
    cut(graph, "event:1", "step:2", "happens-before")
    assert found(graph) == [("TC411", 0, 3)]


def test_reads_do_not_race_and_regions_may_be_apart() -> None:
    assert found(graph_of(work("a", reads=(X,)), READ_B)) == []
    low, high = (Region("x", ((const(a), const(b)),)) for a, b in ((0, 4), (4, 8)))
    assert found(graph_of(work("a", writes=(low,)), work("b", writes=(high,)))) == []
    assert found(graph_of(work("a", writes=(low,)), work("b", writes=(low,)))) == [("TC411", 0, 1)]


def test_a_borrow_more_is_a_race_more() -> None:
    graph = graph_of(work("a", reads=(X,)), READ_B)
    region = next(graph.of_kind("region"))
    graph.graph.add_edge("after:0", region, kind="borrows", mode="mutable")
    assert found(graph) == [("TC411", 0, 1)]


def test_memory_that_is_no_longer_owned_has_no_race() -> None:
    graph = graph_of(WRITE_A, READ_B)
    cut(graph, "memory:x", next(graph.of_kind("region")), "owns")
    assert found(graph) == []


# ---- the ends of memory and of the function --------------------------------------------------------------


def test_memory_is_freed_in_the_order_of_its_stream() -> None:
    assert found(graph_of(WRITE_A, Free(SITE, "x"))) == []
    graph = graph_of(READ_B, Free(SITE, "x"))
    assert found(graph) == [("TC413", 0, 1)]
    assert found(graph_of(READ_B, Free(SITE, "x", also_after=("b",)))) == []
    edge(graph, "end:0", "free:1")
    assert found(graph) == []


def test_freed_memory_is_not_used_again() -> None:
    assert found(graph_of(Free(SITE, "x"), WRITE_A)) == [("TC413", 0, 1)]
    assert found(graph_of(Free(SITE, "x"), Join(SITE), WRITE_A)) == [("TC413", 0, 2)]


HANDED = (Memory("x", SITE, stream="current", handed_in=True),)


def test_the_caller_has_written_what_it_hands_in() -> None:
    event = (Record(SITE, "e", "current"), Await(SITE, "b", "e"), READ_B, Join(SITE))
    graph = graph_of(*event, memories=HANDED)
    assert found(graph) == []
    cut(graph, BEFORE, "event:0", "happens-before")
    assert found(graph) == [("TC411", -1, 2)]


def test_the_caller_uses_what_it_gets_back() -> None:
    side = work("b", writes=(X,))
    graph = graph_of(side, returned=(X,))
    assert found(graph) == [("TC414", 0, 1)]
    edge(graph, "end:0", AFTER)
    assert found(graph) == []
    assert found(graph_of(side, Record(SITE, "e", "b"), Await(SITE, "current", "e"), returned=(X,))) == []


def test_the_host_touches_memory_of_a_copy() -> None:
    memories = (Memory("x", SITE, Place.PINNED),)
    copy = work("a", reads=(X,), is_launch=False)
    touch = Touch(SITE, "refill", Footprint(writes=(X,)))
    graph = graph_of(copy, touch, memories=memories)
    assert found(graph) == [("TC415", 0, 1)]
    assert found(graph_of(copy, Free(SITE, "x"), memories=memories)) == [("TC415", 0, 1)]
    assert found(graph_of(copy, Join(SITE, stream="a"), touch, memories=memories)) == []
    edge(graph, "end:0", "step:1")
    assert found(graph) == []


def test_moved_memory_is_not_used() -> None:
    use = Touch(SITE, "use", Footprint(reads=(X,)))
    graph = graph_of(Move(SITE, "x", "operation"), use)
    assert found(graph) == [("TC412", 0, 1)]
    assert found(graph_of(Move(SITE, "x", "operation"), Move(SITE, "x", "other"))) == [("TC412", 0, 1)]
    assert found(graph_of(Move(SITE, "x", "operation"), Back(SITE, "x"), use)) == []
    assert found(graph_of(Move(SITE, "x", "use"), use)) == []
    graph.graph.add_edge("step:0", "memory:x", kind="moves")
    assert found(graph) == [("TC412", 0, 1)], "no step gives it back"
    cut(graph, "memory:x", "step:0", "moves")
    assert found(graph) == []


def test_a_replay_uses_moved_memory() -> None:
    write = captured(WRITE_A)
    graph = graph_of(*write, Move(SITE, "x", "operation"), Replay(SITE, "g", "a"))
    assert found(graph) == [("TC412", 3, 4)]
    assert found(graph_of(*write, Move(SITE, "x", "g"), Replay(SITE, "g", "a"))) == []
    cut(graph, "start:4", "captured:1", "borrows")
    assert found(graph) == []


def test_each_allocation_is_memory_of_its_own() -> None:
    renewed = (Free(SITE, "x"), Allocate(SITE, "x"))
    assert found(graph_of(*renewed, WRITE_A)) == []
    assert found(graph_of(READ_B, *renewed, WRITE_A)) == [("TC413", 0, 1)]


def test_the_host_waits_for_copies_of_ordinary_memory() -> None:
    memories = (Memory("x", SITE, Place.PAGEABLE), *MEMORIES[1:])
    fill, look = (Touch(SITE, "host", Footprint(*part)) for part in (((), (X,)), ((X,), ())))
    up, down = (work("a", *parts, is_launch=False) for parts in (((X,), (Y,)), ((Y,), (X,))))
    assert found(graph_of(fill, up, fill, memories=memories)) == []
    graph = graph_of(down, look, memories=memories)
    assert found(graph) == []
    cut(graph, "end:0", "step:1", "happens-before")
    assert found(graph) == [("TC415", 0, 1)]
    assert found(graph_of(*captured(up), memories=memories)) == [("TC422", 0, 1)]


# ---- graphs ----------------------------------------------------------------------------------------------


def captured(*inside: Action, graph: str = "g", stream: str = "a") -> tuple[Action, ...]:
    return (Capture(SITE, graph, stream), *inside, EndCapture(SITE, graph))


def test_captured_work_runs_at_the_replay() -> None:
    write = captured(WRITE_A)
    assert found(graph_of(*write, work("b", writes=(X,)))) == []
    graph = graph_of(*write, Replay(SITE, "g", "a"), READ_B)
    assert found(graph) == [("TC411", 3, 4)]
    assert found(graph_of(*write, Replay(SITE, "g", "a"), work("a", reads=(X,)))) == []
    edge(graph, "end:3", "start:4")
    assert found(graph) == []


def test_replays_keep_the_order_of_the_capture() -> None:
    fork = (Record(SITE, "e", "a"), Await(SITE, "b", "e"), READ_B)
    graph = graph_of(*captured(WRITE_A, *fork), Replay(SITE, "g", "c"))
    assert found(graph) == []
    cut(graph, "event:6.2", "await:6.3", "happens-before")
    assert found(graph) == [("TC411", 1, 4)]
    early = (Record(SITE, "e", "a"), WRITE_A, Await(SITE, "b", "e"), READ_B)
    assert found(graph_of(*captured(*early), Replay(SITE, "g", "c"))) == [("TC411", 2, 4)]


def test_replays_of_one_graph_do_not_overlap() -> None:
    graph = graph_of(*captured(WRITE_A), Replay(SITE, "g", "a"), Replay(SITE, "g", "b"))
    assert found(graph) == []
    cut(graph, "end:3", "start:4", "happens-before")
    assert found(graph) == [("TC425", 3, 4)]


def test_replays_of_two_graphs_overlap() -> None:
    two = (*captured(WRITE_A), *captured(WRITE_A, graph="h"), Replay(SITE, "g", "a"), Replay(SITE, "h", "b"))
    graph = graph_of(*two)
    assert found(graph) == [("TC425", 6, 7)]
    edge(graph, "end:6", "start:7")
    assert found(graph) == []


def test_a_graph_uses_memory_that_was_freed() -> None:
    graph = graph_of(*captured(WRITE_A), Free(SITE, "x"), Replay(SITE, "g", "a"))
    assert found(graph) == [("TC421", 3, 4)]
    cut(graph, "free:3", next(graph.of_kind("region")), "borrows")
    assert found(graph) == []


def test_a_released_graph_is_not_replayed() -> None:
    graph = graph_of(*captured(WRITE_A), Destroy(SITE, "g"), Replay(SITE, "g", "a"))
    assert found(graph) == [("TC421", 3, 4)]
    cut(graph, "graph:g", "step:3", "moves")
    assert found(graph) == []


def test_a_graph_that_is_captured_again_is_whole() -> None:
    again = (*captured(WRITE_A), Destroy(SITE, "g"), *captured(WRITE_A), Replay(SITE, "g", "a"))
    assert found(graph_of(*again)) == []


def test_a_pool_hands_memory_out_again() -> None:
    memories = tuple(Memory(name, SITE, stream="a", pool="g") for name in "xy")
    inside = (Allocate(SITE, "x"), WRITE_A, Free(SITE, "x"), Allocate(SITE, "y"))
    late = work("a", writes=(Y,))
    assert found(graph_of(*captured(*inside, late), Replay(SITE, "g", "a"), memories=memories)) == []
    fork = (Record(SITE, "e", "a"), *inside, Await(SITE, "b", "e"), work("b", writes=(Y,)))
    graph = graph_of(*captured(*fork), Replay(SITE, "g", "a"), memories=memories)
    assert found(graph) == [("TC413", 3, 7)]
    cut(graph, "memory:x", "memory:y", "moves")
    assert found(graph) == []
    late_use = graph_of(*captured(Allocate(SITE, "x"), Free(SITE, "x"), WRITE_A), memories=memories)
    assert found(late_use) == [("TC413", 2, 3)]


def test_a_released_pool_goes_to_the_next_owner() -> None:
    memories = (Memory("x", SITE, stream="a", pool="g"),)
    inside = captured(Allocate(SITE, "x"), WRITE_A, Free(SITE, "x"))
    graph = graph_of(*inside, Replay(SITE, "g", "a"), Destroy(SITE, "g"), memories=memories)
    assert found(graph) == []
    cut(graph, "end:5", "free:6.memory:x", "happens-before")
    assert found(graph) == [("TC421", 5, 6)]


def test_a_replay_inside_a_graph() -> None:
    inner = captured(WRITE_A)
    outer = captured(Replay(SITE, "g", "a"), graph="h")
    graph = graph_of(*inner, *outer, Replay(SITE, "h", "a"), READ_B)
    assert found(graph) == [("TC411", 6, 7)]
    assert found(graph_of(*inner, *outer, Replay(SITE, "h", "a"), work("a", reads=(X,)))) == []
    before = captured(READ_B, graph="h", stream="b")
    assert found(graph_of(*inner, *before, Replay(SITE, "h", "b"))) == [("TC426", 1, 6)]


def test_what_only_captured_work_has_written_is_not_read() -> None:
    read = work("a", reads=(X,))
    graph = graph_of(*captured(WRITE_A), read, Replay(SITE, "g", "a"))
    assert found(graph) == [("TC426", 1, 3)]
    assert found(graph_of(*captured(WRITE_A), Replay(SITE, "g", "a"), read)) == []
    assert found(graph_of(WRITE_A, *captured(WRITE_A), read)) == []
    half = work("a", writes=(Region("x", ((const(0), const(4)),)),))
    assert found(graph_of(half, *captured(WRITE_A), read)) == [("TC426", 2, 4)]
    cut(graph, "captured:1", next(graph.of_kind("region")), "borrows")
    assert found(graph) == []


def test_a_synchronisation_is_not_captured() -> None:
    sync = Forbidden(SITE, "item", "a read of the host")
    graph = graph_of(*captured(WRITE_A, sync))
    assert found(graph) == [("TC422", 0, 2)]
    assert found(graph_of(sync, *captured(WRITE_A))) == []
    assert found(graph_of(*captured(Join(SITE, stream="b"), Allocate(SITE, "x")))) == [
        ("TC422", 0, 1),
        ("TC422", 0, 2),
    ]
    cut(graph, "graph:g", "step:2", "owns")
    assert found(graph) == []


@pytest.mark.parametrize(("name", "code"), [("y", "TC423"), ("step", "TC424")])
def test_a_graph_keeps_what_it_froze(name: str, code: str) -> None:
    freeze = captured(work("a", frozen=(name,)))
    graph = graph_of(*freeze, Rebind(SITE, name), Replay(SITE, "g", "a"))
    assert found(graph) == [(code, 3, 4)]
    assert found(graph_of(Rebind(SITE, name), *freeze, Replay(SITE, "g", "a"))) == []
    again = graph_of(*freeze, Rebind(SITE, name), *freeze, Replay(SITE, "g", "a"))
    assert found(again) == []
    cut(graph, f"variable:{name}", "step:3", "moves")
    assert found(graph) == []


def test_a_kept_result_is_written_again() -> None:
    replay, keep, use = Replay(SITE, "g", "a"), Keep(SITE, "x", "first"), UseKept(SITE, "first")
    graph = graph_of(*captured(WRITE_A), replay, keep, replay, use)
    assert found(graph) == [("TC426", 5, 6)]
    assert found(graph_of(*captured(WRITE_A), replay, keep, use, replay)) == []
    cut(graph, "step:4", "memory:x", "borrows")
    assert found(graph) == []


# ---- dependent launches ----------------------------------------------------------------------------------

READS_X, WRITES_X = Footprint(reads=(X,)), Footprint(writes=(X,))


def test_what_a_dependent_launch_touches_before_its_wait_is_not_ordered() -> None:
    graph = graph_of(WRITE_A, dependent(before=READS_X))
    assert found(graph) == [("TC431", 0, 1)]
    assert found(graph_of(WRITE_A, dependent(after=READS_X))) == []
    assert found(graph_of(replace(WRITE_A, is_launch=False), dependent(before=READS_X))) == []
    edge(graph, "end:0", "before:1")
    assert found(graph) == []


def test_a_dependent_launch_that_never_waits() -> None:
    graph = graph_of(WRITE_A, dependent(before=READS_X, waits=False))
    assert found(graph) == [("TC432", 0, 1)]


def test_a_wait_reaches_as_far_as_the_launches_between_wait() -> None:
    chain = (WRITE_A, dependent(waits=True), dependent(after=READS_X))
    graph = graph_of(*chain)
    assert found(graph) == []
    cut(graph, "wait:1", "after:1", "happens-before")
    assert found(graph) == [("TC433", 0, 2)]
    broken = graph_of(WRITE_A, dependent(waits=False), dependent(after=READS_X))
    assert found(broken) == [("TC433", 0, 2)]
    edge(broken, "end:0", "end:1")
    assert found(broken) == []


def test_work_after_a_wait_that_perhaps_happens_orders_nothing_else() -> None:
    sometimes = dependent(after=Footprint(writes=(Y,)), waits=False)
    ends = (Record(SITE, "e", "a"), Await(SITE, "b", "e"))
    assert found(graph_of(WRITE_A, sometimes, *ends, work("b", reads=(Y,)))) == []
    assert found(graph_of(WRITE_A, sometimes, *ends, work("b", reads=(X,)))) == [("TC433", 0, 4)]


def test_joins_wait_for_all_items_of_a_stream() -> None:
    never = dependent(waits=False)
    assert found(graph_of(WRITE_A, never, Join(SITE, stream="a"), work("b", reads=(X,)))) == []
    event = (Record(SITE, "e", "a"), Join(SITE, event="e"))
    assert found(graph_of(WRITE_A, never, *event, work("b", reads=(X,)))) == [("TC433", 0, 4)]
    assert found(graph_of(WRITE_A, never, Free(SITE, "x"))) == [("TC413", 0, 2)]
    assert found(graph_of(WRITE_A, never, Join(SITE), Free(SITE, "x"))) == []


# ---- regions ---------------------------------------------------------------------------------------------


def test_regions_are_compared_by_their_text() -> None:
    n = sym(Symbol("n", Kind.EXTENT))
    program = HostProgram("run", SITE, MEMORIES, (), facts=(le(n, const(8)),))
    overlap = by_text(program)
    low, high = Region("x", ((const(0), n),)), Region("x", ((n, add(n, 4)),))
    assert overlap(low, high).answer is Answer.APART
    assert overlap(low, Region("x", ((const(8), const(9)),))).answer is Answer.APART
    assert overlap(low, Region("x", ((const(7), const(9)),))).answer is Answer.OPEN
    assert overlap(high, high).answer is Answer.MEET
    assert overlap(low, Region("x", ((const(0), n), (const(0), n)))).answer is Answer.OPEN


def test_what_is_left_of_a_region() -> None:
    def box(*bounds: int) -> Region:
        return Region("x", tuple((const(a), const(b)) for a, b in zip(bounds[::2], bounds[1::2], strict=True)))

    overlap = by_text(HostProgram("run", SITE, MEMORIES, ()))
    assert overlap(box(0, 5), box(3, 9)).element == (3,)
    assert overlap(box(0, 5), box(3, 9), (box(0, 4),)).element == (4,)
    assert overlap(box(0, 5), box(3, 9), (box(0, 4), box(4, 5))).answer is Answer.APART
    assert overlap(box(0, 5), box(3, 9), (box(3, 9),)).answer is Answer.APART
    square = box(0, 2, 0, 2)
    assert overlap(square, square, (box(0, 1, 0, 2), box(1, 2, 0, 1))).element == (1, 1)
    assert overlap(X, X, (box(0, 4),)).answer is Answer.MEET
    assert overlap(X, X, (X,)).answer is Answer.APART
    shaped = HostProgram("run", SITE, (Memory("x", SITE, extents=(const(4),)),), ())
    assert by_text(shaped)(X, X, (box(0, 4),)).answer is Answer.APART
    assert by_text(shaped)(X, box(4, 5)).answer is Answer.APART
