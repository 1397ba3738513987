"""Comparisons of a choice with a literal, taken apart where one of the choices is a literal, too.

`ite(c, a, -1) != -1` is `c and a != -1`: what a mask leaves out stands in the condition then, beside what is
known of `a`. It is the same truth for all values: where c holds both are the comparison of a, and elsewhere
both are that of the two literals.
"""

from __future__ import annotations

from collections.abc import Callable

from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr

_COMPARE = {"<": E.lt, "<=": E.le, ">": E.gt, ">=": E.ge, "==": E.eq, "!=": E.ne}


def compared(op: str, x: Expr, y: Expr) -> Expr:
    """`x op y` of two integers."""
    compare = _COMPARE[op]
    if x.op == "ite" and y.value is not None:
        return _apart(x, lambda branch: compare(branch, y)) or compare(x, y)
    if y.op == "ite" and x.value is not None:
        return _apart(y, lambda branch: compare(x, branch)) or compare(x, y)
    return compare(x, y)


def _apart(choice: Expr, compared: Callable[[Expr], Expr]) -> Expr | None:
    """None where neither branch is a literal."""
    test, first, second = choice.args
    if second.value is not None:
        own = compared(first)
        return E.any_of(E.negate(test), own) if compared(second) is E.TRUE else E.all_of(test, own)
    if first.value is not None:
        own = compared(second)
        return E.any_of(test, own) if compared(first) is E.TRUE else E.all_of(E.negate(test), own)
    return None
