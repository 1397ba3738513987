"""The guard of Triton kernels: pointers are flat arrays, and every argument is what the proof took it for."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import pytest

from tilecheck.errors import LaunchRefused
from tilecheck.jit import guard
from tilecheck.jit.guard_triton import compile_guard, compile_threads
from tilecheck.jit.records import Argument

FITS = "numel(out) >= n"
NULL = 1 << 20  # how far below the addresses of these tests the null pointer lies


@pytest.fixture
def check(record):
    """The check of a kernel with these parameters: capitals are constants, `n` and `T` are integers."""

    def check(names, *conditions, captured=None, **fields):
        made = record(names, *conditions, language="triton", **fields)
        arguments = [replace(a, integer=a.integer or a.name in ("n", "T")) for a in made.arguments]
        arguments = [replace(a, rank=1) if a.array else a for a in arguments]
        return compile_guard(replace(made, arguments=tuple(arguments)), captured)

    return check


@pytest.fixture
def tensor(tensor):
    """Tensors whose addresses count from one that is not null."""

    class Placed(tensor):
        def data_ptr(self):
            return NULL + self.at

    return Placed


def refused(check, grid, *args):
    with pytest.raises(LaunchRefused) as caught:
        check(grid, args)
    return str(caught.value)


# ---- which kernels -------------------------------------------------------------------------------------------


def test_a_kernel_of_another_language_is_refused(record):
    with pytest.raises(LaunchRefused, match="another language"):
        compile_guard(record("out"))
    with pytest.raises(LaunchRefused, match="another language"):
        guard.compile_guard(record("out", language="triton"))


def test_a_kernel_that_is_not_verified_is_refused(check):
    with pytest.raises(LaunchRefused, match="unknown"):
        check("out", verdict="unknown")


@pytest.mark.parametrize("condition", ["out is 5", "out is n", "OUT == 'a'", "out == b'a'", "out is not ..."])
def test_questions_of_other_forms_are_refused(check, condition):
    with pytest.raises(LaunchRefused, match="condition"):
        check("out n", condition)


# ---- tensors -------------------------------------------------------------------------------------------------


def test_a_tensor_has_the_elements_that_its_strides_reach(check, tensor):
    passes = check("out n", FITS)
    matrix = tensor(3, 4, strides=(10, 1))
    passes((1,), (matrix, 24))
    assert "numel(out) = 24, n = 25" in refused(passes, (1,), matrix, 25)


@pytest.mark.parametrize("read", ["out.shape[0]", "numel(out)"])
def test_the_shape_of_a_pointer_is_that_of_the_flat_array(check, tensor, read):
    passes = check("out n", f"{read} <= 24", "out.stride(0) == 1")
    passes((1,), (tensor(3, 4, strides=(10, 1)), 1))
    assert "condition" in refused(passes, (1,), tensor(3, 5, strides=(10, 1)), 1)


def test_an_empty_tensor_has_no_elements(check, tensor):
    passes = check("out n", FITS)
    passes((1,), (tensor(0, 4), 0))
    assert "condition" in refused(passes, (1,), tensor(0, 4), 1)


def test_offsets_reach_the_gaps_between_rows(check, tensor):
    """Two columns of one buffer share no element, and all their bytes."""
    passes = check("x out n", FITS)
    passes((1,), (tensor(8, at=0), tensor(8, at=32), 8))
    left, right = tensor(8, strides=(2,), at=0), tensor(8, strides=(2,), at=4)
    assert "S1" in refused(passes, (1,), left, right, 8)
    assert "S1" in refused(passes, (1,), tensor(8, at=0), tensor(8, at=31), 8)


def test_overlap_is_looked_at_in_every_launch(check, tensor):
    passes = check("x out n", FITS)
    for _ in range(2):
        passes((1,), (tensor(8, at=0), tensor(8, at=32), 8))
        assert "S1" in refused(passes, (1,), tensor(8, at=4), tensor(8, at=32), 8)


def test_a_written_tensor_that_overlaps_itself_is_refused(check, tensor):
    passes = check("out n", FITS)
    assert "S2" in refused(passes, (1,), tensor(4, 4, strides=(1, 1)), 2)


def test_an_unread_axis_has_one_block(check, tensor):
    assert "S3" in refused(check("out n", FITS), (1, 2), tensor(8), 8)


def test_the_gaps_count_among_the_elements(check, tensor):
    passes = check("x out")
    wide = tensor(2, 2, strides=(2**31 - 1, 1))
    assert "S4" in refused(passes, (1,), wide, tensor(8, at=2**40))


class Wrapped:
    shape, dtype = (8,), "float64"


Wrapped.__module__ = "triton.runtime.jit"


@pytest.mark.parametrize("value", [5, "out", Wrapped(), object(), [1], (1, 2)])
def test_what_is_no_tensor_is_refused(check, value):
    Wrapped.data_ptr = Wrapped.stride = Wrapped.element_size = lambda self: 8
    assert "a tensor is expected" in refused(check("out n", FITS), (1,), value, 8)


def test_elements_that_the_proof_takes_for_integers_are_int32_or_int64(check, tensor):
    arguments = (Argument("out", "mut", array=True), Argument("x", "shared", array=True, integer=True))
    passes = check("out x", arguments=arguments)
    for dtype in ("int32", "torch.int64"):
        for _ in range(2):
            passes((1,), (tensor(8), tensor(8, at=64, dtype=dtype)))
    for dtype in ("float32", "torch.float64", "int8", "torch.uint8", "uint32", "torch.bool", "int16"):
        assert "int32 or int64" in refused(passes, (1,), tensor(8), tensor(8, at=64, dtype=dtype))


IN_PLACE = (Argument("out", "mut", array=True, alike=True), Argument("x", "mut", array=True, alike=True))


def test_arrays_that_are_laid_out_alike_have_elements_of_one_size(check, tensor):
    passes = check("out x", arguments=IN_PLACE)
    for _ in range(2):
        half = tensor(8, dtype="float16", itemsize=2)
        passes((1,), (half, tensor(8, at=64, dtype="bfloat16", itemsize=2)))
        told = refused(passes, (1,), half, tensor(8, at=64, dtype="float32"))
        assert "`x` have 4 bytes, and those of `out` 2" in told


def test_arrays_that_are_laid_out_alike_are_aligned_alike(check, tensor):
    passes = check("out x", arguments=IN_PLACE)
    for _ in range(2):
        passes((1,), (tensor(8), tensor(8, at=64)))
        passes((1,), (tensor(8, at=4), tensor(8, at=72)))
        for first, second in ((0, 72), (4, 64)):
            told = refused(passes, (1,), tensor(8, at=first), tensor(8, at=second))
            assert "one begins at a multiple of 16 bytes" in told


def test_a_tile_has_as_many_elements_as_there_are_threads(record):
    made = record("out T", language="triton", large=("T * WIDTH", "64"))
    check = compile_threads(made, {"WIDTH": 4})
    check(1, (None, 16))
    check(2, (None, 16))
    for warps, size, told in (
        (2, 8, "a tile of `T * WIDTH` elements has 32, and the program 64 threads"),
        (4, 64, "a tile of `64` elements has 64, and the program 128 threads"),
        (0, 64, "`num_warps` is 0"),
        (None, 64, "`num_warps` is None"),
        (True, 64, "`num_warps` is True"),
        (1, None, "cannot be evaluated"),
        (1, 64.0, "has 256.0"),
    ):
        with pytest.raises(LaunchRefused) as error:
            check(warps, (None, size))
        assert told in str(error.value)


def test_of_other_kernels_the_threads_are_not_counted(record):
    assert compile_threads(record("out T", language="triton")) is None


def test_elements_may_be_taken_only_for_others_of_their_size(check, tensor):
    """As `triton.reinterpret` does: it still answers with the size that they have without that."""

    @dataclass(frozen=True)
    class Type:
        primitive_bitwidth: int

    passes = check("out x", arguments=IN_PLACE)
    for _ in range(2):
        passes((1,), (tensor(8, dtype=Type(32)), tensor(8, at=64)))
        told = refused(passes, (1,), tensor(8, dtype=Type(8)), tensor(8, at=64))
        assert "taken for others of another size" in told
        told = refused(passes, (1,), tensor(8, dtype=Type(32), itemsize=2), tensor(8, at=64))
        assert "taken for others of another size" in told


def test_other_arrays_may_differ_in_size_and_alignment(check, tensor):
    check("out x")((1,), (tensor(8, dtype="float16"), tensor(8, at=68, dtype="float32")))


def test_a_tensor_without_memory_is_refused(check, tensor):
    """As on PyTorch's device `meta`. An empty one has none either."""
    passes = check("x out n", FITS)
    for _ in range(2):
        passes((1,), (tensor(8, at=64), tensor(8), 8))
        passes((1,), (tensor(0, at=-NULL), tensor(8), 8))
        assert "`x` has no memory" in refused(passes, (1,), tensor(8, at=-NULL), tensor(8), 8)
        assert "`out` has no memory" in refused(passes, (1,), tensor(8, at=64), tensor(8, at=-NULL), 8)


