"""Values of expressions: what is not asked for is not computed, and depth is no trouble."""

from __future__ import annotations

import pickle

import pytest

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import Expr, Kind, Symbol, sym

N = Symbol("n", Kind.SCALAR)


def value(e: Expr, n: int) -> int | bool:
    return ex.evaluate(e, {N: n}.__getitem__)


def collatz(times: int, start: Expr) -> Expr:
    """A chain of conditionals: half of a number, or three times it and one where it is odd."""
    e = start
    for _ in range(times):
        e = ex.ite(ex.eq(ex.mod(e, 2), 0), ex.floordiv(e, 2), ex.add(ex.mul(3, e), 1))
    return e


@pytest.mark.parametrize("times", [1, 5, 60, 80])
def test_deep_expressions_have_values(times: int) -> None:
    n = 27
    for _ in range(times):
        n = n // 2 if n % 2 == 0 else 3 * n + 1
    assert value(collatz(times, sym(N)), 27) == n


@pytest.mark.parametrize("times", [0, 60])
def test_the_branch_that_is_not_taken_is_not_evaluated(times: int) -> None:
    """It divides by zero, however large it is."""
    wrong = collatz(times, ex.floordiv(1, sym(N)))
    assert value(ex.ite(ex.eq(sym(N), 0), ex.add(sym(N), 7), wrong), 0) == 7
    with pytest.raises(ZeroDivisionError):
        value(wrong, 0)


def test_all_factors_are_evaluated() -> None:
    """A model counts only where everything has a value."""
    with pytest.raises(ZeroDivisionError):
        value(ex.eq(ex.mul(sym(N), ex.floordiv(1, sym(N))), 0), 0)


def test_a_pickled_symbol_takes_no_hash_along() -> None:
    """The hash of a name differs between processes."""
    again = pickle.loads(pickle.dumps(N))
    assert {N: 1}[again] == 1
    assert hash(N) not in N.__reduce__()[1]
