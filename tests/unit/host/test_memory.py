"""Regions, storages and clocks by themselves, against what can be enumerated."""

from __future__ import annotations

import itertools
import random
import sys

import numpy as np
import pytest

from tilecheck import host
from tilecheck.host import HostRefused
from tilecheck.host.memory.arrays import DeviceArray, dtype_of, locate
from tilecheck.host.memory.regions import Region, count_runs, hull, is_dense, overlap, runs
from tilecheck.host.memory.storage import Table, Tracks
from tilecheck.host.memory.written_bytes import Written
from tilecheck.host.places import caller, text_of
from tilecheck.host.streams.clocks import EMPTY, Item, Queue, merged
from tilecheck.ir.host_program import Place as Kind
from tilecheck.jit.layouts import Layout, NotAnArray

LAYOUTS = [
    Layout((), (), 4),
    Layout((0,), (1,), 4),
    Layout((4,), (1,), 4),
    Layout((4,), (2,), 4),
    Layout((2, 3), (3, 1), 4),
    Layout((2, 3), (1, 2), 4),
    Layout((3, 2), (4, 1), 4),
    Layout((2, 2), (0, 1), 4),
    Layout((2, 1, 3), (8, 99, 2), 2),
]


def bytes_of(region):
    layout = region.layout
    for index in itertools.product(*map(range, layout.shape)):
        at = region.start + sum(i * s for i, s in zip(index, layout.strides, strict=True)) * layout.itemsize
        yield from range(at, at + layout.itemsize)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_runs_are_the_bytes_of_a_region(layout):
    region = Region(100, layout)
    found = list(runs(region))
    assert {b for first, last in found for b in range(first, last)} == set(bytes_of(region))
    assert len(found) == (count_runs(region) if layout.size else 0)
    touched = list(bytes_of(region))
    assert is_dense(layout) == (len(set(touched)) == len(touched) == region.end - region.start or not touched)
    assert (hull(region).start, hull(region).end) == (region.start, region.end)
    assert hull(region).is_dense


def test_regions_overlap_where_they_share_a_byte():
    for first, second in itertools.product(LAYOUTS, repeat=2):
        for distance in range(-40, 41, 2):
            one, two = Region(100, first), Region(100 + distance, second)
            shared = set(bytes_of(one)) & set(bytes_of(two))
            assert overlap(one, two) == bool(shared)
            if one.covers(two):
                assert set(bytes_of(two)) <= set(bytes_of(one))


def test_written_bytes_are_followed():
    rng = random.Random(0)
    for _ in range(100):
        written, truth = Written(), set()
        for _ in range(rng.randrange(8)):
            region = Region(rng.randrange(0, 40, 2), rng.choice(LAYOUTS))
            written.add(region)
            truth |= set(bytes_of(region))
        one, two = (Region(rng.randrange(0, 40, 2), rng.choice(LAYOUTS)) for _ in range(2))
        missed = (set(bytes_of(one)) & set(bytes_of(two))) - truth
        assert written.misses(one, two) == bool(missed)
        assert written.joined(Written()).misses(one, two) == bool(missed)
        first = rng.randrange(40)
        last = first + rng.randrange(10)
        assert written.covers(first, last) == (set(range(first, last)) <= truth)


def test_storages_are_disjoint_and_merge_where_ranges_meet():
    rng = random.Random(1)
    for _ in range(50):
        table, ranges, found = Table(), [], []
        for _ in range(rng.randrange(1, 9)):
            start = rng.randrange(100)
            end = start + rng.randrange(1, 20)
            ranges.append((start, end))
            found.append(table.at(start, end, Kind.DEVICE, "memory"))
        roots = [_root(storage) for storage in found]
        for (start, end), root in zip(ranges, roots, strict=True):
            assert root.start <= start
            assert end <= root.end
        for (one, first), (two, second) in itertools.combinations(zip(ranges, roots, strict=True), 2):
            if one[0] < two[1] and two[0] < one[1]:
                assert first is second
        listed = sorted(table, key=lambda storage: storage.start)
        assert set(listed) == set(roots)
        assert all(a.end <= b.start for a, b in itertools.pairwise(listed))
        for storage in listed:
            table.remove(storage)
        assert len(table) == 0


