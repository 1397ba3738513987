"""Operations are lazy, run once, and give back what they were given."""

from __future__ import annotations

import asyncio
import gc
import threading

import numpy as np
import pytest

from tilecheck import host
from tilecheck.errors import LaunchRefused
from tilecheck.host import HostRefused
from tilecheck.host.memory.arrays import DeviceArray


def refused(code, run):
    with pytest.raises(HostRefused) as caught:
        run()
    assert caught.value.code == code
    return str(caught.value)


# ---- memory --------------------------------------------------------------------------------------------------


def test_nothing_runs_before_a_terminal(fake):
    host.zeros(16)
    host.launch(fake.add_one, (2,), (fake.array([1.0] * 16), fake.array([0.0] * 16)))
    assert "fill" not in fake.driver.counts
    assert not fake.driver.parts


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16", "uint8"])
def test_arrays_are_made_with_values(kit, dtype):
    assert kit.values(host.zeros((2, 3), dtype).sync()) == [[0.0] * 3] * 2
    assert kit.values(host.full(4, 3, dtype).sync()) == [3.0] * 4
    assert kit.values(host.arange(2, 8, 2, dtype=dtype).sync()) == [2.0, 4.0, 6.0]
    x = host.empty(4, dtype).sync()
    host.fill(x, 0).sync()
    assert kit.values(x) == [0.0] * 4


def test_copies_go_both_ways(kit):
    source = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = host.copy_to_device(source).sync()
    assert (x.shape, x.dtype) == ((3, 4), "float32")
    y = host.copy(host.empty((3, 4)).sync(), x).sync()
    assert y.tolist() == source.tolist()
    host.copy_to_device(2 * source, y).sync()
    assert np.asarray(host.copy_to_host(y).sync()).tolist() == (2 * source).tolist()
    assert host.copy_to_device([1, 2], dtype="int32").sync().tolist() == [1, 2]
    assert host.full(1, 7.0).sync().item() == 7.0


def test_arrays_with_gaps_are_copied_and_filled_by_rows(fake):
    base = host.own(fake.array(np.arange(32.0).reshape(4, 8)))
    left = host.own(base.array[(slice(0, 4), slice(0, 4))])
    right = host.own(base.array[(slice(0, 4), slice(4, 8))])
    host.copy(left, right).sync()
    host.fill(right, 0).sync()
    rows = [[*range(8 * i + 4, 8 * i + 8), 0, 0, 0, 0] for i in range(4)]
    assert base.tolist() == rows


def test_copies_between_arrays_that_are_not_alike_are_refused(fake):
    x = host.own(fake.array(np.zeros((4, 8))))
    for other in (np.zeros((8, 4)), np.zeros((4, 8), "int32"), np.zeros((4, 8)).T):
        with pytest.raises(ValueError, match="copy"):
            host.copy_to_device(other.astype(np.float32) if other.dtype == float else other, x)
    base = fake.array(np.zeros((4, 8)))
    turned = host.own(DeviceArray(base.data_ptr(), (4, 8), "float32", base, strides=(1, 4)))
    with pytest.raises(ValueError, match="another order"):
        host.copy(x, turned)
    spread = host.own(DeviceArray(base.data_ptr(), (4, 8), "float32", base, strides=(0, 1)))
    with pytest.raises(ValueError, match="repeats"):
        host.copy(x, spread)
    with pytest.raises(ValueError, match="not contiguous"):
        host.copy_to_device(np.zeros((8, 4), np.float32).T, x)


# ---- ownership -----------------------------------------------------------------------------------------------


def test_an_array_that_is_written_moves_and_comes_back(fake):
    x = host.zeros(16).sync()
    double = host.launch(fake.double, (2,), (x,))
    line = test_an_array_that_is_written_moves_and_comes_back.__code__.co_firstlineno
    text = refused("TC412", lambda: host.launch(fake.double, (2,), (x,)))
    assert f"{__file__}:{line + 4} uses an array" in text
    assert f"moved into the launch of `double` at {__file__}:{line + 2}" in text
    refused("TC412", lambda: host.copy_to_host(x))
    refused("TC412", x.tensor)
    assert double.sync() == (x,)
    x.tolist()


def test_an_array_that_is_to_be_read_is_not_written_meanwhile(fake):
    x, y = host.zeros(16).sync(), host.zeros(16).sync()
    one = host.launch(fake.add_one, (2,), (x, y))
    two = host.copy_to_host(x)
    assert "2 operations are still to read" in refused("TC412", lambda: host.fill(x, 1))
    one.sync()
    refused("TC412", lambda: host.fill(x, 1))
    two.sync()
    host.fill(x, 1).sync()


