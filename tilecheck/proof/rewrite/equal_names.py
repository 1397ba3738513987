"""Obligations with one name for what conditions say is one number of the launch.

Under `y_stride == x_stride` a kernel that loads by one and stores by the other makes both accesses by the same
index. Rungs compare indices term by term: of two names they would have to find out in every product.

Sound because a name is replaced only by one that a premise says is equal to it: where the premises hold, the
old terms and the new ones have equal values.
"""

from __future__ import annotations

from dataclasses import replace

from tilecheck.ir.expr import Expr, substitute
from tilecheck.proof.goals.context import Context
from tilecheck.proof.obligation import Disjoint, Holds, Obligation
from tilecheck.proof.rewrite.conditionals import with_terms


def by_one_name(obligation: Obligation, context: Context) -> Obligation:
    """What the obligation says under the context, in the names that `Context.names` gives."""
    names = context.names
    goal = obligation.goal
    if not names or not isinstance(goal, Holds | Disjoint):
        return obligation

    def named(e: Expr) -> Expr:
        return substitute(e, names)

    if isinstance(goal, Holds):
        access = None if goal.access is None else with_terms(goal.access, named)
        new: Holds | Disjoint = replace(goal, goal=named(goal.goal), given=named(goal.given), access=access)
    else:
        first = with_terms(goal.first, named)
        second = first if goal.second is goal.first else with_terms(goal.second, named)
        new = replace(goal, first=first, second=second)
    return replace(obligation, goal=new, assume=named(obligation.assume))
