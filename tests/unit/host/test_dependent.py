"""Dependent launches: allowed where the chain on the stream is in order, before the wait and after it."""

from __future__ import annotations

import gc

import host_kits
import numpy as np
import pytest

from tilecheck import host
from tilecheck.host import HostRefused
from tilecheck.jit.cubin import Compiled, CompiledKernel
from tilecheck.jit.records import Waits
from tilecheck.proof.interleavings import hazards


def refused(code, run):
    with pytest.raises(HostRefused) as caught:
        run()
    assert caught.value.code == code
    return str(caught.value)


class Chain:
    """Kernels on the fake GPU that wait for the launch before: at once, late, or never."""

    def __init__(self, kit):
        self.kit = kit
        # out += w, with the weight loaded before the wait.
        self.add_weight = kit.kernel(
            "add_weight",
            "w out",
            lambda w, out, loaded: np.copyto(out, out + loaded),
            early=lambda w, out: w.copy(),
            waits=Waits(True, reads=("w",)),
        )
        # out *= 2, all behind the wait.
        self.double = kit.kernel("double_late", "out", lambda out: np.copyto(out, 2 * out), waits=Waits(True))
        # out *= 3, by a kernel that never waits.
        self.triple = kit.kernel("triple", "out", early=lambda out: np.copyto(out, 3 * out))
        # reads x before its wait, though another kernel may write it.
        self.hasty = kit.kernel(
            "hasty",
            "x out",
            lambda x, out, _: None,
            early=lambda x, out: None,
            waits=Waits(True, reads=("x",)),
        )
        self.storing = kit.kernel(
            "storing", "out", lambda out, _: None, early=lambda out: None, waits=Waits(True, writes=("out",))
        )


@pytest.fixture(params=range(5))
def chain(request):
    kit = host_kits.FakeKit(request.param)
    with host.using(kit.runtime):
        yield Chain(kit)
        kit.close()


def test_a_chain_that_waits_is_in_order(chain):
    """P1, P4: weights that nothing writes may be loaded before the wait."""
    s = host.stream()
    x, w = host.full(16, 1.0).sync(), host.full(16, 1.0).sync()
    for _ in range(3):
        host.launch(chain.double, (1,), (x,), dependent=True).submit(s)
        host.launch(chain.add_weight, (1,), (w, x), dependent=True).submit(s)
    host.launch(chain.kit.double, (1,), (x,)).submit(s)
    assert chain.kit.values(x) == [30.0] * 16


def test_a_read_before_the_wait_of_what_the_launch_before_writes_is_refused(chain):
    s = host.stream()
    x, y = host.zeros(16).sync(), host.zeros(16).sync()
    host.launch(chain.double, (1,), (x,)).submit(s)
    text = refused("TC431", lambda: host.launch(chain.hasty, (1,), (x, y), dependent=True).submit(s))
    assert "`hasty`" in text
    assert "`double_late`" in text
    assert "reads `x` before it waits" in text
    host.launch(chain.hasty, (1,), (x, y)).submit(s)


def test_a_store_before_the_wait_of_what_the_launch_before_reads_is_refused(chain):
    s = host.stream()
    x, y = host.zeros(16).sync(), host.zeros(16).sync()
    host.launch(chain.kit.add_one, (1,), (x, y)).submit(s)
    refused("TC431", lambda: host.launch(chain.storing, (1,), (x,), dependent=True).submit(s))
    host.launch(chain.storing, (1,), (host.zeros(16).sync(),), dependent=True).submit(s)


def test_everything_since_the_start_of_the_chain_is_still_open(chain):
    """The third launch may start when the first has: what the first writes is not ready before its wait."""
    s = host.stream()
    x, y, z = (host.zeros(16).sync() for _ in range(3))
    host.launch(chain.double, (1,), (x,)).submit(s)
    host.launch(chain.double, (1,), (y,), dependent=True).submit(s)
    refused("TC431", lambda: host.launch(chain.hasty, (1,), (x, z), dependent=True).submit(s))


def test_a_weight_that_the_pipeline_writes_is_not_frozen(chain):
    """P5."""
    s = host.stream()
    x, w = host.zeros(16).sync(), host.zeros(16).sync()
    host.fill(w, 1).submit(s)  # a fill is no launch: what follows it starts when it has ended
    host.launch(chain.add_weight, (1,), (w, x), dependent=True).submit(s)
    host.launch(chain.kit.double, (1,), (w,)).submit(s)
    refused("TC431", lambda: host.launch(chain.add_weight, (1,), (w, x), dependent=True).submit(s))


