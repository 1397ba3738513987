"""Graphs: capture, inputs, launches, outputs, and who owns what between launches."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
import weakref

import host_kits
import numpy as np
import pytest

from tilecheck import host
from tilecheck.host import GraphState, HostRefused


def refused(code, run):
    with pytest.raises(HostRefused) as caught:
        run()
    assert caught.value.code == code
    return str(caught.value)


def added(kit, *, written=False):
    """A graph that adds 1 to its input `x`, twice, and the input; or, instead of it, the output `y`."""
    x, y, z = host.full(16, 1.0).sync(), host.empty(16).sync(), host.empty(16).sync()
    with host.capture(inputs={"x": x}) as scope:
        host.launch(kit.add_one, (2,), (x, y)).submit()
        host.launch(kit.add_one, (2,), (y, z)).submit()
        scope.output("y", z)
    return scope.graph, z if written else x


# ---- launching -----------------------------------------------------------------------------------------------


def test_a_graph_does_what_was_captured_each_time(kit):
    graph, _ = added(kit)
    assert graph.inputs == ("x",)
    assert graph.outputs == ("y",)
    graph.launch()
    assert graph.output("y").tolist() == [3.0] * 16
    graph.update({"x": [5.0] * 16})
    graph.launch()
    assert graph.output("y").tolist() == [7.0] * 16
    graph.update({"x": host.full(16, 8.0).sync()})
    graph.launch()
    assert kit.values(graph.output("y")) == [10.0] * 16


def test_capture_runs_nothing(fake):
    graph, _ = added(fake)
    assert graph.state is GraphState.CAPTURED
    assert "replay" not in fake.driver.counts
    fake.driver.run_all()
    assert graph.state is GraphState.CAPTURED


def test_an_operation_is_captured(kit):
    x, y = host.full(16, 1.0).sync(), host.zeros(16).sync()
    s = host.stream()
    graph = (
        host.launch(kit.add_one, (2,), (x, y)).then(lambda a: host.launch(kit.double, (2,), (a[1],))).graph()
    )
    assert graph.outputs == ("0",)
    graph.launch(s)
    assert graph.output().tolist(order="events") == [4.0] * 16


def test_the_state_of_a_graph(fake):
    graph, _ = added(fake)
    assert graph.state is GraphState.CAPTURED
    graph.launch()
    assert graph.state is GraphState.LAUNCHED
    graph.sync()
    assert graph.state is GraphState.COMPLETE
    graph.launch()
    assert graph.state is GraphState.LAUNCHED
    fake.driver.run_all()
    assert graph.state is GraphState.COMPLETE
    graph.close()
    assert graph.state is GraphState.CLOSED
    assert repr(graph).endswith(", closed>")
    refused("TC421", graph.launch)
    refused("TC421", lambda: graph.update({"x": [0.0] * 16}))
    refused("TC426", lambda: graph.output("y"))


@pytest.mark.parametrize("seed", range(5))
def test_gap_updates_and_launches_on_other_streams_are_in_order(seed):
    """One owner orders them, also where the program refuses everything else."""
    kit = host_kits.FakeKit(seed)
    with host.using(kit.runtime):
        graph, _ = added(kit)
        streams = [host.stream() for _ in range(3)]
        kept = []
        for number in range(9):
            graph.update({"x": [float(number)] * 16}, streams[number % 3])
            graph.launch(streams[(number + 1) % 3])
            graph.launch(streams[(number + 2) % 3])
            out = host.empty(16).submit(streams[(number + 2) % 3])
            kept.append(host.copy(out, graph.output("y")).submit(streams[(number + 2) % 3]))
            streams[(number + 3) % 3].wait(streams[(number + 2) % 3])
        assert [kit.values(out)[0] for out in kept] == [number + 2.0 for number in range(9)]


@pytest.mark.parametrize("seed", range(5))
def test_a_launch_where_the_last_was_follows_an_update_elsewhere(seed):
    kit = host_kits.FakeKit(seed)
    with host.using(kit.runtime):
        graph, _ = added(kit)
        s, t = host.stream(), host.stream()
        for number in range(3):
            graph.update({"x": [float(number)] * 16}, t)
            graph.launch(s)
        assert kit.driver.counts["wait"] == 5  # each time the graph goes from one stream to the other
        assert kit.values(graph.output("y")) == [4.0] * 16


def test_a_launch_is_in_order_with_work_on_what_it_reads(fake):
    s, t = host.stream(), host.stream()
    weight = host.full(16, 1.0).submit(s)
    y = host.zeros(16).submit(t)
    with host.capture() as scope:
        host.launch(fake.add_one, (2,), (weight, y)).submit()
    assert "`full`" in refused("TC411", lambda: scope.graph.launch(t))
    scope.graph.launch(t, order="events")
    assert fake.values(y) == [2.0] * 16


def test_work_of_others_is_in_order_with_a_launch(fake):
    s, t = host.stream(), host.stream()
    graph, _ = added(fake)
    graph.launch(s)
    out = host.empty(16).submit(t)
    text = refused("TC411", lambda: host.copy(out, graph.output("y")).submit(t))
    assert "launch of graph" in text
    host.copy(out, graph.output("y")).submit(t, order="events")
    # The next launch writes what that copy reads.
    assert "`copy`" in refused("TC411", lambda: graph.launch(s))
    s.wait(t)
    graph.launch(s)
    assert fake.values(out) == [3.0] * 16


def test_two_graphs_over_one_memory_are_in_order(fake):
    s, t = host.stream(), host.stream()
    x = host.full(16, 1.0).sync()
    graphs = []
    for _ in range(2):
        with host.capture() as scope:
            host.launch(fake.double, (2,), (x,)).submit()
        graphs.append(scope.graph)
    one, two = graphs
    one.launch(s)
    refused("TC425", lambda: two.launch(t))
    two.launch(s)
    one.launch(s)
    t.wait(s)
    two.launch(t)
    refused("TC425", lambda: one.launch(s))
    assert fake.values(x) == [16.0] * 16


def test_a_graph_reads_what_another_leaves(fake):
    s, t = host.stream(), host.stream()
    first, _ = added(fake)
    y = host.empty(16).sync()
    first.launch(s)
    with host.capture() as scope:
        host.launch(fake.add_one, (2,), (first.output("y"), y)).submit()
    refused("TC425", lambda: scope.graph.launch(t))
    for number in range(3):
        first.update({"x": [float(number)] * 16}, s)
        first.launch(s)
        scope.graph.launch(s)
    assert fake.values(y) == [5.0] * 16


def test_a_graph_does_not_read_what_another_was_never_launched_for(fake):
    first, z = added(fake, written=True)
    y = host.empty(16).sync()
    with host.capture() as scope:
        host.launch(fake.add_one, (2,), (z, y)).submit()
    refused("TC426", scope.graph.launch)
    first.launch()
    scope.graph.launch()
    assert fake.values(y) == [4.0] * 16


def test_a_graph_that_was_launched_does_not_read_what_a_new_one_will_write(fake):
    x, y = host.empty(16).sync(), host.empty(16).sync()
    with host.capture() as scope:
        host.launch(fake.add_one, (2,), (x, y)).submit()
    reader = scope.graph
    reader.launch()
    with host.capture() as scope:
        host.launch(fake.double, (2,), (x,)).submit()
    refused("TC426", reader.launch)
    scope.graph.launch()
    reader.launch()


def test_what_a_launched_graph_may_have_left_out_is_promised_no_longer(fake):
    """Nothing says that a flat kernel writes the gaps between its rows, now or at a later launch."""
    flat = fake.kernel("flat", "out", lambda out: out.fill(2), language="triton")
    reading = fake.kernel("reading", "x out", lambda x, out: np.copyto(out, x), language="triton")
    left = host.partition(host.empty((4, 4)).sync(), (4, 2))[0, 0]
    target = host.zeros((4, 2)).sync()
    with host.capture() as scope:
        host.launch(flat, (1,), (left,)).submit()
    refused("TC426", host.launch(reading, (1,), (left, target)).submit)
    scope.graph.launch()
    host.launch(reading, (1,), (left, target)).submit()
    assert fake.values(target) == [[2.0, 2.0]] * 4


def test_two_graphs_that_only_read_one_weight_are_independent(fake):
    s, t = host.stream(), host.stream()
    weight = host.full(16, 1.0).sync()
    for stream in (s, t, s, t):
        y = host.zeros(16).sync()
        with host.capture() as scope:
            host.launch(fake.add_one, (2,), (weight, y)).submit()
        scope.graph.launch(stream)


def test_replay_does_not_depend_on_the_number_of_nodes(fake, monkeypatch):
    """In the steady state nothing but the place of the graph in its stream is looked at."""
    x = host.zeros(16).sync()
    with host.capture() as scope:
        for _ in range(100):
            host.launch(fake.double, (2,), (x,)).submit()
    scope.graph.launch()
    (owner,) = x.storage.graphs
    assert sum(map(len, owner.uses.values())) == 1

    def fail(*_, **__):
        raise AssertionError("looked at")

    monkeypatch.setattr(fake.runtime.ledger, "check", fail)
    for _ in range(3):
        scope.graph.launch()
    other = host.zeros(16).submit()
    host.fill(other, 1).submit()
    scope.graph.launch()  # other memory: still nothing to look at
    with pytest.raises(AssertionError, match="looked at"):
        scope.graph.launch(host.stream())


@pytest.mark.parametrize("arrays", [1, 20])
def test_replay_takes_as_many_steps_for_any_number_of_nodes_and_arrays(fake, arrays):
    """Of the library: what the driver does with the nodes is its own."""
    found = set()
    for nodes in (20, 400):
        held = [host.zeros(16).sync() for _ in range(arrays)]
        with host.capture() as scope:
            for number in range(nodes):
                host.enqueue(scope.stream, fake.double, (2,), (held[number % arrays],))
        graph, stream = scope.graph, host.stream()
        graph.launch(stream)
        found.add(steps(lambda graph=graph, stream=stream: graph.launch(stream)))
    assert len(found) == 1
    assert found.pop() > 20


def steps(run):
    """How many lines of the library are run."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if "/tilecheck/host/" not in frame.f_code.co_filename.replace("\\", "/"):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


