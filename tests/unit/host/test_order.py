"""Work on several streams is in order, or it is refused: judged by ranges of memory."""

from __future__ import annotations

import pytest

from tilecheck import host
from tilecheck.host import HostRefused


def refused(code, run):
    with pytest.raises(HostRefused) as caught:
        run()
    assert caught.value.code == code
    return str(caught.value)


def test_work_on_one_stream_is_in_order(kit):
    s = host.stream()
    x = host.zeros(16).submit(s)
    y = host.empty(16).submit(s)
    for _ in range(3):
        host.launch(kit.add_one, (2,), (x, y)).submit(s)
        host.launch(kit.add_one, (2,), (y, x)).submit(s)
    s.sync()
    assert kit.values(x) == [6.0] * 16


def test_a_write_on_another_stream_is_refused_with_both_sites(fake):
    s, t = host.stream(), host.stream()
    x = host.zeros(16).submit(s)
    text = refused("TC411", lambda: host.launch(fake.double, (2,), (x,)).submit(t))
    line = test_a_write_on_another_stream_is_refused_with_both_sites.__code__.co_firstlineno
    assert f"`double` at {__file__}:{line + 3} on stream 2 writes `out`, bytes 0..64" in text
    assert f"`zeros` at {__file__}:{line + 2} on stream 1 writes bytes 0..64, and may not have ended" in text
    assert 'order="events"' in text


def test_a_refused_operation_may_be_run_when_it_is_in_order(fake):
    s, t = host.stream(), host.stream()
    x = host.zeros(16).submit(s)
    double = host.launch(fake.double, (2,), (x,))
    refused("TC411", lambda: double.submit(t))
    t.wait(s)
    assert double.submit(t) == (x,)
    assert fake.values(x) == [0.0] * 16


@pytest.mark.parametrize("seed", range(5))
def test_with_events_the_wait_is_inserted(seed):
    import host_kits

    kit = host_kits.FakeKit(seed, order="events")
    with host.using(kit.runtime):
        s, t = host.stream(), host.stream()
        x = host.full(16, 1.0).submit(s)
        host.launch(kit.double, (2,), (x,)).submit(t)
        host.launch(kit.double, (2,), (x,)).submit(s)
        assert kit.values(x) == [4.0] * 16
    assert kit.driver.counts["wait"] == 2


def test_an_event_covers_the_work_and_not_what_the_stream_gets_later(fake):
    s, t = host.stream(), host.stream()
    x = host.full(16, 1.0).submit(s, order="events")
    late = host.zeros(16).submit(s)
    host.launch(fake.double, (2,), (x,)).submit(t, order="events")
    refused("TC411", lambda: host.launch(fake.double, (2,), (late,)).submit(t))


def test_work_waits_for_the_event_that_covers_it():
    import host_kits

    kit = host_kits.FakeKit(order="events")
    with host.using(kit.runtime):
        s, t = host.stream(), host.stream()
        host.full(16, 1.0).submit(s)
        x = host.full(16, 1.0).submit(s)
        y = host.full(16, 1.0).submit(s)
        host.launch(kit.double, (2,), (x,)).submit(t)
        waits = kit.driver.counts["wait"]
        host.launch(kit.double, (2,), (y,)).submit(t)
        assert kit.driver.counts["wait"] == waits + 1
        assert kit.values(x) == kit.values(y) == [2.0] * 16


def test_two_readers_on_two_streams_are_in_order(kit):
    s, t = host.stream(), host.stream()
    x = host.full(16, 3.0).sync_on(s)
    y, z = host.empty(16).submit(s), host.empty(16).submit(t)
    host.launch(kit.add_one, (2,), (x, y)).submit(s)
    host.launch(kit.add_one, (2,), (x, z)).submit(t)
    assert kit.values(y) == kit.values(z) == [4.0] * 16


def test_a_write_after_a_read_on_another_stream_is_refused(fake):
    s, t = host.stream(), host.stream()
    x = host.zeros(16).sync_on(s)
    y = host.empty(16).submit(s)
    host.launch(fake.add_one, (2,), (x, y)).submit(s)
    assert "reads bytes 0..64" in refused("TC411", lambda: host.launch(fake.double, (2,), (x,)).submit(t))


def test_events_order_by_what_was_recorded(fake):
    s, t = host.stream(), host.stream()
    x = host.zeros(16).submit(s)
    event = s.record()
    y = host.zeros(16).submit(s)
    t.wait(event)
    host.launch(fake.double, (2,), (x,)).submit(t)
    refused("TC411", lambda: host.launch(fake.double, (2,), (y,)).submit(t))