# ---- None ----------------------------------------------------------------------------------------------------


def test_none_is_passed_where_the_proof_looked_at_it(check, tensor):
    passes = check("x out n", FITS, "x is None or numel(x) >= n")
    out = tensor(8)
    for _ in range(2):
        passes((1,), (None, out, 8))
        passes((1,), (tensor(8, at=64), out, 8))
        assert "condition" in refused(passes, (1,), tensor(7, at=64), out, 8)
        assert "S1" in refused(passes, (1,), tensor(8, at=31), out, 8)


def test_none_is_refused_where_a_condition_needs_the_tensor(check, tensor):
    passes = check("x out n", FITS, "x is not None or n >= 3", "numel(x) >= n")
    passes((1,), (tensor(8, at=64), tensor(8), 8))
    assert "cannot be evaluated" in refused(passes, (1,), None, tensor(8), 8)
    assert "breaks a condition" in refused(passes, (1,), None, tensor(8), 2)


@pytest.mark.parametrize("condition", ["not k", "k == 0", "k != 1", "0 if k else 1", "k or 1", "(k == k)"])
def test_none_is_no_number(check, tensor, condition):
    """Python has truths for these that the proof knows nothing of."""
    passes = check("out k", condition, "k is None or k >= 0")
    assert "cannot be evaluated" in refused(passes, (1,), tensor(8), None)


