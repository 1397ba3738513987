"""Whether two regions of a host program overlap, decided by the solver with sizes that show it."""

from __future__ import annotations

from collections.abc import Sequence

from tilecheck.analysis.hosts.regions import APART, Answer, Meeting, Overlap, by_text, meeting_terms
from tilecheck.ir.expr import Expr, Kind, Symbol, le, lt, maximum, sym, symbols
from tilecheck.ir.host_program import HostProgram, Region
from tilecheck.proof.session import Session
from tilecheck.proof.solver import Model, satisfiable

_WHY = {
    "nonlinear": "products or quotients of sizes are beyond the proof",
    "budget": "it takes more steps than the budget allows",
}


def by_solver(program: HostProgram, session: Session) -> Overlap:
    """Decide overlaps for all sizes that the facts of the program admit.

    A meeting comes with the smallest sizes that the solver finds, for every symbol of the facts and of the two
    regions.
    """
    text = by_text(program)
    known: dict[tuple[Region, Region], Meeting] = {}

    def overlap(first: Region, second: Region) -> Meeting:
        if (first, second) not in known:
            known[first, second] = _decide(program, first, second, text(first, second), session)
        return known[first, second]

    return overlap


def _decide(program: HostProgram, first: Region, second: Region, told: Meeting, session: Session) -> Meeting:
    terms = meeting_terms(first, second, program.by_name[first.memory])
    if told.answer is Answer.APART or terms is None:
        return told
    asked = (*program.facts, *_sizes(program, terms), *terms)
    answer = satisfiable(asked, session=session, smallest=True)
    if answer.status == "unsat":
        return APART
    if answer.model is None:
        return Meeting(Answer.OPEN, why=_WHY.get(answer.reason, answer.reason))
    values = {symbol: int(value) for symbol, value in answer.model.symbols.items()}
    return Meeting(Answer.MEET, values, _element(first, second, answer.model))


def _sizes(program: HostProgram, terms: Sequence[Expr]) -> list[Expr]:
    """What holds of sizes by themselves: none is negative, and memory in use is not empty."""
    found = symbols(*program.facts, *terms)
    return [bound(symbol) for symbol in found if symbol.kind in (Kind.EXTENT, Kind.GRID)]


def bound(symbol: Symbol) -> Expr:
    return lt(0, sym(symbol)) if symbol.kind is Kind.GRID else le(0, sym(symbol))


def _element(first: Region, second: Region, model: Model) -> tuple[int, ...] | None:
    if not first.box or not second.box:
        box = first.box or second.box
        return tuple(int(model.evaluate(start)) for start, _ in box) or None
    axes = zip(first.box, second.box, strict=True)
    return tuple(int(model.evaluate(maximum(a[0], b[0]))) for a, b in axes)
