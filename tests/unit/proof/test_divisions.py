"""Dividends from quotients and remainders on which two instances agree."""

from __future__ import annotations

from itertools import product

import pytest

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import Expr, Kind, Symbol, evaluate, sym, symbols
from tilecheck.proof.algebra.linear import meaning
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.rungs.entail import follows
from tilecheck.proof.rungs.equal_dividends import dividends
from tilecheck.proof.rungs.provenance import Agreed

PID = sym(Symbol("pid", Kind.BLOCK))
LANE = sym(Symbol("lane", Kind.LANE))
WIDTH, SIZE, N = (sym(Symbol(name, Kind.SCALAR)) for name in ("width", "size", "n"))
POSITIVE = (ex.le(1, WIDTH), ex.le(1, SIZE))
WITHIN = ex.mod(PID, WIDTH)


def found(*values: Expr, given: tuple[Expr, ...] = POSITIVE) -> set[Expr]:
    """The dividends that follow where two instances agree on `values`."""
    premises = Premises.of(given)
    agreed = Agreed(premises, lambda s: s.kind in (Kind.BLOCK, Kind.LANE))
    for value in values:
        agreed.learn(premises.form(value), premises.form(value))
    agreed.conclude()
    known = Premises.of(given)
    return {
        meaning(p, premises.forms.meanings()) for p in dividends(agreed, lambda goal: follows(goal, known, 2))
    }


SHIFTED = ex.add(PID, ex.mul(N, WIDTH))


@pytest.mark.parametrize(
    "values",
    [
        (ex.floordiv(PID, WIDTH), ex.floordiv(WITHIN, SIZE), ex.mod(PID, SIZE)),
        (ex.floordiv(PID, WIDTH), ex.floordiv(WITHIN, SIZE), ex.mod(ex.add(PID, N), SIZE)),
        (ex.floordiv(SHIFTED, WIDTH), ex.floordiv(ex.mod(SHIFTED, WIDTH), SIZE), ex.mod(SHIFTED, SIZE)),
    ],
)
def test_a_remainder_of_the_whole_number_and_a_quotient_inside_the_group_give_the_place(
    values: tuple[Expr, ...],
) -> None:
    assert values[1].args[0] in found(*values)
    assert _is_determined(values)


def test_what_moves_apart_by_something_shared_has_one_remainder() -> None:
    values = (ex.floordiv(PID, SIZE), ex.mod(ex.add(PID, N), SIZE))
    assert found(*values) == {PID}
    assert _is_determined(values)


@pytest.mark.parametrize(
    "values",
    [
        (ex.floordiv(WITHIN, SIZE), ex.mod(PID, SIZE)),  # of which group is not said
        (ex.floordiv(PID, WIDTH), ex.floordiv(WITHIN, SIZE), ex.mod(PID, ex.add(SIZE, 1))),  # another divisor
        (ex.floordiv(PID, SIZE), ex.mod(ex.mul(2, PID), SIZE)),  # another number
        (ex.floordiv(PID, SIZE), ex.mod(ex.add(PID, LANE), SIZE)),  # lanes differ
    ],
)
def test_other_numbers_and_divisors_give_nothing(values: tuple[Expr, ...]) -> None:
    assert not found(*values) & {WITHIN, PID}


def test_a_divisor_that_may_be_negative_gives_nothing() -> None:
    values = (ex.floordiv(PID, SIZE), ex.mod(ex.add(PID, N), SIZE))
    assert not found(*values, given=(ex.le(1, WIDTH),))


def _is_determined(values: tuple[Expr, ...]) -> bool:
    """By trial: no two numbers have the same values."""
    names = [s for s in symbols(*values) if s.kind is Kind.SCALAR]
    for sizes in product(range(1, 5), repeat=len(names)):
        launches = [dict(zip(names, sizes, strict=True)) | {PID.args[0]: n} for n in range(-12, 24)]
        seen = {tuple(evaluate(v, launch.__getitem__) for v in values) for launch in launches}
        if len(seen) < len(launches):
            return False
    return True
