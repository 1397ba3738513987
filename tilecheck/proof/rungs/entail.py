"""Rung "entail": a goal that follows from a few premises by adding them up.

Sound because `Sums` writes the goal as a sum of inequalities that hold, each multiplied by something that is
not negative, plus a rest that intervals show not to be negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilecheck.ir.expr import TRUE, Expr, conjuncts
from tilecheck.proof.algebra.polynomial import combine, constant
from tilecheck.proof.obligation import Holds
from tilecheck.proof.premises.linear_combinations import Sums, bound_quotients
from tilecheck.proof.premises.premises import Premises

if TYPE_CHECKING:
    from tilecheck.proof.goals.question import (  # which asks for premises, as what is guarded is learned here
        Question,
    )

DEPTH = 5  # premises in one sum


def decide(question: Question) -> bool:
    goal = question.obligation.goal
    if not isinstance(goal, Holds):
        return False
    premises = question.premises
    return entailed(goal.goal, premises) or all(_by_moving(part, premises) for part in conjuncts(goal.goal))


def _by_moving(goal: Expr, premises: Premises) -> bool:
    """An inequality, looked at in another order."""
    if goal.op not in ("le", "lt"):
        return False
    difference = combine(premises.form(goal.args[1]), premises.form(goal.args[0]), -1)
    slack = constant(-1 if goal.op == "lt" else 0)
    return Sums(premises).covers_by_moving(combine(difference, slack), DEPTH)


def entailed(goal: Expr, premises: Premises) -> bool:
    """Whether `goal` follows, if need be from what quotients stay below as well."""
    if goal.op == "all":
        return all(entailed(part, premises) for part in goal.args)
    if follows(goal, premises, DEPTH):
        return True
    return bound_quotients(premises, goal) and follows(goal, premises, DEPTH)


def follows(goal: Expr, premises: Premises, depth: int) -> bool:
    """Whether `goal` follows from `premises` with at most `depth` of them in each sum."""
    if goal is TRUE or goal in premises.facts or premises.contradict:
        return True
    match goal.op:
        case "all":
            return all(follows(part, premises, depth) for part in goal.args)
        case "any":
            return any(follows(part, premises, depth) for part in goal.args)
        case "le":
            return _at_most(goal.args[0], goal.args[1], 0, premises, depth)
        case "lt":
            return _at_most(goal.args[0], goal.args[1], -1, premises, depth)
        case "eq":
            a, b = goal.args
            return _at_most(a, b, 0, premises, depth) and _at_most(b, a, 0, premises, depth)
        case "not" if goal.args[0].op == "eq":
            a, b = goal.args[0].args
            return _at_most(a, b, -1, premises, depth) or _at_most(b, a, -1, premises, depth)
        case _:
            return False


def _at_most(a: Expr, b: Expr, slack: int, premises: Premises, depth: int) -> bool:
    """a <= b + slack."""
    difference = combine(premises.form(b), premises.form(a), -1)
    return Sums(premises).covers(combine(difference, constant(slack)), depth)
