"""Terms of sums, and what values are whatever the names of their lanes."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.ir.expr import ONE, Expr, Kind, Symbol, mul, substitute, sym, symbols

_LANE = sym(Symbol("lane", Kind.LANE))


def terms_of(value: Expr) -> Iterator[tuple[int, Expr]]:
    """The terms of a sum, each a literal times a term that is none."""
    for part in value.args if value.op == "add" else (value,):
        if part.value is not None:
            yield part.value, ONE
        elif part.op == "mul" and part.args[0].value is not None:
            yield part.args[0].value, mul(*part.args[1:])
        else:
            yield 1, part


def without_lanes(value: Expr) -> Expr:
    """The lanes of an operation and of the access that it feeds have names of their own: forget them."""
    lanes = {sym(s): _LANE for s in symbols(value) if s.kind is Kind.LANE}
    return substitute(value, lanes)
