"""Comparisons with a minimum or maximum, said of each of its branches.

    i < min(n, end - k)     i < n and i < end - k
    max(first, k) <= i      first <= i and k <= i

Both say the same; a sum that needs one branch has it in one step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilecheck.ir.expr import Expr, le, lt


def with_branches(facts: Iterable[Expr]) -> Iterator[Expr]:
    """The facts, and after each what it says of branches."""
    for fact in facts:
        yield fact
        if fact.op in ("le", "lt"):
            low, high = fact.args
            compared = le if fact.op == "le" else lt
            if high.op == "min":
                yield from (compared(low, branch) for branch in high.args)
            if low.op == "max":
                yield from (compared(branch, high) for branch in low.args)