def test_a_closed_stream_leaves_its_handle_to_another(fake):
    s, t = host.stream(), host.stream()
    x = host.zeros(16).submit(s)
    s.close()
    host.launch(fake.double, (2,), (x,)).submit(t)
    again = host.stream_of(s.handle)  # what may be another stream has no order with the first
    with pytest.raises(HostRefused):
        host.launch(fake.double, (2,), (x,)).submit(again)


def test_order_is_transitive(fake):
    s, t, u = host.stream(), host.stream(), host.stream()
    x = host.full(16, 1.0).submit(s)
    t.wait(s)
    u.wait(t)
    host.launch(fake.double, (2,), (x,)).submit(u)
    assert fake.values(x) == [2.0] * 16


@pytest.mark.parametrize("join", ["stream", "event", "device"])
def test_what_the_host_has_waited_for_is_in_order(fake, join):
    s, t = host.stream(), host.stream()
    x = host.zeros(16).submit(s)
    event = s.record()
    {"stream": s.sync, "event": event.sync, "device": host.synchronize}[join]()
    host.launch(fake.double, (2,), (x,)).submit(t)


def test_what_is_seen_to_have_ended_is_in_order(kit):
    """PyTorch may have waited without our knowing: the stream is asked before anything is refused."""
    s, t = host.stream(), host.stream()
    x = host.full(16, 1.0).submit(s)
    kit.values(x)  # waits for the device behind the library's back
    host.launch(kit.double, (2,), (x,)).submit(t)
    assert kit.values(x) == [2.0] * 16


def test_gap_leases_are_per_range(kit):
    """Two streams work on disjoint parts of one array."""
    s, t = host.stream(), host.stream()
    x = host.full(32, 1.0).sync()
    parts = host.partition(x, 16)
    kit.slow(s)
    host.launch(kit.double, (2,), (parts[0],)).submit(s)
    host.launch(kit.double, (2,), (parts[1],)).submit(t)
    host.unpartition(parts)
    assert kit.values(x) == [2.0] * 32


def test_gap_a_conflict_is_ordered_where_the_program_says_so(kit):
    s, t = host.stream(), host.stream()
    kit.slow(s)
    x = host.full(16, 1.0).submit(s)
    host.launch(kit.double, (2,), (x,)).submit(t, order="events")
    assert kit.values(x) == [2.0] * 16


def test_gap_two_tensors_over_one_memory(fake):
    """Conflicts are found by address, whatever object names the memory."""
    base = fake.array([1.0] * 32)
    x, y = host.own(base[(slice(0, 16),)]), host.own(base[(slice(8, 24),)])
    far = host.own(base[(slice(24, 32),)])
    s, t = host.stream(), host.stream()
    host.synchronize()
    host.launch(fake.double, (2,), (x,)).submit(s)
    text = refused("TC411", lambda: host.launch(fake.double, (2,), (y,)).submit(t))
    assert "bytes 32..96" in text
    assert "bytes 0..64" in text
    host.launch(fake.double, (1,), (far,)).submit(t)


def test_storages_that_turn_out_to_overlap_become_one(fake):
    base = fake.array([1.0] * 32)
    left, right = host.own(base[(slice(0, 8),)]), host.own(base[(slice(16, 24),)])
    s, t = host.stream(), host.stream()
    host.synchronize()
    host.launch(fake.double, (1,), (left,)).submit(s)
    host.launch(fake.double, (1,), (right,)).submit(s)
    middle = host.own(base[(slice(4, 20),)])  # spans both, and makes them one
    refused("TC411", lambda: host.launch(fake.double, (2,), (middle,)).submit(t))
    refused("TC411", lambda: host.launch(fake.double, (1,), (right,)).submit(t))
    host.launch(fake.double, (1,), (left,)).submit(s)


def test_interleaved_columns_do_not_conflict(fake):
    base = fake.array([[1.0] * 8] * 4)
    left = host.own(base[(slice(0, 4), slice(0, 4))])
    right = host.own(base[(slice(0, 4), slice(4, 8))])
    s, t = host.stream(), host.stream()
    host.synchronize()
    host.launch(fake.double, (1,), (left,)).submit(s)
    host.launch(fake.double, (1,), (right,)).submit(t)
    assert fake.values(left) == fake.values(right) == [[2.0] * 4] * 4