# ---- between launches ----------------------------------------------------------------------------------------


def test_gap_outside_writes_to_captured_memory_are_refused(fake):
    graph, x = added(fake)
    line = test_gap_outside_writes_to_captured_memory_are_refused.__code__.co_firstlineno
    text = refused("TC423", lambda: host.fill(x, 5).sync())
    assert f"{__file__}:{line + 3}" in text
    assert "graph.update" in text
    refused("TC423", lambda: host.launch(fake.double, (2,), (x,)).sync())
    refused("TC423", lambda: host.copy_to_device([1.0] * 16, x).sync())
    graph.close()
    host.fill(x, 5).sync()


def test_memory_beside_what_is_captured_is_free(fake):
    x = host.zeros(16).sync()
    parts = host.partition(x, 8)
    with host.capture() as scope:
        host.launch(fake.double, (1,), (parts[0],)).submit()
    scope.graph.launch()
    host.fill(parts[1], 1).sync()
    refused("TC423", lambda: host.fill(parts[0], 1).sync())


def test_gap_outputs_are_not_read_before_a_launch(fake):
    graph, written = added(fake, written=True)
    assert "capturing runs nothing" in refused("TC426", lambda: graph.output("y"))
    assert "was not launched yet" in refused("TC426", lambda: host.copy_to_host(written).sync())
    graph.launch()
    assert written.tolist() == [3.0] * 16


