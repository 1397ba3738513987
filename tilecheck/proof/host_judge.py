"""Judges one path through a host function: its borrow graph finds what is wrong, its interleavings show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tilecheck.analysis.hosts.build import build
from tilecheck.analysis.hosts.findings import HostFinding
from tilecheck.analysis.hosts.queries import findings
from tilecheck.analysis.hosts.regions import Answer
from tilecheck.ir.expr import Kind, Symbol, le, lt, sym, symbols
from tilecheck.ir.host_program import Footprint, HostProgram, Region, Touch, Work
from tilecheck.proof.host_regions import by_solver
from tilecheck.proof.interleavings import hazards
from tilecheck.proof.session import Session
from tilecheck.proof.solver import satisfiable

NOT_REPLAYED = "a finding that no interleaving of the steps confirms"
_Shown = frozenset[tuple[str, int, int, str]]


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A finding, and the sizes with which interleavings of the program show it: none if it has no sizes."""

    finding: HostFinding
    values: Mapping[Symbol, int]


@dataclass(frozen=True, slots=True)
class Open:
    """A finding that may be none, and why nothing is sure."""

    finding: HostFinding
    why: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is wrong with a path through a host function, and what is not decided. All else is ordered."""

    errors: tuple[Confirmed, ...]
    open: tuple[Open, ...]


def judge(program: HostProgram, session: Session) -> Judgement:
    """Decide every finding of a program: an error stands only if the interleavings of the program, with numbers
    for its sizes, show the same rule broken by the same two steps."""
    judge_ = _Judge(program, session)
    errors, open_ = [], []
    for found in findings(build(program), by_solver(program, session)):
        judged = judge_.of(found)
        if isinstance(judged, Confirmed):
            errors.append(judged)
        else:
            open_.append(judged)
    return Judgement(tuple(errors), tuple(open_))


@dataclass(slots=True)
class _Judge:
    """Confirms the findings of one program. Mutable: remembers what was shown for which sizes."""

    program: HostProgram
    session: Session
    shown: dict[tuple[tuple[Symbol, int], ...], _Shown] = field(default_factory=dict)

    def of(self, found: HostFinding) -> Confirmed | Open:
        if found.meeting.answer is not Answer.MEET:
            return Open(found, found.meeting.why)
        if not found.exact:
            return Open(found, f"whether `{found.memory}` is touched is not known")
        values = found.meeting.values or self.any_sizes()
        if values is None:
            return Open(found, "no sizes are found for which it can be replayed")
        values = {symbol: values.get(symbol, 1) for symbol in symbols_of(self.program)}
        if (found.code, found.first, found.second, found.memory) not in self.hazards(values):
            return Open(found, NOT_REPLAYED)
        return Confirmed(found, values)

    def any_sizes(self) -> Mapping[Symbol, int] | None:
        """Sizes that the facts admit."""
        if not self.program.facts:
            return {}
        known = (s for s in symbols(*self.program.facts) if s.kind in (Kind.EXTENT, Kind.GRID))
        sizes = [lt(0, sym(s)) if s.kind is Kind.GRID else le(0, sym(s)) for s in known]
        answer = satisfiable((*self.program.facts, *sizes), session=self.session, smallest=True)
        return None if answer.model is None else {s: int(v) for s, v in answer.model.symbols.items()}

    def hazards(self, values: Mapping[Symbol, int]) -> _Shown:
        """What the interleavings show with these sizes; nothing if they make no program."""
        key = tuple(sorted(values.items(), key=lambda item: (item[0].name, item[0].uid)))
        if key not in self.shown:
            try:
                found = hazards(self.program.at(values))
            except ValueError:  # boxes of different ranks, or facts that hold for no numbers
                found = ()
            self.shown[key] = frozenset((h.code, h.first, h.second, h.memory) for h in found if h.exact)
        return self.shown[key]


def symbols_of(program: HostProgram) -> tuple[Symbol, ...]:
    """The sizes that a program depends on, in the order in which they occur."""
    bounds = (bound for region in _regions(program) for axis in region.box for bound in axis)
    return symbols(*program.facts, *bounds)


def _regions(program: HostProgram) -> Iterator[Region]:
    yield from program.returned
    for action in program.actions:
        parts: tuple[Footprint, ...] = ()
        if isinstance(action, Work):
            parts = (action.before, action.after)
        elif isinstance(action, Touch):
            parts = (action.footprint,)
        for part in parts:
            yield from (region for region, _ in part.regions())