def test_kernels_that_reach_gaps_conflict_by_all_that_lies_between(fake):
    """A pointer of Triton is a flat array to the proof."""
    flat = fake.kernel("flat", "out", lambda out: None, language="triton")
    base = fake.array([[1.0] * 8] * 4)
    left = host.own(base[(slice(0, 4), slice(0, 4))])
    right = host.own(base[(slice(0, 4), slice(4, 8))])
    s, t = host.stream(), host.stream()
    host.synchronize()
    host.launch(flat, (1,), (left,)).submit(s)
    refused("TC411", lambda: host.launch(flat, (1,), (right,)).submit(t))


def test_arrays_of_cutile_that_offsets_reach_into_are_flat_too(fake):
    flat = fake.kernel("flat", "out", lambda out: None, conditions=("numel(out) >= 4",))
    base = fake.array([[1.0] * 8] * 4)
    left, right = (host.own(base[(slice(0, 4), slice(k, k + 4))]) for k in (0, 4))
    s, t = host.stream(), host.stream()
    host.synchronize()
    host.launch(flat, (1,), (left,)).submit(s)
    refused("TC411", lambda: host.launch(flat, (1,), (right,)).submit(t))


def test_gap_work_of_torch_is_in_order_on_its_stream(kit):
    tensor = kit.array([1.0] * 16)
    kit.slow(host.current())
    kit.torch_fill(tensor, 5.0)
    x = host.own(tensor)
    s = host.stream()
    text = refused("TC411", lambda: host.launch(kit.double, (2,), (x,)).submit(s))
    assert "your own code" in text
    host.launch(kit.double, (2,), (x,)).submit()  # the current stream
    assert kit.values(x) == [10.0] * 16


def test_torch_gets_an_array_back_in_order(kit):
    s = host.stream()
    x = host.zeros(16).submit(s)
    kit.slow(s)
    host.launch(kit.double, (2,), (x,)).submit(s)
    refused("TC411", x.tensor)
    kit.torch_fill(x.tensor(order="events"), 7.0)
    assert kit.values(x) == [7.0] * 16
    with kit.on(s):
        assert x.tensor(order="events") is x.array


def test_many_regions_of_one_array_are_forgotten_when_they_have_ended(fake):
    s = host.stream()
    x = host.zeros(512).submit(s)
    parts = host.partition(x, 8)
    for _ in range(4):
        for k in range(64):
            host.launch(fake.double, (1,), (parts[k],)).submit(s)
        s.sync()
    tracks = x.storage.tracks
    assert sum(len(track.writes) for track in tracks.by_lane.values()) <= 66
    t = host.stream()
    host.launch(fake.double, (1,), (parts[0],)).submit(t)
    assert list(tracks.by_lane) == [t.queue.lane]  # what is known to have ended is gone


def test_regions_do_not_pile_up_on_a_stream_that_the_host_never_waits_for(fake):
    s = host.stream()
    x = host.zeros(4096).submit(s)
    for number in range(2000):
        part = host.own(x.array[(slice(number, number + 8),)])
        host.enqueue(s, fake.double, (1,), (part,))
        fake.driver.run_all()
    storage = x.home()
    assert len(storage.regions) < 300
    assert sum(len(track.writes) for track in storage.tracks.by_lane.values()) < 300
    assert storage.tracks.lane == s.queue.lane


def test_a_write_stands_for_what_it_covers(fake):
    streams = [host.stream() for _ in range(4)]
    x = host.zeros(16).sync()
    for stream in streams:
        host.launch(fake.add_one, (2,), (x, host.empty(16).submit(stream))).submit(stream)
    last = streams[-1]
    for stream in streams:
        last.wait(stream)
    host.launch(fake.double, (2,), (x,)).submit(last)
    assert len(x.storage.tracks.by_lane) == 1
    refused("TC411", lambda: host.launch(fake.double, (2,), (x,)).submit(streams[0]))


def test_the_first_event_behind_an_item_is_waited_for(fake):
    """A later one would wait for more."""
    s, t = host.stream(), host.stream()
    x, y, z = (host.zeros(16).submit(s, order="events") for _ in range(3))
    held = fake.driver.hold(s)
    host.fill(z, 3).submit(s, order="events")
    host.fill(x, 5).submit(t, order="events")
    t.sync()  # though nothing behind the event of `x` runs
    assert fake.driver.counts["wait"] == 1
    fake.driver.release(held)
    fake.driver.run_all()
    assert (fake.values(x), fake.values(y)) == ([5.0] * 16, [0.0] * 16)