def test_an_output_is_good_until_the_next_launch(fake):
    graph, _ = added(fake)
    graph.launch()
    y = graph.output("y")
    late = host.copy_to_host(y)
    early = host.copy_to_host(y).sync()
    graph.launch()
    for use in (lambda: host.copy_to_host(y), late.sync, y.tensor):
        assert "a later launch" in refused("TC426", use)
    assert early.tolist() == graph.output("y").tolist() == [3.0] * 16
    refused("TC412", lambda: host.launch(fake.double, (2,), (graph.output("y"),)))


@pytest.mark.parametrize("closed", [False, True])
def test_an_output_is_good_until_another_graph_writes_it(fake, closed):
    graph, x = added(fake)
    y = host.zeros(16).sync()
    with host.capture() as scope:
        host.launch(fake.double, (2,), (x,)).submit()
        scope.output("x", x)
        scope.output("y", y)
    other = scope.graph
    with host.capture() as scope:
        host.launch(fake.double, (2,), (x,)).submit()
    third = scope.graph
    other.launch()
    kept, beside = other.output("x"), other.output("y")
    graph.launch()  # reads it
    host.copy_to_host(kept).submit()
    third.launch()
    if closed:
        third.close()
    assert "another graph" in refused("TC426", lambda: host.copy_to_host(kept).submit())
    host.copy_to_host(beside).submit()
    host.copy_to_host(other.output("x")).submit()


