"""A launch that is equal to one that has passed its check is not checked again; any other one is."""

from __future__ import annotations

import gc
import importlib.util
import sys
import weakref
from dataclasses import replace

import host_kits
import pytest

from tilecheck import host
from tilecheck.errors import LaunchRefused
from tilecheck.host import HostRefused
from tilecheck.host.memory.arrays import DeviceArray
from tilecheck.host.operations import kernels, launches
from tilecheck.jit.guard import Guard
from tilecheck.jit.guard_triton import compile_guard
from tilecheck.jit.records import Argument, Waits
from tilecheck.jit.verified import Guarded, Verified

TILE = """
import cuda.tile as ct


@ct.kernel
def double(out):
    ct.store(out, (ct.bid(0),), ct.load(out, (ct.bid(0),), shape=(8,)) * 2)
"""


class Jitted:
    """What the library sees of a kernel of Triton."""

    def __init__(self):
        self.pre_run_hooks = []
        self.launched = []

    def __getitem__(self, grid):
        return lambda *args, **options: self.launched.append((grid, args, options))


def bound(x, out, n, BLOCK=8, **rest):
    return (x, out, n, BLOCK), rest


@pytest.fixture
def checks(monkeypatch):
    """The grids that guards were asked about."""
    seen = []
    made = Guard.__init__

    def noting(self, *args):
        made(self, *args)
        check = self.check
        self.check = lambda grid, values: (seen.append(grid), check(grid, values))

    monkeypatch.setattr(Guard, "__init__", noting)
    return seen


@pytest.fixture
def tile(tmp_path, monkeypatch, checks):
    """A kernel of cuTile, and what its launcher was called with."""
    module = pytest.importorskip("cuda.tile")
    (tmp_path / "checked_once.py").write_text(TILE)
    spec = importlib.util.spec_from_file_location("checked_once", tmp_path / "checked_once.py")
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "checked_once", made)
    spec.loader.exec_module(made)
    launched = []
    monkeypatch.setattr(module, "launch", lambda *args, **options: launched.append((*args, options)))
    return made.double, launched


@pytest.fixture
def triton(fake, monkeypatch, checks):
    """A kernel of Triton that takes `x out n`; `launch` launches it."""
    record = host_kits.record("copy", "x out n BLOCK", language="triton", waits=Waits(True))
    numbers = Argument("n", "value", scalar="int"), Argument("BLOCK", "constant")
    record = replace(
        record, arguments=(*record.arguments[:2], *numbers), conditions=("n <= numel(x)",), grid_axes=(0,)
    )
    jitted = Jitted()
    ready = kernels._Triton(jitted, Guarded(compile_guard(record), None, None, bound, is_tuned=False))  # noqa: SLF001 - as `prepared` makes it
    monkeypatch.setattr(launches, "prepared", lambda _: ready)
    return jitted


def copied(count=2, size=16):
    """Arrays on a stream, with a launch behind them: what comes next takes the fast path."""
    s = host.stream()
    return (s, *(host.zeros(size).submit(s) for _ in range(count)))


def test_a_tile_kernel_is_checked_once(fake, tile, checks):
    double, launched = tile
    s, x = copied(1)
    for _ in range(3):
        host.enqueue(s, double, (2,), (x,))
        (x,) = host.launch(double, (2,), (x,)).submit(s)
    assert checks == [(2,)]
    assert launched == [(s.handle, (2,), double, (x.array,), {})] * 6


def test_another_grid_or_array_is_checked(fake, tile, checks):
    double, launched = tile
    s, x, y = copied()
    host.enqueue(s, double, (2,), (x,))
    host.enqueue(s, double, (2,), (y,))
    with pytest.raises(LaunchRefused):
        host.enqueue(s, double, (3,), (x,))
    assert (checks, len(launched)) == ([(2,), (2,), (3,)], 2)


def test_a_refused_launch_is_refused_again(fake, tile, checks):
    double, launched = tile
    s, x = copied(1)
    for _ in range(2):
        with pytest.raises(LaunchRefused):
            host.launch(double, (3,), (x,)).submit(s)
    assert (checks, launched) == ([(3,), (3,)], [])


def test_a_dependent_launch_is_checked_like_any_other(fake, tile, checks):
    double, launched = tile
    s, x = copied(1)
    host.enqueue(s, double, (2,), (x,))
    with pytest.raises(LaunchRefused):
        host.enqueue(host.stream(), double, (3,), (x,), dependent=True, order="events")
    assert len(launched) == 1
    host.synchronize()
    host.enqueue(s, double, (2,), (x,), dependent=True)
    assert launched[-1][-1] == {"programmatic_dependent_launch": True}


def test_an_array_that_others_may_change_is_checked_each_time(fake, tile, checks):
    class Resizable(DeviceArray):
        __slots__ = ()

    double, _ = tile
    _, x = copied(1)
    mine = host.own(Resizable(x.array.address, (16,), "float32", x.array))
    for _ in range(4):
        host.enqueue(host.current(), double, (2,), (mine,), order="events")
        host.enqueue(host.current(), double, (2,), (mine,))
    assert len(checks) == 8


def test_a_grid_that_can_change_is_checked_each_time(fake, triton, checks):
    class Size:
        """A number that can change, and that a dictionary does not tell from what it was."""

        value = 0

        def __index__(self):
            return self.value

        def __eq__(self, other):
            return other == self.value

        def __hash__(self):
            return hash(1)

    size = Size()
    s, x, y = copied()
    for size.value in (1, 2, 2):
        host.enqueue(s, "copy", (size,), (x, y, 16, 8))
        host.enqueue(s, "copy", [size], (x, y, 16, 8))
    assert checks == [(1,), (1,), (2,), (2,), (2,), (2,)]
    assert [grid for grid, *_ in triton.launched] == checks


