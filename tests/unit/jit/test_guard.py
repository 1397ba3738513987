"""What the guard lets through, what it refuses, and that it remembers nothing that it must look at again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilecheck.errors import LaunchRefused
from tilecheck.jit.guard import compile_guard
from tilecheck.jit.records import Argument

FITS = "grid[0] <= cdiv(out.shape[0], T)"


def refused(check, grid, *args):
    with pytest.raises(LaunchRefused) as caught:
        check(grid, args)
    return str(caught.value)


# ---- what it is compiled from --------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", ["violated", "unknown"])
def test_a_kernel_that_is_not_verified_is_refused(record, verdict):
    with pytest.raises(LaunchRefused, match=verdict):
        compile_guard(record("out T", FITS, verdict=verdict))


@pytest.mark.parametrize(
    "condition",
    [
        "__import__('os').system('true')",
        "out.data_ptr() == 0",
        "out.shape.__class__",
        "[1 for _ in (1,)]",
        "(lambda: True)()",
        "grid",
        "S >= 1",
        "out.shape[T] >= 1",
        "len(out) >= 1",
        "out[*].shape[0] >= 1",
        "out[0].shape[0] >= 1",
        "(y := 1)",
        "1.5 <= T",
        "out.shape[0] >=",
        "(" * 5000,
        " + ".join(["1"] * 20000),
    ],
)
def test_a_condition_that_is_not_over_launch_values_is_refused(record, condition):
    with pytest.raises(LaunchRefused, match="condition"):
        compile_guard(record("out T", condition))


@pytest.mark.parametrize("name", ["grid", "cdiv", "min", "len", "each"])
def test_a_parameter_that_shadows_a_word_of_conditions_is_refused(record, name):
    with pytest.raises(LaunchRefused, match=name):
        compile_guard(record(f"out {name}"))


@pytest.mark.parametrize("name", ["grid", "cdiv"])
def test_a_captured_variable_cannot_stand_for_a_word_of_conditions(record, tensor, name):
    check = compile_guard(record("out", "grid[0] <= cdiv(out.shape[0], 4)"), {name: 1})
    check((2,), (tensor(8),))
    assert "condition" in refused(check, (3,), tensor(8))


def test_captured_variables_are_launch_values(record, tensor):
    check = compile_guard(record("out", FITS), {"T": 4})
    check((2,), (tensor(8),))
    assert "T = 4" in refused(check, (3,), tensor(8))


# ---- conditions ----------------------------------------------------------------------------------------------


def test_a_condition_is_checked_with_the_values_at_hand(record, tensor):
    check = compile_guard(record("out T", FITS))
    check((2,), (tensor(8), 4))
    told = refused(check, (3,), tensor(8), 4)
    assert FITS in told
    assert "grid[0] = 3, out.shape[0] = 8, T = 4" in told


@pytest.mark.parametrize(
    ("condition", "holds", "fails"),
    [
        ("-5 <= 3 * cdiv(T, 4) - T % 7 and T != 3", 4, 3),
        ("not (T == 3)", 4, 3),
        ("(T & (T - 1)) == 0", 4, 6),
        ("min(T, 7) < max(T, 9) < 100", 4, 100),
        ("(1 if T == 4 else 0) == 1", 4, 5),
        ("T // 2 == -2", -4, 4),
        ("abs(-T) <= 4", -4, -5),
        ("next_power_of_2(T + 1) == 8", 4, 8),
        ("next_power_of_2(T) == 1", 1, 0),
        ("2 ** T == 8", 3, 2),
        ("2 ** T >= 0", 0, -1),  # which would be 0.5
        ("T < 0 or 2 ** T == 1", -1, 1),
        ("2 ** (T - 1) * 3 == 12", 3, 4),
        ("T", True, False),
        ("out.shape[0] == 8 and out.stride(0) == 1 and T >= 0", 0, -1),
    ],
)
def test_what_conditions_are_made_of(record, tensor, condition, holds, fails):
    check = compile_guard(record("out T", condition))
    check((1,), (tensor(8), holds))
    refused(check, (1,), tensor(8), fails)


def test_cdiv_is_what_the_proof_means_by_it(record, tensor):
    check = compile_guard(record("out n", "cdiv(5, n) == -1"))
    check((1,), (tensor(8), -2))  # (5 - 2 - 1) // -2


def test_a_condition_that_divides_by_zero_does_not_hold(record, tensor):
    assert "cannot be evaluated" in refused(compile_guard(record("out T", FITS)), (1,), tensor(8), 0)


@pytest.mark.parametrize("value", [4.0, "4", None, [4], float("inf")])
def test_conditions_speak_of_integers(record, tensor, value):
    check = compile_guard(record("out T", FITS))
    check((2,), (tensor(8), 4))  # 4.0 is equal to 4 and has its hash
    assert "no integer" in refused(check, (2,), tensor(8), value)


@pytest.mark.parametrize("value", [2.5, 2.0, "2", None])
def test_a_number_that_is_declared_an_integer_is_one(record, tensor, value):
    made = record("out n")
    check = compile_guard(
        replace(made, arguments=(made.arguments[0], replace(made.arguments[1], scalar="int")))
    )
    for number in (2, 3, 2):
        check((1,), (tensor(8), number))
    assert "no integer" in refused(check, (1,), tensor(8), value)


def test_a_number_of_32_bits_is_one(record, tensor):
    made = record("out n T", "n != 0", "T != 0")
    check = compile_guard(made)
    for value in (-(2**31), 2**31 - 1):
        check((1,), (tensor(8), value, 2**32))
    for value in (-(2**31) - 1, 2**31, 2**32):
        assert "32 bits" in refused(check, (1,), tensor(8), value, 1)
    out, n, tile = made.arguments
    compile_guard(replace(made, arguments=(out, replace(n, wide=True), tile)))((1,), (tensor(8), 2**32, 1))


def test_a_stride_of_32_bits_is_one(record, tensor):
    made = record("out")
    check = compile_guard(made)
    check((1,), (tensor(2, 8, strides=(2**31 - 1, 1)),))
    check((1,), (tensor(1, 8, strides=(2**32, 1)),))  # the stride of one row selects nothing
    assert "32 bits" in refused(check, (1,), tensor(2, 8, strides=(2**32, 1)))
    wide = replace(made, arguments=(replace(made.arguments[0], wide=True),))
    compile_guard(wide)((1,), (tensor(2, 8, strides=(2**32, 1)),))


def test_integers_of_numpy_do_not_wrap_around(record, tensor):
    check = compile_guard(record("out n", "n * 4 <= 100"))
    assert "n * 4 <= 100" in refused(check, (1,), tensor(8), np.int32(2**30))  # 2**32, not 0


def test_conditions_on_members_of_a_list(record, tensor):
    conditions = ("grid[0] <= cdiv(parts[*].shape[0], 4)", "len(parts) >= 1", "out.shape[0] >= len(parts)")
    check = compile_guard(record("parts* out", *conditions))
    check((2,), ([tensor(8), tensor(7, at=512)], tensor(2, at=1024)))
    assert "parts[*].shape[0] = 4" in refused(check, (2,), [tensor(8), tensor(4, at=512)], tensor(2, at=1024))
    assert "len(parts) = 0" in refused(check, (2,), [], tensor(2, at=1024))
    assert "len(parts) = 3" in refused(check, (2,), [tensor(8)] * 3, tensor(2, at=1024))


def test_a_condition_on_one_member_of_a_list(record, tensor):
    check = compile_guard(record("parts* out", "parts[1].shape[0] >= 8"))
    check((1,), ((tensor(1), tensor(8)), tensor(1, at=512)))
    refused(check, (1,), (tensor(8), tensor(1)), tensor(1, at=512))
    assert "cannot be evaluated" in refused(check, (1,), (tensor(8),), tensor(1, at=512))


def test_a_list_is_needed_where_the_kernel_takes_one(record, tensor):
    check = compile_guard(record("parts* out"))
    assert "not a list" in refused(check, (1,), tensor(8), tensor(8, at=512))
    assert "parts[1]" in refused(check, (1,), [tensor(8), 3], tensor(8, at=512))


# ---- the fast path -------------------------------------------------------------------------------------------


def test_every_value_that_a_condition_reads_is_looked_at_in_every_launch(record, tensor):
    check = compile_guard(record("x out T", FITS, "x.shape[0] >= out.shape[0]", "out.stride(0) == 1"))
    x, out = tensor(8), tensor(8, at=512)
    for _ in range(2):  # the second time from memory
        check((2,), (x, out, 4))
        refused(check, (3,), x, out, 4)
        refused(check, (2,), x, out, 8)
        refused(check, (2,), tensor(7), out, 4)
        refused(check, (2,), x, tensor(8, strides=(2,), at=512), 4)


def test_an_array_that_only_a_condition_speaks_of_is_looked_at(record, tensor):
    made = record("y out", "y.shape[0] == out.shape[0]")
    for array in (True, False):  # an unannotated parameter that is not used is not known to be an array
        unused = Argument("y", "unused", array=array)
        check = compile_guard(replace(made, arguments=(unused, made.arguments[1])))
        check((1,), (tensor(8), tensor(8, at=512)))
        check((1,), (tensor(8), tensor(8, at=0)))  # the kernel does not touch it
        assert "y.shape[0] = 9" in refused(check, (1,), tensor(9), tensor(8, at=512))
        refused(check, (1,), 8, tensor(8, at=512))


def test_a_mutable_grid_is_looked_at_in_every_launch(record, tensor):
    class Box:
        value = 2

        def __index__(self):
            return self.value

    check = compile_guard(record("out T", FITS))
    box = Box()
    check((box,), (tensor(8), 4))
    box.value = 3
    refused(check, (box,), tensor(8), 4)
    grid = [2]
    check(grid, (tensor(8), 4))
    grid[0] = 3
    refused(check, grid, tensor(8), 4)


@pytest.mark.parametrize("grid", [(), (0,), (-1,), (1, 1, 1, 1), (1.0,), ("1",), 1, None, {1}, iter((1,))])
def test_a_grid_is_one_to_three_positive_integers(record, tensor, grid):
    assert "grid" in refused(compile_guard(record("out")), grid, tensor(8))


def test_a_mutable_number_is_looked_at_in_every_launch(record, tensor):
    class Box:
        value = 4

        def __index__(self):
            return self.value

    check = compile_guard(record("out T", FITS))
    box = Box()
    check((2,), (tensor(8), box))
    box.value = 8
    refused(check, (2,), tensor(8), box)


@pytest.mark.parametrize("args", [(), (1,), (1, 2, 3), None, {}])
def test_the_number_of_arguments_is_checked(record, args):
    with pytest.raises(LaunchRefused, match="takes 2 arguments: out, T"):
        compile_guard(record("out T"))((1,), args)


def test_more_combinations_than_are_remembered(record, tensor):
    check = compile_guard(record("out T", FITS))
    for size in range(1, 5000):
        check((1,), (tensor(size), 4))
    refused(check, (2,), tensor(4), 4)
    check((2,), (tensor(5), 4))


# ---- standing obligations ------------------------------------------------------------------------------------


def test_s1_arguments_of_which_one_is_written_do_not_overlap(record, tensor):
    check = compile_guard(record("x out"))
    out = tensor(8, at=1024)
    for distance in (-4, 4):
        check((1,), (tensor(8, at=1024 + 8 * distance), out))  # side by side
        assert "S1" in refused(check, (1,), tensor(8, at=1024 + 7 * distance), out)
    assert "S1" in refused(check, (1,), out, out)
    assert "S1" in refused(check, (1,), tensor(8, at=1024 + 29), out)  # by a part of one element


def test_s1_two_read_arguments_may_overlap(record, tensor):
    check = compile_guard(record("x y out"))
    check((1,), (tensor(8), tensor(8), tensor(8, at=512)))


def test_s1_columns_of_one_buffer_may_interleave(record, tensor):
    check = compile_guard(record("x out"))

    def slices(distance):
        return tensor(4, 8, strides=(16, 1)), tensor(4, 8, strides=(16, 1), at=4 * distance)

    for _ in range(2):  # the second time from memory
        check((1,), slices(8))
        refused(check, (1,), *slices(7))
        refused(check, (1,), *slices(9))
        refused(check, (1,), *slices(0))
        refused(check, (1,), *slices(-9))
        check((1,), slices(-8))
        check((1,), slices(64))


def test_s1_an_empty_array_overlaps_nothing(record, tensor):
    check = compile_guard(record("x out"))
    for _ in range(2):
        check((1,), (tensor(0, 4, at=512), tensor(8, at=512)))
        check((1,), (tensor(0, 4, at=516), tensor(8, at=512)))
    refused(check, (1,), tensor(1, 4, at=516), tensor(8, at=512))


def test_s1_members_of_lists(record, tensor):
    made = record("parts* x")
    written = replace(made, arguments=(replace(made.arguments[0], ownership="mut"), made.arguments[1]))
    check = compile_guard(written)
    check((1,), ([tensor(8), tensor(8, at=32)], tensor(8, at=64)))
    assert "`parts[0]` and `parts[1]`" in refused(check, (1,), [tensor(8)] * 2, tensor(8, at=64))
    assert "`parts[1]` and `x`" in refused(check, (1,), [tensor(8), tensor(8, at=32)], tensor(8, at=60))


@pytest.mark.parametrize(
    ("shape", "strides"), [((4,), (0,)), ((3, 2), (1, 1)), ((2, 2, 2), (4, 1, 3))]
)  # 4 = 1 + 3
def test_s2_a_written_array_does_not_overlap_itself(record, tensor, shape, strides):
    array = tensor(*shape, strides=strides)
    assert "S2" in refused(compile_guard(record("out")), (1,), array)
    compile_guard(record("x"))((1,), (array,))


def test_s3_an_axis_that_is_not_read_has_one_block(record, tensor):
    check = compile_guard(record("x out"))
    args = (tensor(8), tensor(8, at=512))
    check((5, 1, 1), args)
    assert "S3" in refused(check, (5, 2), *args)
    assert "S3" in refused(check, (5, 1, 2), *args)
    compile_guard(record("x"))((5, 2), (tensor(8),))  # stores nothing


def test_s4_an_array_has_fewer_elements_than_a_signed_index_can_name(record, tensor):
    check = compile_guard(record("x"))
    check((1,), (tensor(2**31 - 1),))
    assert "S4" in refused(check, (1,), tensor(2**31))
    assert "S4" in refused(check, (1,), tensor(2**16, 2**15, strides=(0, 0)))


def test_s5_limits_are_checked_like_conditions(record, tensor):
    check = compile_guard(record("out T", limits=("(grid[0] - 1) * abs(T) <= 2147483647",)))
    check((2**20,), (tensor(8), 2**11))
    refused(check, (2**20 + 1,), tensor(8), 2**11)


def test_shapes_are_those_that_the_kernel_needs(record, tensor):
    made = record("out")
    check = compile_guard(replace(made, arguments=(replace(made.arguments[0], rank=2),)))
    check((1,), (tensor(2, 4),))
    assert "1 axes where it needs 2" in refused(check, (1,), tensor(8))
    assert "negative stride" in refused(check, (1,), tensor(2, 4, strides=(-4, 1)))


@pytest.mark.parametrize("value", [None, 3, "x", [1, 2], np.zeros(3)])
def test_what_is_no_array_on_a_device_is_refused(record, value):
    assert "not an array" in refused(compile_guard(record("out")), (1,), value)


def test_offsets_from_the_first_element_reach_the_gaps_between_rows(record, tensor):
    plain, raw = (compile_guard(record("x out T", c)) for c in ("T >= 1", "grid[0] <= numel(out) // T"))
    args = (tensor(4, 8, strides=(16, 1)), tensor(4, 8, strides=(16, 1), at=32), 8)
    plain((1,), args)
    assert "S1" in refused(raw, (1,), *args)
    apart = tensor(4, 8, strides=(16, 1), at=32 * 8)
    raw((7,), (args[0], apart, 8))
    assert "numel(out) = 56" in refused(raw, (8,), args[0], apart, 8)  # 3 rows of 16, and one of 8


# ---- tables --------------------------------------------------------------------------------------------------


def test_elements_that_the_proof_takes_for_integers_are_int32_or_int64(record, tensor):
    """In int8 127 + 1 is -128, in uint32 0 - 1 is large."""
    arguments = (Argument("out", "mut", array=True), Argument("t", "shared", array=True, integer=True))
    check = compile_guard(record("out t", arguments=arguments))
    for dtype in ("int32", "torch.int64"):
        for _ in range(2):
            check((1,), (tensor(8), tensor(8, at=64, dtype=dtype)))
    for dtype in ("float32", "torch.float64", "int8", "torch.uint8", "uint32", "torch.bool", "int16"):
        with pytest.raises(LaunchRefused, match="int32 or int64 is expected"):
            check((1,), (tensor(8), tensor(8, at=64, dtype=dtype)))


def test_the_element_type_of_arrays_that_show_their_interface_alone(record, tensor):
    class Shown:
        def __init__(self, kind):
            self.__cuda_array_interface__ = {"shape": (8,), "typestr": kind, "data": (64, False), "version": 3}

    arguments = (Argument("out", "mut", array=True), Argument("t", "shared", array=True, integer=True))
    check = compile_guard(record("out t", arguments=arguments))
    for kind in ("<i4", "<i8"):
        check((1,), (tensor(8), Shown(kind)))
    for kind in ("<u4", ">i4", "|i1", "<f4"):
        with pytest.raises(LaunchRefused, match="int32 or int64 is expected"):
            check((1,), (tensor(8), Shown(kind)))