def test_a_kernel_that_never_waits_is_disjoint_from_all_that_is_open(chain):
    """P2."""
    s = host.stream()
    x, y = host.full(16, 1.0).sync(), host.full(16, 1.0).sync()
    host.launch(chain.double, (1,), (x,)).submit(s)
    text = refused("TC432", lambda: host.launch(chain.triple, (1,), (x,), dependent=True).submit(s))
    assert "`triple`" in text
    host.launch(chain.triple, (1,), (y,), dependent=True).submit(s)
    assert (chain.kit.values(x), chain.kit.values(y)) == ([2.0] * 16, [3.0] * 16)


def test_behind_a_kernel_that_never_waits_the_order_is_broken(chain):
    """P3: its end says nothing of the launch before it, whatever comes later waits for."""
    s = host.stream()
    x, y, z = (host.full(16, 1.0).sync() for _ in range(3))
    gate = chain.kit.driver.hold(s)
    host.launch(chain.double, (1,), (x,)).submit(s)
    host.launch(chain.triple, (1,), (y,), dependent=True).submit(s)
    host.launch(chain.double, (1,), (y,), dependent=True).submit(s)  # waits for `triple`, which is enough
    text = refused("TC433", lambda: host.launch(chain.double, (1,), (x,), dependent=True).submit(s))
    assert "its end says nothing of what came before it" in text
    refused("TC433", lambda: host.launch(chain.kit.double, (1,), (x,)).submit(s))
    refused("TC433", lambda: host.fill(x, 1).submit(s))
    host.launch(chain.kit.double, (1,), (z,)).submit(s)
    chain.kit.driver.release(gate)
    s.sync()
    host.launch(chain.kit.double, (1,), (x,)).submit(s)
    assert [chain.kit.values(a) for a in (x, y, z)] == [[4.0] * 16, [6.0] * 16, [2.0] * 16]


def test_what_had_ended_before_the_chain_began_is_in_order_behind_a_break(chain):
    s = host.stream()
    x, y, z = (host.full(16, 1.0).sync() for _ in range(3))
    chain.kit.driver.hold(s)
    host.launch(chain.kit.double, (1,), (x,)).submit(s)
    host.launch(chain.double, (1,), (y,)).submit(s)
    host.launch(chain.triple, (1,), (z,), dependent=True).submit(s)
    host.launch(chain.kit.double, (1,), (x,)).submit(s)
    refused("TC433", lambda: host.launch(chain.kit.double, (1,), (y,)).submit(s))


def test_an_event_behind_a_broken_chain_covers_what_the_last_launch_implies(chain):
    s, t = host.stream(), host.stream()
    x, y = host.full(16, 1.0).sync(), host.full(16, 1.0).sync()
    chain.kit.driver.hold(s)
    host.launch(chain.double, (1,), (x,)).submit(s)
    host.launch(chain.triple, (1,), (y,), dependent=True).submit(s)
    t.wait(s)
    host.launch(chain.kit.double, (1,), (y,)).submit(t)
    for order in ("refuse", "events"):
        refused("TC433", lambda order=order: host.launch(chain.kit.double, (1,), (x,)).submit(t, order=order))
    x = None
    gc.collect()
    host.reap()
    assert host.parked() == 1  # no event of the stream speaks of it


def test_an_event_does_not_free_what_a_launch_before_still_uses(chain):
    s, driver = host.stream(), chain.kit.driver
    x, y = host.full(16, 1.0).sync(), host.full(16, 1.0).sync()
    host.launch(chain.double, (1,), (x,)).submit(s)
    host.launch(chain.triple, (1,), (y,), dependent=True).submit(s)
    first, second = driver.parts
    first.started = second.started = True
    driver._end(second)  # noqa: SLF001 - the launch that waits for nothing ends first
    live = len(driver.live)
    del x
    host.reap()
    assert (host.parked(), len(driver.live)) == (1, live)
    driver.run_all()
    host.reap()
    assert (host.parked(), len(driver.live)) == (0, live - 1)


