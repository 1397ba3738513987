"""How the oracle's machine works, one fact a program."""

from __future__ import annotations

import pytest
from proof_host_text import program

from tilecheck.proof.interleavings import hazards

MACHINE = (
    ("disjoint boxes", "launch a writes x[0:4]\nlaunch b writes x[4:8]", ""),
    ("boxes that meet", "launch a writes x[0:5]\nlaunch b writes x[4:8]", "TC411 0 1 x"),
    ("boxes apart in one of two axes", "launch a writes x[0:4,0:2]\nlaunch b writes x[0:4,2:4]", ""),
    ("an empty box", "launch a writes x[4:4]\nlaunch b writes x", ""),
    ("two readers", "launch a reads x\nlaunch b reads x", ""),
    ("one stream", "launch a writes x\nlaunch a writes x", ""),
    ("an event that was never recorded", "launch a writes x\nawait b e\nlaunch b reads x", "TC411 0 2 x"),
    (
        "a wait keeps the event as it was recorded last before it",
        """launch a writes x
        record e a
        await b e
        record e other
        launch b reads x""",
        "",
    ),
    (
        "order over three streams",
        """launch a writes x
        record e a
        await b e
        record f b
        await c f
        launch c reads x""",
        "",
    ),
    (
        "a join of an event waits for no later work",
        "record e a\nlaunch a writes x\njoin event e\nlaunch b reads x",
        "TC411 1 3 x",
    ),
    (
        "a record leaves a launch right behind the one before",
        "launch a writes x\nrecord e a\nlaunch a dependent before reads x",
        "TC431 0 2 x",
    ),
    (
        "a wait for an event stands between two launches",
        "launch a writes x\nawait a e\nlaunch a dependent before reads x",
        "",
    ),
    ("a copy is no launch", "copy a writes x\nlaunch a dependent before reads x", ""),
    (
        "an early start goes back over a chain that waits",
        """launch a writes x
        launch a dependent after writes y
        launch a dependent before reads x""",
        "TC431 0 2 x",
    ),
    (
        "the end of a launch that waits implies the end of the one before",
        """launch a writes x
        launch a dependent after writes y
        launch a reads x""",
        "",
    ),
    (
        "the end of a launch that need not wait does not, for another stream either",
        """launch a writes x
        launch a dependent sometimes before writes y
        record e a
        await b e
        launch b reads x""",
        "TC433 0 4 x",
    ),
    (
        "a join of the stream waits for all of its launches",
        """launch a writes x
        launch a dependent sometimes before writes y
        join stream a
        launch b reads x""",
        "",
    ),
    (
        "what a launch does after a wait that only some of it make",
        """launch a writes x
        launch a dependent sometimes after reads x writes y
        launch a reads y""",
        "",
    ),
    (
        "work on another stream is no matter of the wait",
        """launch b writes x
        launch a writes y
        launch a dependent before reads x""",
        "TC411 0 2 x",
    ),
    ("other streams that the allocator knows of", "launch side reads x\nfree x after side", ""),
    ("but only what they held then", "free x after side\nlaunch side reads x", "TC413 0 1 x"),
    (
        "a wait after the free is too late",
        "launch side reads x\nrecord e side\nfree x\nawait main e",
        "TC413 0 2 x",
    ),
    ("an own allocation each time", "free x\nallocate x\nlaunch main writes x", ""),
    (
        "work in a graph does not run when it is captured",
        """capture g a
        launch a writes x
        end g
        launch b reads y""",
        "",
    ),
    (
        "a fork in a graph that does not wait",
        """capture g a
        record e a
        await b e
        launch b writes x
        launch a reads x
        record f b
        await a f
        end g
        launch main writes x
        replay g main""",
        "TC411 3 4 x",
    ),
    (
        "a fork that waits",
        """capture g a
        launch a writes x
        record e a
        await b e
        launch b reads x
        record f b
        await a f
        end g
        launch main writes x
        replay g main
        launch main writes x""",
        "",
    ),
    (
        "an event from outside orders nothing in a graph",
        """launch b writes x
        record e b
        capture g a
        await a e
        launch a reads x
        end g
        replay g a""",
        "TC411 0 6 x",
    ),
    (
        "replays of one graph on two streams",
        """capture g a
        launch a writes x
        end g
        replay g a
        replay g b""",
        "",
    ),
    (
        "a launch depends on none of another replay",
        """capture g a
        launch a writes x
        end g
        capture h a
        launch a dependent before reads x
        end h
        replay g main
        replay h main""",
        "",
    ),
    (
        "a launch of a graph depends on the one before it",
        """capture g a
        launch a writes x
        launch a dependent before reads x
        end g
        replay g main""",
        "TC431 1 2 x",
    ),
    (
        "a graph in a graph",
        """capture g a
        launch a writes x
        end g
        capture h a
        replay g a
        record e a
        await b e
        launch b reads x
        launch a writes x
        record f b
        await a f
        end h
        replay h main
        launch main reads x""",
        "TC411 7 8 x",
    ),
    (
        "a replay on a stream that still works",
        """capture g a
        launch a writes x
        end g
        launch b reads y
        replay g b
        launch b reads x""",
        "",
    ),
    ("a graph owns what moved into it", "capture g a\nlaunch a writes x\nend g\nmove x g\nreplay g a", ""),
    ("nobody else does", "capture g a\nlaunch a writes x\nend g\nmove x op\nreplay g a", "TC412 3 4 x"),
    (
        "part of what is read was written outside of the graph",
        """launch a writes x[0:2]
        capture g a
        launch a writes x[0:4]
        end g
        launch a reads x[0:2]""",
        "",
    ),
    (
        "part of it was not",
        """launch a writes x[0:2]
        capture g a
        launch a writes x[0:4]
        end g
        launch a reads x[0:3]""",
        "TC426 2 4 x",
    ),
    (
        "a graph that reads what another was to make",
        """capture g a
        launch a writes x
        end g
        capture h a
        launch a reads x
        end h
        replay h a""",
        "TC426 1 6 x",
    ),
    (
        "a graph in a graph, beside other work",
        """capture g a
        launch a writes x
        end g
        capture h a
        record e a
        await b e
        replay g a
        launch b reads x
        record f b
        await a f
        end h
        launch main writes x
        replay h main""",
        "TC411 6 7 x",
    ),
    (
        "a graph that was put into another has not run",
        """capture g a
        launch a writes x
        end g
        capture h a
        replay g a
        end h
        launch a reads x""",
        "TC426 1 6 x, TC426 4 6 x",
    ),
    (
        "a graph that reads what itself writes later",
        """capture g a
        launch a reads x writes y
        launch a writes x
        end g
        replay g a""",
        "",
    ),
    (
        "the first replay that overwrites a result",
        """launch a writes x
        capture g a
        launch a writes x
        end g
        keep x result
        replay g a
        replay g a
        use result""",
        "TC426 5 7 x",
    ),
    ("an own allocation is not moved", "move x op\nallocate x\nlaunch a writes x", ""),
    ("a graph that was captured anew", "capture g a\nend g\ndestroy g\ncapture g a\nend g\nreplay g a", ""),
)
HOST_MEMORY = (
    ("a pageable source was read when the host goes on", "copy a reads p writes x\ntouch writes p", ""),
    ("a pageable copy is complete when the host goes on", "copy a reads x writes p\ntouch reads p", ""),
    (
        "but the copy of it may not have ended",
        "copy a reads p writes x\nlaunch b reads x",
        "TC411 0 1 x",
    ),
    ("a launch on pageable memory goes on", "launch a reads p\ntouch writes p", "TC415 0 1 p"),
    ("the host reads while it is read", "copy a reads q writes x\ntouch reads q", ""),
    ("pinned memory that was freed", "free q\ncopy a reads q writes x", "TC413 0 1 q"),
    ("pageable memory in a capture", "capture g a\nallocate p\nend g", ""),
    ("pinned memory in a capture", "capture g a\nallocate q\nend g", "TC422 0 1 q"),
    ("the host alone", "touch writes q\ntouch reads q", ""),
)


