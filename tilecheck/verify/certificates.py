"""Writes the certificates of one kernel: what `tilecheck verify --certify DIR` leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tilecheck.certificate.index import (
    CERTIFIED,
    OBLIGATIONS,
    Obligation,
    folder_name,
    obligations_text,
)
from tilecheck.ir.kernel import Kernel
from tilecheck.model import Site
from tilecheck.proof.certificates.lemmas import Certified, certify
from tilecheck.proof.decide import Decision, Settled
from tilecheck.proof.goals.context import Context
from tilecheck.proof.solver.session import Session

Place = Callable[[Site], str]


def write_certificates(
    kernel: Kernel, decision: Decision, place: Place, folder: Path, *, file: str, budget: int
) -> None:
    """Write the certificate of every obligation of `kernel` that is proved, with or without conditions."""
    own = folder / folder_name(file, kernel.name)
    own.mkdir(parents=True, exist_ok=True)
    entries = []
    for number, settled in enumerate(decision.settled, 1):
        comments = [f"{kernel.name} of {file}: never that {settled.obligation.cause}"]
        found = _certified(kernel, decision, settled, comments, budget)
        goal = _write(own, f"{number:03}.goal.smt2", found.goal)
        query = _write(own, f"{number:03}.linear.smt2", found.query)
        entries.append(_entry(settled, place, goal, query))
    _write(own, OBLIGATIONS, obligations_text(entries))


def _certified(
    kernel: Kernel, decision: Decision, settled: Settled, comments: list[str], budget: int
) -> Certified:
    if settled.status not in CERTIFIED:
        return Certified("", "")
    context = Context(kernel)
    if settled.status == "conditional":
        context = context.under(*decision.conditions)
    # What the solver proved without conditions may have helped to prove this (`proof.decide`).
    helped = [s.obligation for s in decision.settled if s.status == "proved" and s.rung == "smt"]
    with closing(Session(budget=budget)) as session:
        return certify(settled.obligation, context, session, comments, helped)


def _entry(settled: Settled, place: Place, goal: str, query: str) -> Obligation:
    obligation = settled.obligation
    return Obligation(
        rule=obligation.rule,
        place=", ".join(map(place, obligation.sites)),
        cause=obligation.cause,
        status=settled.status,
        rung=settled.rung,
        goal=goal,
        query=query,
    )


def _write(folder: Path, name: str, text: str) -> str:
    """The name of the file, or "" where there is nothing to write."""
    if text:
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return name if text else ""