def test_a_kernel_that_never_waits_leaves_the_order_of_your_own_code_alone(chain):
    """Behind it your next work would start while your last may still run, whatever the kernel touches."""
    s = host.stream()
    x, y, z = (host.full(16, 1.0).sync() for _ in range(3))
    host.launch(chain.double, (1,), (x,)).submit()
    text = refused("TC432", lambda: host.launch(chain.triple, (1,), (y,), dependent=True).submit())
    assert "your own code works on the default stream" in text
    with chain.kit.on(s):
        chain.kit.torch_fill(x.tensor(order="events"), 4.0)
        host.launch(chain.kit.double, (1,), (y,)).submit(s)
        refused("TC432", lambda: host.launch(chain.triple, (1,), (z,), dependent=True).submit(s))
        host.launch(chain.double, (1,), (y,), dependent=True).submit(s)
    host.launch(chain.kit.double, (1,), (x,)).submit(s)  # takes it back
    host.launch(chain.triple, (1,), (z,), dependent=True).submit(s)
    assert [chain.kit.values(a) for a in (x, y, z)] == [[8.0] * 16, [4.0] * 16, [3.0] * 16]


def test_a_wait_ends_the_overlap(chain):
    s, t = host.stream(), host.stream()
    x, y = host.zeros(16).sync(), host.zeros(16).sync()
    host.launch(chain.double, (1,), (x,)).submit(s)
    s.wait(t)
    host.launch(chain.hasty, (1,), (x, y), dependent=True).submit(s)  # starts when the wait has ended


def test_an_inserted_event_ends_the_overlap(chain):
    s, t = host.stream(), host.stream()
    x, y, z = (host.zeros(16).sync() for _ in range(3))
    host.launch(chain.double, (1,), (x,)).submit(s)
    host.launch(chain.double, (1,), (y,)).submit(t)
    # `z` waits for t, and so does what the launch does before its wait.
    host.launch(chain.hasty, (1,), (y, z), dependent=True).submit(s, order="events")
    assert chain.kit.driver.counts["wait"] == 1


def test_what_torch_has_enqueued_may_overlap(chain):
    kit = chain.kit
    tensor, y = kit.array([1.0] * 16), host.zeros(16).sync()
    kit.torch_fill(tensor, 2.0)
    x = host.own(tensor)
    refused("TC431", lambda: host.launch(chain.hasty, (1,), (x, y), dependent=True).submit())
    host.launch(chain.add_weight, (1,), (y, x), dependent=True).submit()
    assert kit.values(x) == [2.0] * 16


def test_where_your_own_work_lies_on_the_stream_is_not_known(chain):
    """It was before the launch here, with whose start the next one starts, though it is noted behind it."""
    kit, s = chain.kit, host.stream()
    x, y = host.full(16, 1.0).sync(), host.zeros(16).sync()
    with kit.on(s), host.recording() as recorder:
        kit.torch_fill(y.tensor(order="events"), 2.0)
        host.launch(chain.double, (1,), (x,)).submit(s)
        host.call(lambda y: None, reads=(y,)).submit(s)  # takes it back
        host.launch(chain.double, (1,), (x,)).submit(s)
        z = host.own(kit.array([1.0] * 16))
        refused("TC431", lambda: host.launch(chain.hasty, (1,), (x, z), dependent=True).submit(s))
        assert {"TC431"} <= {hazard.code for hazard in hazards(recorder.refused_program())}
        host.launch(chain.add_weight, (1,), (y, x), dependent=True).submit(s)
        assert not hazards(recorder.program())
    assert kit.values(x) == [6.0] * 16


def test_chains_are_captured(chain):
    kit = chain.kit
    x, w, y = host.full(16, 1.0).sync(), host.full(16, 1.0).sync(), host.zeros(16).sync()
    with host.capture() as scope:
        host.launch(chain.double, (1,), (x,), dependent=True).submit()
        host.launch(chain.add_weight, (1,), (w, x), dependent=True).submit()
        refused("TC431", lambda: host.launch(chain.hasty, (1,), (x, y), dependent=True).submit())
        host.launch(chain.double, (1,), (x,), dependent=True).submit()
    graph = scope.graph
    for _ in range(3):
        graph.launch()
    edges = [(e.first, e.second, e.programmatic) for e in graph.describe().edges]
    assert edges == [(0, 1, True), (1, 2, True)]
    assert "n0 -> n1 [style=dashed];" in graph.describe().to_dot()
    assert kit.values(x) == [4 * (4 * (4 * 1 + 2) + 2) + 2.0] * 16


def test_launches_from_cubins_do_not_depend(fake, tmp_path):
    cubin = CompiledKernel(tmp_path, Compiled(host_kits.record("double", "out", waits=Waits(True)), ()))
    x = host.zeros(8).sync()
    with pytest.raises(ValueError, match="cubin"):
        host.launch(cubin, (1,), (x,), dependent=True)
    with pytest.raises(ValueError, match="cubin"):
        host.enqueue(host.stream(), cubin, (1,), (x,), dependent=True)
    host.fill(x, 1).sync()  # nothing holds it