def test_inputs_keep_their_shape_and_type(fake):
    graph, _ = added(fake)
    assert "no input" in refused("TC423", lambda: graph.update({"z": [0.0] * 16}))
    for value in ([0.0] * 8, host.zeros((4, 4)).sync(), host.zeros(16, "int32").sync()):
        assert "does not fit" in refused("TC423", lambda value=value: graph.update({"x": value}))
    graph.update({"x": [2.0] * 16})
    graph.launch()
    assert graph.output("y").tolist() == [4.0] * 16


def test_an_update_is_in_order_with_its_source(fake):
    s, t = host.stream(), host.stream()
    graph, _ = added(fake)
    graph.launch(t)
    source = host.full(16, 3.0).submit(s)
    refused("TC411", lambda: graph.update({"x": source}, t))
    graph.update({"x": source}, s)  # behind the launch on t, by the owner
    graph.launch(t)
    assert fake.values(graph.output("y")) == [5.0] * 16


# ---- work that updates inputs ------------------------------------------------------------------------------


def test_work_of_any_kind_may_update_inputs(kit):
    graph, x = added(kit)
    graph.launch()
    stream = host.current()
    with host.updating(stream, graph):
        host.fill(x, 5.0).submit(stream)
        host.launch(kit.double, (2,), (x,)).submit(stream)
        host.enqueue(stream, kit.double, (2,), (x,))
    graph.launch()
    assert graph.output("y").tolist() == [22.0] * 16
    refused("TC423", lambda: host.fill(x, 5.0).submit(stream))


def test_an_update_of_part_of_an_input_leaves_the_rest(kit):
    graph, x = added(kit)
    stream = host.current()
    parts = host.partition(x, 8)
    with host.updating(stream, graph):
        host.fill(parts[1], 5.0).submit(stream)
    host.unpartition(parts)
    graph.launch()
    assert graph.output("y").tolist() == [3.0] * 8 + [7.0] * 8


def test_an_update_may_write_several_inputs_and_what_is_beside_them(fake):
    x, y = host.full(16, 1.0).sync(), host.zeros(16).sync()
    parts = host.partition(x, 4)
    first, second, third = parts[0], parts[1], parts[2]
    stream = host.current()
    copying = fake.kernel("copying", "v w out", lambda v, w, out: out.fill(v[0] + w[0]))
    with host.capture(inputs={"v": first, "w": second}) as scope:
        host.launch(copying, (1,), (first, second, y)).submit()
    with host.updating(stream, scope.graph):
        host.fill(parts.whole, 5.0).submit(stream)
    scope.graph.launch()
    assert fake.values(y) == [10.0] * 16
    with host.capture(inputs={"w": second}) as scope:
        host.launch(copying, (1,), (second, third, y)).submit()
    with host.updating(stream, scope.graph):
        refused("TC423", lambda: host.fill(parts.whole, 6.0).submit(stream))


def test_an_update_may_write_a_part_of_an_input_with_gaps(fake):
    x, y = host.full((4, 4), 1.0).sync(), host.zeros((4, 2)).sync()
    left = host.partition(x, (4, 2))[0, 0]
    copying = fake.kernel("copying", "x out", lambda x, out: np.copyto(out, x))
    with host.capture(inputs={"x": left}) as scope:
        host.launch(copying, (1,), (left, y)).submit()
    stream, rows = host.current(), host.partition(left, (2, 2))
    with host.updating(stream, scope.graph):
        host.fill(rows[1, 0], 5.0).submit(stream)
    scope.graph.launch()
    assert fake.values(y) == [[1.0] * 2] * 2 + [[5.0] * 2] * 2


def test_what_is_no_input_is_not_updated(fake):
    graph, z = added(fake, written=True)
    stream = host.current()
    with host.updating(stream, graph):
        said = refused("TC423", lambda: host.fill(z, 1.0).submit(stream))
    assert "which a graph has captured" in said


def test_work_on_another_stream_updates_nothing(fake):
    graph, x = added(fake)
    s, t = host.stream(), host.stream()
    with host.updating(s, graph):
        refused("TC423", lambda: host.fill(x, 1.0).submit(t))
        refused("TC423", lambda: host.enqueue(t, fake.double, (2,), (x,)))


