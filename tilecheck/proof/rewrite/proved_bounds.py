"""Bounds that were proved, for goals about what is looked up there.

What a contract says of `t[i]` holds where `i` is inside `t`. That it is, is a goal of its own, the bounds of
the load of `t[i]`; where that is proved, with or without launch conditions, a later goal need not prove it
again.

Sound because the bound was proved for all values that meet its `given` and `assume`: it may be stated of other
lanes of the same bounds, and all terms of its `given`, so renamed, stand among the later goal's. `assume` says
that divisors are positive, which has obligations of its own, and is assumed along with it. The conditions that
it was proved under remain conditions of the kernel. Nothing rests on itself: a bound is used by goals that are
proved after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilecheck.ir.expr import Expr, Kind, all_of, conjuncts, substitute, sym, symbols, walk
from tilecheck.proof.obligation import Holds, Obligation

_MOST = 6  # facts for one goal, as each makes it longer


def once_more(
    open_: Sequence[Obligation],
    open_still: set[int],
    proved: Sequence[Obligation],
    unsaved: Callable[[Sequence[tuple[int, Obligation]]], set[int]],
) -> tuple[list[Obligation], set[int]]:
    """What is open, once more with the bounds that were proved meanwhile of what it looks up, as long as that
    helps; and what is open still."""
    now, left = list(open_), set(open_still)
    while left:
        known = [*proved, *(o for k, o in enumerate(now) if k not in left)]
        eased = {k: with_bounds(now[k], known) for k in left}
        fresh = [(k, o) for k, o in sorted(eased.items()) if o is not now[k]]
        now = [eased.get(k, o) for k, o in enumerate(now)]
        still = unsaved(fresh) if fresh else set()
        if len(still) == len(fresh):
            break
        left -= {k for k, _ in fresh} - still
    return now, left


def with_bounds(obligation: Obligation, proved: Sequence[Obligation]) -> Obligation:
    """The obligation, with the bounds among `proved` of the elements that its goal speaks of."""
    goal = obligation.goal
    if not is_bound(obligation) or not isinstance(goal, Holds):
        return obligation
    given = frozenset(conjuncts(goal.given))
    found: dict[Expr, None] = {}
    for node in walk(goal.goal, goal.given):
        if node.op == "read" and len(node.args) == 2:
            for other in proved:
                fact = _stated(other, node, given)
                if fact is not None and fact not in conjuncts(obligation.assume):
                    found[fact] = None
    facts = list(found)[:_MOST]
    return replace(obligation, assume=all_of(obligation.assume, *facts)) if facts else obligation


def is_bound(obligation: Obligation) -> bool:
    """Whether it is about the bounds of an access, and so may use others and be used."""
    goal = obligation.goal
    return obligation.stage > 0 and isinstance(goal, Holds) and goal.access is not None


def _stated(bound: Obligation, node: Expr, given: frozenset[Expr]) -> Expr | None:
    """What the bound says of the element that `node` is, where its guards are given."""
    goal = bound.goal
    if not isinstance(goal, Holds) or goal.access is None or len(goal.access.axes) != 1:
        return None
    if goal.access.array != node.args[0] or bound.unsafe:
        return None
    coordinate = goal.access.axes[0].coordinate
    lanes, own = ([s for s in symbols(e) if s.kind is Kind.LANE] for e in (coordinate, node.args[1]))
    if len(lanes) != len(own) or any(a.bound is not b.bound for a, b in zip(lanes, own, strict=True)):
        return None
    renamed = {sym(a): sym(b) for a, b in zip(lanes, own, strict=True)}
    if substitute(coordinate, renamed) is not node.args[1]:
        return None
    if not given.issuperset(substitute(part, renamed) for part in conjuncts(goal.given)):
        return None
    return substitute(all_of(bound.assume, goal.goal), renamed)
