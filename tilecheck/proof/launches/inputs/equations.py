"""Values that equations fix, written out: `heads == group * kv_heads` makes sizes products of the two. And the
other way round: sums that are factors, as one value each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from tilecheck.ir.expr import Expr, Kind, Symbol, add, mul, neg, render, substitute, sym, walk
from tilecheck.ir.host import DEFINED


def by_equations(premises: Sequence[Expr], asked: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """What is asked, and the premises, with every value written out that an equation among the premises fixes.

    What meets the premises meets the result, so where nothing meets that, nothing meets these. None if no
    equation fixes a value that is asked about.
    """
    solved = _solved(tuple(premises))
    written = tuple(_written(e, solved) for e in asked)
    if written == tuple(asked):
        return None
    return (*(_written(p, solved) for p in premises), *written)


def by_factors(premises: Sequence[Expr], asked: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """What is asked, and the premises, with a new value for each sum that is a factor of sizes.

    `(w - r + 1) * ((w - r + 64) // 64)` is `v * ((v + 63) // 64)` where `w` is `v + r - 1`: the size of an
    output is computed from others, and nothing but the size matters. What meets the premises meets the
    result, with the sum for the new value, so where nothing meets that, nothing meets these. None if no factor
    is a sum.
    """
    solved: _Solved = []
    spoken = set(walk(*asked))
    products = (node for node in walk(*premises) if node.op == "mul")
    for factor in dict.fromkeys(a for node in products for a in node.args if a.op == "add" and a in spoken):
        written = _written(factor, solved)
        term = next((t for t in written.args if t.op in ("sym", "floordiv")), None)
        if written.op == "add" and term is not None:
            value = sym(Symbol(render(factor), Kind.HOST, origin=DEFINED))
            solved.append({term: add(value, neg(add(*(t for t in written.args if t is not term))))})
    if not solved:
        return None
    return tuple(_written(e, solved) for e in (*premises, *asked))


_Solved = list[dict[Expr, Expr]]  # one after the other


def _written(e: Expr, solved: _Solved) -> Expr:
    for values in solved:
        e = substitute(e, values)
    return e


@lru_cache(maxsize=64)  # much is asked of the same premises
def _solved(premises: tuple[Expr, ...]) -> _Solved:
    found: _Solved = []
    for premise in premises:
        equation = _written(premise, found)
        if equation.op == "eq":
            found += _solutions(*equation.args)
    return found


def _solutions(a: Expr, b: Expr) -> _Solved:
    for value, other in ((a, b), (b, a)):
        if value.op != "sym" or value.args[0].kind is not Kind.HOST:
            continue
        inside = set(walk(other))
        if value not in inside:
            return [{value: other}]
        # A multiple of its own quotient: `width == 2 * (width // 2)`.
        for quotient in (n for n in inside if n.op == "floordiv" and n.args[0] is value):
            if quotient.args[1].value and other is mul(quotient.args[1], quotient):
                name = f"{value.args[0].name} // {quotient.args[1].value}"
                part = sym(replace(value.args[0], name=name))
                return [{quotient: part}, {value: mul(quotient.args[1], part)}]
    return []