def test_an_input_of_one_graph_that_another_writes_is_not_updated(fake):
    graph, x = added(fake)
    with host.capture() as scope:
        host.launch(fake.double, (2,), (x,)).submit()
    other, stream = scope.graph, host.current()
    for graphs in ((graph,), (graph, other)):
        with host.updating(stream, *graphs):
            refused("TC423", lambda: host.fill(x, 1.0).submit(stream))


def test_two_graphs_are_updated_at_once(kit):
    x, y, z = (host.full(16, value).sync() for value in (1.0, 0.0, 0.0))
    graphs = []
    for to in (y, z):
        with host.capture(inputs={"x": x}) as scope:
            host.launch(kit.add_one, (2,), (x, to)).submit()
            scope.output("out", to)
        graphs.append(scope.graph)
    s, t, u = host.stream(), host.stream(), host.stream()
    graphs[0].launch(s)
    graphs[1].launch(t)
    with host.updating(u, *graphs):
        host.fill(x, 4.0).submit(u)
    graphs[1].launch(s)
    graphs[0].launch(t)
    assert [kit.values(graph.output("out")) for graph in graphs] == [[5.0] * 16] * 2


@pytest.mark.parametrize("seed", range(20))
def test_updates_are_behind_launches_and_before_the_next(fake, seed):
    """On whatever streams, and whenever the GPU gets to them: each launch sees the update before it."""
    graph, x = added(fake)
    fake.driver.rng.seed(seed)
    streams = [host.stream() for _ in range(3)]
    for number in range(6):
        updates, launches = streams[number % 3], streams[(number + seed) % 3]
        with host.updating(updates, graph):
            host.fill(x, float(number)).submit(updates)
            host.launch(fake.double, (2,), (x,)).submit(updates)
        graph.launch(launches)
        if number % 2:
            assert fake.values(graph.output("y")) == [2.0 * number + 2] * 16


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_launch_does_not_overtake_an_update_that_nothing_waits_for(fake, inside, elsewhere):
    """A kernel that does not wait for the update may end before it: a launch behind that one is too early."""
    graph, x = added(fake)
    scratch = host.zeros(16).sync()
    never = fake.kernel("never", "out", early=lambda out: out.fill(9))
    s, t = host.stream(), host.stream()
    launches = t if elsewhere else s
    graph.launch(launches)
    with host.updating(s, graph):
        host.launch(fake.double, (2,), (x,)).submit(s)
        if inside:
            host.launch(never, (1,), (scratch,), dependent=True).submit(s)
    if not inside:
        host.launch(never, (1,), (scratch,), dependent=True).submit(s)
    refused("TC433", lambda: graph.launch(launches))
    s.sync()
    graph.launch(launches)
    assert fake.values(graph.output("y")) == [4.0] * 16


def test_a_launch_does_not_overwrite_what_a_block_still_reads(fake):
    graph, x = added(fake)
    scratch, out = host.zeros(16).sync(), host.zeros(16).sync()
    never = fake.kernel("never", "out", early=lambda out: out.fill(9))
    s = host.stream()
    graph.launch(s)
    with host.updating(s, graph):
        host.launch(fake.add_one, (2,), (graph.output("y"), out)).submit(s)
        host.launch(never, (1,), (scratch,), dependent=True).submit(s)
        host.fill(x, 5.0).submit(s)
    refused("TC433", lambda: graph.launch(s))


@pytest.mark.parametrize("seed", range(10))
def test_a_launch_is_behind_the_part_of_an_update_that_was_enqueued(fake, seed):
    graph, x = added(fake)
    fake.driver.rng.seed(seed)
    s, t, u = host.stream(), host.stream(), host.stream()
    out, source = host.zeros(16).sync(), host.full(16, 3.0).submit(u)
    graph.launch(t)
    update = host.zip(host.fill(x, 5.0), host.copy(out, source))
    with host.updating(s, graph):
        refused("TC411", lambda: update.submit(s))
    graph.launch(t)
    assert fake.values(graph.output("y")) == [7.0] * 16


def test_an_update_that_is_not_in_order_with_others_is_refused(fake):
    graph, x = added(fake)
    s, t = host.stream(), host.stream()
    source = host.full(16, 3.0).submit(s)
    with host.updating(t, graph):
        refused("TC411", lambda: host.copy(x, source).submit(t))
    assert graph.state is GraphState.CAPTURED


