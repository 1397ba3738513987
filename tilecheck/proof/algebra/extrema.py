"""Comparisons with a minimum or maximum, said of each of its branches.

    i < min(n, end - k)     i < n and i < end - k
    max(first, k) <= i      first <= i and k <= i

Both say the same; a sum that needs one branch has it in one step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilecheck.ir.expr import Expr, le, lt


def with_branches(facts: Iterable[Expr]) -> Iterator[Expr]:
    """The facts, and after each what it says of branches, and of branches of these."""
    for fact in facts:
        yield fact
        if fact.op in ("le", "lt"):
            low, high = fact.args
            compared = le if fact.op == "le" else lt
            yield from (compared(low, branch) for branch in _branches(high, "min"))
            yield from (compared(branch, high) for branch in _branches(low, "max"))


def _branches(e: Expr, op: str) -> Iterator[Expr]:
    """Those of `min(a, min(b, c))` are a, min(b, c), b and c."""
    for branch in e.args if e.op == op else ():
        yield branch
        yield from _branches(branch, op)