def _keys(text: str, memories: str, returned: str = "") -> set[tuple[str, int, int, str]]:
    return {hazard.key for hazard in hazards(program(text, memories, returned))}


def _expected(found: str) -> set[tuple[str, int, int, str]]:
    parts = (one.split() for one in found.split(",") if one)
    return {(code, int(first), int(second), memory) for code, first, second, memory in parts}


@pytest.mark.parametrize(("text", "found"), [case[1:] for case in MACHINE], ids=[case[0] for case in MACHINE])
def test_the_machine(text: str, found: str) -> None:
    assert _keys(text, "x y") == _expected(found)


@pytest.mark.parametrize(
    ("text", "found"), [case[1:] for case in HOST_MEMORY], ids=[case[0] for case in HOST_MEMORY]
)
def test_host_memory(text: str, found: str) -> None:
    assert _keys(text, "x p@pageable q@pinned") == _expected(found)


def test_the_caller_uses_what_was_handed_in_and_what_is_returned() -> None:
    assert _keys("launch main reads x", "x@in") == set()
    assert _keys("launch main writes x", "x@in", "x") == set()
    assert _keys("launch side writes p", "p@in@pinned") == {("TC414", 0, 1, "p")}
    assert _keys("launch side reads p", "p@in@pinned") == set()
    assert _keys("launch side writes x[0:2]", "x", "x[2:4]") == set()
    assert _keys("launch side reads x", "x", "x") == set()
    assert _keys("capture g a\nlaunch a writes x\nend g\nlaunch main reads x", "x@in") == set()
    assert _keys("", "x@in", "x") == set()
