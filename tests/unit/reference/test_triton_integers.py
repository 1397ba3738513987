"""Integers of Triton: two's complement, division that truncates, promotion, compile-time numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tilecheck.reference import NotInterpretable

SMALL, LARGE = -(2**31), 2**31 - 1


def kinds(log):
    return [record.kind for record in log.undefined]


def test_division_of_runtime_integers_truncates(triton_values):
    found = triton_values("a // 2", "a % 2", "-a // 2", "-a % 2", "a // b", "a % b", "tl.cdiv(a, 4)", a=-7, b=3)
    assert found == [-3, -1, 3, 1, -2, -1, -1]
    assert not triton_values.log.undefined


def test_division_of_compile_time_integers_is_pythons(triton_values):
    assert triton_values("A // 2", "A % 2", "(-7) // B", "tl.cdiv(A, 4)", A=-7, B=2) == [-4, 1, -4, -1]


def test_an_assigned_number_is_a_runtime_value(triton_values):
    assert triton_values("x // 2", "y // 2", before="x = -7; y: tl.constexpr = -7") == [-3, -4]


def test_an_argument_of_one_is_a_compile_time_number(triton_values):
    assert triton_values("(n - 4) // 2", n=1) == [-2]
    assert triton_values("(n - 4) // 2", n=2) == [-1]


def test_an_argument_of_one_that_is_not_specialized(triton):
    out = np.zeros(2, np.int32)
    text = """
        @triton.jit(do_not_specialize=["n"])
        def k(out, n, m: tl.int64):
            tl.store(out, (n - 4) // 2)
            tl.store(out + 1, (m - 4) // 2)
        """
    triton(text, out=out, n=1, m=1)
    assert out.tolist() == [-1, -1]


@pytest.mark.parametrize(("divisor", "quotient", "rest", "logged"), [(0, 0, 0, 2), (-2, -3, 1, 0)])
def test_division_by_zero_is_logged(triton_values, divisor, quotient, rest, logged):
    """A negative divisor is no mistake: C divides by it."""
    assert triton_values("a // b", "a % b", a=7, b=divisor) == [quotient, rest]
    assert [(record.kind, record.detail) for record in triton_values.log.undefined] == [
        ("divisor", "0")
    ] * logged


def test_int32_wraps_and_is_logged(triton_values):
    found = triton_values("a + 1", "a * 2", "-(0 - a - 1)", "a.to(tl.int64) + 1", a=LARGE)
    assert found == [SMALL, -2, SMALL, LARGE + 1]
    assert {record.detail for record in triton_values.log.undefined} == {str(2**31), str(2 * LARGE)}
    assert kinds(triton_values.log) == ["overflow"] * 3


def test_compile_time_numbers_do_not_wrap(triton_values):
    assert triton_values("A * A - A * (A - 1)", A=2**40) == [2**40]
    assert not triton_values.log.undefined


def test_scalar_arguments_take_the_type_that_they_fit(triton_values):
    big = 2**31
    assert triton_values("a + 1", "b + 1", "c + c", a=big, b=-big - 1, c=True) == [big + 1, -big, 0]
    assert not triton_values.log.undefined
    assert triton_values("a.dtype == tl.int64", "b.dtype == tl.int32", a=big, b=big - 1) == [1, 1]


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ("int8", "int32", "int32"),
        ("int32", "int64", "int64"),
        ("uint8", "int8", "uint8"),
        ("int32", "uint32", "uint32"),
        ("uint32", "int64", "int64"),
        ("int1", "int32", "int32"),
        ("int64", "float16", "float16"),
        ("float16", "float32", "float32"),
        ("float16", "bfloat16", "float16"),
        ("bfloat16", "int32", "float32"),
    ],
)
def test_promotion(triton_values, x, y, expected):
    before = f"z = tl.zeros((2,), tl.{x}) + tl.zeros((2,), tl.{y})"
    assert triton_values(f"z.dtype == tl.{expected}", before=before) == [1]


def test_a_literal_takes_the_type_of_the_tensor(triton_values):
    before = "z = tl.full((2,), 100, tl.int8)"
    found = triton_values(
        "tl.max(z + 100, 0)", "(z * 2).dtype == tl.int8", "(z + 1.5).dtype == tl.float32", before=before
    )
    assert found == [-56, 1, 1]
    with pytest.raises(NotInterpretable, match="constant 300 is out of range of int8"):
        triton_values("tl.max(z + 300, 0)", before=before)


def test_true_division_of_integers_is_float32(triton_values):
    assert triton_values("(a / b * 2).to(tl.int32)", "(a / b).dtype == tl.float32", a=7, b=2) == [7, 1]


def test_conversions(triton_values):
    found = triton_values(
        "a.to(tl.int8)", "a.to(tl.uint8)", "(a > 0).to(tl.int32) + 2", "f.to(tl.int32)", "(-f).to(tl.int32)",
        "f.to(tl.int32, bitcast=True)", "a.to(tl.int1)",
        a=-200, f=2.75,
    )  # fmt: skip
    assert found == [56, 56, 2, 2, -2, 0x40300000, 1]
    assert not triton_values.log.undefined


def test_shifts_and_bits(triton_values):
    found = triton_values(
        "a >> 1", "a.to(tl.uint32) >> 1", "a << 2", "(a & 6) | 8", "a ^ 1", "~a", "tl.umulhi(a, a)", a=-3
    )
    assert found == [-2, (2**32 - 3) >> 1, -12, 12, -4, 2, 2**32 - 6 - 2**32]
    assert not triton_values.log.undefined
    assert triton_values("a << 31", a=2) == [0]
    assert kinds(triton_values.log) == ["overflow"]


def test_a_sum_of_booleans_and_of_small_integers_does_not_wrap(triton_values):
    found = triton_values(
        "tl.sum(tl.arange(0, 512) < 300)", "tl.sum(tl.full((512,), 100, tl.int8))", "tl.cumsum(z, 0).sum()",
        before="z = tl.full((4,), 100, tl.int8)",
    )  # fmt: skip
    assert found == [300, 51200, 1000]


def test_pointers_count_in_64_bits(triton):
    x = np.arange(8, dtype=np.int32)
    text = """
        @triton.jit
        def k(x, far):
            p = x + far + far
            tl.store(p - far - far + 1, 9)
        """
    log = triton(text, x=x, far=LARGE)
    assert x[1] == 9
    assert not log.undefined


def test_ranges_take_the_type_of_their_bounds(triton_values):
    found = triton_values(
        "x", "y", n=0, big=2**40,
        before="x = 0; y = 0\n    for i in range(10, n, -3):\n        x = x * 16 + i\n        y += i * big > 0",
    )  # fmt: skip
    assert found == [((10 * 16 + 7) * 16 + 4) * 16 + 1, 4]
