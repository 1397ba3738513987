"""Nothing is freed while the GPU may touch it."""

from __future__ import annotations

import gc
import time
import warnings
import weakref

import host_fake_driver
import host_kits
import pytest

from tilecheck import host
from tilecheck.host import HostRefused


def test_drop_in_flight_parks_until_the_work_has_ended(fake):
    s = host.stream()
    x = host.zeros(16).submit(s)
    host.launch(fake.double, (2,), (x,)).submit(s)
    blocks = len(fake.driver.live)
    del x
    gc.collect()
    assert (host.parked(), len(fake.driver.live)) == (1, blocks)
    host.reap()
    assert host.parked() == 1
    fake.driver.run_all()  # the kernel checks that its memory is there
    host.reap()
    assert (host.parked(), host.reaped_total(), len(fake.driver.live)) == (0, 1, blocks - 1)


def test_an_array_that_is_not_in_flight_is_freed_at_once(fake):
    x = host.zeros(16).sync()
    blocks = len(fake.driver.live)
    del x
    assert (host.parked(), len(fake.driver.live)) == (0, blocks - 1)


def test_memory_is_handed_on_only_when_nobody_uses_it(kit):
    """What is dropped in flight is not what the next allocation gets."""
    s, t = host.stream(), host.stream()
    for _ in range(20):
        x = host.full(16, 1.0).submit(s)
        kit.slow(s)
        for _ in range(3):
            host.launch(kit.double, (2,), (x,)).submit(s)
        del x
        y = host.full(16, 5.0).submit(t)
        host.launch(kit.double, (2,), (y,)).submit(t)
        assert kit.values(y) == [10.0] * 16


def test_every_stream_that_uses_an_array_is_waited_for(fake):
    s, t = host.stream(), host.stream()
    x, y, z = (host.zeros(16).sync() for _ in range(3))
    gate = fake.driver.hold(t)
    for stream, out in ((s, y), (t, z)):
        host.launch(fake.add_one, (2,), (x, out)).submit(stream)
    del x
    gc.collect()
    s.sync()
    host.reap()
    assert host.parked() == 1
    fake.driver.release(gate)
    t.sync()
    host.reap()
    assert host.parked() == 0


def test_pieces_keep_the_array(fake):
    parts = host.partition(host.zeros(16).sync(), 8)
    piece = parts[1]
    del parts
    gc.collect()
    assert piece.tolist() == [0.0] * 8


def test_tensors_of_the_user_are_kept_in_flight(fake):
    tensor = fake.array([1.0] * 16)
    s = host.stream()
    x = host.own(tensor)
    s.wait(host.current())
    host.launch(fake.double, (2,), (x,)).submit(s)
    blocks = len(fake.driver.live)
    del tensor, x
    gc.collect()
    assert len(fake.driver.live) == blocks
    s.sync()
    host.reap()
    assert len(fake.driver.live) == blocks - 1


def test_a_thread_frees_what_has_ended():
    kit = host_kits.FakeKit(background=True)
    kit.driver.polls_advance = 1
    with host.using(kit.runtime):
        x = host.zeros(16).submit(host.stream())
        del x
        for _ in range(500):
            if host.reaped_total():
                break
            time.sleep(0.01)
        assert (host.parked(), host.reaped_total()) == (0, 1)
        y = host.zeros(16).submit(host.stream())  # the thread ended, and starts again
        del y
        for _ in range(500):
            if host.reaped_total() == 2:
                break
            time.sleep(0.01)
        assert host.reaped_total() == 2


def test_after_a_fault_memory_leaks_and_it_is_said_once(fake):
    s = host.stream()
    x, y = host.zeros(16).submit(s), host.zeros(16).submit(s)
    blocks = len(fake.driver.live)
    with host_fake_driver.faulty(fake.driver):
        with pytest.warns(ResourceWarning, match="`zeros` at .*test_reaper.py.* never freed") as caught:
            del x
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            del y
            gc.collect()
    assert (host.parked(), host.leaked(), len(fake.driver.live)) == (0, 2, blocks)
    fake.driver.run_all()
    host.reap()
    assert len(fake.driver.live) == blocks


def test_a_fault_while_parked_leaks(fake):
    x = host.zeros(16).submit(host.stream())
    del x
    gc.collect()
    with host_fake_driver.faulty(fake.driver), pytest.warns(ResourceWarning, match="illegal memory access"):
        host.reap()
    assert (host.parked(), host.leaked()) == (0, 1)


# ---- the host's own memory -----------------------------------------------------------------------------------


def test_gap_a_pinned_source_is_not_changed_under_a_copy(kit):
    source = host.pinned(8)
    source.assign([1.0] * 8)
    s = host.stream()
    x = host.empty(8).submit(s)
    kit.slow(s)
    host.copy_to_device(source, x).submit(s)
    with pytest.raises(HostRefused, match="while work in flight reads it") as caught:
        source.assign([2.0] * 8)
    assert caught.value.code == "TC415"
    assert source.tolist() == [1.0] * 8  # reading is fine
    source.assign([3.0] * 8, order="events")  # waits
    assert kit.values(x) == [1.0] * 8


def test_a_pinned_target_is_not_read_under_a_copy(fake):
    s = host.stream()
    x = host.full(8, 4.0).submit(s)
    target = host.copy_to_host(x).submit(s)
    for read in (target.tolist, target.read, lambda: target.__array_interface__):
        with pytest.raises(HostRefused) as caught:
            read()
        assert caught.value.code == "TC415"
    s.sync()
    assert target.tolist() == [4.0] * 8
    target.write(bytes(32))
    assert target.item() == 0.0 if target.shape == () else target.tolist() == [0.0] * 8
    with pytest.raises(ValueError, match="bytes"):
        target.write(b"")
    with pytest.raises(ValueError, match="values"):
        target.assign([1.0])


def test_gap_a_host_source_is_kept_until_its_copy_is_done(fake):
    s = host.stream()
    source = host.pinned(8)
    source.assign([6.0] * 8)
    x = host.copy_to_device(source).submit(s)
    del source
    gc.collect()
    assert host.parked() == 1
    assert fake.values(x) == [6.0] * 8
    host.reap()
    assert host.parked() == 0


def test_a_pageable_source_is_kept_until_its_copy_is_done(fake):
    import numpy as np

    source = np.ones(8, np.float32)
    kept = weakref.ref(source)
    x = host.copy_to_device(source).submit(host.stream())
    del source
    gc.collect()
    assert kept() is not None
    assert fake.values(x) == [1.0] * 8
    host.synchronize()
    host.reap()
    assert kept() is None


def test_what_is_dropped_inside_of_the_library_is_freed_later(fake):
    """The garbage collector may run anywhere, also where the books are half written."""
    x, y = host.zeros(16).sync(), host.zeros(16).sync()
    blocks = len(fake.driver.live)
    with fake.runtime.lock:
        del x
        assert len(fake.driver.live) == blocks
    host.fill(y, 1).submit()
    assert len(fake.driver.live) == blocks - 1


def test_a_pageable_source_may_be_changed_at_once(kit):
    import numpy as np

    source = np.ones(8, np.float32)
    s = host.stream()
    x = host.copy_to_device(source).submit(s)
    source[:] = 2.0
    assert kit.values(x) == [1.0] * 8
