"""Rung "fold": a goal that literals and intervals decide.

Sound because an interval contains every value that its expression can take under the premises, and because a
negation in which one assertion is `false` has no model.
"""

from __future__ import annotations

from tilecheck.ir.expr import FALSE
from tilecheck.proof.goals.question import Question
from tilecheck.proof.obligation import Disjoint, Holds
from tilecheck.proof.rungs.entail import follows


def decide(question: Question) -> bool:
    goal = question.obligation.goal
    if isinstance(goal, Holds):
        return goal.given is FALSE or follows(goal.goal, question.premises, 0)
    return isinstance(goal, Disjoint) and FALSE in question.negated
