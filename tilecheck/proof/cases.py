"""Obligations taken case by case: an index that is one sum under a compile-time flag and another without it.

Sound because a flag has one value in every launch, so that an obligation holds if it holds in each of its
cases. A case has its flag in the guards and nothing of the other case in its terms, and needs conditions of its
own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from tilecheck.ir.expr import FALSE, TRUE, Expr, all_of, negate, substitute, walk
from tilecheck.ir.kernel import Access, Axis
from tilecheck.proof.candidate_counts import is_flag
from tilecheck.proof.obligation import Disjoint, Holds, Obligation

_MOST_FLAGS = 2


def cases(obligation: Obligation) -> tuple[Obligation, ...]:
    """The cases of an obligation; itself where no flag decides between its terms."""
    goal = obligation.goal
    if not isinstance(goal, Holds | Disjoint):
        return (obligation,)
    flags = _flags(goal)
    found = []
    for values in product((TRUE, FALSE), repeat=len(flags)) if flags else ():
        chosen = dict(zip(flags, values, strict=True))
        case = _case(obligation, chosen)
        if case is not None:
            found.append(case)
    return tuple(found) or (obligation,)


def _flags(goal: Holds | Disjoint) -> tuple[Expr, ...]:
    """What decides at compile time between two terms of a goal."""
    if isinstance(goal, Holds):
        terms = [goal.goal, goal.given]
    else:
        terms = [e for a in (goal.first, goal.second) for e in (a.mask, *(axis.coordinate for axis in a.axes))]
    choices = (node.args[0] for node in walk(*terms) if node.op == "ite" and is_flag(node.args[0]))
    return tuple(dict.fromkeys(choices))[:_MOST_FLAGS]


def _case(obligation: Obligation, chosen: dict[Expr, Expr]) -> Obligation | None:
    """The obligation where flags have these values; None if the accesses are not reached there."""
    under = all_of(*(flag if value is TRUE else negate(flag) for flag, value in chosen.items()))

    def taken(e: Expr) -> Expr:
        return substitute(e, chosen)

    assume = taken(obligation.assume)
    goal = obligation.goal
    if isinstance(goal, Holds):
        access = None if goal.access is None else _access(goal.access, taken, under)
        given = all_of(taken(goal.given), under)
        dead = given is FALSE
        new: Holds | Disjoint = replace(goal, goal=taken(goal.goal), given=given, access=access)
    else:
        assert isinstance(goal, Disjoint)
        first = _access(goal.first, taken, under)
        second = first if goal.second is goal.first else _access(goal.second, taken, under)
        dead = FALSE in (first.guard, second.guard)
        new = replace(goal, first=first, second=second)
    return None if dead else replace(obligation, goal=new, assume=assume)


def _access(access: Access, taken: Callable[[Expr], Expr], under: Expr) -> Access:
    return replace(
        access,
        guard=all_of(taken(access.guard), under),
        mask=taken(access.mask),
        member=None if access.member is None else taken(access.member),
        axes=tuple(_axis(axis, taken) for axis in access.axes),
    )


def _axis(axis: Axis, taken: Callable[[Expr], Expr]) -> Axis:
    index, step, size, extent, base = map(taken, (axis.index, axis.step, axis.size, axis.extent, axis.base))
    return replace(axis, index=index, step=step, size=size, extent=extent, base=base)
