"""As many blocks as a branch for the last of them, or one under a flag, asks for.

    if i_t >= n - 1: ...        grid[0] <= n: then it is block n - 1 alone that is in the branch
    if i_t >= n - 2: ...        none: a launch of n blocks is what is meant, and two of them are in the branch
    if SPLIT_K == 1: ...        grid[1] <= 1, where the element does not name that axis

Nothing here is trusted: the search asks for a proof under the conditions.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilecheck.ir.expr import Expr, Kind, all_of, conjuncts, le, sub, sym, symbols
from tilecheck.ir.kernel import Access, Kernel, block_symbol, grid_symbol
from tilecheck.proof.candidate_counts import is_flag
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


def lone_blocks(accesses: Iterable[Access], kernel: Kernel) -> tuple[Expr, ...]:
    """`grid[k] <= 1` for the axes that no access under a compile-time flag names, none if one is under no flag:
    blocks that differ along such an axis alone touch the same elements."""
    accesses = tuple(accesses)
    if not all(any(map(is_flag, conjuncts(access.guard))) for access in accesses):
        return ()
    named = symbols(*(all_of(a.guard, a.mask) for a in accesses), *(x.index for a in accesses for x in a.axes))
    return tuple(le(sym(grid_symbol(k)), 1) for k in kernel.grid_axes if block_symbol(k) not in named)
