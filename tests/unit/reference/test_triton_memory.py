"""What Triton's memory operations touch, and what they leave undefined."""

from __future__ import annotations

import numpy as np
import pytest

from tilecheck.reference import NotInterpretable

LOAD = """
@triton.jit
def k(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, {load})
"""


def only(log, effect):
    (found,) = [access for access in log.accesses if access.effect == effect]
    return found


def test_an_access_names_the_call_and_the_lanes(triton, tmp_path):
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    log = triton(LOAD.format(load="tl.load(x + i + 1, mask=i % 2 == 0)"), x=x, out=out, n=8, B=8)
    access = only(log, "read")
    text = (tmp_path / "kernel.py").read_text(encoding="utf-8")
    assert text[access.start : access.end] == "tl.load(x + i + 1, mask=i % 2 == 0)"
    assert access.elements.tolist() == [[1], [3], [5], [7]]
    assert access.lanes.tolist() == [[0], [2], [4], [6]]
    assert (access.array, access.raw, access.order, access.scope) == ("x", False, "WEAK", "NONE")
    assert text[only(log, "write").start :].startswith("tl.store(out + i")


def test_masked_lanes_take_the_other_value_in_the_type_of_the_array(triton):
    x, out = np.arange(8, dtype=np.int8), np.zeros(8, np.int32)
    triton(LOAD.format(load="tl.load(x + i, mask=i < n, other=300)"), x=x, out=out, n=3, B=8)
    assert out.tolist() == [0, 1, 2, 44, 44, 44, 44, 44]


def test_a_lane_outside_is_logged_and_not_performed(triton):
    x, out = np.arange(6, dtype=np.float32), np.zeros(8, np.float32)
    log = triton(LOAD.format(load="tl.load(x + i)"), x=x, out=out, n=6, B=8)
    (record,) = log.undefined
    assert (record.kind, record.array, record.element) == ("out-of-bounds", "x", (6,))
    assert len(only(log, "read").elements) == 6
    log = triton(LOAD.format(load="tl.load(x + i - 2, mask=i < n)"), x=x, out=out, n=6, B=8)
    assert [(record.kind, record.element) for record in log.undefined] == [("out-of-bounds", (-2,))]


def test_a_store_outside_leaves_memory_alone(triton):
    memory = np.zeros(8, np.float32)
    text = """
        @triton.jit
        def k(out, B: tl.constexpr):
            i = tl.arange(0, B)
            tl.store(out + i, 1.0)
        """
    log = triton(text, out=memory[:4], B=8)
    assert memory.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert [(record.kind, record.element) for record in log.undefined] == [("out-of-bounds", (4,))]


def test_two_lanes_of_one_store_on_one_element(triton):
    text = """
        @triton.jit
        def k(out, B: tl.constexpr):
            i = tl.arange(0, B)
            tl.store(out + i // 2, i * 0)
            tl.store(out + i // 2, i)
        """
    log = triton(text, out=np.zeros(8, np.int32), B=8)
    assert [(record.kind, record.detail) for record in log.undefined] == [
        ("duplicate", "same value"),
        ("duplicate", "different values"),
    ]


@pytest.mark.parametrize(
    ("arguments", "order", "scope"),
    [
        ("", "ACQ_REL", "DEVICE"),
        (", sem='relaxed'", "RELAXED", "DEVICE"),
        (", sem='acquire', scope='cta'", "ACQUIRE", "BLOCK"),
        (", sem='release', scope='sys'", "RELEASE", "SYS"),
    ],
)
def test_atomic_orders(triton, arguments, order, scope):
    text = f"""
        @triton.jit
        def k(out):
            tl.atomic_add(out, 1{arguments})
        """
    out = np.zeros(1, np.int32)
    log = triton(text, out=out, grid=(3,))
    assert out.tolist() == [3]
    assert {(access.effect, access.order, access.scope) for access in log.accesses} == {
        ("atomic", order, scope)
    }


def test_compare_and_swap_and_bitwise_atomics(triton):
    text = """
        @triton.jit
        def k(x, out):
            i = tl.arange(0, 4)
            tl.store(out + i, tl.atomic_cas(x + i, i, i + 10))
            tl.atomic_or(x + i, 32, mask=i < 2)
            tl.atomic_xor(x + i, 1)
            tl.atomic_and(x + i, 63)
        """
    x, out = np.array([0, 5, 2, 3], np.int32), np.zeros(4, np.int32)
    log = triton(text, x=x, out=out)
    assert out.tolist() == [0, 5, 2, 3]
    assert x.tolist() == [(10 | 32) ^ 1, (5 | 32) ^ 1, 12 ^ 1, 13 ^ 1]
    assert [len(access.elements) for access in log.accesses] == [4, 4, 2, 4, 4]


