"""Orders of unsigned numbers, against those of numbers modulo 2**64."""

from __future__ import annotations

import operator

import pytest

from tilecheck.frontend.values.unsigned import below, converted
from tilecheck.frontend.values.values import Num
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol

OF_PYTHON = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
N = E.sym(Symbol("n", Kind.SCALAR))
BLOCK = E.sym(Symbol("bid", Kind.BLOCK, bound=N))
SIZE = E.sym(Symbol("SIZE", Kind.CONSTANT))


class Machine:
    positive = frozenset({SIZE})

    def integral(self, *values: Num) -> None: ...

    def is_integer_memory(self, value: E.Expr) -> bool:
        return True


@pytest.mark.parametrize("op", sorted(OF_PYTHON))
@pytest.mark.parametrize("signed", [-(2**63), -2, -1, 0, 1, 2, 2**63 - 1])
@pytest.mark.parametrize("value", [0, 1, 2, 2**62])
@pytest.mark.parametrize("first", [True, False])
def test_a_negative_number_is_larger_than_all_others(op: str, signed: int, value: int, first: bool) -> None:
    own, other = Num((), None, "data", 64, unsigned=E.const(value)), Num((), E.const(signed), "int", 64)
    sides = ((own, E.const(value)), (other, E.const(signed)))
    (a, x), (b, y) = sides if first else sides[::-1]
    left, right = (value, signed % 2**64) if first else (signed % 2**64, value)
    assert (below(op, a, b, x, y) is E.TRUE) == OF_PYTHON[op](left, right)


@pytest.mark.parametrize(
    ("elem", "bits", "known"),
    [
        (BLOCK, 32, True),
        (E.mul(BLOCK, SIZE), 64, True),
        (E.mul(BLOCK, SIZE), 32, False),  # may have wrapped
        (N, 64, False),  # may be negative
        (E.sub(BLOCK, 1), 64, False),
    ],
)
def test_what_is_the_same_in_unsigned_bits(elem: E.Expr, bits: int, known: bool) -> None:
    assert (converted(Num((), elem, "int", bits), Machine()) is not None) == known


def test_data_is_nothing_that_is_known() -> None:
    assert converted(Num((), None, "data", 64), Machine()) is None
    assert converted(Num((), N, "any", 64), Machine()) is None