def test_none_for_an_integer_is_passed_where_the_proof_looked_at_it(check, tensor):
    asked = check("out n", "n is None or numel(out) >= n")
    for _ in range(2):
        asked((1,), (tensor(8), None))
        asked((1,), (tensor(8), 8))
        assert "condition" in refused(asked, (1,), tensor(8), 9)
    assert "an int is expected" in refused(check("out n"), (1,), tensor(8), None)


def test_all_tensors_may_be_none(check):
    passes = check("x out", "x is None or numel(x) >= 1", "out is None or numel(out) >= 1")
    for _ in range(2):
        passes((1,), (None, None))


# ---- numbers -------------------------------------------------------------------------------------------------


class Size(enum.IntEnum):
    SMALL = 8


@pytest.mark.parametrize("value", [8.0, True, "8", Size.SMALL, (8,), object()])
def test_an_integer_is_an_int(check, tensor, value):
    passes = check("out n", FITS)
    passes((1,), (tensor(8), 8))
    passes((1,), (tensor(8), 1))
    assert "`n` is a" in refused(passes, (1,), tensor(8), value)


def test_an_integer_that_no_condition_reads_is_an_int_too(check, tensor):
    passes = check("out n k")
    for _ in range(2):
        passes((1,), (tensor(8), 8, 0.5))
        assert "an int is expected" in refused(passes, (1,), tensor(8), 8.0, 0.5)