def test_blocks_of_updates_are_not_nested_and_need_open_graphs(fake):
    graph, x = added(fake)
    stream = host.current()
    with host.updating(stream, graph):
        refused("TC423", lambda: host.updating(stream, graph).__enter__())
        host.fill(x, 2.0).submit(stream)
    with host.capture():
        refused("TC422", lambda: host.updating(stream, graph).__enter__())
        host.full(16, 1.0)
    graph.close()
    refused("TC421", lambda: host.updating(stream, graph).__enter__())
    with host.updating(stream):
        host.fill(x, 2.0).submit(stream)


def test_work_of_other_threads_and_tasks_updates_nothing(fake):
    graph, x = added(fake)
    s = host.stream()
    fill = host.fill(x, 5.0)
    found = []

    def other():
        found.append(refused("TC423", lambda: fill.submit(s)))

    async def waiting():
        other()

    async def main():
        with host.updating(s, graph):
            await asyncio.create_task(waiting())
            fill.submit(s)

    with host.updating(s, graph):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(10)
    asyncio.run(main())
    assert len(found) == 2
    graph.launch(s)
    assert fake.values(graph.output("y")) == [7.0] * 16


def test_threads_update_graphs_at_one_time(fake):
    (first, x), (second, z) = added(fake), added(fake)
    s, t = host.stream(), host.stream()
    with host.updating(s, first):

        def other():
            with host.updating(t, second):
                host.fill(z, 6.0).submit(t)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(10)
        host.fill(x, 5.0).submit(s)
    for graph in (first, second):
        graph.launch(host.stream())
    assert [fake.values(graph.output("y")) for graph in (first, second)] == [[7.0] * 16, [8.0] * 16]


def test_a_block_that_raises_updates_nothing_more(fake):
    graph, x = added(fake)
    stream = host.current()
    with pytest.raises(KeyError), host.updating(stream, graph):
        raise KeyError
    refused("TC423", lambda: host.fill(x, 2.0).submit(stream))


def test_captured_memory_lives_as_long_as_the_graph(fake):
    graph, x = added(fake)
    del x
    gc.collect()
    filler = [host.full(16, 9.0).sync() for _ in range(8)]
    graph.launch()
    assert graph.output("y").tolist() == [3.0] * 16
    assert len(filler) == 8


def test_a_graph_that_is_dropped_in_flight_keeps_its_memory(fake):
    graph, x = added(fake)
    graph.launch(host.stream())
    live = len(fake.driver.live)
    del graph, x
    gc.collect()
    assert len(fake.driver.live) == live
    assert host.parked() == 3
    fake.driver.run_all()
    host.reap()
    assert (host.parked(), len(fake.driver.live)) == (0, live - 3)


def test_a_graph_is_kept_by_the_driver_until_its_launch_has_ended(fake):
    graph, x = added(fake)
    graph.launch(host.stream())
    (owner,) = x.storage.graphs
    raw = weakref.ref(owner.raw)
    graph.close()
    gc.collect()
    assert raw() is not None
    fake.driver.run_all()
    host.synchronize()
    del owner
    for stream in fake.driver.streams.values():
        stream.tail = None
    host.reap()
    gc.collect()
    assert raw() is None


def test_what_a_graph_reads_and_writes_it_writes(fake):
    s, t = host.stream(), host.stream()
    x, y = host.full(16, 1.0).sync(), host.zeros(16).sync()
    with host.capture() as scope:
        host.launch(fake.add_one, (2,), (x, y)).submit()
        host.launch(fake.double, (2,), (x,)).submit()
    scope.graph.launch(s)
    assert "writes" in refused("TC411", lambda: host.copy_to_host(x).submit(t))


def test_a_closed_graph_in_flight_is_still_in_order(fake):
    s, t = host.stream(), host.stream()
    graph, x = added(fake)
    graph.launch(s)
    graph.close()
    refused("TC411", lambda: host.fill(x, 1).submit(t))
    host.fill(x, 1).submit(s)


