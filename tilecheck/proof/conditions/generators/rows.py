"""Conditions under which what is added to a row that a table tells stays in that row.

    x + t[n] * s + rest,    within(t, _, numel(x) // s)        rest + 1 <= s

With them `t[n] * s + rest <= (t[n] + 1) * s - 1 < numel(x)`. Nothing here is trusted: the search asks for a
proof under them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.limits import Ranges as Promised
from tilecheck.analysis.limits import promised_ranges, ranges_of
from tilecheck.ir.expr import ZERO, Expr, add, le, walk
from tilecheck.ir.kernel import Access, Kernel
from tilecheck.proof.algebra.polynomial import Polynomial, combine, divides, without
from tilecheck.proof.conditions.generators.flat import highest
from tilecheck.proof.conditions.ranges import Ranges
from tilecheck.proof.conditions.terms import Terms


def rows_of_tables(terms: Terms, access: Access, kernel: Kernel) -> Iterator[Expr]:
    """For each table in the index whose values a contract bounds by a quotient, the span of its rows."""
    promised = promised_ranges(kernel)
    if not promised:
        return
    index = terms.poly(access.axes[0].index)
    ranges = Ranges(terms, (access.guard, access.mask, access.lane_facts))
    for step in dict.fromkeys(_steps(terms, index, promised)):
        factors = next(iter(terms.poly(step)))
        rest = {m: c for m, c in index.items() if not divides(factors, m)}
        spans = [terms.poly(add(top, 1)) for top in highest(terms, ranges, terms.expr(rest))]
        yield from dict.fromkeys(le(terms.expr(span), step) for span in spans)
        for span in spans:  # `cdiv(HQ, G) * K * V <= H * K * V`: of heads, without what both sides share
            excess = combine(span, terms.poly(step), -1)
            shared = terms.common(excess)
            if shared:
                yield from terms.at_most({without(m, *shared): c for m, c in excess.items()}, {})
        yield le(ZERO, step)


def _steps(terms: Terms, index: Polynomial, promised: Promised) -> Iterator[Expr]:
    for m in index:
        for number in m:
            for node in walk(terms.atom(number)):
                if node.op == "read":
                    for _, high in ranges_of(node, promised):
                        for part in walk(high):
                            if part.op == "floordiv" and len(terms.poly(part.args[1])) == 1:
                                yield part.args[1]
