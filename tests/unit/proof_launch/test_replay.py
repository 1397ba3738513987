"""Which logs show which claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilecheck.ir.expr import TRUE, le, lt, mul
from tilecheck.ir.kernel import Effect, Space
from tilecheck.model import Site, Span
from tilecheck.proof.obligation import Between, Holds
from tilecheck.proof.refute.replay import Layout, seen
from tilecheck.reference.log import AccessRecord, Log, UndefinedRecord

STORE, LOAD = Site("k.py", Span(100, 120)), Site("k.py", Span(200, 220))
LAYOUTS = {"out": (Layout((8, 8), (8, 1)),)}


def record(block, elements, effect="write", site=STORE, **changes):
    rows = np.asarray(elements, np.int64)
    lanes = np.arange(len(elements)).reshape(-1, 1)
    made = AccessRecord("out", None, effect, block, 0, site.file, site.span.start, site.span.end, rows, lanes)
    return replace(made, **changes)


@pytest.fixture
def race(build):
    k = build()
    store = k.tiles_access("out", Effect.WRITE, (k.bid(0), 0), (1, 1), site=STORE)
    load = k.tiles_access("out", Effect.READ, (k.bid(0), 1), (1, 1), site=LOAD)
    return k.race(store), k.race(store, load)


def test_two_blocks_at_one_element(race):
    own, _ = race
    log = Log([record((0, 0, 0), [(0, 0), (1, 1)]), record((1, 0, 0), [(1, 1), (2, 2)])])
    found = seen(own, log, LAYOUTS)
    assert found.blocks == ((0, 0, 0), (1, 0, 0))
    assert found.element == (1, 1)
    assert found.lanes == ((1,), (0,))


@pytest.mark.parametrize(
    "second",
    [
        record((0, 0, 0), [(1, 1)]),  # the same block
        record((1, 0, 0), [(2, 1)]),  # another element
        record((1, 0, 0), [(1, 1)], effect="read"),  # another effect
        record((1, 0, 0), [(1, 1)], site=LOAD),  # another site
        record((1, 0, 0), [(1, 1)], path="other.py"),
        record((1, 0, 0), [(1, 1)], member=0),  # another array of a list
        record((1, 0, 0), np.empty((0, 2))),  # nothing inside the array
    ],
)
def test_what_is_no_race(race, second):
    own, _ = race
    assert seen(own, Log([record((0, 0, 0), [(1, 1)]), second]), LAYOUTS) is None


def test_read_and_write_at_their_own_sites(race):
    _, pair = race
    write, read = record((0, 0, 0), [(1, 1)]), record((1, 0, 0), [(1, 1)], "read", LOAD)
    assert seen(pair, Log([write, read]), LAYOUTS).blocks == ((0, 0, 0), (1, 0, 0))
    assert seen(pair, Log([write, replace(read, block=(0, 0, 0))]), LAYOUTS) is None


def test_sites_may_differ_in_parentheses_unless_one_matches_exactly(race):
    own, _ = race
    wider = [record((b, 0, 0), [(1, 1)], start=99, end=121) for b in range(2)]
    assert seen(own, Log(wider), LAYOUTS) is not None
    assert seen(own, Log([*wider, record((2, 0, 0), [(5, 5)])]), LAYOUTS) is None


def test_raw_offsets_meet_coordinates_by_the_strides(build):
    k = build()
    store = k.tiles_access("out", Effect.WRITE, (k.bid(0), 0), (1, 1), site=STORE)
    raw = replace(store, space=Space.RAW, site=LOAD)
    obligation = k.race(store, raw)
    logged = record((1, 0, 0), [(10,)], site=LOAD, raw=True)
    assert seen(obligation, Log([record((0, 0, 0), [(1, 2)]), logged]), LAYOUTS) is not None
    assert seen(obligation, Log([record((0, 0, 0), [(2, 1)]), logged]), LAYOUTS) is None


def test_duplicate_lanes(build):
    k = build()
    lane = k.lane(k.tile("T"))
    access = k.elements_access("out", Effect.WRITE, (lane, 0), (lane,), site=STORE)
    obligation = k.race(access, between=Between.LANES)
    twice = UndefinedRecord("duplicate", (3, 0, 0), "k.py", 100, 120, "out", (4, 0))
    log = Log([record((3, 0, 0), [(1, 0), (4, 0), (4, 0)])], [twice])
    found = seen(obligation, log, LAYOUTS)
    assert (found.blocks, found.element, found.lanes) == (((3, 0, 0),), (4, 0), ((1,), (2,)))
    assert seen(obligation, Log(log.accesses), LAYOUTS) is None


def tile_goal(build, axis):
    k = build()
    access = k.tiles_access("out", Effect.WRITE, (k.bid(0), k.bid(1)), (1, 1), site=STORE)
    k.bounds(access)
    own = access.axes[axis]
    goal = Holds(lt(mul(own.index, own.step), own.extent), TRUE, access)
    return replace(k.obligations[-1], goal=goal)


def test_tile_outside_counts_for_its_axis_only(build):
    outside = UndefinedRecord("tile-outside", (0, 9, 0), "k.py", 100, 120, "out", (0, 9))
    log = Log([], [outside])
    assert seen(tile_goal(build, 0), log, LAYOUTS) is None
    assert seen(tile_goal(build, 1), log, LAYOUTS).element == (0, 9)


def test_kinds_of_undefined_operations(build):
    k = build()
    divisor = k.defined(k.scalar("n"))
    here = divisor.sites[0]
    logged = UndefinedRecord("divisor", (0, 0, 0), here.file, here.span.start, here.span.end)
    assert seen(divisor, Log([], [logged]), {}) is not None
    assert seen(divisor, Log([], [replace(logged, kind="overflow")]), {}) is None
    overflow = replace(divisor, kind="overflow", goal=Holds(le(k.scalar("n"), 5), TRUE))
    assert seen(overflow, Log([], [logged]), {}) is None
    assert seen(overflow, Log([], [replace(logged, kind="overflow")]), {}) is not None