def _root(storage):
    while storage.into is not None:
        storage = storage.into
    return storage


def test_what_is_in_flight_is_kept_where_storages_merge():
    table, queue = Table(), Queue(None, 1, "stream 1")
    left, right = table.at(0, 64, Kind.DEVICE, "left"), table.at(128, 192, Kind.DEVICE, "right")
    dense = Layout((64,), (1,), 1)
    for storage in (left, right):
        item = Item(queue, "work", caller())
        queue.push(item, is_launch=True)
        region = storage.region(storage.start, dense)
        storage.hold(region)
        storage.tracks.add(region, item, write=True)
    whole = table.at(32, 160, Kind.DEVICE, "middle")
    assert (whole.start, whole.end) == (0, 192)
    for start in (0, 128):
        assert whole.conflict(Region(start, dense), 0, 0, EMPTY, EMPTY, write=False) is not None
        assert whole.is_held(Region(start, dense))
    assert whole.conflict(Region(64, dense), 0, 0, EMPTY, EMPTY, write=True) is None
    assert left.tracks.lane != queue.lane  # an old handle takes the way that finds the whole


def test_tracks_agree_with_all_accesses_that_were_ever_made():
    """On random accesses of several lanes, with what is pruned, covered and known to have ended."""
    rng = random.Random(2)
    layouts = [layout for layout in LAYOUTS if layout.size]
    for _ in range(60):
        tracks, made = Tracks(), []
        queues = [Queue(None, k, f"stream {k}") for k in range(3)]
        regions = [Region(rng.randrange(0, 24, 4), rng.choice(layouts)) for _ in range(6)]
        done: dict[int, int] = {}
        for _ in range(25):
            queue, region, write = rng.choice(queues), rng.choice(regions), rng.random() < 0.5
            if rng.random() < 0.2:
                done = merged(done, rng.choice(queues).everything())
            if rng.random() < 0.3:
                queue.wait(rng.choice(queues).end())
            args = (region, queue.lane, queue.seq, queue.before, done)
            found = tracks.conflict(*args, write=write)
            expected = [
                item
                for item, theirs, writes in made
                if (write or writes) and overlap(region, theirs) and not _has_ended(item, queue, done)
            ]
            assert (found is None) == (not expected)
            if found is not None:
                continue
            item = Item(queue, "work", caller())
            queue.push(item, is_launch=False)
            tracks.add(region, item, write=write)
            tracks.prune(done)
            made.append((item, region, write))


def _has_ended(item, queue, done):
    known = merged(queue.end(), done)
    return known.get(item.lane, 0) >= item.seq


def test_places_are_lines_of_the_user():
    def inner():
        return host.places.caller()

    line = sys._getframe().f_lineno + 1  # noqa: SLF001 - the line that is expected
    place = inner()
    assert text_of(place) == f"{__file__}:{line}"


# ---- arrays --------------------------------------------------------------------------------------------------


def test_arrays_of_the_host_are_located():
    array = np.zeros((4, 6), np.float64)
    address, layout, kind, bounds = locate(array[:, ::2])
    assert (address, layout, kind) == (array.ctypes.data, Layout((4, 3), (6, 2), 8), Kind.PAGEABLE)
    assert bounds == (address, address + layout.span)
    data = bytearray(16)
    assert locate(data)[1] == Layout((16,), (1,), 1)
    assert dtype_of(array) == "float64"
    for bad in (object(), 3, b"read-only", memoryview(data)[::2]):
        with pytest.raises(NotAnArray):
            locate(bad)
    with pytest.raises(NotAnArray, match="negative"):
        locate(array[::-1])


class Cuda:
    """The part of CuPy's interface that is read."""

    def __init__(self, at, shape, typestr="<f4", strides=None):
        self.__cuda_array_interface__ = {
            "version": 3, "shape": shape, "typestr": typestr, "strides": strides, "data": (at, False),
        }  # fmt: skip


