"""Values that equations fix are written out, and nothing is lost or won by it."""

import itertools

import pytest

from tilecheck.ir.expr import Expr, Kind, Symbol, add, eq, evaluate, floordiv, le, mul, ne, sym, symbols
from tilecheck.proof.launches.inputs.equations import by_equations

a, b, c, width = (sym(Symbol(name, Kind.HOST)) for name in ("a", "b", "c", "width"))
half = floordiv(width, 2)

CASES = [
    ((eq(a, mul(b, c)), le(1, b)), (ne(mul(a, 2), mul(b, c, 2)),)),
    ((eq(mul(b, c), a), eq(c, add(b, 1))), (le(a, c), ne(c, 2))),
    ((eq(width, mul(2, half)), eq(a, mul(b, width))), (ne(a, mul(b, half, 2)),)),
    ((eq(a, b), eq(b, c)), (ne(a, c),)),
    ((eq(a, b), eq(a, c)), (ne(b, c), le(a, width))),
    ((eq(a, add(mul(a, b), 1)), eq(b, 2)), (le(a, b),)),  # fixes b alone
]


def _holds(terms: tuple[Expr, ...], values: dict[str, int]) -> bool:
    return all(evaluate(term, lambda s: values[s.name]) for term in terms)


@pytest.mark.parametrize(("premises", "asked"), CASES)
def test_the_same_inputs_meet_both(premises: tuple[Expr, ...], asked: tuple[Expr, ...]) -> None:
    written = by_equations(premises, asked)
    assert written is not None
    for numbers in itertools.product(range(-3, 4), repeat=4):
        values = dict(zip(("a", "b", "c", "width"), numbers, strict=True))
        if _holds(premises, values):
            values["width // 2"] = values["width"] // 2
            assert _holds(written, values) == _holds(asked, values)


def test_a_value_is_gone() -> None:
    written = by_equations((eq(a, mul(b, c)), eq(width, mul(2, half))), (le(mul(a, half), width),))
    assert written is not None
    assert {s.name for s in symbols(*written)} == {"b", "c", "width // 2"}


@pytest.mark.parametrize("premises", [(), (le(a, b),), (eq(b, c),), (eq(width, add(1, mul(2, half))),)])
def test_nothing_is_written_where_no_equation_fixes_what_is_asked(premises: tuple[Expr, ...]) -> None:
    assert by_equations(premises, (le(a, 3), le(half, width))) is None
