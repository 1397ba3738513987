"""Atomic operations: values, orders and what they touch."""

from __future__ import annotations

import numpy as np
import pytest

from tilecheck.reference import NotInterpretable


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", [15, 16, 17, 18]),
        ("xchg", [5, 5, 5, 5]),
        ("max", [10, 11, 12, 13]),
        ("min", [5, 5, 5, 5]),
        ("and", [0, 1, 4, 5]),
        ("or", [15, 15, 13, 13]),
        ("xor", [15, 14, 9, 8]),
    ],
)
def test_element_and_raw_atomics_update_memory_and_give_old_values(execute, name, expected):
    text = f"""
        @ct.kernel
        def k(x, old, raw, raw_old):
            lanes = ct.arange(4, dtype=ct.int32)
            ct.store(old, 0, ct.atomic_{name}(x, lanes, ct.full((4,), 5, ct.int32)))
            memory = raw.get_raw_memory()
            ct.store(raw_old, 0, memory.atomic_{name}_offset(lanes, ct.full((4,), 5, ct.int32), mask=lanes < 4))
        """
    x = np.arange(10, 14, dtype=np.int32)
    old, raw, raw_old = np.zeros(4, np.int32), x.copy(), np.zeros(4, np.int32)
    log = execute(text, x=x, old=old, raw=raw, raw_old=raw_old)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(raw, expected)
    np.testing.assert_array_equal(old, np.arange(10, 14))
    np.testing.assert_array_equal(raw_old, old)
    first, second = log.accesses[0], log.accesses[2]
    assert (first.effect, first.order, first.scope, first.raw) == ("atomic", "ACQ_REL", "DEVICE", False)
    assert (second.effect, second.raw) == ("atomic", True)


def test_lanes_on_one_element_all_count(execute):
    text = """
        @ct.kernel
        def k(x, tickets):
            zeros = ct.zeros((8,), ct.int32)
            tickets_here = ct.atomic_add(x, zeros, 1)
            ct.store(tickets, 0, tickets_here)
        """
    x, tickets = np.zeros(1, np.int32), np.zeros(8, np.int32)
    log = execute(text, x=x, tickets=tickets)
    assert x[0] == 8
    np.testing.assert_array_equal(tickets, np.arange(8))
    assert not log.undefined


def test_compare_and_swap(execute):
    text = """
        @ct.kernel
        def k(x, old):
            lanes = ct.arange(8, dtype=ct.int32)
            ct.store(old, 0, ct.atomic_cas(x, lanes, 0, 42))
            x.get_raw_memory().atomic_cas_offset(0, 42, 43, memory_order=ct.MemoryOrder.RELAXED)
        """
    x, old = np.array([0, 1, 0, 1], np.int32), np.full(8, -1, np.int32)
    log = execute(text, x=x, old=old)
    np.testing.assert_array_equal(x, [43, 1, 42, 1])
    np.testing.assert_array_equal(old, [0, 1, 0, 1, 0, 0, 0, 0])
    assert len(log.accesses[0].elements) == 4
    assert log.accesses[2].order == "RELAXED"


def test_unchecked_atomics_outside(execute):
    text = """
        @ct.kernel
        def k(x):
            ct.atomic_add(x, 9, 1, check_bounds=False)
        """
    log = execute(text, x=np.zeros(4, np.int32))
    assert [record.kind for record in log.undefined] == ["out-of-bounds"]


@pytest.mark.parametrize(
    ("name", "expected"), [("add", 5), ("max", 4), ("min", 1), ("and", 0), ("or", 5), ("xor", 5)]
)
def test_view_atomics_update_a_tile(execute, name, expected):
    text = f"""
        @ct.kernel
        def k(x):
            x.tiled_view(4).atomic_store_{name}(1, ct.full((4,), 1, ct.int32))
        """
    x = np.full(6, 4, np.int32)
    log = execute(text, x=x)
    np.testing.assert_array_equal(x, [4] * 4 + [expected] * 2)
    record = log.accesses[0]
    assert (record.effect, record.order, record.scope) == ("atomic", "RELAXED", "DEVICE")
    np.testing.assert_array_equal(record.elements.ravel(), [4, 5])


def test_float_sums_are_atomic_too(execute):
    text = """
        @ct.kernel
        def k(x):
            ct.atomic_add(x, 0, 0.5)
        """
    x = np.zeros(1, np.float32)
    execute(text, grid=(4,), x=x)
    assert x[0] == 2


def test_a_block_that_waits_for_ever_meets_the_step_limit(execute):
    text = """
        @ct.kernel
        def k(x):
            while ct.atomic_cas(x, 0, 1, 2) != 1:
                pass
        """
    from tilecheck.reference import StepLimit

    with pytest.raises(StepLimit):
        execute(text, x=np.zeros(1, np.int32), max_steps=500)


def test_bitwise_atomics_of_floats_are_refused(execute):
    text = """
        @ct.kernel
        def k(x):
            ct.atomic_or(x, 0, 1)
        """
    with pytest.raises(NotInterpretable):
        execute(text, x=np.zeros(1, np.float32))
