"""A compiler that stores whole pieces: written arrays whose rows end within one, with something after them."""

from __future__ import annotations

import itertools

import pytest

from tilecheck.errors import LaunchRefused
from tilecheck.jit import compiler
from tilecheck.jit.export import _form
from tilecheck.jit.guard import compile_guard
from tilecheck.jit.layouts import Layout


class Storage:
    def __init__(self, size):
        self.size = size

    def data_ptr(self):
        return 0

    def nbytes(self):
        return self.size


def stored(tensor, size, *shape, **more):
    found = tensor(*shape, **more)
    found.untyped_storage = lambda: Storage(size)
    return found


def accepted(record, granule, out):
    check = compile_guard(record("out"), granule=granule)
    try:
        check((1,), (out,))
        check((1,), (out,))
    except LaunchRefused:
        return False
    return True


def test_the_refusal_says_what_is_wrong(record, tensor):
    check = compile_guard(record("out"), granule=16)
    with pytest.raises(
        LaunchRefused, match="`out` is written in rows of 244 bytes, and the installed compiler"
    ):
        check((1,), (tensor(5, 61, strides=(64, 1)),))


@pytest.mark.parametrize(
    ("shape", "strides", "at", "size", "safe"),
    [
        ((5, 61), (64, 1), 0, 10_000, False),  # padded rows
        ((5, 60), (64, 1), 0, 10_000, True),  # 240 bytes: whole pieces
        ((5, 61), (61, 1), 0, 10_000, True),  # rows begin anywhere
        ((5, 61), (64, 1), 4, 10_000, True),  # the first row does
        ((61,), (1,), 0, 244, True),  # nothing after the only row
        ((61,), (1,), 0, 248, False),  # another view may begin there
        ((1, 61), (64, 1), 0, 244, True),
        ((1, 61), (64, 1), 0, 256, False),
        ((61, 5), (1, 64), 0, 10_000, True),  # no contiguous rows
        ((0, 61), (64, 1), 0, 10_000, True),
        ((), (), 0, 4, True),
    ],
)
def test_what_may_follow_a_row(record, tensor, shape, strides, at, size, safe):
    out = stored(tensor, size, *shape, strides=strides, at=at)
    assert accepted(record, 16, out) is safe
    assert accepted(record, 1, out)


def test_an_array_that_does_not_tell_its_storage_is_refused(record, tensor):
    assert not accepted(record, 16, tensor(61))
    assert accepted(record, 16, tensor(64))


def test_a_risky_combination_is_looked_at_every_time(record, tensor):
    check = compile_guard(record("out"), granule=16)
    check((1,), (stored(tensor, 244, 61),))
    with pytest.raises(LaunchRefused):
        check((1,), (stored(tensor, 999, 61),))


def test_arrays_that_are_only_read_may_end_anywhere(record, tensor):
    check = compile_guard(record("out x"), granule=16)
    check((1,), (stored(tensor, 256, 64), tensor(5, 61, strides=(64, 1), at=4096)))


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_ends_within_against_the_addresses(itemsize):
    for rows, row, gap in itertools.product((1, 2, 3), range(1, 20), range(18)):
        layout = Layout((rows, row), (row + gap, 1), itemsize)
        begins = {k * (row + gap) * itemsize % 16 for k in range(rows)}
        ends = row * itemsize % 16
        assert layout.ends_within(16) == (begins == {0} and ends != 0)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Cuda compilation tools, release 13.4, V13.4.92", True),
        ("Cuda compilation tools, release 13.5, V13.5.37", False),
        ("Cuda compilation tools, release 14.0, V14.0.1", False),
        ("something else", True),
        (None, True),
    ],
)
def test_the_release_decides(monkeypatch, text, whole):
    module = pytest.importorskip("cuda.tile._compile", reason="cuda-tile is installed on Linux only")
    monkeypatch.setattr(module, "_get_compiler_version_string", lambda: text)
    compiler.stores_whole_pieces.cache_clear()
    try:
        assert compiler.stores_whole_pieces() is whole
    finally:
        compiler.stores_whole_pieces.cache_clear()


def test_written_arrays_of_ragged_variants_are_compiled_without_alignment():
    """Without it the compiler has no use for the bulk copy engine."""
    numpy = pytest.importorskip("numpy")
    value = numpy.zeros((5, 61), dtype=numpy.float16)
    ragged = _form("out", "mut", value, 16, 1)
    assert (ragged.stride_divisors, ragged.address_divisor) == ((1, 1), 2)
    whole = _form("out", "mut", value, 16, 16)
    assert (whole.stride_divisors, whole.extent_divisors, whole.address_divisor) == ((8, 1), (1, 16), 16)
    read = _form("x", "shared", value, 16, 1)
    assert (read.stride_divisors, read.address_divisor) == ((8, 1), 16)
