"""The shape of an access whose operands have sizes that are not known to be equal."""

from __future__ import annotations

import pytest

from tests.unit.frontend.test_triton import HEAD, read
from tilecheck import check_source
from tilecheck.ir.expr import render
from tilecheck.ir.kernel import Effect, Kernel

SIZES = "A: tl.constexpr, B: tl.constexpr"
VALUE = "v = tl.zeros((A,), tl.float32) + tl.zeros((B,), tl.float32)\n"


def shapes(kernel: Kernel, effect: Effect) -> list[tuple[str, list[str]]]:
    found = []
    for access in kernel.accesses:
        if access.effect is effect:
            (axis,) = access.axes
            bounds = [render(lane.bound) for lane in access.lanes if lane.bound is not None]
            found.append((render(axis.coordinate), bounds))
    return found


def test_a_store_has_the_size_of_its_pointers() -> None:
    kernel = read(f"{VALUE}tl.store(x + tl.arange(0, A), v)", f"x, {SIZES}")
    assert shapes(kernel, Effect.WRITE) == [("lane 0", ["A"])]


def test_so_has_one_with_a_larger_mask() -> None:
    kernel = read(
        "tl.store(x + tl.arange(0, A), 1.0, mask=tl.arange(0, A) + tl.arange(0, B) < n)", f"x, n, {SIZES}"
    )
    assert shapes(kernel, Effect.WRITE) == [("lane 0", ["A"])]


def test_so_has_an_atomic() -> None:
    kernel = read(f"{VALUE}tl.atomic_add(x + tl.arange(0, A), v)", f"x, {SIZES}")
    assert shapes(kernel, Effect.ATOMIC) == [("lane 0", ["A"])]


def test_a_load_may_be_larger_than_its_pointers() -> None:
    kernel = read("tl.load(x + tl.arange(0, A), mask=tl.arange(0, B) < n)", f"x, n, {SIZES}")
    assert shapes(kernel, Effect.READ) == [("(0 if A == 1 else lane 0)", ["max(A, B)"])]


def test_pointers_that_are_broadcast_themselves_have_the_larger_size() -> None:
    kernel = read(f"{VALUE}tl.store(x + tl.arange(0, A) + tl.arange(0, B) * 0, v)", f"x, {SIZES}")
    assert shapes(kernel, Effect.WRITE) == [("(0 if A == 1 else lane 0)", ["max(A, B)"])]


def test_a_value_that_is_larger_than_one_pointer_is_stored_by_all_its_lanes() -> None:
    kernel = read("tl.store(x + tl.zeros((1,), tl.int32), tl.zeros((B,), tl.float32))", "x, B: tl.constexpr")
    assert shapes(kernel, Effect.WRITE) == [("0", ["B"])]


STORE = """
@triton.jit
def kernel(x, n, T: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * T + tl.arange(0, T)
    value = tl.zeros((T, A), tl.float32) + tl.zeros((T, B), tl.float32)
    tl.store({pointers}, value, mask=(rows < n)[:, None])
"""


@pytest.mark.parametrize(
    ("pointers", "is_safe"),
    [
        ("x + rows[:, None] * A + tl.arange(0, A)[None, :]", True),
        ("x + rows[:, None] * A + tl.arange(0, A)[None, :] * 0", False),
        ("x + rows[:, None] * A + tl.arange(0, A)[None, :] * 0 + tl.arange(0, B)[None, :] // 2", False),
    ],
)
def test_lanes_are_told_apart_by_what_is_stored_through(pointers: str, is_safe: bool) -> None:
    report = check_source(HEAD + STORE.format(pointers=pointers), path="kernel.py").kernels[0]
    assert (report.verdict.value in ("proved", "conditional")) == is_safe
