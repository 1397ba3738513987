"""The smallest and the largest element of a tile lie between what its elements are."""

from __future__ import annotations

import itertools

import pytest

from tilecheck import check_source
from tilecheck.frontend.triton.extrema import _ends
from tilecheck.frontend.values.values import lane
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol
from tilecheck.ir.kernel import block_symbol

HEAD = "import triton\nimport triton.language as tl\n\n\n"
FIRST = """@triton.jit
def kernel(x, marks, out, n, B: tl.constexpr):
    lane = tl.arange(0, B)
    found = tl.load(marks + lane, mask=lane < n, other=0.0) > 0.5
    at = tl.min(tl.where(found, lane, n), axis=0)
    tl.store(out, tl.load(x + at, mask=at < n))
"""
LAST = FIRST.replace("tl.min(tl.where(found, lane, n)", "tl.max(tl.where(found, lane, -1)").replace(
    "at < n", "at >= 0"
)


@pytest.mark.parametrize(
    ("text", "length"), [(FIRST, "numel(x) >= n"), (LAST, "numel(x) >= max(B - 1, -1) + 1")]
)
def test_where_an_element_is_found_is_a_place_of_the_tile(text: str, length: str) -> None:
    [kernel] = check_source(HEAD + text, "kernel.py").kernels
    assert kernel.verdict.value == "conditional"
    assert length in {str(c) for c in kernel.conditions}


@pytest.mark.parametrize(
    "text",
    [
        LAST.replace(", mask=at >= 0", ""),  # nothing may be found
        LAST.replace("tl.max", "tl.sum"),
        LAST.replace("tl.max", "tl.xor_sum"),
        LAST.replace("where(found, lane, -1)", "where(found, -lane, -1)"),
        LAST.replace("where(found, lane, -1)", "where(found, lane * 2, -1)"),
        LAST.replace("where(found, lane, -1)", "where(found, lane, -1).to(tl.int8)"),
        LAST.replace("where(found, lane, -1)", "load(marks + lane, mask=lane < n, other=0)"),
        LAST.replace("where(found, lane, -1)", "where(found, lane, tl.load(marks + lane).to(tl.int32))"),
        LAST.replace(
            "where(found, lane, -1), axis=0", "where(found[:, None], lane[None, :], -1), axis=0"
        ).replace("tl.load(x + at, mask=at >= 0)", "tl.load(x + tl.sum(at), mask=tl.sum(at) >= 0)"),
    ],
)
def test_what_is_no_element_or_not_known_is_no_place(text: str) -> None:
    [kernel] = check_source(HEAD + text, "kernel.py").kernels
    assert kernel.verdict.value in ("unknown", "violated")


def test_ends_are_those_of_all_lanes() -> None:
    n, size, block = E.sym(Symbol("n", Kind.SCALAR)), E.sym(Symbol("B", Kind.CONSTANT)), E.sym(block_symbol(0))
    values = [lane(0), n, E.add(lane(0), n), E.add(lane(0), E.mul(block, size), -3), E.mul(block, n)]
    for value, (m, b, i) in itertools.product(values, itertools.product((-2, 0, 3), (1, 2, 4), (0, 1, 2))):
        found = _ends(value, size)
        assert found is not None

        def at(s: Symbol, of: int = 0, m: int = m, b: int = b, i: int = i) -> int:
            return {"n": m, "B": b, "lane0": of}.get(s.name, i)

        every = [E.evaluate(value, lambda s, of=of, at=at: at(s, of)) for of in range(b)]
        assert [E.evaluate(end, at) for end in found] == [min(every), max(every)]


@pytest.mark.parametrize(
    "value",
    [
        E.mul(2, lane(0)),
        E.mul(-1, lane(0)),
        E.floordiv(lane(0), 2),
        lane(1),
        E.read("t", lane(0)),
        E.read("t", E.ZERO),
        E.sym(Symbol("v", Kind.OPAQUE, 1)),
        E.add(lane(0), E.sym(Symbol("v", Kind.OPAQUE, 1, per_lane=True))),
        E.add(lane(0), E.sym(Symbol("k", Kind.LOOP, 2))),
    ],
)
def test_what_else_lanes_hold_has_no_ends(value: E.Expr) -> None:
    assert _ends(value, E.sym(Symbol("B", Kind.CONSTANT))) is None