BLOCK = """
@triton.jit
def k(x, out, M, N):
    p = tl.make_block_ptr(x, (M, N), (N, 1), ({row}, 2), (4, 4), (1, 0))
    o = tl.make_block_ptr(out, (4, 4), (4, 1), (0, 0), (4, 4), (1, 0))
    tl.store(o, tl.load(p{check}))
"""


def test_block_pointers_check_what_they_are_told(triton):
    x, out = np.arange(24, dtype=np.float32), np.zeros(16, np.float32)
    log = triton(BLOCK.format(row=2, check=", boundary_check=(0, 1)"), x=x, out=out, M=4, N=6)
    assert not log.undefined
    assert out.reshape(4, 4)[:2].tolist() == [[14, 15, 16, 17], [20, 21, 22, 23]]
    assert not out.reshape(4, 4)[2:].any()
    access = only(log, "read")
    assert access.elements[:5].tolist() == [[14], [15], [16], [17], [20]]
    assert access.lanes[4].tolist() == [1, 0]


def test_unchecked_dimensions_may_leave_the_array(triton):
    x, out = np.arange(24, dtype=np.float32), np.zeros(16, np.float32)
    log = triton(BLOCK.format(row=2, check=", boundary_check=(1,)"), x=x, out=out, M=4, N=6)
    assert [(record.kind, record.element) for record in log.undefined] == [("out-of-bounds", (26,))]
    log = triton(BLOCK.format(row=-1, check=", boundary_check=(1,)"), x=x, out=out, M=4, N=6)
    assert [(record.kind, record.element) for record in log.undefined] == [("out-of-bounds", (-4,))]
    log = triton(BLOCK.format(row=-1, check=", boundary_check=(0,)"), x=x, out=out, M=4, N=6)
    assert not log.undefined


def test_padding_is_nan_where_it_is_asked_for(triton):
    x, out = np.arange(24, dtype=np.float32), np.zeros(16, np.float32)
    check = ", boundary_check=(0, 1), padding_option='nan'"
    triton(BLOCK.format(row=3, check=check), x=x, out=out, M=4, N=6)
    assert np.isnan(out.reshape(4, 4)[1:]).all()
    assert not np.isnan(out.reshape(4, 4)[0]).any()


def test_descriptors_are_checked_against_their_shape(triton):
    text = """
        @triton.jit
        def k(x, rows, out, M, N):
            d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [4, 8])
            tl.store(out + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8), d.load([2, -2]))
            d.atomic_add([2, 4], tl.full((4, 8), 1, tl.int32))
            row = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, 8])
            picked = row.gather(tl.load(rows + tl.arange(0, 8)), 0)
            row.scatter(picked + 100, tl.load(rows + tl.arange(0, 8)), 0)
        """
    x, rows, out = (
        np.arange(24, dtype=np.int32),
        np.array([3, 0, 9, -1, 7, 8, 5, 6], np.int32),
        np.zeros(32, np.int32),
    )
    log = triton(text, x=x, rows=rows, out=out, M=4, N=6)
    assert not log.undefined
    assert out.reshape(4, 8)[0].tolist() == [0, 0, 12, 13, 14, 15, 16, 17]
    assert not out.reshape(4, 8)[2:].any()
    expected = np.arange(24, dtype=np.int32).reshape(4, 6)
    expected[2:, 4:] += 1
    expected[[3, 0]] += 100
    np.testing.assert_array_equal(x.reshape(4, 6), expected)


def test_a_descriptor_larger_than_the_array(triton):
    text = """
        @triton.jit
        def k(x, M, N):
            d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [4, 4])
            d.store([0, 0], tl.zeros((4, 4), tl.float32))
        """
    log = triton(text, x=np.ones(12, np.float32), M=4, N=4)
    assert [(record.kind, record.element) for record in log.undefined] == [("out-of-bounds", (12,))]


def test_pointers_into_two_arrays(triton):
    text = """
        @triton.jit
        def k(x, y, out, first):
            i = tl.arange(0, 4)
            p = tl.where(first > 0, x + i, y + i)
            tl.store(out + i, tl.load(p))
            tl.store(out + 4 + i, tl.load(tl.where(i > 1, x + i, x + 3 - i)))
        """
    x, y, out = np.arange(4, dtype=np.float32), -np.arange(4, dtype=np.float32), np.zeros(8, np.float32)
    log = triton(text, x=x, y=y, out=out, first=0)
    assert out.tolist() == [0, -1, -2, -3, 3, 2, 2, 3]
    assert [access.array for access in log.accesses] == ["y", "out", "x", "out"]
    with pytest.raises(NotInterpretable, match="pointers into different arrays"):
        triton(text.replace("first > 0", "i > 0"), x=x, y=y, out=out, first=0)


def test_one_array_under_two_names_is_two_arrays_of_the_log(triton):
    text = """
        @triton.jit
        def k(x, y):
            i = tl.arange(0, 4)
            tl.store(y + i, tl.load(x + i) + 1)
        """
    x = np.zeros(4, np.float32)
    log = triton(text, x=x, y=x)
    assert x.tolist() == [1, 1, 1, 1]
    assert [access.array for access in log.accesses] == ["x", "y"]