def test_arrays_with_the_interface_of_cuda_are_taken_in_their_allocation(fake):
    base = fake.array([1.0] * 16)
    x, y = host.own(Cuda(base.data_ptr(), (8,))), host.own(Cuda(base.data_ptr() + 32, (8,)))
    assert x.home() is y.home()
    assert (x.home().start, x.home().end) == (base.data_ptr(), base.data_ptr() + 256)
    assert (x.dtype, x.shape) == ("float32", (8,))
    with pytest.raises(NotAnArray, match="no memory of the device"):
        host.own(Cuda(base.data_ptr() + 16, (200,)))
    with pytest.raises(NotAnArray, match="no memory of the device"):
        host.own(Cuda(64, (8,)))


def test_arrays_with_dlpack_alone_are_imported(fake):
    class OnlyDlpack:
        under_dlpack = fake.array([3.0] * 8)

    x = host.own(OnlyDlpack())
    host.launch(fake.double, (1,), (x,)).submit()
    assert fake.values(x) == [6.0] * 8


def test_a_device_array_has_the_interfaces_that_kernels_read(fake):
    array = DeviceArray(1024, (4, 8), "float16", None)[slice(1, 3), slice(2, 99)]
    assert (array.data_ptr(), array.shape, array.stride()) == (1024 + 2 * 10, (2, 6), (8, 1))
    interface = array.__cuda_array_interface__
    assert (interface["typestr"], interface["strides"]) == ("<f2", (16, 2))
    with pytest.raises(ValueError, match="no element type"):
        host.zeros(4, "float8")


# ---- arrays that the user's own code has ---------------------------------------------------------------------


def test_between_tensor_and_the_next_operation_an_array_is_the_users(fake):
    """All that the user's stream holds by then counts, and not only what it held at `tensor()`."""
    s = host.stream()
    x = host.zeros(16).sync()
    fake.torch_fill(x.tensor(), 1.0)
    fake.torch_fill(x.array, 2.0)
    with pytest.raises(HostRefused, match="your own code") as caught:
        host.launch(fake.double, (2,), (x,)).submit(s)
    assert caught.value.code == "TC411"
    fake.torch_fill(x.tensor(), 3.0)
    host.launch(fake.double, (2,), (x,)).submit(s, order="events")
    assert fake.values(x) == [6.0] * 16


def test_a_second_owner_of_one_array_knows_what_the_first_does(fake):
    tensor = fake.array([1.0] * 16)
    first = host.own(tensor)
    s = host.stream()
    s.wait(host.current())
    host.launch(fake.double, (2,), (first,)).submit(s)
    second = host.own(tensor)  # the library's already: nothing new of the user's code
    host.launch(fake.double, (2,), (second,)).submit(s)
    assert fake.values(first) == [4.0] * 16


def test_a_tensor_that_is_taken_again_is_still_in_flight(fake):
    tensor = fake.array([1.0] * 16)
    s = host.stream()
    x = host.own(tensor)
    s.wait(host.current())
    host.launch(fake.double, (2,), (x,)).submit(s)
    del x
    assert host.parked() == 1
    again = host.own(tensor)
    with pytest.raises(HostRefused) as caught:
        host.launch(fake.double, (2,), (again,)).submit()
    assert caught.value.code == "TC411"
    host.reap()
    assert host.parked() == 0  # it has a handle again
    host.launch(fake.double, (2,), (again,)).submit(order="events")
    assert fake.values(again) == [4.0] * 16


def test_another_part_of_a_known_allocation_is_the_users_still(fake):
    base = fake.array([1.0] * 16)
    s = host.stream()
    host.own(base[(slice(0, 8),)])
    left = host.own(base[(slice(0, 8),)])
    s.wait(host.current())
    fake.torch_fill(base[(slice(8, 16),)], 5.0)
    right = host.own(base[(slice(8, 16),)])
    host.launch(fake.double, (1,), (left,)).submit(s)
    with pytest.raises(HostRefused, match="your own code"):
        host.launch(fake.double, (1,), (right,)).submit(s)


def test_a_shared_array_may_be_read_by_the_user_and_others(fake):
    s = host.stream()
    x, y = host.full(16, 1.0).sync(), host.empty(16).sync()
    shared = x.share()
    fake.driver.torch(lambda array: None, shared.tensor())
    host.launch(fake.add_one, (2,), (shared, y)).submit(s)  # reads beside reads
    array = shared.unshare()
    with pytest.raises(HostRefused, match="your own code"):
        host.fill(array, 1).submit(s)
