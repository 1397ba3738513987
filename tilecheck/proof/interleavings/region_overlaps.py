"""Whether regions of a host program overlap, decided by the solver with sizes that show it."""

from __future__ import annotations

from collections.abc import Sequence

from tilecheck.analysis.hosts.regions import (
    APART,
    RANKS,
    Answer,
    Box,
    Meeting,
    Overlap,
    box_of,
    by_text,
    common_box,
    not_empty,
)
from tilecheck.ir.expr import Expr, Kind, Symbol, any_of, le, lt, sym, symbols
from tilecheck.ir.host_program import HostProgram, Region
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import satisfiable

_WHY = {
    "nonlinear": "whether two regions overlap depends on products or quotients that are beyond the proof",
    "budget": "whether two regions overlap takes more steps than the budget allows",
}


def by_solver(program: HostProgram, session: Session) -> Overlap:
    """Decide overlaps for all sizes that the facts of the program admit.

    A meeting comes with the smallest sizes that the solver finds, for every symbol of the facts and of the
    regions.
    """
    text = by_text(program)
    known: dict[tuple[Region, ...], Meeting] = {}

    def overlap(first: Region, second: Region, without: tuple[Region, ...] = ()) -> Meeting:
        key = (first, second, *without)
        if key not in known:
            told = text(first, second, without)
            known[key] = told if told.answer is Answer.APART else _decide(program, key, session)
        return known[key]

    return overlap


def _decide(program: HostProgram, regions: tuple[Region, ...], session: Session) -> Meeting:
    """Ask for an element in the first two regions and in none of the others."""
    memory = program.by_name[regions[0].memory]
    first, second, *others = (box_of(region, memory) for region in regions)
    common = common_box(first, second)
    if common is None or any(len(other) not in (0, len(common)) for other in others if common):
        return RANKS
    if not common and others:
        return Meeting(Answer.OPEN, why="the shape of the memory is not known")
    element = [Symbol(f"element[{axis}]", Kind.LANE) for axis in range(len(common))]
    terms = [*not_empty(first, second), *(t for box in (first, second) for t in _inside(element, box))]
    terms += [any_of(*map(_negated, _inside(element, other))) for other in others]
    asked = (*program.facts, *_sizes(program.facts, terms), *terms)
    answer = satisfiable(asked, session=session, smallest=True)
    if answer.status == "unsat":
        return APART
    if answer.model is None:
        return Meeting(Answer.OPEN, why=_WHY.get(answer.reason, answer.reason))
    found = answer.model.symbols
    values = {symbol: int(value) for symbol, value in found.items() if symbol not in element}
    return Meeting(Answer.MEET, values, tuple(int(found.get(axis, 0)) for axis in element) or None)


def _inside(element: Sequence[Symbol], box: Box) -> list[Expr]:
    pairs = zip(element, box, strict=True) if box else ()
    return [bound for axis, (low, high) in pairs for bound in (le(low, sym(axis)), lt(sym(axis), high))]


def _negated(bound: Expr) -> Expr:
    low, high = bound.args
    return le(high, low) if bound.op == "lt" else lt(high, low)


def _sizes(facts: Sequence[Expr], terms: Sequence[Expr]) -> list[Expr]:
    """What holds of sizes by themselves: no extent is negative, and no grid is empty."""
    found = [symbol for symbol in symbols(*facts, *terms) if symbol.kind in (Kind.EXTENT, Kind.GRID)]
    return [lt(0, sym(symbol)) if symbol.kind is Kind.GRID else le(0, sym(symbol)) for symbol in found]