def test_an_operation_that_is_dropped_or_cancelled_gives_its_arrays_back(fake):
    x, y = host.zeros(16).sync(), host.zeros(16).sync()
    op = host.launch(fake.add_one, (2,), (x, y))
    del op
    op = host.launch(fake.add_one, (2,), (x, y)).map(lambda _: None)
    op.cancel()
    refused("TC412", op.sync)
    host.launch(fake.add_one, (2,), (y, x)).sync()


def test_an_array_is_given_to_one_parameter_only(fake):
    x = host.zeros(16).sync()
    refused("TC412", lambda: host.launch(fake.add_one, (2,), (x, x)))
    host.fill(x, 1).sync()  # it is not lent any more


def test_shared_handles_are_counted(fake):
    x = host.zeros(16).sync()
    one = x.share()
    two = one.clone()
    assert two.count == 2
    refused("TC412", lambda: host.fill(x, 1))
    refused("TC412", lambda: host.launch(fake.double, (2,), (one,)))
    refused("TC412", one.unshare)
    host.launch(fake.add_one, (2,), (one, host.empty(16).sync())).sync()
    del two
    read = host.copy_to_host(one)
    assert "an operation is to read" in refused("TC412", one.unshare)
    read.sync()
    assert one.unshare() is x
    refused("TC412", one.clone)
    host.fill(x, 1).sync()


def test_plain_arrays_get_handles(kit):
    x, y = kit.array([1.0] * 16), kit.array([0.0] * 16)
    read, written = host.launch(kit.add_one, (2,), (x, y)).sync()
    assert (read.array, written.array) == (x, y)
    assert kit.values(written) == [2.0] * 16


def test_a_launch_without_memory_or_verdict_is_refused(fake):
    bad = fake.kernel("bad", "out", lambda out: None, verdict="violated", report="it races")
    with pytest.raises(LaunchRefused, match="it races"):
        host.launch(bad, (1,), (host.zeros(8).sync(),))
    with pytest.raises(TypeError):
        host.launch(fake.double, (1,), (3,))
    with pytest.raises(TypeError, match="of the host"):
        host.launch(fake.double, (1,), (host.pinned(8),))
    with pytest.raises(TypeError, match="no options"):
        host.launch(fake.double, (1,), (host.zeros(8).sync(),), num_warps=4).sync()


# ---- combinators ---------------------------------------------------------------------------------------------


def test_then_runs_on_one_stream(kit):
    s = host.stream()
    op = host.full(16, 1.0).then(lambda x: host.launch(kit.double, (2,), (x,))).map(lambda found: found[0])
    x = op.then(lambda x: host.launch(kit.double, (2,), (x,))).map(lambda found: found[0]).submit(s)
    assert kit.values(x) == [4.0] * 16


def test_zip_first_and_unzip(kit):
    both = host.zip(host.full(8, 1.0), host.full(8, 2.0))
    x, y = host.unzip(both)
    assert kit.values(y.sync()) == [2.0] * 8
    assert kit.values(x.sync()) == [1.0] * 8
    assert kit.values(host.first(host.zip(host.full(8, 3.0), host.value(5))).sync()) == [3.0] * 8
    assert host.zip(host.value(1), host.value("a"), host.value(None)).sync() == (1, "a", None)
    with pytest.raises(ValueError, match="needs an operation"):
        host.zip()


def test_execute_once(fake):
    op = host.zeros(16)
    op.sync()
    line = test_execute_once.__code__.co_firstlineno
    text = refused("TC412", op.sync)
    assert f"made at {__file__}:{line + 1} is used twice" in text
    assert f"it already has run at {__file__}:{line + 2}" in text
    inner = host.zeros(16)
    outer = inner.map(lambda x: x)
    assert "is part of another operation" in refused("TC412", inner.sync)
    outer.sync()


def test_a_shared_operation_runs_once_for_all(fake):
    runs = []
    op = host.full(16, 1.0).map(lambda x: runs.append(1) or x).shared()
    s, t = host.stream(), host.stream()
    x = op.submit(s)
    assert op.submit(t) is x  # waits for the event of the first
    assert runs == [1]
    y = host.empty(16).submit(t)
    host.launch(fake.add_one, (2,), (x, y)).submit(t)
    assert fake.values(y) == [2.0] * 16
    refused("TC412", lambda: host.fill(x, 0))


def test_a_shared_operation_fails_for_all(fake):
    runs = []

    def fail(_):
        runs.append(1)
        raise ZeroDivisionError("once")

    op = host.zeros(16).map(fail).shared()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="once"):
            op.sync()
    assert runs == [1]


def test_a_shared_operation_that_needs_itself_is_an_error(fake):
    ops = []
    op = host.zeros(16).then(lambda _: ops[0].map(lambda x: x)).shared()
    ops.append(op)
    assert "needs its own result" in refused("", op.sync)


