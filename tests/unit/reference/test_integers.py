"""Machine integers: defaults, wrapping, floor division, shifts, promotion, casts."""

from __future__ import annotations

import numpy as np
import pytest

from tilecheck.reference import NotInterpretable

BIG = 2**31 - 1


def kinds(log):
    return [record.kind for record in log.undefined]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a + 1", -(2**31)),
        ("a * 2", -2),
        ("b - 2", BIG),
        ("a << 1", -2),
        ("b - a", 2),
        ("abs(b - 1)", -(2**31)),
    ],
)
def test_int32_results_wrap_and_are_logged(execute, expression, value):
    text = f"""
        @ct.kernel
        def k(out, a: int, b: int):
            ct.store(out, 0, {expression})
        """
    out = np.zeros(1, np.int64)
    log = execute(text, out=out, a=BIG, b=-BIG)
    assert out[0] == value
    assert kinds(log) == ["overflow"]


def test_each_lane_wraps(execute):
    text = """
        @ct.kernel
        def k(x):
            lanes = ct.arange(4, dtype=ct.int32)
            ct.store(x, 0, lanes * 1073741824)
        """
    x = np.zeros(4, np.int32)
    log = execute(text, x=x)
    np.testing.assert_array_equal(x, [0, 2**30, -(2**31), -(2**30)])
    assert [(r.kind, r.detail) for r in log.undefined] == [("overflow", str(2**31))]


@pytest.mark.parametrize("annotation", [": ct.ScalarInt64", ""])
def test_int64_does_not_wrap_at_32_bits(execute, annotation):
    text = f"""
        @ct.kernel
        def k(out, a{annotation}):
            ct.store(out, 0, {"a" if annotation else "ct.astype(a, ct.int64)"} * 4 + ct.bid(0))
        """
    out = np.zeros(1, np.int64)
    log = execute(text, out=out, a=BIG)
    assert out[0] == BIG * 4
    assert not log.undefined


def test_constants_are_unbounded_and_other_types_wrap_silently(execute):
    text = """
        HUGE = 1 << 40

        @ct.kernel
        def k(out, T: ConstInt):
            ct.store(out, 0, (T * HUGE) // HUGE)
            ct.store(out, 1, ct.full((), 200, ct.uint8) + 100)
            ct.store(out, 2, ct.full((), 2**31, ct.uint32) * 2)
            ct.store(out, 3, ct.full((), 100, ct.int8) + 100)
        """
    out = np.zeros(4, np.int64)
    log = execute(text, out=out, T=BIG)
    np.testing.assert_array_equal(out, [BIG, 44, 0, -56])
    assert not log.undefined


def test_a_loop_makes_its_constants_machine_integers(execute):
    text = """
        @ct.kernel
        def k(out, n: int):
            total = 0
            step = 2000000000
            for i in range(n):
                total = total + step
            ct.store(out, 0, total)
            ct.store(out, 1, step + step)
        """
    out = np.zeros(2, np.int64)
    log = execute(text, out=out, n=2)
    np.testing.assert_array_equal(out, [4000000000 - 2**32, 4000000000])
    assert kinds(log) == ["overflow"]


def test_a_runtime_branch_makes_its_constants_machine_integers(execute):
    text = """
        @ct.kernel
        def k(out, n: int, T: ConstInt):
            if n > 0:
                a = 2000000000
            else:
                a = 1
            if T > 0:
                b = 2000000000
            else:
                b = 1
            c = 2000000000 if n > 0 else 1
            ct.store(out, 0, a + a)
            ct.store(out, 1, b + b)
            ct.store(out, 2, c + c)
        """
    out = np.zeros(3, np.int64)
    log = execute(text, out=out, n=1, T=1)
    np.testing.assert_array_equal(out, [4000000000 - 2**32, 4000000000, 4000000000 - 2**32])
    assert kinds(log) == ["overflow", "overflow"]


