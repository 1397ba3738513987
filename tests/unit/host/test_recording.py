"""What was submitted, written down as a program of host actions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck import host
from tilecheck.host import HostRefused
from tilecheck.ir import host_program as P
from tilecheck.ir.expr import const
from tilecheck.jit.records import Waits
from tilecheck.proof.interleavings import hazards


def line_of(site):
    return Path(site.file).read_bytes()[site.span.start : site.span.end].decode().strip()


def kinds(program):
    return [type(action).__name__ for action in program.actions]


def test_work_events_and_joins_are_written_down(fake):
    with host.recording() as recorder:
        s, t = host.stream(), host.stream()
        x = host.zeros(16).submit(s)
        t.wait(s)
        host.launch(fake.double, (2,), (x,)).submit(t)
        t.sync()
    program = recorder.program()
    assert kinds(program) == ["Allocate", "Work", "Record", "Await", "Work", "Join"]
    allocate, fill, record, wait, launch, join = program.actions
    assert (allocate.memory, fill.name, fill.is_launch) == ("memory 1", "`zeros`", False)
    (region,) = fill.after.writes
    assert (region.memory, region.box, region.exact) == ("memory 1", ((const(0), const(64)),), True)
    assert (record.stream, wait.stream, wait.event) == (fill.stream, launch.stream, record.event)
    assert (launch.is_launch, join.stream) == (True, launch.stream)
    assert line_of(fill.site) == "x = host.zeros(16).submit(s)"
    assert line_of(launch.site) == "host.launch(fake.double, (2,), (x,)).submit(t)"
    assert line_of(wait.site) == "t.wait(s)"
    assert program.memories[0].stream == fill.stream
    assert hazards(program) == ()


def test_a_refusal_is_written_down_with_what_was_refused(fake):
    with host.recording() as recorder:
        s, t = host.stream(), host.stream()
        x = host.zeros(16).submit(s)
        with pytest.raises(HostRefused):
            host.launch(fake.double, (2,), (x,)).submit(t)
    assert recorder.refusals == 1
    assert hazards(recorder.program()) == ()
    assert [hazard.code for hazard in hazards(recorder.refused_program())] == ["TC411"]


def test_rows_are_boxes_of_their_own(fake):
    base = host.own(fake.array([[1.0] * 8] * 4))
    with host.recording() as recorder:
        parts = host.partition(base, (4, 4))
        host.fill(parts[0, 1], 0).submit()
    (fill,) = (a for a in recorder.program().actions if isinstance(a, P.Work))
    boxes = sorted(tuple(bound.args[0] for bound in region.box[0]) for region in fill.after.writes)
    assert boxes == [(16, 32), (48, 64), (80, 96), (112, 128)]


def test_footprints_that_may_be_smaller_say_so(fake):
    flat = fake.kernel("flat", "out", lambda out: None, language="triton")
    base = host.own(fake.array([[1.0] * 8] * 4))
    with host.recording() as recorder:
        host.launch(flat, (1,), (host.partition(base, (4, 4))[0, 0],)).submit()
        host.launch(flat, (1,), (host.full(8, 1.0).submit(),)).submit()
    launches = [a for a in recorder.program().actions if isinstance(a, P.Work) and a.is_launch]
    assert [region.exact for launch in launches for region in launch.after.writes] == [False, True]


def test_dependent_launches_are_written_down_with_their_parts(fake):
    early = fake.kernel(
        "early", "w out", lambda w, out, _: None, lambda w, out: None, Waits(True, reads=("w",))
    )
    never = fake.kernel("never", "out", early=lambda out: None)
    x, w, y = (host.zeros(16).sync() for _ in range(3))
    s = host.stream()
    with host.recording() as recorder:
        host.launch(fake.double, (2,), (x,)).submit(s)
        host.launch(early, (2,), (w, x), dependent=True).submit(s)
        host.launch(never, (2,), (y,), dependent=True).submit(s)
    _, first, second = recorder.program().actions
    assert (first.dependent, first.waits) == (True, True)
    assert (len(first.before.reads), len(first.before.writes)) == (1, 0)
    assert (len(first.after.reads), len(first.after.writes)) == (1, 1)
    assert (second.dependent, second.waits, len(second.before.writes)) == (True, False, 1)
    assert second.after == P.Footprint()


def test_graphs_and_the_host_are_written_down(fake):
    x, pinned = host.zeros(16).sync(), host.pinned(16)
    with host.recording() as recorder:
        with host.capture(host.stream(), inputs={"x": x}) as scope:
            host.launch(fake.double, (2,), (x,)).submit()
            scope.output("x", x)
        graph = scope.graph
        graph.launch()
        host.copy_to_host(graph.output("x"), pinned).sync()
        pinned.tolist()
        pinned.assign([0.0] * 16)
        graph.close()
    program = recorder.program()
    assert kinds(program) == [
        "Capture", "Work", "EndCapture", "Replay", "Keep", "UseKept", "Work", "Join", "Touch", "Touch",
        "Destroy",
    ]  # fmt: skip
    assert program.actions[0].graph == program.actions[3].graph == program.actions[-1].graph
    reads, writes = program.actions[8:10]
    assert (len(reads.footprint.reads), len(reads.footprint.writes)) == (1, 0)
    assert (len(writes.footprint.reads), len(writes.footprint.writes)) == (0, 1)
    places = {memory.place for memory in program.memories}
    assert places == {P.Place.DEVICE, P.Place.PINNED}
    assert hazards(program) == ()


def test_memory_that_is_freed_is_written_down(fake):
    with host.recording() as recorder:
        s = host.stream()
        x = host.zeros(16).submit(s)
        del x
        fake.driver.run_all()
        host.reap()
    program = recorder.program()
    assert kinds(program) == ["Allocate", "Work", "Record", "Join", "Free"]
    assert program.actions[3].event == program.actions[2].event
    assert hazards(program) == ()


def test_what_was_seen_to_have_ended_is_a_join(fake):
    s, t = host.stream(), host.stream()
    with host.recording() as recorder:
        x = host.zeros(16).submit(s)
        fake.driver.run_all()
        host.launch(fake.double, (2,), (x,)).submit(t)
    assert kinds(recorder.program()) == ["Allocate", "Work", "Join", "Work"]


def test_nothing_is_written_down_outside(fake):
    with host.recording() as recorder:
        pass
    host.zeros(16).submit()
    assert recorder.program().actions == ()
