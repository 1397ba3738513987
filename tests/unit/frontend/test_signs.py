"""Floats that are not negative: what is said of them is held against 32-bit floats, cast as GPUs do."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tilecheck import check_source
from tilecheck.frontend.values import signs
from tilecheck.frontend.values.values import Num
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol

SCALARS = tuple(Symbol(name, Kind.SCALAR, origin="untyped") for name in ("a", "b"))
PLACE = Symbol("place", Kind.BLOCK)
VALUES = (-3.5, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 7.0, 1e30, float("inf"))
OPERATORS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "min": np.fmin,
    "max": np.fmax,
}


class Uses:
    """An executor that has seen no parameter used as an integer."""

    positive: frozenset[Expr] = frozenset()

    def fits(
        self, value: Expr, shape: tuple[Expr, ...] = (), *, behind: frozenset[Symbol] = frozenset()
    ) -> Expr:
        return value

    def unseen(self, *values: Expr, behind: Symbol | None = None) -> None:
        pass

    def is_integer_memory(self, value: Expr) -> bool:
        return all(s.origin != "untyped" for s in E.symbols(value))


def _float(rng: random.Random, depth: int) -> tuple[Num, object]:
    """A number, and a function of the values of symbols that computes it in 32 bits."""
    kind = rng.randrange(4) if depth else rng.randrange(3)
    if kind == 0:
        return Num((), E.sym(PLACE), "int"), lambda v: np.float32(v[PLACE])
    if kind == 1:
        symbol = rng.choice(SCALARS)
        return Num((), E.sym(symbol), "any"), lambda v: np.float32(v[symbol])
    if kind == 2:
        literal = rng.choice(VALUES[:8])
        return Num((), None, "data", natural=signs.of_literal(literal), way=(1, "literal", literal)), (
            lambda v: np.float32(literal)
        )
    op = rng.choice(list(OPERATORS))
    (a, of_a), (b, of_b) = _float(rng, depth - 1), _float(rng, depth - 1)
    found = Num((), None, "data", natural=signs.by_binary(op, a, b, Uses()))
    return found, lambda v: np.float32(OPERATORS[op](of_a(v), of_b(v)))  # type: ignore[operator]


def _as_int32(value: np.float32) -> int:
    if np.isnan(value):
        return 0
    return int(np.clip(np.trunc(np.float64(value)), -(2**31), 2**31 - 1))


def _holds(condition: Expr, values: dict[Symbol, float]) -> bool:
    by_name = {s.name: v for s, v in values.items()}
    named = [(part.op, by_name[part.args[1].args[0].name]) for part in E.conjuncts(condition)]
    return all(value > 0 if op == "lt" else value >= 0 for op, value in named)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_natural_is_not_negative_as_an_integer() -> None:
    rng = random.Random(11)
    said = 0
    for _ in range(3000):
        number, compute = _float(rng, 3)
        condition = signs.natural(number, Uses())
        if condition is E.FALSE:
            continue
        for _ in range(8):
            values = {s: rng.choice(VALUES) for s in SCALARS} | {PLACE: rng.choice((0, 1, 5, 1000))}
            if _holds(condition, values):
                said += 1
                assert _as_int32(compute(values)) >= 0, (condition, values)  # type: ignore[operator]
    assert said > 2000


def test_only_32_bits_are_known() -> None:
    number, unknown = Num((), None, "data", natural=E.TRUE), E.sym(Symbol("r", Kind.OPAQUE))
    assert signs.rounded(number, unknown, "int32", Uses()) is E.maximum(0, unknown)
    assert signs.rounded(number, unknown, "int64", Uses()) is unknown


def test_remainders_of_what_may_be_a_float_are_not_known() -> None:
    remainder = E.mod(E.sym(SCALARS[0]), 3)
    assert signs.natural(Num((), remainder, "any"), Uses()) is E.FALSE
    assert signs.natural(Num((), E.mod(E.sym(PLACE), 3), "int"), Uses()) is E.TRUE


KERNEL = """
import triton
import triton.language as tl


# tilecheck: requires numel(x) == n
@triton.jit
def kernel(x, out, n, scale, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r = ({rounded}).to(tl.int32)
    at = tl.minimum({at}, n - 1)
    tl.store(out + place, tl.load(x + at, mask=n > 0))
"""


@pytest.mark.parametrize(
    ("rounded", "at", "expected"),
    [
        # What is too large for an integer becomes 2**31 - 1, and that and something else wraps.
        ("tl.maximum(place * scale, 0.0)", "r", "conditional"),
        ("tl.maximum(place * scale, 0.0)", "(r / 2).to(tl.int32)", "conditional"),
        ("tl.maximum(place * scale, 0.0)", "((r + place) / 2).to(tl.int32)", "unknown"),
        # What is too small becomes -2**31, which is its own opposite.
        ("(place - n) * scale", "tl.abs(r)", "unknown"),
    ],
)
def test_what_is_computed_from_a_rounded_number_may_wrap(rounded: str, at: str, expected: str) -> None:
    [kernel] = check_source(KERNEL.format(rounded=rounded, at=at), "kernel.py").kernels
    assert kernel.verdict.value == expected