@pytest.mark.parametrize("a", [-7, -6, 0, 5, 7])
@pytest.mark.parametrize("b", [-3, 2, 3])
def test_division_floors_as_python_does(execute, a, b):
    text = """
        @ct.kernel
        def k(out, a: int, b: int):
            ct.store(out, 0, a // b)
            ct.store(out, 1, a % b)
            ct.store(out, 2, ct.cdiv(a, b))
            q, r = divmod(a, b)
            ct.store(out, 3, q * 100 + r)
        """
    out = np.zeros(4, np.int32)
    log = execute(text, out=out, a=a, b=b)
    np.testing.assert_array_equal(out, [a // b, a % b, -((-a) // b), a // b * 100 + a % b])
    assert kinds(log) == (["divisor"] * 5 if b < 0 else [])


@pytest.mark.parametrize(
    "expression", ["a // b", "a % b", "ct.cdiv(a, b)", "a // ct.arange(4, dtype=ct.int32)"]
)
def test_a_zero_divisor_is_logged_and_gives_zero(execute, expression):
    text = f"""
        @ct.kernel
        def k(out, a: int, b: int):
            ct.store(out, 0, ct.reshape(ct.full((4,), 0, ct.int32) + {expression}, (4,)))
        """
    out = np.full(4, 9, np.int32)
    log = execute(text, out=out, a=6, b=0)
    assert kinds(log) == ["divisor"]
    assert out[0] == 0


def test_constant_divisors_are_judged_too(execute):
    text = """
        @ct.kernel
        def k(out, T: ConstInt):
            ct.store(out, 0, 8 // T)
        """
    out = np.full(1, 9, np.int32)
    assert kinds(execute(text, out=out, T=0)) == ["divisor"]
    assert out[0] == 0
    assert kinds(execute(text, out=out, T=-3)) == ["divisor"]
    assert out[0] == -3


def test_a_range_with_step_zero_is_undefined_and_empty(execute):
    text = """
        @ct.kernel
        def k(out, n: int):
            for i in range(0, 4, n):
                ct.store(out, 0, 1)
        """
    out = np.zeros(1, np.int32)
    assert kinds(execute(text, out=out, n=0)) == ["divisor"]
    assert out[0] == 0


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a >> 1", -4),
        ("a & 6", 0),
        ("a | 1", -7),
        ("a ^ -1", 7),
        ("~a", 7),
        ("ct.bitwise_not(a)", 7),
        ("ct.full((), 2**31, ct.uint32) >> 31", 1),
        ("ct.bitwise_lshift(ct.int64(1), 40)", 1 << 40),
        ("2 ** 3", 8),
    ],
)
def test_bits(execute, expression, value):
    text = f"""
        @ct.kernel
        def k(out, a: int):
            ct.store(out, 0, {expression})
        """
    out = np.zeros(1, np.int64)
    assert not execute(text, out=out, a=-8).undefined
    assert out[0] == value


def test_shift_counts_beyond_the_width_are_undefined(execute):
    text = """
        @ct.kernel
        def k(out, n: int):
            ct.store(out, 0, n >> n)
        """
    assert kinds(execute(text, out=np.zeros(1, np.int32), n=32)) == ["overflow"]


def test_arguments_that_do_not_fit_are_refused(execute):
    text = """
        @ct.kernel
        def k(n):
            pass
        """
    with pytest.raises(NotInterpretable, match="does not fit in int32"):
        execute(text, n=2**31)


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("f16 + 1.5", "float16"),
        ("f16 + 1", "float16"),
        ("f16 + f32", "float32"),
        ("f16 * i64", "float16"),
        ("i32 + 1.5", "float32"),
        ("i32 / 2", "float32"),
        ("i32 + i64", "int64"),
        ("i8 + i32", "int32"),
        ("i8 + True", "int8"),
        ("u8 + u32", "uint32"),
        ("(i32 < 3) + 1", "int32"),
        ("i32 < 3", "bool_"),
        ("bf + i32", "bfloat16"),
        ("bf + f32", "float32"),
        ("f64 + f32", "float64"),
    ],
)
def test_promotion(execute, expression, dtype):
    text = f"""
        @ct.kernel
        def k(out):
            f16 = ct.ones((1,), ct.float16)
            bf = ct.ones((1,), ct.bfloat16)
            f32 = ct.ones((1,), ct.float32)
            f64 = ct.ones((1,), ct.float64)
            i8 = ct.ones((1,), ct.int8)
            i32 = ct.ones((1,), ct.int32)
            i64 = ct.ones((1,), ct.int64)
            u8 = ct.ones((1,), ct.uint8)
            u32 = ct.ones((1,), ct.uint32)
            t = {expression}
            ct.static_assert(t.dtype == ct.{dtype}, "wrong")
        """
    execute(text, out=np.zeros(1, np.int32))


@pytest.mark.parametrize(
    "expression",
    ["i32 + u32", "f16 + bf", "tf + f32", "u8 + -1", "u8 + 256", "f32 & 1", "(i32 < 3) * (i32 < 3)"],
)
def test_promotions_that_the_compiler_refuses(execute, expression):
    text = f"""
        @ct.kernel
        def k():
            i32 = ct.ones((1,), ct.int32)
            u32 = ct.ones((1,), ct.uint32)
            u8 = ct.ones((1,), ct.uint8)
            f16 = ct.ones((1,), ct.float16)
            f32 = ct.ones((1,), ct.float32)
            bf = ct.ones((1,), ct.bfloat16)
            tf = ct.ones((1,), ct.tfloat32)
            t = {expression}
        """
    with pytest.raises(NotInterpretable):
        execute(text)


