"""Numbers of compile time that are multiples of others: `BT % BS == 0`.

Where BS >= 1 divides BT, BT is BS * (BT // BS). Written so, what is counted in steps of BS has the factor BS in
every term, and `-BS < i * BT - k * BS - BS` says that the number of steps is not negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilecheck.ir.expr import ONE, ZERO, Expr, Kind, conjuncts, eq, floordiv, le, mod, mul, symbols
from tilecheck.proof.conditions_terms import Terms


def as_multiples(facts: Mapping[Expr, None]) -> Iterator[tuple[Expr, Expr]]:
    """The multiples among the numbers of compile time, and what they are equal to."""
    for fact in facts:
        if fact.op != "eq" or ZERO not in fact.args:
            continue
        whole = next((a for a in fact.args if a is not ZERO), ZERO)
        if whole.op == "mod" and all(map(_is_constant, whole.args)) and le(ONE, whole.args[1]) in facts:
            yield whole.args[0], mul(whole.args[1], floordiv(*whole.args))


def _is_constant(e: Expr) -> bool:
    return e.op == "sym" and e.args[0].kind is Kind.CONSTANT


def whole_steps(given: Expr, terms: Terms) -> Iterator[Expr]:
    """`BT % BS == 0` where a loop goes in steps of BS to or from a multiple of BT: conditions to try."""
    for term in conjuncts(given):
        if term.op not in ("lt", "le"):
            continue
        steps: dict[Expr, None] = {}
        sizes: dict[Expr, None] = {}
        for side in term.args:
            for m in terms.poly(side):
                factors = [terms.atom(number) for number in m]
                constants = [e for e in factors if _is_constant(e)]
                counts = [s for e in factors for s in symbols(e) if s.kind is Kind.LOOP]
                (steps if counts else sizes).update(dict.fromkeys(constants))
        yield from (eq(mod(size, step), 0) for step in steps for size in sizes if size is not step)