def test_a_later_write_is_known_when_the_graph_is_closed(fake):
    """The launch is noted late: it covers nothing."""
    s, t, u = host.stream(), host.stream(), host.stream()
    x, y = host.full(16, 1.0).sync(), host.full(16, 2.0).sync()
    with host.capture(inputs={"x": x}) as scope:
        host.launch(fake.double, (2,), (x,)).submit()
    scope.graph.launch(s)
    launched = s.record()
    scope.graph.update({"x": y}, t)
    scope.graph.close()
    u.wait(launched)
    assert "`copy_to_device`" in refused("TC411", lambda: host.fill(x, 5).submit(u))
    u.wait(t)
    host.fill(x, 5).submit(u)


def test_a_later_read_is_known_when_the_graph_is_closed(fake):
    """The launch is noted late: it does not take the place of what came after it on its stream."""
    s, u = host.stream(), host.stream()
    graph, x = added(fake)
    out = host.zeros(16).sync()
    graph.launch(s)
    launched = s.record()
    host.launch(fake.add_one, (2,), (x, out)).submit(s)
    graph.close()
    u.wait(launched)
    assert "the launch of `add_one`" in refused("TC411", lambda: host.fill(x, 5).submit(u))
    u.wait(s)
    host.fill(x, 5).submit(u)


# ---- what may be captured ------------------------------------------------------------------------------------


def forbidden(kit, what):
    x = host.zeros(16).sync()

    def mine(array):
        kit.driver.user_allocations += 1

    s = host.stream()
    asking = {
        "an allocation": lambda: host.zeros(16).submit(),
        "an allocation of page-locked memory": lambda: host.pinned(16),
        "an allocation in the call of `mine`": lambda: host.call(mine, reads=(x,)).submit(),
        "`sync()`": lambda: host.fill(x, 1).sync(),
        "a wait of the host": s.sync,
        "`synchronize()`": host.synchronize,
        "a copy from pageable memory": lambda: host.copy_to_device([1.0] * 16, x).submit(),
        "another capture": lambda: host.capture().__enter__(),
        "work on": lambda: host.fill(x, 1).submit(s),
        "`await`": lambda: asyncio.run(_awaited(host.fill(x, 1))),
    }
    return asking[what]


async def _awaited(operation):
    return await operation


@pytest.mark.parametrize(
    "what",
    [
        "an allocation", "an allocation of page-locked memory", "an allocation in the call of `mine`",
        "`sync()`", "a wait of the host", "`synchronize()`", "a copy from pageable memory", "another capture",
        "work on", "`await`",
    ],
)  # fmt: skip
def test_what_may_not_be_captured_is_refused_with_its_line(fake, what):
    run = forbidden(fake, what)
    with pytest.raises(HostRefused) as caught, host.capture() as scope:
        run()
    assert caught.value.code == "TC422"
    assert str(caught.value).startswith(what)
    assert f"{__file__}:" in caught.value.message
    assert f"{__file__}:" in caught.value.notes[0]
    refused("TC422", lambda: scope.graph)
    host.zeros(16).sync()  # the capture has ended
    assert all(stream.capture is None for stream in fake.driver.streams.values())


def test_reading_a_value_is_refused_in_a_capture(fake):
    x = host.zeros(1).sync()
    with pytest.raises(HostRefused, match="page-locked") as caught, host.capture():
        x.item()
    assert caught.value.code == "TC422"


def test_a_capture_ends_where_its_block_raises(kit):
    x = host.full(16, 1.0).sync()

    def captured():
        with host.capture():
            host.launch(kit.double, (2,), (x,)).submit()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        captured()
    host.launch(kit.double, (2,), (x,)).sync()
    assert kit.values(x) == [2.0] * 16
    with host.capture() as scope:
        host.launch(kit.double, (2,), (x,)).submit()
    scope.graph.launch()
    assert kit.values(x) == [4.0] * 16


def test_an_operation_that_allocates_is_not_captured(fake):
    refused("TC422", lambda: host.zeros(16).graph())
    refused("TC422", lambda: host.value(1).then(lambda _: host.zeros(16)).graph())
    host.zeros(16).sync()


def test_the_default_stream_is_not_captured(fake):
    with pytest.raises(ValueError, match="default stream"), host.capture(host.current()):
        pass


