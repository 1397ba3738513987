"""Whether regions of one memory have an element in common, as far as their text tells."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import FALSE, TRUE, ZERO, Expr, Symbol, conjuncts, le, lt, maximum, minimum, sub
from tilecheck.ir.host_program import HostProgram, Memory, Region

Box = tuple[tuple[Expr, Expr], ...]


class Answer(enum.Enum):
    """Whether there is an element that the regions ask for."""

    APART = "apart"  # never, whatever the sizes
    MEET = "meet"  # with the sizes of the meeting
    OPEN = "open"  # undecided


@dataclass(frozen=True, slots=True)
class Meeting:
    """The answer for two regions, with sizes that make them meet and an element that they share then."""

    answer: Answer
    values: Mapping[Symbol, int] = field(default_factory=dict)
    element: tuple[int, ...] | None = None
    why: str = ""


class Overlap(Protocol):
    """Decides whether two regions of one memory have an element in common that lies in none of others."""

    def __call__(self, first: Region, second: Region, without: tuple[Region, ...] = ()) -> Meeting: ...


APART = Meeting(Answer.APART)
RANKS = Meeting(Answer.OPEN, why="the regions have different numbers of axes")
_UNDECIDED = Meeting(Answer.OPEN, why="it is not decided whether the regions overlap")


def box_of(region: Region, memory: Memory) -> Box:
    """The box of a region: of a whole memory its shape; no axes if that is not known."""
    return region.box or tuple((ZERO, extent) for extent in memory.extents or ())


def common_box(first: Box, second: Box) -> Box | None:
    """The elements in both boxes; None if they have different numbers of axes."""
    if not first or not second:
        return first or second
    if len(first) != len(second):
        return None
    return tuple((maximum(a, c), minimum(b, d)) for (a, b), (c, d) in zip(first, second, strict=True))


def not_empty(first: Box, second: Box) -> tuple[Expr, ...]:
    """What must be true for two boxes of as many axes, or of unknown ones, to have an element in common."""
    terms = [lt(start, stop) for box in (first, second) for start, stop in box]
    if first and second:
        for (low, high), (other_low, other_high) in zip(first, second, strict=True):
            terms += [lt(low, other_high), lt(other_low, high)]
    return tuple(dict.fromkeys(terms))


def by_text(program: HostProgram) -> Overlap:
    """Decide numbers, and bounds whose differences are numbers or are stated by the facts of the program."""
    facts = frozenset(_stated(program.facts))

    def overlap(first: Region, second: Region, without: tuple[Region, ...] = ()) -> Meeting:
        memory = program.by_name[first.memory]
        boxes = box_of(first, memory), box_of(second, memory)
        common = common_box(*boxes)
        if common is None:
            return RANKS
        left = [term for term in not_empty(*boxes) if not (_follows(term) or term in facts)]
        if any(_contradicts(term, facts) for term in left):
            return APART
        cuts = [box_of(region, memory) for region in without]
        if any(not cut or cut in (boxes[0], boxes[1]) for cut in cuts):
            return APART
        return _UNDECIDED if left else _left_over(common, cuts)

    return overlap


def _left_over(common: Box, cuts: Sequence[Box]) -> Meeting:
    """What is left of a box that is not empty when others are cut from it."""
    if not cuts:
        return Meeting(Answer.MEET, element=corner(common))
    numbers, taken = _numbers(common), [_numbers(cut) for cut in cuts]
    known = [cut for cut in taken if cut is not None]
    if numbers is None or len(known) < len(taken):
        return _UNDECIDED
    if not numbers:  # of unknown shape: something may lie outside any box
        return Meeting(Answer.MEET)
    rest = [numbers]
    for cut in known:
        if len(cut) != len(numbers):
            return RANKS
        rest = [piece for box in rest for piece in _cut(box, cut)]
    return Meeting(Answer.MEET, element=tuple(low for low, _ in rest[0])) if rest else APART


_Numbers = tuple[tuple[int, int], ...]


def _numbers(box: Box) -> _Numbers | None:
    found = tuple((start.value, stop.value) for start, stop in box)
    numbers = tuple((a, b) for a, b in found if a is not None and b is not None)
    return numbers if len(numbers) == len(found) else None


def _cut(box: _Numbers, cut: _Numbers) -> Iterator[_Numbers]:
    """The parts of a box beside another: below and above it on each axis in turn."""
    if any(high <= a or b <= low for (low, high), (a, b) in zip(box, cut, strict=True)):
        yield box
        return
    inner = list(box)
    for axis, (a, b) in enumerate(cut):
        low, high = inner[axis]
        for side in ((low, min(a, high)), (max(b, low), high)):
            if side[0] < side[1]:
                yield (*inner[:axis], side, *inner[axis + 1 :])
        inner[axis] = max(low, a), min(high, b)


def corner(box: Box) -> tuple[int, ...] | None:
    """The first element of a box with numbers for bounds."""
    found = _numbers(box)
    return tuple(low for low, _ in found) if found else None


def _stated(facts: Sequence[Expr]) -> Iterator[Expr]:
    for fact in facts:
        yield from conjuncts(fact)


def _follows(term: Expr) -> bool:
    if term.op != "lt":
        return term is TRUE
    difference = sub(term.args[1], term.args[0]).value
    return difference is not None and difference > 0


def _contradicts(term: Expr, facts: frozenset[Expr]) -> bool:
    if term.op != "lt":
        return term is FALSE
    low, high = term.args
    difference = sub(high, low).value
    if difference is not None:
        return difference <= 0
    return le(high, low) in facts or lt(high, low) in facts