def test_a_composed_operation_that_fails_half_way_gives_back_what_did_not_run(fake):
    s, t = host.stream(), host.stream()
    x, y = host.zeros(16).submit(s), host.zeros(16).sync_on(t)
    op = host.zip(host.fill(y, 1), host.fill(x, 2))  # the second is not in order on t
    assert refused("TC411", lambda: op.submit(t))
    refused("TC412", lambda: op.submit(t))  # part of it was enqueued: it cannot be tried again
    host.fill(x, 3).submit(s)
    host.fill(y, 3).submit(t)


def test_then_needs_an_operation(fake):
    with pytest.raises(TypeError, match="`map`"):
        host.zeros(8).then(lambda x: x).sync()


# ---- executions ----------------------------------------------------------------------------------------------


def test_an_execution_inside_another_is_refused(fake):
    refused("", lambda: host.zeros(8).map(lambda x: host.fill(x, 1).sync()).sync())
    host.zeros(8).sync()


def test_the_execution_lock_is_free_after_a_failure(kit):
    """Of a callback, of the user's own code, and of a kernel."""

    def fail(*_):
        raise ZeroDivisionError

    x = host.zeros(16).sync()
    for op in (host.value(1).map(fail), host.value(1).then(fail), host.call(fail, writes=(x,))):
        with pytest.raises(ZeroDivisionError):
            op.sync()
    thread = threading.Thread(target=lambda: host.fill(x, 1).sync())
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert kit.values(x) == [1.0] * 16


def test_calls_of_your_own_code_work_on_the_stream(kit):
    s = host.stream()
    x = host.own(kit.array([1.0] * 16))
    host.synchronize()
    y = host.empty(16).submit(s)

    def mine(read, written):
        kit.torch_fill(written, 4.0)
        return read is x.array

    assert host.call(mine, reads=(x,), writes=(y,)).submit(s)
    host.launch(kit.double, (2,), (y,)).submit(s)
    assert kit.values(y) == [8.0] * 16
    t = host.stream()
    kit.slow(s)
    host.call(mine, reads=(x,), writes=(y,)).submit(s)
    refused("TC411", lambda: host.launch(kit.double, (2,), (y,)).submit(t))


def test_policies_choose_streams(fake):
    s = host.stream()
    runtime = fake.runtime
    runtime.policy = host.SingleStream(s)
    x = host.zeros(16).submit()
    assert next(x.storage.tracks.items()).queue.handle == s.handle
    runtime.policy = host.RoundRobin(2)
    used = [next(host.zeros(16).submit().storage.tracks.items()).queue.handle for _ in range(4)]
    assert used[0] == used[2] != used[1] == used[3]

    class Mine:
        def next_stream(self, runtime):
            return s

    runtime.policy = Mine()
    assert next(host.zeros(16).submit().storage.tracks.items()).queue.handle == s.handle
    runtime.policy = host.SingleStream()
    with fake.on(s):
        assert next(host.zeros(16).submit().storage.tracks.items()).queue.handle == s.handle


def test_await_lets_other_tasks_run(kit):
    if kit.is_fake:
        kit.driver.polls_advance = 1
    kit.runtime.policy = host.RoundRobin(2)
    rounds = []

    async def other():
        while True:
            rounds.append(1)
            await asyncio.sleep(0)

    async def main():
        task = asyncio.ensure_future(other())
        x = await host.zeros(16)
        for _ in range(2):
            kit.slow(kit.runtime.policy.next_stream(kit.runtime))
        await host.launch(kit.add_one, (2,), (x, y := await host.empty(16)))
        await host.launch(kit.double, (2,), (y,))  # on another stream: what was awaited is in order
        task.cancel()
        return y

    y = asyncio.run(main())
    assert kit.values(y) == [2.0] * 16
    assert len(rounds) > 2


def test_what_was_awaited_is_in_order_whatever_its_stream_does_next(fake):
    s, t = host.stream(), host.stream()
    fake.runtime.policy = host.SingleStream(s)
    fake.driver.polls_advance = 1

    async def main():
        return await host.full(16, 1.0)

    x = asyncio.run(main())
    fake.driver.hold(s)
    host.launch(fake.double, (2,), (x,)).submit(t)
    assert fake.values(x) == [2.0] * 16


def test_a_cancelled_await_leaves_its_arrays_in_flight(fake):
    """Drop in flight: a future that is dropped frees nothing that the device uses."""

    async def main():
        x = host.zeros(16).submit()
        task = asyncio.ensure_future(_awaited(host.launch(fake.double, (2,), (x,))))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    gc.collect()
    host.reap()
    assert host.parked() == 1
    fake.driver.run_all()  # would fail if the memory were freed
    host.reap()
    assert (host.parked(), host.reaped_total()) == (0, 1)


async def _awaited(operation):
    return await operation