def test_pointer_casts(triton):
    text = """
        @triton.jit
        def k(x, out):
            p = x.to(tl.pointer_type(tl.int32))
            tl.store(out, tl.load(p + 1))
            tl.static_assert(p.dtype.element_ty == tl.int32)
        """
    x, out = np.array([0, 2.75], np.float32), np.zeros(1, np.int32)
    log = triton(text, x=x, out=out)
    assert out[0] == 0x40300000
    assert log.accesses[0].elements.tolist() == [[1]]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("tl.store(x.to(tl.int64).to(tl.pointer_type(tl.float32)), 1.0)", "the address of a pointer"),
        ("tl.store(tl.load(x).to(tl.pointer_type(tl.float32)), 1.0)", "used as an address"),
        ("tl.store(x, tl.arange(0, 4))", "a block accessed through one pointer"),
        ("tl.load(x + 0.5)", "an offset that is"),
        ("tl.load(x, other=1.0)", "`other` without `mask`"),
        ("tl.load(x, mask=1)", "used as a mask"),
        ("tl.load(tl.load(x))", "used as a pointer"),
        ("tl.atomic_add(x, 1.0, sem='weak')", "memory order 'weak'"),
        ("tl.load(tl.make_block_ptr(x, (4,), (1,), (tl.full((), 0, tl.int64),), (4,), (0,)))", "32 bits"),
        ("tl.make_tensor_descriptor(x, [2, 2], [1, 2], [2, 2])", "with strides"),
    ],
)
def test_what_does_not_compile_is_not_interpreted(triton, body, why):
    with pytest.raises(NotInterpretable, match=why):
        triton(f"@triton.jit\ndef k(x):\n    {body}\n", x=np.zeros(8, np.float32))


def test_memory_behind_a_pointer_is_flat(triton):
    with pytest.raises(NotInterpretable, match="used as a pointer"):
        triton("@triton.jit\ndef k(x):\n    tl.load(x)\n", x=np.zeros((2, 2), np.float32))
    with pytest.raises(NotInterpretable, match="no plain memory"):
        triton("@triton.jit\ndef k(x):\n    tl.load(x)\n", x=np.zeros(8, np.float32)[::2])


def test_descriptors_that_the_host_made(triton):
    text = """
        @triton.jit
        def k(x, y):
            tile = x.load([2, 4])
            y.store([0, 2], tile + 1)
            y.atomic_add([4, 0], tl.full((4, 4), 1.0, tl.float32))
        """
    x, y = np.arange(30, dtype=np.float32).reshape(5, 6), np.zeros((6, 5), np.float32)
    log = triton(text, x=x, y=y, **{"x.block_shape[0]": 4, "x.block_shape[1]": 4})
    assert not log.undefined
    assert log.accesses[0].elements.tolist() == [[2, 4], [2, 5], [3, 4], [3, 5], [4, 4], [4, 5]]
    assert log.accesses[0].lanes[-1].tolist() == [2, 1]
    expected = np.zeros((6, 5), np.float32)
    expected[0:3, 2:4] = x[2:5, 4:6] + 1
    expected[0:4, 4] = 1
    expected[3, 2:] = 1
    expected[4:6, 0:4] += 1
    np.testing.assert_array_equal(y, expected)
    with pytest.raises(NotInterpretable, match="block shape the launch does not say"):
        triton(text, x=x, y=y)


def test_a_pointer_that_may_be_none(triton):
    text = """
        @triton.jit
        def k(x, bias):
            if bias:
                tl.store(x, tl.load(bias))
            if bias and tl.load(x) > 0:
                tl.store(x + 1, 3)
        """
    x = np.zeros(2, np.int32)
    assert not triton(text, x=x, bias=None).accesses
    triton(text, x=x, bias=np.full(1, 2, np.int32))
    assert x.tolist() == [2, 3]


def test_volatile_loads_are_relaxed(triton):
    text = "@triton.jit\ndef k(x):\n    tl.load(x, volatile=True)\n    tl.load(x)\n"
    log = triton(text, x=np.zeros(1, np.float32))
    assert [(access.effect, access.order, access.scope) for access in log.accesses] == [
        ("read", "RELAXED", "DEVICE"),
        ("read", "WEAK", "NONE"),
    ]


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.float32])
def test_booleans_may_be_given_as_numbers(triton, dtype):
    text = """
        @triton.jit
        def k(flags, out):
            i = tl.arange(0, 4)
            chosen = tl.load(flags + i)
            tl.store(out + i, i + 1, mask=chosen)
            if not tl.load(flags) and tl.load(flags + 1):
                tl.store(out, 9)
        """
    out = np.zeros(4, np.int32)
    log = triton(text, flags=np.array([0, 1, 1, 0], dtype), out=out)
    assert out.tolist() == [9, 2, 3, 0]
    assert not log.undefined
