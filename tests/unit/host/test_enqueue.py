"""Launches without an operation in between: as checked as others, on the short way and on the long one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilecheck import host
from tilecheck.host import HostRefused
from tilecheck.host.operations.fast_path import FastPath
from tilecheck.host.operations.kernels import Prepared
from tilecheck.jit.records import Argument, Waits


@pytest.fixture(params=["short", "long"])
def way(request, monkeypatch):
    """The short way where it is open, or never."""
    taken = []
    found = Prepared.fast_path

    def noted(self, args, options):
        fast = found(self, args, options)

        def launch(*given):
            taken.append(request.param == "short" and fast.launch(*given))
            return taken[-1]

        return FastPath(launch, fast.take if request.param == "short" else lambda *_: None)

    monkeypatch.setattr(Prepared, "fast_path", noted)
    return taken


def refused(code, run):
    with pytest.raises(HostRefused) as caught:
        run()
    assert caught.value.code == code
    return str(caught.value)


def test_launches_on_one_stream_take_the_short_way(kit, way, request):
    s = host.stream()
    x, y = host.full(16, 1.0).submit(s), host.zeros(16).submit(s)
    for _ in range(3):
        host.enqueue(s, kit.add_one, (2,), (x, y))
        host.enqueue(s, kit.add_one, (2,), (y, x))
    assert kit.values(x) == [7.0] * 16
    assert all(way) == (request.node.callspec.params["way"] == "short")


def test_another_stream_is_refused(fake, way):
    s, t = host.stream(), host.stream()
    x = host.zeros(16).submit(s)
    host.enqueue(s, fake.double, (2,), (x,))
    text = refused("TC411", lambda: host.enqueue(t, fake.double, (2,), (x,)))
    assert "test_enqueue.py" in text
    host.enqueue(t, fake.double, (2,), (x,), order="events")
    assert fake.driver.counts["wait"] == 1
    refused("TC411", lambda: host.fill(x, 1).submit(s))


def test_arrays_that_an_operation_holds_are_refused(fake, way):
    s = host.stream()
    x, y = host.zeros(16).submit(s), host.zeros(16).submit(s)
    moved, lent = host.fill(x, 1), host.copy_to_host(y)
    refused("TC412", lambda: host.enqueue(s, fake.double, (2,), (x,)))
    refused("TC412", lambda: host.enqueue(s, fake.add_one, (2,), (x, y)))
    refused("TC412", lambda: host.enqueue(s, fake.double, (2,), (y,)))
    moved.cancel()
    host.enqueue(s, fake.add_one, (2,), (y, x))  # another reader
    lent.cancel()
    shared = host.value(y).shared().submit(s)
    refused("TC412", lambda: host.enqueue(s, fake.double, (2,), (shared,)))


def test_an_access_on_the_short_way_is_followed(fake, way):
    s, t = host.stream(), host.stream()
    x, y = host.zeros(16).submit(s), host.zeros(16).submit(s)
    t.wait(s)
    host.enqueue(s, fake.add_one, (2,), (x, y))
    assert "reads" in refused("TC411", lambda: host.fill(x, 1).submit(t))
    assert "writes" in refused("TC411", lambda: host.copy_to_host(y).submit(t))
    event = s.record()
    host.enqueue(s, fake.double, (2,), (y,))
    t.wait(event)
    host.fill(x, 1).submit(t)
    refused("TC411", lambda: host.copy_to_host(y).submit(t))


def test_pieces_captured_arrays_and_plain_ones_take_the_long_way(fake, way):
    s = host.stream()
    parts = host.partition(host.full(16, 1.0).submit(s), 8)
    host.enqueue(s, fake.double, (1,), (parts[0],))
    host.enqueue(s, fake.double, None, (parts,))
    assert fake.values(host.unpartition(parts)) == [4.0] * 8 + [2.0] * 8
    tensor = fake.array([1.0] * 16)
    host.enqueue(host.current(), fake.double, (2,), (tensor,))
    x = host.zeros(16).submit(s)
    with host.capture() as scope:
        host.enqueue(scope.stream, fake.double, (2,), (x,))
    assert len(scope.graph.describe().nodes) == 1
    refused("TC423", lambda: host.enqueue(s, fake.double, (2,), (x,)))
    assert not any(way)


def test_dependent_launches(fake, way):
    s = host.stream()
    wide = fake.kernel(
        "wide",
        "w out",
        lambda w, out, loaded: np.copyto(out, out + loaded),
        early=lambda w, out: w.copy(),
        waits=Waits(True, reads=("w",)),
    )
    storing = fake.kernel("storing", "out", lambda out, _: None, lambda out: None, Waits(True, writes=("out",)))
    never = fake.kernel("never", "out", early=lambda out: np.copyto(out, out + 1))
    w, x, y = (host.full(16, 1.0).submit(s) for _ in range(3))
    for _ in range(3):
        host.enqueue(s, wide, (1,), (w, x), dependent=True)
    refused("TC431", lambda: host.enqueue(s, wide, (1,), (x, y), dependent=True))
    refused("TC431", lambda: host.enqueue(s, storing, (1,), (x,), dependent=True))
    refused("TC432", lambda: host.enqueue(s, never, (1,), (x,), dependent=True))
    host.enqueue(s, wide, (1,), (y, x))  # does not depend: starts when the others have ended
    host.enqueue(s, never, (1,), (y,))
    refused("TC431", lambda: host.enqueue(s, wide, (1,), (y, x), dependent=True))
    assert (fake.values(x), fake.values(y)) == ([5.0] * 16, [2.0] * 16)


def test_gaps_of_a_flat_kernel_are_looked_at(fake, way):
    flat = fake.kernel("flat", "out", lambda out: np.copyto(out, 2 * out), language="triton")
    base = host.own(fake.array([[1.0] * 8] * 4))
    left, right = (host.own(base.array[(slice(0, 4), slice(k, k + 4))]) for k in (0, 4))
    s, t = host.stream(), host.stream()
    host.synchronize()
    host.enqueue(s, flat, (1,), (left,))
    first = s.record()
    host.enqueue(s, flat, (1,), (left,))
    t.wait(first)
    refused("TC411", lambda: host.enqueue(t, flat, (1,), (right,)))
    refused("TC411", lambda: host.enqueue(t, fake.double, (1,), (right,)))  # lies in the gaps of the left one
    t.wait(s)
    host.enqueue(s, flat, (1,), (base,))


def test_options_and_kernels_that_are_refused(fake, way):
    s = host.stream()
    x = host.zeros(16).submit(s)
    with pytest.raises(TypeError, match="no options"):
        host.enqueue(s, fake.double, (2,), (x,), num_warps=4)
    refused("", lambda: host.value(1).map(lambda _: host.enqueue(s, fake.double, (2,), (x,))).sync())
    host.enqueue(s, fake.double, (2,), (x,))


def test_a_captured_stream_is_not_launched_on(fake, way):
    s = host.stream()
    x = host.zeros(16).submit(s)
    for _ in range(2):
        host.enqueue(s, fake.double, (2,), (x,))
    with host.capture(s) as scope:
        host.enqueue(s, fake.double, (2,), (x,))
        host.launch(fake.double, (2,), (x,)).submit(s)
    assert len(scope.graph.describe().nodes) == 2


def test_what_a_launch_calls_does_not_launch(fake, way):
    s = host.stream()
    x, y = host.zeros(16).submit(s), host.zeros(16).submit(s)
    inner = host.launch(fake.double, (2,), (y,))
    found = []

    def nested(*_, **__):
        found.append(refused("", lambda: host.enqueue(s, fake.add_one, (2,), (y, x))))
        found.append(refused("", lambda: inner.submit(s)))

    fake.add.enqueue = nested
    z = host.zeros(16).submit(s)
    host.enqueue(s, fake.add, (2,), (x, x, z))
    host.launch(fake.add, (2,), (x, x, z)).submit(s)
    assert len(found) == 4
    inner.submit(s)


def test_an_argument_that_the_kernel_does_not_touch_is_handed_on(fake, way):
    s = host.stream()
    x = host.zeros(16).submit(s)
    found = []
    kernel = fake.kernel("idle", "x out", lambda x, out: None)
    idle = (Argument("x", "unused", array=True), kernel.record.arguments[1])
    kernel.record = replace(kernel.record, arguments=idle)
    kernel.enqueue = lambda stream, grid, args, dependent: found.append(args[0])
    for _ in range(2):
        host.enqueue(s, kernel, (1,), (x, x))
    assert all(value is x.array for value in found)


# ---- what a dependent launch overlaps with -------------------------------------------------------------------


def hasty(fake):
    """A kernel that reads `w` before its wait."""
    return fake.kernel(
        "hasty",
        "w out",
        lambda w, out, loaded: np.copyto(out, out + loaded),
        early=lambda w, out: w.copy(),
        waits=Waits(True, reads=("w",)),
    )


def test_a_launch_that_never_waits_breaks_the_order_of_its_stream(fake, way):
    """Also if it writes nothing."""
    s = host.stream()
    looking = fake.kernel("looking", "x", early=lambda x: None)
    x, y = host.zeros(16).submit(s), host.zeros(16).submit(s)
    s.sync()
    for _ in range(2):
        host.enqueue(s, looking, (1,), (y,))
        host.enqueue(s, fake.double, (2,), (x,))
    host.enqueue(s, looking, (1,), (y,), dependent=True)
    refused("TC433", lambda: host.enqueue(s, fake.double, (2,), (x,)))


def test_what_the_long_way_wrote_is_not_read_early(fake, way):
    s = host.stream()
    y = host.zeros(16).submit(s)
    host.enqueue(s, fake.double, (2,), (y,))
    x = host.own(fake.array([1.0] * 16))  # new: it is looked at once
    host.synchronize()
    host.launch(fake.double, (2,), (x,)).submit(s)
    refused("TC431", lambda: host.enqueue(s, hasty(fake), (1,), (x, y), dependent=True))


def test_what_a_launch_that_never_waits_wrote_is_not_read_early(fake, way):
    s = host.stream()
    never = fake.kernel("never", "out", early=lambda out: out.fill(1))
    x, y = host.zeros(16).submit(s), host.zeros(16).submit(s)
    for _ in range(5):
        host.enqueue(s, fake.double, (2,), (y,))
    s.sync()
    host.enqueue(s, never, (1,), (x,), dependent=True)
    refused("TC431", lambda: host.enqueue(s, hasty(fake), (1,), (x, y), dependent=True))


# ---- lazy launches on the same way ---------------------------------------------------------------------------


def test_a_lazy_launch_takes_the_short_way_and_gives_back_what_it_took(kit, way, request):
    s = host.stream()
    x, y = host.full(16, 1.0).submit(s), host.zeros(16).submit(s)
    operation = host.launch(kit.add_one, (2,), (x, y))
    assert (x.loans, y.moved is not None) == (1, True)
    assert operation.submit(s) == (x, y)
    assert (x.loans, y.moved) == (0, None)
    assert "used twice" in refused("TC412", lambda: operation.submit(s))
    refused("TC412", operation.cancel)
    assert kit.values(y) == [2.0] * 16
    assert way[:1] == [request.node.callspec.params["way"] == "short"]


def test_a_lazy_launch_that_is_refused_is_tried_again(fake, way):
    s, t = host.stream(), host.stream()
    x = host.zeros(16).submit(s)
    operation = host.launch(fake.double, (2,), (x,))
    refused("TC411", lambda: operation.submit(t))
    assert x.moved is None
    t.wait(s)
    operation.submit(t)
    refused("TC412", lambda: operation.submit(t))


def test_a_lazy_launch_that_fails_gives_back_what_it_took(fake, way):
    def broken(*_, **__):
        raise ZeroDivisionError

    s = host.stream()
    x, y = host.zeros(16).submit(s), host.zeros(16).submit(s)
    fake.add_one.enqueue = broken
    operation = host.launch(fake.add_one, (2,), (x, y))
    with pytest.raises(ZeroDivisionError):
        operation.submit(s)
    assert (x.loans, y.moved) == (0, None)
    assert "has failed" in refused("TC412", lambda: operation.submit(s))
    host.fill(y, 1).submit(s)  # nothing is executing


def test_a_lazy_launch_runs_on_the_stream_and_in_the_order_that_are_asked_for(fake, way):
    s, t = host.stream(), host.stream()
    x = host.zeros(16).submit(s)
    host.launch(fake.double, (2,), (x,)).submit(t, order="events")
    assert fake.driver.counts["wait"] == 1
    host.launch(fake.double, (2,), (x,)).submit(t)
    recorded = fake.driver.counts["record"]
    host.launch(fake.double, (2,), (x,)).submit(t, order="events")
    assert fake.driver.counts["record"] == recorded + 1  # the event that others wait for
    with pytest.raises(HostRefused):
        host.launch(fake.double, (2,), (x,)).submit()  # on the stream of the user's own code


def test_shared_arrays_are_read_on_the_short_way(fake, way, request):
    s = host.stream()
    x, y = host.full(16, 1.0).submit(s), host.zeros(16).submit(s)
    weight = x.share()
    host.enqueue(s, fake.add_one, (2,), (weight, y))
    host.launch(fake.add_one, (2,), (weight, y)).submit(s)
    assert all(way) == (request.node.callspec.params["way"] == "short")
    refused("TC412", lambda: host.enqueue(s, fake.double, (2,), (weight,)))
    refused("TC412", lambda: host.launch(fake.double, (2,), (weight,)))
    held = host.launch(fake.add_one, (2,), (weight, y))
    refused("TC412", weight.unshare)
    held.cancel()
    assert weight.unshare() is x
    refused("TC412", lambda: host.enqueue(s, fake.add_one, (2,), (weight, y)))
    refused("TC412", lambda: host.launch(fake.add_one, (2,), (weight, y)))
    assert fake.values(y) == [2.0] * 16
