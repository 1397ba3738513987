"""Which bytes an array has, and whether two arrays share one, against enumeration."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from tilecheck.jit.layouts import Layout, NotAnArray, contiguous_strides, layout_of, share_memory, solid


def elements(layout, base=0):
    """The bytes of every element."""
    for index in itertools.product(*map(range, layout.shape)):
        at = base + layout.itemsize * sum(i * s for i, s in zip(index, layout.strides, strict=True))
        yield range(at, at + layout.itemsize)


def bytes_of(layout, base=0):
    return {byte for element in elements(layout, base) for byte in element}


def some_layout(random_, itemsizes=(1, 2, 4)):
    rank = random_.randrange(4)
    shape = tuple(random_.choice((0, 1, 1, 2, 3, 4)) for _ in range(rank))
    strides = tuple(random_.choice((0, 1, 1, 2, 3, 4, 5, 7, 8, 12)) for _ in range(rank))
    return Layout(shape, strides, random_.choice(itemsizes))


def test_share_memory_is_what_enumeration_finds():
    random_ = random.Random(1)
    answers = {True: 0, False: 0, "within": 0}
    for _ in range(6000):
        first, second = some_layout(random_), some_layout(random_)
        distance = random_.randrange(-70, 70)
        expected = bool(bytes_of(first) & bytes_of(second, distance))
        assert share_memory(first, second, distance) is expected, (first, second, distance)
        assert share_memory(second, first, -distance) is expected
        answers[expected] += 1
        answers["within"] += not expected and -second.span < distance < first.span
    assert min(answers.values()) > 300  # arrays that interleave are among them


def test_overlaps_itself_is_what_enumeration_finds():
    random_ = random.Random(2)
    answers = {True: 0, False: 0}
    for _ in range(4000):
        layout = some_layout(random_)
        expected = len(bytes_of(layout)) < layout.size * layout.itemsize
        assert layout.overlaps_itself() is expected, layout
        answers[expected] += 1
    assert min(answers.values()) > 300


def test_span_ends_with_the_last_element():
    random_ = random.Random(3)
    for _ in range(1000):
        layout = some_layout(random_)
        assert layout.span == max(bytes_of(layout), default=-1) + 1
        assert layout.size == len(list(elements(layout)))


def test_solid_fills_the_gaps():
    layout = Layout((2, 2), (5, 2), 4)
    assert bytes_of(solid(layout)) == set(range(layout.span)) > bytes_of(layout)


def test_an_array_too_large_to_enumerate_is_not_decided():
    layout = Layout((1 << 12, 1 << 12), (3, 2), 4)  # elements (0, 3) and (2, 0) are one
    assert layout.overlaps_itself() is None
    assert Layout((1 << 12, 1 << 12), (1 << 12, 1), 4).overlaps_itself() is False
    assert Layout((1 << 20, 1 << 10), (0, 1), 4).overlaps_itself() is True


def test_large_arrays_that_interleave_are_decided():
    rows = Layout((1 << 15, 64), (192, 1), 2)  # q, k and v of one packed buffer
    assert share_memory(rows, rows, 128) is False
    assert share_memory(rows, rows, 126) is True
    assert share_memory(rows, rows, 384 * 1000 + 256) is False


def test_a_hard_question_is_not_decided_rather_than_guessed():
    random_ = random.Random(4)
    primes = [10007, 10009, 10037, 10039, 10061, 10067, 10069, 10079]
    answers = set()
    for _ in range(20):
        shape = tuple(random_.randrange(5, 9) for _ in primes)
        first = Layout(shape, tuple(random_.sample(primes, len(primes))), 1)
        second = Layout(shape, tuple(random_.sample(primes, len(primes))), 1)
        answers.add(share_memory(first, second, random_.randrange(first.span)))
    assert None in answers


@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 3), (2, 0, 3), (1, 1), (4, 3, 2)])
def test_contiguous_strides_are_those_of_numpy(shape):
    array = np.zeros(shape, np.int32)
    if array.size:
        assert contiguous_strides(shape) == tuple(step // 4 for step in array.strides)
    assert layout_of(Interface(shape=shape, typestr="<i4", data=(64, False))) == (
        64,
        Layout(shape, contiguous_strides(shape), 4),
    )


class Interface:
    def __init__(self, **interface):
        self.__cuda_array_interface__ = {"version": 3, **interface}


def test_strides_of_the_interface_are_bytes(tensor):
    array = Interface(shape=(2, 3), typestr="<f8", data=(512, False), strides=(48, 8))
    assert layout_of(array) == (512, Layout((2, 3), (6, 1), 8))
    assert layout_of(tensor(2, 3, strides=(6, 1), at=512, itemsize=8)) == layout_of(array)


@pytest.mark.parametrize(
    "interface",
    [
        {},
        {"shape": (2,), "typestr": "<f4"},
        {"shape": (2,), "typestr": "<f4", "data": None},
        {"shape": (2,), "typestr": "<f4", "data": (None, False)},
        {"shape": 2, "typestr": "<f4", "data": (0, False)},
        {"shape": (2.0,), "typestr": "<f4", "data": (0, False)},
        {"shape": (-2,), "typestr": "<f4", "data": (0, False)},
        {"shape": (2,), "typestr": "", "data": (0, False)},
        {"shape": (2,), "typestr": "|V0", "data": (0, False)},
        {"shape": (2,), "typestr": "<M8[ns]", "data": (0, False)},
        {"shape": (2,), "typestr": "<f4", "data": (0, False), "strides": (6,)},
        {"shape": (2,), "typestr": "<f4", "data": (0, False), "strides": (4, 4)},
        {"shape": (2,), "typestr": "<f4", "data": (0, False), "mask": object()},
    ],
)
def test_what_cannot_be_told_is_no_array(interface):
    with pytest.raises(NotAnArray):
        layout_of(Interface(**interface))
