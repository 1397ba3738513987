"""As many blocks as a branch for the last of them asks for.

    if i_t >= n - 1: ...        grid[0] <= n: then it is block n - 1 alone that is in the branch
    if i_t >= n - 2: ...        none: a launch of n blocks is what is meant, and two of them are in the branch

Nothing here is trusted: the search asks for a proof under the conditions.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilecheck.ir.expr import Expr, Kind, conjuncts, sub, symbols
from tilecheck.ir.kernel import Access
from tilecheck.proof.candidates_layout import is_layout
from tilecheck.proof.conditions_ranges import Ranges, largest
from tilecheck.proof.conditions_terms import Terms


def last_blocks(accesses: Iterable[Access], terms: Terms) -> tuple[Expr, ...]:
    """`grid[k] <= n` for the guards `n - 1 <= i` where i is taken from a block index."""
    found: dict[Expr, None] = {}
    for access in accesses:
        guards = conjuncts(access.guard)
        for term in guards:
            low, high = term.args if term.op in ("le", "lt") else (term, term)
            if term.op not in ("le", "lt") or not terms.uniform(low) or low.value is not None:
                continue
            if not any(s.kind is Kind.BLOCK for s in symbols(high)):
                continue
            ranges = Ranges(terms, tuple(other for other in guards if other is not term))
            most = low if term.op == "le" else sub(low, -1)
            asked = (c for c in largest(ranges, high, most) if is_layout(c, terms))
            found.update((c, None) for c in asked if c.args[1].op != "add")
    return tuple(found)