def test_a_constant_may_be_a_truth(check, tensor):
    passes = check("out T", "T == 0 or numel(out) >= 8")
    passes((1,), (tensor(4), False))
    assert "condition" in refused(passes, (1,), tensor(4), True)
    assert "int" in refused(passes, (1,), tensor(8), 1.0)


def test_integers_have_32_bits(check, tensor):
    passes = check("out n k")
    passes((1,), (tensor(8), -(2**31), 2**40))
    assert "32 bits" in refused(passes, (1,), tensor(8), 2**31, 0)


def test_an_integer_that_a_condition_reads_has_32_bits(check, tensor):
    passes = check("out k", "k >= 0")
    passes((1,), (tensor(8), 2**31 - 1))
    assert "32 bits" in refused(passes, (1,), tensor(8), 2**31)


def test_a_wide_integer_may_be_large(check, tensor):
    arguments = (Argument("out", "mut", array=True), Argument("n", "value", scalar="int", wide=True))
    check("out n", arguments=arguments)((1,), (tensor(8), 2**40))


def test_a_parameter_that_is_annotated_as_a_truth_is_one(check, tensor):
    arguments = (Argument("out", "mut", array=True), Argument("f", "value", scalar="bool"))
    passes = check("out f", arguments=arguments)
    passes((1,), (tensor(8), True))
    assert "a bool is expected" in refused(passes, (1,), tensor(8), 1)


@pytest.mark.parametrize("value", [object(), Size.SMALL, (1,), [1], Wrapped()])
def test_a_value_of_another_kind_is_refused(check, tensor, value):
    assert "a number is expected" in refused(check("out k"), (1,), tensor(8), value)


def test_a_tensor_is_no_number(check, tensor):
    passes = check("out k")
    passes((1,), (tensor(8), 1.5))
    assert "a number is expected" in refused(passes, (1,), tensor(8), tensor(8))


def test_texts_are_constants(check, tensor):
    passes = check("out ACT n", "ACT == 'relu' or numel(out) >= n")
    for _ in range(2):
        passes((1,), (tensor(4), "relu", 8))
        passes((1,), (tensor(8), "tanh", 8))
        passes((1,), (tensor(8), None, 8))
        assert "ACT == 'relu' = False" in refused(passes, (1,), tensor(4), "tanh", 8)
        assert "condition" in refused(passes, (1,), tensor(4), None, 8)
    assert "a number is expected" in refused(check("out k"), (1,), tensor(4), "relu")


def test_what_is_not_used_may_be_anything(check, tensor):
    unused = (Argument("k", "unused"), Argument("z", "unused", array=True))
    arguments = (Argument("out", "mut", array=True), *unused)
    passes = check("out k z", "k % 4 == 0", arguments=arguments)
    passes((1,), (tensor(8), 4, object()))
    assert "condition" in refused(passes, (1,), tensor(8), 5, None)
    assert "cannot be evaluated" in refused(passes, (1,), tensor(8), 4.0, None)


def test_a_captured_number_is_a_launch_value(check, tensor):
    passes = check("out n", "n <= C", captured={"C": 4})
    passes((1,), (tensor(8), 4))
    assert "C = 4" in refused(passes, (1,), tensor(8), 5)


# ---- what is remembered --------------------------------------------------------------------------------------


def test_a_combination_is_looked_at_once(check, tensor):
    class Counted(tensor):
        looked = 0

        def element_size(self):
            Counted.looked += 1
            return 4

    passes = check("x out n k ACT", FITS, "x is None or numel(x) >= n")
    for _ in range(3):
        passes((1,), (Counted(8, at=64), Counted(8), 8, 0.5, "relu"))
        passes((1,), (None, Counted(8), 8, 0.5, "relu"))
    assert Counted.looked == 3


def test_the_grid_is_part_of_a_combination(check, tensor):
    passes = check("out T", "grid[0] * T <= numel(out)")
    passes((2,), (tensor(8), 4))
    assert "grid[0] = 3" in refused(passes, (3,), tensor(8), 4)
    assert "T = 5" in refused(passes, (2,), tensor(8), 5)
