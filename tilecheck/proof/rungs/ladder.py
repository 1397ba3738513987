"""The ladder: rungs from cheap to dear; the first that proves an obligation wins and is recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from tilecheck.cancellation import checkpoint
from tilecheck.proof.goals.context import Context, Outcome
from tilecheck.proof.goals.question import Question
from tilecheck.proof.obligation import Obligation, Ordered
from tilecheck.proof.rewrite.equal_names import by_one_name
from tilecheck.proof.rungs import covers, digits, entail, fold, provenance, smt, tables
from tilecheck.proof.solver.session import Session

Rung = Callable[[Question], bool]

# Rungs without a solver: each says True when it proves the obligation, and never refutes one.
RUNGS: tuple[tuple[str, Rung], ...] = (
    ("provenance", provenance.decide),
    ("fold", fold.decide),
    ("entail", entail.decide),
    ("covers", covers.decide),
    ("digits", digits.decide),
    ("tables", tables.decide),
)
NAMES = (*(name for name, _ in RUNGS), "smt")


def prove(
    obligation: Obligation,
    context: Context,
    session: Session,
    without: frozenset[str] = frozenset(),
    budget: int | None = None,
) -> Outcome:
    """Try the rungs in order, except those named in `without`; the solver with `budget`, if one is given.

    An open outcome has the reason "budget" or "nonlinear" when the solver could not tell, and
    "needs-contract" when the assumptions admit values that break the goal (or no rung speaks of it).
    """
    checkpoint()
    start = perf_counter()
    if session.work.is_spent:
        return _outcome("none", start, "budget")
    question = Question(by_one_name(obligation, context), context, session.premises)
    for name, decide in RUNGS:
        if name not in without and decide(question):
            return _outcome(name, start)
    if "smt" in without:
        return _outcome("none", start, "needs-contract" if isinstance(obligation.goal, Ordered) else "budget")
    answer = smt.decide(question, session, budget)
    if answer is not None and answer.status == "unsat":
        return replace(_outcome("smt", start), queries=answer.queries)
    reason = "needs-contract" if answer is None or answer.status == "sat" else answer.reason
    return _outcome("none", start, reason)


def _outcome(rung: str, start: float, reason: str = "") -> Outcome:
    return Outcome(proved=rung != "none", rung=rung, time_ms=(perf_counter() - start) * 1000, reason=reason)
