"""Rung "smt": the solver refutes the negated goal.

Sound because `predicate.negation` is unsatisfiable exactly when the goal holds, and because the solver says
"unsat" only of assertions that no integers satisfy (`proof.solver`).
"""

from __future__ import annotations

from tilecheck.proof.context import Context
from tilecheck.proof.obligation import Obligation, Ordered
from tilecheck.proof.predicate import negation
from tilecheck.proof.session import Session
from tilecheck.proof.solver import Answer, satisfiable


def decide(obligation: Obligation, context: Context, session: Session) -> Answer | None:
    """The solver's answer, or None for a goal that is not about numbers."""
    if isinstance(obligation.goal, Ordered):
        return None
    negated = negation(obligation.goal, context, obligation.assume)
    return satisfiable(negated, session=session, prove_only=True)
