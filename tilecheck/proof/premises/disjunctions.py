"""What follows from disjunctions by facts that contradict all of their terms but one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tilecheck.ir.expr import Expr, conjuncts, negate

_ROUNDS = 4  # what one disjunction gives may decide another


def resolved(facts: Iterable[Expr]) -> list[Expr]:
    """Facts that follow. Where a disjunction holds one of its terms does: the only one that is not refuted."""
    known = dict.fromkeys(facts)
    found: list[Expr] = []
    for _ in range(_ROUNDS):
        before = len(found)
        open_ = [f for f in known if f.op == "any"]
        denied = [frozenset(f.args[0].args) for f in known if f.op == "not" and f.args[0].op == "all"]
        for fact in open_:
            left = [term for term in fact.args if not _is_refuted(term, known, denied)]
            if len(left) == 1:
                fresh = [part for part in conjuncts(left[0]) if part not in known]
                known.update(dict.fromkeys(fresh))
                found += fresh
        if len(found) == before:
            break
    return found


def _is_refuted(term: Expr, known: Collection[Expr], denied: Collection[frozenset[Expr]]) -> bool:
    """Whether its negation is known, or that of a part of it, or that some parts of it do not hold together."""
    parts = conjuncts(term)
    if all(c in known for c in conjuncts(negate(term))) or any(negate(part) in known for part in parts):
        return True
    return len(parts) > 1 and any(some.issubset(parts) for some in denied)
