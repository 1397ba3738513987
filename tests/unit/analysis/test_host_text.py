"""The host borrow graph in text and pictures."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from tilecheck.analysis.hosts.build import build
from tilecheck.analysis.hosts.graph import HostGraph
from tilecheck.analysis.hosts.picture import svg
from tilecheck.analysis.hosts.queries import findings
from tilecheck.analysis.hosts.text import dot, reasons, tree
from tilecheck.ir.host_program import (
    Action,
    Await,
    Capture,
    EndCapture,
    Footprint,
    Free,
    HostProgram,
    Memory,
    Record,
    Region,
    Replay,
    Work,
)
from tilecheck.model import Site, Span

X = Region("x")


def site(number: int) -> Site:
    return Site("host.py", Span(number, number + 1))


def where(at: Site) -> str:
    return f"{at.span.start}:1"


WRITE = Work(site(1), "write", "a", Footprint(writes=(X,)))
READ = Work(site(4), "read", "b", Footprint(reads=(X,)))
WAIT = (Record(site(2), "done", "a"), Await(site(3), "b", "done"))


def graph_of(*actions: Action) -> HostGraph:
    return build(HostProgram("run", site(0), (Memory("x", site(0), stream="a"),), actions))


def lines(graph: HostGraph) -> list[str]:
    return tree(graph, findings(graph), where).splitlines()


def test_the_tree_says_what_orders_each_pair() -> None:
    assert lines(graph_of(WRITE, *WAIT, READ, Free(site(5), "x", ("b",)))) == [
        "run, called on stream `current`",
        "└─ x: device memory of stream `a`",
        "   ├─ borrowed mutable by `write` on stream `a` at 1:1: x",
        "   ├─ borrowed shared by `read` on stream `b` at 4:1: x",
        "   │     after `write` on stream `a` at 1:1: event `done`, stream `b`",
        "   └─ borrowed mutable by the next owner, freed at 5:1: x",
        "         after `read` on stream `b` at 4:1: the allocator reuses memory in the order of stream `b`",
    ]


def test_the_tree_says_what_has_no_order() -> None:
    assert "   └─ borrowed shared by `read` on stream `b` at 4:1: x" in lines(graph_of(WRITE, READ))
    assert "         TC411: in no order with `write` on stream `a` at 1:1" in lines(graph_of(WRITE, READ))


def test_replays_are_told_apart() -> None:
    captured = (Capture(site(6), "g", "a"), WRITE, EndCapture(site(7), "g"))
    shown = lines(graph_of(*captured, Replay(site(8), "g", "a"), Replay(site(9), "g", "b")))
    assert any("in the replay at 8:1" in line for line in shown)
    assert any("after `write`" in line and "replays of graph `g` do not overlap" in line for line in shown)


def test_reasons_follow_the_edges() -> None:
    graph = graph_of(WRITE, *WAIT, READ)
    assert reasons(graph, "after:0", "after:3") == ("event `done`", "stream `b`")
    graph.graph.add_edge("after:0", "after:3", kind="happens-before", why="a test")
    assert reasons(graph, "after:0", "after:3") == ("a test",)


def test_dot_has_every_node_and_edge() -> None:
    graph = graph_of(WRITE, *WAIT, READ)
    text = dot([graph], where)
    assert text.count(" [shape=") == graph.graph.number_of_nodes()
    assert text.count(" -> ") == graph.graph.number_of_edges()


@pytest.mark.parametrize("ordered", [True, False])
def test_the_picture_has_a_box_for_each_step(ordered: bool) -> None:
    graph = graph_of(WRITE, *(WAIT if ordered else ()), READ)
    root = ET.fromstring(svg([(graph, findings(graph))], where))
    name = "{http://www.w3.org/2000/svg}"
    classes = [element.get("class") for element in root.iter() if element.get("class")]
    assert classes.count("box") == 4  # the caller twice, and the work
    assert ("race" in classes) is not ordered
    assert classes.count("order") == (1 if ordered else 0)
    assert (
        [e.text for e in root.iter(f"{name}text") if e.get("class") == "code"] == [] if ordered else ["TC411"]
    )