def test_casts(execute):
    text = """
        @ct.kernel
        def k(x, out):
            t = ct.load(x, 0, 8)
            ct.store(out, (0, 0), ct.astype(t, ct.int32)[None, :])
            ct.store(out, (1, 0), t.astype(ct.bool_).astype(ct.int32)[None, :])
            ct.store(out, (2, 0), t.astype(ct.int8).astype(ct.int32)[None, :])
        """
    x = np.array([0, -1.7, 1.7, 3e9, -3e9, np.nan, 300, 0.1], np.float32)
    out = np.zeros((3, 8), np.int32)
    execute(text, x=x, out=out)
    np.testing.assert_array_equal(out[0], [0, -1, 1, BIG, -BIG - 1, 0, 300, 0])
    np.testing.assert_array_equal(out[1], [0, 1, 1, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(out[2], [0, -1, 1, 127, -128, 0, 127, 0])


def test_narrow_floats_round(execute):
    text = """
        @ct.kernel
        def k(x, out):
            t = ct.load(x, 0, 4)
            kinds = (ct.bfloat16, ct.tfloat32, ct.float8_e4m3fn, ct.float8_e5m2)
            for row, kind in ct.static_iter(enumerate(kinds)):
                ct.store(out, (row, 0), t.astype(kind).astype(ct.float32)[None, :])
        """
    x = np.array([1.00390625 + 2**-9, 1 + 2**-11 + 2**-12, 500.0, -0.3], np.float32)
    out = np.zeros((4, 4), np.float32)
    execute(text, x=x, out=out)
    np.testing.assert_array_equal(out[0], [1.0078125, 1.0, 500.0, -0.30078125])
    np.testing.assert_array_equal(out[1], [1.005859375, 1 + 2**-10, 500.0, -0.300048828125])
    np.testing.assert_array_equal(out[2], [1.0, 1.0, 448.0, -0.3125])
    np.testing.assert_array_equal(out[3], [1.0, 1.0, 512.0, -0.3125])


def test_bitcasts_and_bytes(execute):
    text = """
        @ct.kernel
        def k(out):
            ct.store(out, 0, ct.bitcast(1.0, ct.uint32).astype(ct.int64))
            ct.store(out, 1, ct.bitcast(ct.full((), 1.0, ct.bfloat16), ct.int16).astype(ct.int64))
            packed = ct.pack_to_bytes(ct.full(1, 0x04030201, dtype=ct.int32))
            ct.store(out, 2, ct.sum(packed.astype(ct.int64) * ct.arange(4, dtype=ct.int64)))
            ct.store(out, 3, ct.unpack_from_bytes(packed, ct.int32).item().astype(ct.int64))
        """
    out = np.zeros(4, np.int64)
    execute(text, out=out)
    np.testing.assert_array_equal(out, [0x3F800000, 0x3F80, 20, 0x04030201])


@pytest.mark.parametrize(
    "dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e5m3fnu", "float8_e8m0fnu", "bfloat16", "float16", "int8"]
)
def test_bits_of_every_type_go_back_and_forth(execute, dtype):
    text = f"""
        @ct.kernel
        def k(out):
            t = ct.full((8,), 0.375 if ct.{dtype} != ct.float8_e8m0fnu else 0.5, ct.{dtype})
            bits = ct.pack_to_bytes(t)
            back = ct.unpack_from_bytes(bits, ct.{dtype})
            ct.store(out, 0, back.astype(ct.float32))
            ct.static_assert(bits.shape[0] == ct.{dtype}.bitwidth)
        """
    out = np.zeros(8, np.float32)
    execute(text, out=out)
    np.testing.assert_array_equal(out, {"int8": 0, "float8_e8m0fnu": 0.5}.get(dtype, 0.375))


def test_known_bits_of_narrow_floats(execute):
    text = """
        @ct.kernel
        def k(out):
            t = ct.load(out, 0, 4)
            ct.store(out, 0, ct.bitcast(t.astype(ct.float8_e4m3fn), ct.uint8).astype(ct.float32))
            halves = ct.pack_to_bytes(t.astype(ct.float4_e2m1fn))
            ct.store(out, 2, ct.unpack_from_bytes(halves, ct.uint8).astype(ct.float32))
        """
    out = np.array([1.0, -0.0, 448.0, -1.5, 9, 9], np.float32)
    execute(text, out=out)
    np.testing.assert_array_equal(out, [0x38, 0x80, 0x7E, 0xBC, 0x82, 0xB7])


def test_sums_of_integers_wrap_and_are_logged(execute):
    text = """
        @ct.kernel
        def k(out):
            t = ct.full((4,), 2**30, ct.int32)
            ct.store(out, 0, ct.sum(t))
            ct.store(out, 1, ct.prod(t))
            ct.store(out, (0,), ct.cumsum(t))
        """
    out = np.zeros(4, np.int32)
    assert set(kinds(execute(text, out=out))) == {"overflow"}
    np.testing.assert_array_equal(out, [2**30, -(2**31), -(2**30), 0])