def test_concurrent_captures_follow_each_other(fake):
    """Work of other threads waits for the end of the capture, and is not part of it."""
    x, y = host.zeros(16).sync(), host.zeros(16).sync()
    graphs = []

    def capture(array):
        with host.capture(host.stream()) as scope:
            for _ in range(3):
                host.launch(fake.double, (2,), (array,)).submit()
                time.sleep(0.002)
        graphs.append(scope.graph)

    threads = [threading.Thread(target=capture, args=(array,)) for array in (x, y)]
    for thread in threads:
        thread.start()
    host.fill(z := host.zeros(16).submit(), 1).submit()
    for thread in threads:
        thread.join(10)
    assert [len(graph.describe().nodes) for graph in graphs] == [3, 3]
    assert fake.values(z) == [1.0] * 16


def test_work_of_other_tasks_is_not_captured(fake):
    x = host.zeros(16).sync()

    async def other():
        host.fill(x, 1).submit()

    async def main():
        with host.capture():
            await asyncio.create_task(other())

    assert "another task" in refused("TC422", lambda: asyncio.run(main()))


def test_streams_join_a_capture_by_events(kit):
    s, t = host.stream(), host.stream()
    x, y = host.full(16, 1.0).sync(), host.zeros(16).sync()
    z = host.zeros(16).sync()
    with host.capture(s) as scope:
        t.wait(s)
        host.launch(kit.add_one, (2,), (x, y)).submit(s)
        host.launch(kit.add_one, (2,), (x, z)).submit(t)
        s.wait(t)
        host.launch(kit.add, (2,), (y, z, x)).submit(s)
    for _ in range(2):
        scope.graph.launch()
    assert kit.values(x) == [10.0] * 16
    assert {(e.first, e.second) for e in scope.graph.describe().edges} == {(0, 2), (1, 2)}


def test_captured_work_is_in_order_too(fake):
    s, t = host.stream(), host.stream()
    x = host.zeros(16).sync()
    with host.capture(s) as scope:
        t.wait(s)
        host.launch(fake.double, (2,), (x,)).submit(s)
        refused("TC411", lambda: host.launch(fake.double, (2,), (x,)).submit(t))
        host.launch(fake.double, (2,), (x,)).submit(t, order="events")
        s.wait(t)
    scope.graph.launch()
    assert scope.graph.describe().kinds == {"kernel": 2}


def test_a_capture_that_is_not_joined_is_refused(fake):
    s, t = host.stream(), host.stream()
    x = host.zeros(16).sync()

    def captured():
        with host.capture(s):
            t.wait(s)
            host.launch(fake.double, (2,), (x,)).submit(t)

    assert "before it waits for stream 2" in refused("TC422", captured)
    host.launch(fake.double, (2,), (x,)).sync()


def test_captured_streams_and_others_do_not_wait_for_each_other(fake):
    s, t, u = host.stream(), host.stream(), host.stream()
    before = u.record()
    with host.capture(s):
        refused("TC422", lambda: s.wait(before))
        inside = s.record()
        t.wait(inside)
        s.wait(t)
    refused("TC422", lambda: u.wait(inside))


def test_a_shared_operation_of_a_capture_has_no_result_outside(fake):
    x = host.zeros(16).sync()
    op = host.launch(fake.double, (2,), (x,)).shared()
    with host.capture():
        op.submit()
        op.submit()
    refused("TC426", op.sync)


# ---- describing ----------------------------------------------------------------------------------------------


def test_a_graph_describes_itself(fake):
    graph, _ = added(fake)
    found = graph.describe()
    line = added.__code__.co_firstlineno
    assert [(n.number, n.kind, n.name) for n in found.nodes] == [
        (0, "kernel", "add_one"),
        (1, "kernel", "add_one"),
    ]
    assert [n.site for n in found.nodes] == [f"{__file__}:{line + 4}", f"{__file__}:{line + 5}"]
    assert (found.nodes[0].reads, found.nodes[0].writes) == (("x",), ("out",))
    assert [(e.first, e.second, e.programmatic) for e in found.edges] == [(0, 1, False)]
    assert [(b.written, b.inputs, b.outputs, b.nbytes) for b in found.buffers] == [
        (False, ("x",), (), 64),
        (True, (), (), 64),
        (True, (), ("y",), 64),
    ]
    assert found.kinds == {"kernel": 2}
    data = json.loads(found.to_json())
    assert data["kinds"] == {"kernel": 2}
    assert data["edges"] == [{"first": 0, "second": 1, "programmatic": False}]
    dot = found.to_dot()
    assert 'n0 [label="add_one\\nreads x\\nwrites out"];' in dot
    assert "n0 -> n1;" in dot
