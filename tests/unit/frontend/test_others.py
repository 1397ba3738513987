"""What lanes hold that a load masks off, where `other` says it and the elements are integers."""

from __future__ import annotations

import itertools
import operator

import pytest

from tilecheck import check_source
from tilecheck.frontend.values.comparisons import compared
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol

HEAD = "import triton\nimport triton.language as tl\n\n\n"
SPARE = """@triton.jit
def kernel(t, x, out, n, spare, B: tl.constexpr):
    at = tl.arange(0, B)
    place = tl.load(t + at, mask=at < n, other=5)
    row = tl.load(x + place, mask=at >= n)
    tl.store(out + at, row, mask=at >= n)
"""
PADDED = """# tilecheck: requires within(t, 0, m) -- made by the sampler
@triton.jit
def kernel(t, x, out, n, m, B: tl.constexpr):
    at = tl.arange(0, B)
    place = tl.load(t + at, mask=at < n, other=-1)
    row = tl.load(x + place, mask=place >= 0)
    tl.store(out + at, row)
"""
BYTES = ".to(tl.int32)"  # of bytes, -1 becomes 255; what is converted need not have been an integer


def decided(text: str) -> tuple[str, set[str]]:
    [kernel] = check_source(HEAD + text, "kernel.py").kernels
    return kernel.verdict.value, {str(c) for c in kernel.conditions}


def test_lanes_without_an_element_have_what_is_given() -> None:
    verdict, conditions = decided(SPARE)
    assert verdict == "conditional"
    assert "numel(x) >= 6" in conditions
    verdict, conditions = decided(PADDED)
    assert verdict == "conditional"
    assert "n >= B" not in conditions  # lanes may be masked off


@pytest.mark.parametrize(
    "text",
    [
        SPARE.replace("other=5", "other=-1"),
        SPARE.replace("other=5", "other=spare"),
        SPARE.replace("other=5", "other=2147483648"),
        SPARE.replace("other=5", "other=5.0"),
        SPARE.replace(", other=5", ""),
        SPARE.replace("other=5)", f"other=5){BYTES}"),
        SPARE + "    tl.store(t + at, 1, mask=at < n)\n",
        SPARE.replace("mask=at < n, other=5", "mask=at < n - 1, other=5").replace("at >= n", "at >= n - 2"),
    ],
)
def test_others_are_not_known(text: str) -> None:
    assert decided(text)[0] in ("unknown", "violated")


@pytest.mark.parametrize("change", [("place >= 0", "place >= -1"), (", other=-1", ""), ("other=-1", "other=m")])
def test_where_it_says_nothing_no_lane_may_be_masked_off(change: tuple[str, str]) -> None:
    _, conditions = decided(PADDED.replace(*change))
    assert "n >= B" in conditions


def test_a_comparison_of_a_choice_is_that_of_its_branches() -> None:
    test = E.lt(0, E.sym(Symbol("c", Kind.SCALAR)))
    a = E.sym(Symbol("a", Kind.SCALAR))
    by = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}
    for (op, meant), literal, k, side, way in itertools.product(
        {**by, "!=": operator.ne}.items(), (-1, 0, 2), (-1, 0, 1), (0, 1), (0, 1)
    ):
        choice = E.ite(test, a, E.const(literal)) if side else E.ite(test, E.const(literal), a)
        found = compared(op, choice, E.const(k)) if way else compared(op, E.const(k), choice)
        for c, v in itertools.product((0, 1), range(-2, 4)):
            value = v if bool(c) == bool(side) else literal
            right = meant(value, k) if way else meant(k, value)
            assert bool(E.evaluate(found, lambda s, c=c, v=v: c if s.name == "c" else v)) == right