def test_a_grid_that_is_none_is_refused(fake, triton):
    s, x, y = copied()
    with pytest.raises(LaunchRefused, match="grid"):
        host.enqueue(s, "copy", ([2],), (x, y, 16, 8))


def test_contracts_are_looked_at_each_time(fake, monkeypatch, checks):
    record = host_kits.record("copy", "x out", language="triton", grid_axes=(0,), waits=Waits(True))
    jitted, guard = Jitted(), compile_guard(record)
    guarded = Guarded(guard, guard, None, lambda *args, **rest: (args, rest), is_tuned=False)
    ready = kernels._Triton(jitted, guarded)  # noqa: SLF001 - as above
    monkeypatch.setattr(launches, "prepared", lambda _: ready)
    s, x, y = copied()
    for _ in range(3):
        host.enqueue(s, "copy", (2,), (x, y))
    assert len(checks) == 3


def test_numbers_are_compared_with_their_types(fake, triton, checks):
    s, x, y = copied()
    for _ in range(2):
        host.enqueue(s, "copy", (2,), (x, y, 1, 8))
    for n in (True, 1.0):
        with pytest.raises(LaunchRefused):
            host.enqueue(s, "copy", (2,), (x, y, n, 8))
    with pytest.raises(LaunchRefused):
        host.enqueue(s, "copy", (2,), (x, y, 17, 8))
    assert len(checks) == 4
    assert len(triton.launched) == 2


def test_options_are_part_of_a_launch(fake, triton, checks):
    s, x, y = copied()
    for _ in range(2):
        host.enqueue(s, "copy", (2,), (x, y, 16), BLOCK=8)
        host.enqueue(s, "copy", (2,), (x, y, 16), BLOCK=4)
        host.launch("copy", (2,), (x, y, 16), BLOCK=8, num_warps=8).submit(s)
    assert len(checks) == 3
    assert [options for _, _, options in triton.launched[3:]] == [
        {"BLOCK": 8},
        {"BLOCK": 4},
        {"BLOCK": 8, "num_warps": 8},
    ]
    with pytest.raises(LaunchRefused, match="num_ctas"):
        host.enqueue(s, "copy", (2,), (x, y, 16), BLOCK=8, num_ctas=2)


def test_arrays_by_name_are_followed(fake, triton):
    s, t = host.stream(), host.stream()
    x, y = host.zeros(16).submit(s), host.zeros(16).submit(s)
    host.launch("copy", (2,), (x,), out=y, n=16).submit(s)
    assert triton.launched[0][2]["out"] is y.array
    with pytest.raises(HostRefused, match="writes `to`"):
        host.copy(y, x).submit(t)


def test_a_hook_that_came_later_is_seen(fake, triton, checks, monkeypatch):
    s, x, y = copied()
    for _ in range(2):
        host.enqueue(s, "copy", (2,), (x, y, 16, 8))
    late = []
    monkeypatch.setattr(Guarded, "_launch_tuned", lambda *args: late.append(args))
    triton.pre_run_hooks = [lambda *_, **__: None]
    host.enqueue(s, "copy", (2,), (x, y, 16, 8))
    assert (len(late), len(triton.launched)) == (1, 2)
    with pytest.raises(LaunchRefused, match="hook"):
        host.enqueue(s, "copy", (2,), (x, y, 16, 8), dependent=True)


def test_triton_launches_on_the_stream_of_the_launch(fake, triton, monkeypatch):
    s, x, y = copied()
    found = []
    monkeypatch.setattr(
        Jitted, "__getitem__", lambda self, grid: lambda *_, **__: found.append(fake.driver.current())
    )
    for _ in range(3):
        host.enqueue(s, "copy", (2,), (x, y, 16, 8))
    assert found == [s.handle] * 3
    assert fake.driver.current() == 0


# ---- what an operation holds until it runs -------------------------------------------------------------------


def test_an_operation_keeps_its_kernel(fake):
    s, x = copied(1)
    double = fake.kernel("double", "out", lambda out: out.fill(2))
    gone = weakref.ref(double)
    operation = host.launch(double, (1,), (x,))
    del double
    gc.collect()
    operation.submit(s)
    fake.driver.run_all()
    del operation
    s.sync()
    for stream in fake.driver.streams.values():
        stream.tail = None
    gc.collect()
    assert fake.values(x) == [2.0] * 16
    assert gone() is None


def test_an_operation_has_the_arguments_that_it_was_made_with(fake):
    s, x, y = copied()
    args = [x, y]
    operation = host.launch(fake.add_one, (2,), args)
    args[:] = [y, x]
    assert operation.submit(s) == (x, y)
    assert fake.values(y) == [1.0] * 16


def test_an_array_is_not_read_and_written_by_one_launch(fake):
    s, x, y = copied()
    with pytest.raises(HostRefused, match="are still to read"):
        host.launch(fake.add_one, (2,), (x, x))
    host.launch(fake.add_one, (2,), (x, y)).submit(s)  # nothing holds it


def test_a_verified_kernel_is_prepared(monkeypatch):
    """Its guard is asked for once, and neither it nor its kernel is kept."""
    record = host_kits.record("copy", "x out", language="triton")
    monkeypatch.setattr(Verified, "guarded", Guarded(compile_guard(record), None, None, bound, is_tuned=False))
    kernel = Verified(Jitted())
    assert kernels.prepared(kernel) is kernels.prepared(kernel)
    key, gone = id(kernel), weakref.ref(kernel.kernel)
    del kernel
    gc.collect()
    assert gone() is None
    assert key not in kernels._prepared  # noqa: SLF001 - what it keeps is the subject
