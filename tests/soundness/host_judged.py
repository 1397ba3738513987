"""Whether the queries over the host borrow graph and the interleavings of a drawn program say the same.

Sizes are numbers as they are drawn, or symbols whose values are facts of the program, so that the solver has to
find the sizes of each meeting.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

from soundness_host_programs import random_program

from tilecheck.analysis.hosts.build import build
from tilecheck.analysis.hosts.findings import HostFinding
from tilecheck.analysis.hosts.queries import findings
from tilecheck.analysis.hosts.regions import Answer
from tilecheck.ir.expr import Expr, Kind, Symbol, const, le, sym
from tilecheck.ir.host_program import (
    Action,
    Await,
    Capture,
    Destroy,
    EndCapture,
    Footprint,
    HostProgram,
    Place,
    Record,
    Region,
    Replay,
    Touch,
    Work,
)
from tilecheck.model import Site, Span
from tilecheck.proof.interleavings import hazards
from tilecheck.proof.interleavings.judge import judge
from tilecheck.proof.interleavings.region_overlaps import by_solver
from tilecheck.proof.solver.session import Session

Key = tuple[str, int, int, str, bool]


@dataclass(frozen=True, slots=True)
class Judged:
    """One program: the hazards that its interleavings show, and where the queries differ."""

    seed: int
    shown: frozenset[Key]
    missed: frozenset[Key]
    invented: frozenset[Key]


def judged(seed: int, *, symbolic: bool = False, scrambled: bool = False) -> Judged:
    """Compare the two on the program that a seed draws; with some of its actions changed, if `scrambled`."""
    rng = random.Random(seed)
    program = random_program(rng)
    if scrambled:
        program = _scrambled(program, rng)
    try:
        shown = frozenset((h.code, h.first, h.second, h.memory, h.exact) for h in hazards(program))
    except ValueError:  # malformed now: nothing to compare
        return Judged(seed, frozenset(), frozenset(), frozenset())
    if symbolic:
        with closing(Session()) as session:
            hidden = _with_symbols(program)
            found = findings(build(hidden), by_solver(hidden, session))
    else:
        found = findings(build(program))
    keys = frozenset(map(_key, found))
    return Judged(seed, shown, shown - keys, keys - shown)


def unconfirmed(seed: int) -> frozenset[Key]:
    """What the queries find and no interleavings of the two steps alone confirm, or the other way round."""
    drawn = random_program(random.Random(seed))
    placed = (replace(a, site=Site("drawn.py", Span(k, k + 1))) for k, a in enumerate(drawn.actions))
    program = replace(drawn, actions=tuple(placed))
    with closing(Session()) as session:
        judgement = judge(program, session)
    confirmed = frozenset(_key(error.finding) for error in judgement.errors)
    return confirmed ^ frozenset((h.code, h.first, h.second, h.memory, h.exact) for h in hazards(program))


def _key(found: HostFinding) -> Key:
    if found.meeting.answer is not Answer.MEET:
        raise AssertionError(f"a meeting of numbers is not decided: {found}")
    return found.code, found.first, found.second, found.memory, found.exact


def _scrambled(program: HostProgram, rng: random.Random) -> HostProgram:
    """The program after a few changes of its actions and memories, sensible or not."""
    actions, memories = list(program.actions), list(program.memories)
    streams = [action.stream for action in actions if isinstance(action, Work)] or [program.caller]
    for _ in range(rng.choice((1, 2, 3, 5)) if actions else 0):
        at, way = rng.randrange(len(actions)), rng.randrange(7)
        action = actions[at]
        if way < 2 and isinstance(action, Capture | EndCapture | Destroy):
            continue
        if way == 0:
            actions.insert(rng.randrange(len(actions) + 1), action)
        elif way == 1 and len(actions) > 1:
            actions.insert(rng.randrange(len(actions)), actions.pop(at))
        elif way == 2:
            number = rng.randrange(len(memories))
            memories[number] = replace(memories[number], place=rng.choice(list(Place)))
        elif way == 3 and isinstance(action, Work | Record | Await | Replay | Capture):
            actions[at] = replace(action, stream=rng.choice(streams))
        elif isinstance(action, Work):
            changes = ("dependent", "waits", "is_launch")
            name = rng.choice(changes)
            after = Footprint(*(tuple(_blurred(r, rng) for r in part) for part in _parts(action.after)))
            actions[at] = replace(action, after=after, **{name: not getattr(action, name)})
    return replace(program, actions=tuple(actions), memories=tuple(memories))


def _blurred(region: Region, rng: random.Random) -> Region:
    return replace(region, exact=rng.random() < 0.7)


def _parts(of: Footprint) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    return of.reads, of.writes


def _with_symbols(program: HostProgram) -> HostProgram:
    """The program with a symbol for each number in its regions, and facts that say what they are."""
    known: dict[int, Expr] = {}

    def hide(bound: Expr) -> Expr:
        number = bound.value
        if number is None:
            return bound
        return known.setdefault(number, sym(Symbol(f"n{number}", Kind.HOST)))

    def region(of: Region) -> Region:
        return replace(of, box=tuple((hide(a), hide(b)) for a, b in of.box))

    def footprint(of: Footprint) -> Footprint:
        return Footprint(tuple(map(region, of.reads)), tuple(map(region, of.writes)))

    def action(of: Action) -> Action:
        if isinstance(of, Work):
            return replace(of, before=footprint(of.before), after=footprint(of.after))
        return replace(of, footprint=footprint(of.footprint)) if isinstance(of, Touch) else of

    actions, returned = tuple(map(action, program.actions)), tuple(map(region, program.returned))
    return replace(program, actions=actions, returned=returned, facts=tuple(_facts(known)))


def _facts(known: dict[int, Expr]) -> Iterator[Expr]:
    for number, symbol in known.items():
        yield le(symbol, const(number))
        yield le(const(number), symbol)
