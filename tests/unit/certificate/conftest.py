"""Shared by the tests of certificates: values of terms, and cvc5 where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tilecheck.certificate import second_solver
from tilecheck.certificate.terms import Term

_OPERATORS: Mapping[str, Callable[..., int | bool]] = {
    "+": lambda *v: sum(v),
    "-": lambda *v: -v[0] if len(v) == 1 else v[0] - v[1],
    "floor-div": lambda a, b: a // b,
    "floor-mod": lambda a, b: a % b,
    "minimum": min,
    "maximum": max,
    "bit-and": lambda a, b: a & b,
    "bit-or": lambda a, b: a | b,
    "bit-xor": lambda a, b: a ^ b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "=": lambda a, b: a == b,
    "not": lambda a: not a,
    "and": lambda *v: all(v),
    "or": lambda *v: any(v),
    "=>": lambda a, b: not a or b,
    "ite": lambda c, a, b: a if c else b,
    "true": lambda: True,
    "false": lambda: False,
}


def value(term: Term, known: Mapping[str, int | bool]) -> int | bool:
    """The value of a term, by Python's own arithmetic; a called function gives the sum of its arguments."""
    if term.op == "number":
        return int(term.label)
    if term.op == "constant":
        return known[str(term.label)]
    args = [value(a, known) for a in term.args]
    if term.op == "*":
        product = 1
        for factor in args:
            product *= factor
        return product
    return sum(args) if term.op == "call" else _OPERATORS[term.op](*args)


@pytest.fixture
def evaluate() -> Callable[[Term, Mapping[str, int | bool]], int | bool]:
    return value


@pytest.fixture(scope="session")
def cvc5() -> Callable[[str], str]:
    """Asks cvc5."""
    if not second_solver.is_installed():
        pytest.skip("cvc5 is not installed: it is an optional dependency, the extra `certify`")
    return second_solver.ask
