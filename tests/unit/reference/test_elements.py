"""Gathers, scatters, advanced indexing, raw memory and lists of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from tilecheck.reference import NotInterpretable


def test_gather_broadcasts_indices_and_pads_what_is_outside(execute):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = np.zeros((4, 4), np.float32)
    text = """
        @ct.kernel
        def k(x, out):
            rows = ct.arange(4, dtype=ct.int32)[:, None]
            columns = ct.arange(4, dtype=ct.int32)[None, :] - 1
            ct.store(out, (0, 0), ct.gather(x, (rows, columns), padding_value=-1.0))
        """
    log = execute(text, x=x, out=out)
    expected = np.full((4, 4), -1, np.float32)
    expected[:3, 1:] = x[:, :3]
    np.testing.assert_array_equal(out, expected)
    assert len(log.accesses[0].elements) == 9
    assert log.accesses[0].lanes[0].tolist() == [0, 1]
    assert not log.undefined


def test_masks_and_bounds_both_switch_lanes_off(execute):
    x = np.zeros(6, np.int32)
    text = """
        @ct.kernel
        def k(x):
            lanes = ct.arange(8, dtype=ct.int32)
            ct.scatter(x, lanes, lanes + 1, mask=lanes % 2 == 1)
        """
    log = execute(text, x=x)
    np.testing.assert_array_equal(x, [0, 2, 0, 4, 0, 6])
    np.testing.assert_array_equal(log.accesses[0].elements.ravel(), [1, 3, 5])
    np.testing.assert_array_equal(log.accesses[0].lanes.ravel(), [1, 3, 5])


def test_scalar_indices_have_no_lane_columns(execute):
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    text = """
        @ct.kernel
        def k(x):
            ct.scatter(x, (1, 2), ct.gather(x, (0, ct.bid(0) + 1)) + 10)
        """
    log = execute(text, x=x)
    assert x[1, 2] == 11
    assert [record.lanes.shape for record in log.accesses] == [(1, 0), (1, 0)]
    np.testing.assert_array_equal(log.accesses[1].elements, [[1, 2]])


def test_an_array_of_rank_zero(execute):
    x, out = np.array(5, np.int32), np.zeros(1, np.int32)
    text = """
        @ct.kernel
        def k(x, out):
            ct.store(out, 0, ct.gather(x, ()))
            ct.scatter(x, (), 7)
        """
    log = execute(text, x=x, out=out)
    assert (out[0], x[()]) == (5, 7)
    assert [record.elements.shape for record in log.accesses] == [(1, 0), (1, 1), (1, 0)]


def test_unchecked_lanes_outside_are_out_of_bounds(execute):
    x = np.zeros(6, np.int32)
    text = """
        @ct.kernel
        def k(x, limit: int):
            lanes = ct.arange(8, dtype=ct.int32)
            ct.scatter(x, lanes, lanes, mask=lanes < limit, check_bounds=False)
        """
    log = execute(text, x=x, limit=8)
    assert [(record.kind, record.element) for record in log.undefined] == [("out-of-bounds", (6,))]
    np.testing.assert_array_equal(x, np.arange(6))
    assert not execute(text, x=x, limit=6).undefined


@pytest.mark.parametrize(("value", "detail"), [("lanes", "different values"), ("7", "same value")])
def test_two_lanes_on_one_element_are_duplicates(execute, value, detail):
    x = np.zeros(8, np.int32)
    text = f"""
        @ct.kernel
        def k(x):
            lanes = ct.arange(8, dtype=ct.int32)
            ct.scatter(x, lanes // 2 + 1, {value})
        """
    log = execute(text, x=x)
    assert [(r.kind, r.element, r.detail) for r in log.undefined] == [("duplicate", (1,), detail)]


def test_duplicates_outside_or_masked_off_do_not_count(execute):
    text = """
        @ct.kernel
        def k(x):
            lanes = ct.arange(8, dtype=ct.int32)
            ct.scatter(x, ct.where(lanes < 4, lanes, 100), lanes)
            ct.scatter(x, lanes // 2, lanes, mask=lanes % 2 == 0)
        """
    assert not execute(text, x=np.zeros(6, np.int32)).undefined


def test_advanced_indexing_takes_rows_by_tile_and_columns_by_slice(execute):
    x = np.arange(64, dtype=np.int32).reshape(8, 8)
    y = np.zeros((6, 4), np.int32)
    text = """
        @ct.kernel
        def k(x, y, column: int):
            rows = ct.arange(4, dtype=ct.int32) * 2 + 1
            t = ct.load_advanced_indexing(x, (rows, ct.Slice(column, 4)), padding_mode=ct.PaddingMode.ZERO)
            ct.store_advanced_indexing(y, (rows, ct.Slice(0, 4)), t)
        """
    log = execute(text, x=x, y=y, column=6)
    expected = np.zeros((6, 4), np.int32)
    expected[[1, 3, 5], :2] = x[[1, 3, 5], 6:]
    np.testing.assert_array_equal(y, expected)
    assert len(log.accesses[0].elements) == 8
    assert len(log.accesses[1].elements) == 12
    assert not log.undefined


def test_advanced_indexing_wholly_outside_and_duplicate_rows(execute):
    text = """
        @ct.kernel
        def k(x, start: int, divisor: int):
            rows = ct.arange(4, dtype=ct.int32) // divisor
            ct.store_advanced_indexing(x, (rows, ct.Slice(start, 2)), ct.zeros((4, 2), ct.int32))
        """
    x = np.zeros((4, 4), np.int32)
    assert [r.kind for r in execute(text, x=x, start=4, divisor=1).undefined] == ["tile-outside"]
    assert [r.kind for r in execute(text, x=x, start=0, divisor=2).undefined] == ["duplicate"]
    assert not execute(text, x=x, start=3, divisor=1).undefined


def test_raw_memory_counts_from_the_base_pointer(execute):
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    text = """
        @ct.kernel
        def k(x):
            memory = x.get_raw_memory()
            offset = ct.arange(4, dtype=ct.int32) + 8
            t = memory.load_offset(offset, mask=offset < 11, padding_value=-5)
            memory.store_offset(offset - 8, t)
            moved = x.slice(0, 1, 3).get_raw_memory()
            moved.store_offset(1, 99)
        """
    log = execute(text, x=x)
    np.testing.assert_array_equal(x, [[8, 9, 10, -5], [4, 99, 6, 7], [8, 9, 10, 11]])
    assert all(record.raw for record in log.accesses)
    np.testing.assert_array_equal(log.accesses[0].elements.ravel(), [8, 9, 10])
    np.testing.assert_array_equal(log.accesses[2].elements, [[5]])


def test_raw_memory_of_a_strided_array_spans_its_rows(execute):
    storage = np.zeros((3, 8), np.int32)
    text = """
        @ct.kernel
        def k(x, at: int):
            x.get_raw_memory().store_offset(at, 1)
        """
    view = storage[:, :4]
    assert not execute(text, x=view, at=8).undefined
    assert storage[1, 0] == 1
    assert not execute(text, x=view, at=19).undefined
    for at in (20, -1):
        log = execute(text, x=view, at=at)
        assert [(r.kind, r.element) for r in log.undefined] == [("out-of-bounds", (at,))]


def test_lists_of_arrays_record_their_member(execute):
    arrays = [np.zeros(4, np.int32) for _ in range(3)]
    text = """
        @ct.kernel
        def k(xs, out):
            for i in range(len(xs)):
                ct.store(xs[i], (0,), ct.full((xs[i].ndim,), i + 1, xs[i].dtype))
            ct.store(out, (0,), len(xs))
        """
    out = np.zeros(1, np.int32)
    log = execute(text, xs=arrays, out=out)
    assert [array[0] for array in arrays] == [1, 2, 3]
    assert out[0] == 3
    assert [(r.array, r.member) for r in log.accesses] == [("xs", 0), ("xs", 1), ("xs", 2), ("out", None)]


@pytest.mark.parametrize("index", [2, -1])
def test_past_a_list_the_block_goes_no_further(execute, index):
    text = """
        @ct.kernel
        def k(xs, i: int):
            if ct.bid(0) == 0:
                ct.store(xs[i], (0,), 1)
            ct.store(xs[0], (0,), 2)
        """
    log = execute(text, grid=(2,), xs=[np.zeros(2, np.int32)] * 2, i=index)
    assert [(r.kind, r.array, r.element) for r in log.undefined] == [("member", "xs", (index,))]
    assert [record.block for record in log.accesses] == [(1, 0, 0)]


def test_tuples_of_arrays(execute):
    arrays = (np.zeros(4, np.int32), np.zeros(4, np.int32))
    text = """
        @ct.kernel
        def k(pair):
            first, second = pair
            ct.store(second, (0,), ct.load(first, (0,), (4,)) + len(pair))
            ct.store(pair[-1], (0,), 7)
        """
    log = execute(text, pair=arrays)
    np.testing.assert_array_equal(arrays[1], [7, 2, 2, 2])
    assert [(r.array, r.member) for r in log.accesses] == [("pair", 0), ("pair", 1), ("pair", 1)]


def test_one_array_bound_twice_is_one_memory(execute):
    x = np.arange(4, dtype=np.int32)
    text = """
        @ct.kernel
        def k(a, b):
            ct.store(b, (0,), ct.load(a, (0,), (4,)) + 1)
            ct.store(b, (0,), ct.load(a, (0,), (4,)) + 1)
        """
    log = execute(text, a=x, b=x)
    np.testing.assert_array_equal(x, np.arange(4) + 2)
    assert [record.array for record in log.accesses] == ["a", "b", "a", "b"]


def test_a_read_only_array_is_not_written(execute):
    x = np.zeros(4, np.int32)
    x.flags.writeable = False
    text = """
        @ct.kernel
        def k(x):
            ct.store(x, (0,), 1)
        """
    with pytest.raises(NotInterpretable, match="read-only"):
        execute(text, x=x)
