"""Judges one path through a host function: its borrow graph finds what is wrong, its interleavings show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from tilecheck.analysis.hosts.build import build
from tilecheck.analysis.hosts.findings import HostFinding
from tilecheck.analysis.hosts.queries import findings
from tilecheck.analysis.hosts.regions import Answer
from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Kind, Symbol, le, lt, sym, symbols
from tilecheck.ir.host_program import (
    Action,
    Footprint,
    HostProgram,
    Place,
    Region,
    Touch,
    Work,
)
from tilecheck.model import Site
from tilecheck.proof.interleavings import hazards
from tilecheck.proof.interleavings.region_overlaps import by_solver
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import satisfiable

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
    for its sizes, show the same rule broken by the same two steps.

    Of several with the same two places and memory, such as those of the rounds of a loop, one is decided.
    Findings between steps of functions that are called before this one are left to their records.
    """
    judge_ = _Judge(program, session)
    errors: dict[tuple[object, ...], Confirmed] = {}
    open_: dict[tuple[object, ...], Open] = {}
    for found in findings(build(program), by_solver(program, session)):
        if max(found.first, found.second) < program.first:
            continue
        places = [_site(program, index) for index in (found.first, found.second)]
        key = (found.code, *places, found.memory)
        if key in errors:
            continue
        judged = judge_.of(found)
        if isinstance(judged, Confirmed):
            errors[key] = judged
        else:
            open_.setdefault(key, judged)
    left = tuple(one for key, one in open_.items() if key not in errors)
    return Judgement(tuple(errors.values()), left)


def _site(program: HostProgram, index: int) -> Site | int:
    """Where an action stands; of the caller's work, its index."""
    return program.actions[index].site if 0 <= index < len(program.actions) else index


_Values = Mapping[Symbol, int]


@dataclass(slots=True)
class _Judge:
    """Confirms the findings of one program. Mutable: remembers what was shown for which sizes."""

    program: HostProgram
    session: Session
    shown: dict[tuple[object, ...], _Shown] = field(default_factory=dict)

    def of(self, found: HostFinding) -> Confirmed | Open:
        if found.meeting.answer is not Answer.MEET:
            return Open(found, found.meeting.why)
        if not found.exact:
            return Open(found, f"whether `{found.memory}` is touched is not known")
        values = found.meeting.values or self.any_sizes()
        if values is None:
            return Open(found, "no sizes are found for which it can be replayed")
        values = {symbol: values.get(symbol, 1) for symbol in symbols_of(self.program)}
        if (found.code, found.first, found.second, found.memory) not in self.hazards(found, values):
            return Open(found, NOT_REPLAYED)
        return Confirmed(found, values)

    def any_sizes(self) -> _Values | None:
        """Sizes that the facts admit."""
        if not self.program.facts:
            return {}
        known = (s for s in symbols(*self.program.facts) if s.kind in (Kind.EXTENT, Kind.GRID))
        sizes = [lt(0, sym(s)) if s.kind is Kind.GRID else le(0, sym(s)) for s in known]
        answer = satisfiable((*self.program.facts, *sizes), session=self.session, smallest=True)
        return None if answer.model is None else {s: int(v) for s, v in answer.model.symbols.items()}

    def hazards(self, found: HostFinding, values: _Values) -> _Shown:
        """What the interleavings of the steps of a finding show with these sizes; nothing if they make no
        program."""
        pair = _steps(found) if found.code in _RACES else None
        numbers = sorted(values.items(), key=lambda item: (item[0].name, item[0].uid))
        key = (found.memory, pair, *numbers)
        if key not in self.shown:
            try:
                shown = hazards(_about(self.program, found.memory, pair).at(values))
            except ValueError:  # boxes of different ranks, or facts that hold for no numbers
                shown = ()
            self.shown[key] = frozenset((h.code, h.first, h.second, h.memory) for h in shown if h.exact)
        return self.shown[key]


# What two steps do at once: other steps order them or not, whatever those touch.
_RACES = frozenset({"TC411", "TC413", "TC414", "TC415", "TC421", "TC425", "TC431", "TC432", "TC433"})


def _steps(found: HostFinding) -> frozenset[int]:
    """The actions whose work has part in a finding: a replay and what it runs."""
    parts = (holder.partition(":")[2].split(".") for holder in found.holders)
    indices = {int(part) for listed in parts for part in listed if part.isdigit()}
    return frozenset({found.first, found.second, *indices})


def _about(program: HostProgram, memory: str, steps: frozenset[int] | None) -> HostProgram:
    """The program without what other steps touch; or, if all steps have part in a finding, without what they do
    to other memories. All actions stay, so that their order does, and so do copies of ordinary host memory, for
    which the host waits."""

    def keeps(index: int, region: Region) -> bool:
        known = program.by_name.get(region.memory)
        if known is not None and known.place is Place.PAGEABLE:
            return True
        return region.memory == memory if steps is None else index in steps

    def part(index: int, of: Footprint) -> Footprint:
        reads, writes = (tuple(r for r in regions if keeps(index, r)) for regions in (of.reads, of.writes))
        return Footprint(reads, writes)

    def action(index: int, of: Action) -> Action:
        if isinstance(of, Work):
            return replace(of, before=part(index, of.before), after=part(index, of.after))
        return replace(of, footprint=part(index, of.footprint)) if isinstance(of, Touch) else of

    return replace(program, actions=tuple(action(k, of) for k, of in enumerate(program.actions)))


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
