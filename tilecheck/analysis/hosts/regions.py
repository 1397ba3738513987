"""Whether two regions of one memory have an element in common, as far as their text tells."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilecheck.ir.expr import FALSE, TRUE, Expr, Symbol, conjuncts, le, lt, sub
from tilecheck.ir.host_program import HostProgram, Memory, Region


class Answer(enum.Enum):
    """Whether two regions have an element in common."""

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


Overlap = Callable[[Region, Region], Meeting]
APART = Meeting(Answer.APART)


def meeting_terms(first: Region, second: Region, memory: Memory) -> tuple[Expr, ...] | None:
    """What must be true for two regions of one memory to share an element.

    Returns:
        The terms of a conjunction, or None if the boxes have different numbers of axes.
    """
    if first.box and second.box and len(first.box) != len(second.box):
        return None
    terms = [lt(start, stop) for region in (first, second) for start, stop in region.box]
    if first.box and second.box:
        for (low, high), (other_low, other_high) in zip(first.box, second.box, strict=True):
            terms += [lt(low, other_high), lt(other_low, high)]
    elif not first.box and not second.box:
        terms += [lt(0, extent) for extent in memory.extents or ()]
    return tuple(terms)


def by_text(program: HostProgram) -> Overlap:
    """Decide numbers, and bounds whose differences are numbers or are stated by the facts of the program."""
    facts = frozenset(_stated(program.facts))

    def overlap(first: Region, second: Region) -> Meeting:
        terms = meeting_terms(first, second, program.by_name[first.memory])
        if terms is None:
            return Meeting(Answer.OPEN, why="the two regions have different numbers of axes")
        left = [term for term in terms if not (_follows(term) or term in facts)]
        if not left:
            return Meeting(Answer.MEET, element=shared_element(first, second))
        if any(_contradicts(term, facts) for term in left):
            return APART
        return Meeting(Answer.OPEN, why="it is not decided whether the two regions overlap")

    return overlap


def shared_element(first: Region, second: Region) -> tuple[int, ...] | None:
    """The first element of two numeric boxes that meet."""
    boxes = [region.box for region in (first, second) if region.box]
    found = []
    for axis in zip(*boxes, strict=True):
        starts = [start.value for start, _ in axis]
        if any(start is None for start in starts):
            return None
        found.append(max(start for start in starts if start is not None))
    return tuple(found) or None


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
