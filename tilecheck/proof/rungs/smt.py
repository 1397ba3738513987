"""Rung "smt": the solver refutes the negated goal.

Sound because `predicate.negation` is unsatisfiable exactly when the goal holds, and because the solver says
"unsat" only of assertions that no integers satisfy (`proof.solver.solver`).
"""

from __future__ import annotations

from tilecheck.proof.goals.question import Question
from tilecheck.proof.obligation import Ordered
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import Answer, satisfiable


def decide(question: Question, session: Session, budget: int | None = None) -> Answer | None:
    """The solver's answer, or None for a goal that is not about numbers. The budget is that of the session
    unless one is given."""
    if isinstance(question.obligation.goal, Ordered):
        return None
    return satisfiable(question.negated, session=session, budget=budget, prove_only=True, sums=False)
