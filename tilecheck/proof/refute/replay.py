"""Reading a claim off the log of a launch that the reference backend ran.

A claim is seen only if it was executed: two different blocks (or two iterations of one) that touched one
element at the obligation's sites, or an undefined operation of the right kind at its site. A site and a
logged operation belong together when they name the same file and the same bytes, or when one lies in the
other and no operation matches the site exactly (the two sides may count the parentheses around an expression
differently).
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import walk
from tilecheck.ir.kernel import Access, Effect
from tilecheck.model import Site
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation
from tilecheck.proof.refute.replay_order import Happened
from tilecheck.reference.log import AccessRecord, Log, UndefinedRecord
from tilecheck.reference.values.rows import row_keys

Block = tuple[int, int, int]
Rows = np.ndarray[Any, Any]

_EFFECTS = {Effect.READ: "read", Effect.ATOMIC: "atomic", Effect.WRITE: "write"}
_KINDS = {
    "bounds": ("tile-outside", "out-of-bounds", "slice", "member"),
    "undefined": ("divisor", "slice", "member", "tile-outside"),
    "overflow": ("overflow",),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """The shape and strides of one array of a launch, in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


Layouts = Mapping[str, Sequence[Layout]]  # per parameter; lists of arrays have one for each member


@dataclass(frozen=True, slots=True)
class Sighting:
    """A claim as it was seen: the blocks, the element, and where in their tiles it lay."""

    blocks: tuple[Block, ...]
    array: str
    element: tuple[int, ...] | None = None
    lanes: tuple[tuple[int, ...], ...] | None = None
    detail: str = ""


def seen(obligation: Obligation, log: Log, layouts: Layouts) -> Sighting | None:
    """The first place in the log that breaks the obligation, or None.

    Args:
        obligation: what was claimed to fail.
        log: what the launch did.
        layouts: the arrays of the launch, to compare raw offsets and extents with coordinates.
    """
    match obligation.goal:
        case Disjoint(between=Between.BLOCKS) as goal if goal.first.synchronised or goal.second.synchronised:
            return _unordered_meeting(goal, log, layouts)
        case Disjoint(between=Between.BLOCKS) as goal:
            return _meeting(goal, log, layouts)
        case Disjoint(between=Between.PROGRAM | Between.THREADS) as goal:
            return _threads(goal, log)
        case Disjoint(first=access, between=Between.ITERATIONS):
            return _repeated(access, log)
        case Disjoint(first=access):
            return _duplicate(access, log)
        case Holds(access=Access() as access) if obligation.kind == "ownership":
            return _performed(access, log)
        case Holds() as goal:
            return _undefined(goal, obligation, log, layouts)
        case _:
            return None


# ---------------------------------------------------------------------------------------------------------


class _Logged(Protocol):
    """What access records and undefined records have in common."""

    @property
    def path(self) -> str: ...

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


_L = TypeVar("_L", bound=_Logged)


def at_site(site: Site, records: Iterable[_L]) -> list[_L]:
    """The records of a site, exact matches first and alone if there are any."""
    found = list(records)
    here = os.path.realpath(site.file)
    files = {path for path in {r.path for r in found} if os.path.realpath(path) == here}
    same = [r for r in found if r.path in files]
    exact = [r for r in same if (r.start, r.end) == (site.span.start, site.span.end)]
    return exact or [r for r in same if _nested(site, r)]


def _nested(site: Site, record: _Logged) -> bool:
    inner = site.span.start <= record.start and record.end <= site.span.end
    return inner or (record.start <= site.span.start and site.span.end <= record.end)


def _records(access: Access, log: Log) -> list[AccessRecord]:
    effect = _EFFECTS[access.effect]
    return at_site(access.site, (r for r in log.accesses if r.array == access.array and r.effect == effect))


# ---- two blocks -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Touched:
    """Every element that some records touched: which record, which of its rows, which block."""

    records: Sequence[AccessRecord]
    owner: Rows
    row: Rows
    block: Rows
    places: Rows


def _meeting(goal: Disjoint, log: Log, layouts: Layouts) -> Sighting | None:
    """The first element that two different blocks touched, one by `first` and the other by `second`."""
    firsts, seconds = _records(goal.first, log), _records(goal.second, log)
    flat = len({r.raw for r in (*firsts, *seconds)}) > 1
    blocks = {b: i for i, b in enumerate(sorted({r.block for r in (*firsts, *seconds)}))}
    one, two = (_touched(r, blocks, layouts if flat else None) for r in (firsts, seconds))
    if one is None or two is None or one.places.shape[1] != two.places.shape[1]:
        return None
    keys = row_keys(np.concatenate([one.places, two.places]))
    mine, theirs = keys[: len(one.places)], keys[len(one.places) :]
    low, high = np.full(keys.max() + 1, len(blocks)), np.full(keys.max() + 1, -1)
    np.minimum.at(low, mine, one.block)
    np.maximum.at(high, mine, one.block)
    shared = (high[theirs] >= 0) & ((low[theirs] != two.block) | (high[theirs] != two.block))
    if not shared.any():
        return None
    at = int(np.flatnonzero(shared)[np.argmin(theirs[shared])])
    before = int(np.flatnonzero((mine == theirs[at]) & (one.block != two.block[at]))[0])
    return _pair(
        one.records[one.owner[before]], int(one.row[before]), two.records[two.owner[at]], int(two.row[at])
    )


def _unordered_meeting(goal: Disjoint, log: Log, layouts: Layouts) -> Sighting | None:
    """The first element that two blocks touched so, and that nothing in this run ordered.

    Behind a branch on an atomic's result a block may be ordered after another one: here that is looked at.
    """
    firsts, seconds = ([r for r in _records(a, log) if len(r.elements)] for a in (goal.first, goal.second))
    flat = len({r.raw for r in (*firsts, *seconds)}) > 1
    happened = Happened(log)
    touched: dict[tuple[int, ...], list[tuple[AccessRecord, int]]] = {}
    for record in firsts:
        for row, place in enumerate(_places(record, layouts if flat else None)):
            touched.setdefault(tuple(map(int, place)), []).append((record, row))
    for record in seconds:
        for row, place in enumerate(_places(record, layouts if flat else None)):
            for other, at in touched.get(tuple(map(int, place)), ()):
                if other.block != record.block and not happened.orders(other, record):
                    return _pair(other, at, record, row)
    return None


def _touched(
    records: Sequence[AccessRecord], blocks: Mapping[Block, int], layouts: Layouts | None
) -> _Touched | None:
    filled = [r for r in records if len(r.elements)]
    if not filled:
        return None
    sizes = [len(r.elements) for r in filled]
    return _Touched(
        filled,
        np.repeat(np.arange(len(filled)), sizes),
        np.concatenate([np.arange(n) for n in sizes]),
        np.repeat([blocks[r.block] for r in filled], sizes),
        np.concatenate([_places(r, layouts) for r in filled]),
    )


def _places(record: AccessRecord, layouts: Layouts | None) -> Rows:
    """What identifies each element: the list member, and its coordinates or its offset in memory."""
    elements = np.asarray(record.elements, np.int64)
    if layouts is not None and not record.raw:
        own = layouts[record.array][record.member or 0]
        elements = (elements @ np.array(own.strides, np.int64)).reshape(-1, 1)
    member = np.full((len(elements), 1), -1 if record.member is None else record.member)
    return np.concatenate([member, elements], axis=1)


def _pair(first: AccessRecord, row: int, second: AccessRecord, other: int) -> Sighting:
    if (first.start, first.end) == (second.start, second.end) and second.block < first.block:
        first, row, second, other = second, other, first, row
    element = tuple(int(c) for c in second.elements[other])
    lanes = (_lane(first, row), _lane(second, other))
    return Sighting((first.block, second.block), second.array, element, lanes if any(lanes) else None)


def _lane(record: AccessRecord, row: int) -> tuple[int, ...]:
    return tuple(int(c) for c in record.lanes[row]) if len(record.lanes) > row else ()


# ---- one block ------------------------------------------------------------------------------------------


def _duplicate(access: Access, log: Log) -> Sighting | None:
    """One operation of one block that hit an element in two lanes."""
    undefined = [u for u in log.undefined if u.kind == "duplicate" and u.array == access.array]
    for record in at_site(access.site, undefined):
        lanes = _lanes_at(record, log)
        return Sighting((record.block,), record.array, record.element, lanes, record.detail)
    return None


def _lanes_at(duplicate: UndefinedRecord, log: Log) -> tuple[tuple[int, ...], ...] | None:
    """The first two lanes that hit the element."""
    for record in log.accesses:
        same_call = (record.path, record.start, record.end) == (duplicate.path, duplicate.start, duplicate.end)
        if not same_call or record.block != duplicate.block or record.array != duplicate.array:
            continue
        rows = [r for r, e in enumerate(record.elements) if tuple(int(c) for c in e) == duplicate.element]
        if len(rows) > 1:
            return _lane(record, rows[0]), _lane(record, rows[1])
    return None


def _repeated(access: Access, log: Log) -> Sighting | None:
    """One element that two executions of an operation touched in one block."""
    before: dict[_Place, tuple[AccessRecord, int]] = {}
    for place, record, row in _touches(access, log):
        earlier, at = before.setdefault(place, (record, row))
        if earlier.sequence != record.sequence:
            lanes = (_lane(earlier, at), _lane(record, row))
            return Sighting((record.block,), record.array, place[2], lanes if any(lanes) else None)
    return None


def _threads(goal: Disjoint, log: Log) -> Sighting | None:
    """One element that one block touched by both accesses, in two different lanes."""
    touched: dict[_Place, list[tuple[AccessRecord, int]]] = {}
    for place, record, row in _touches(goal.first, log):
        touched.setdefault(place, []).append((record, row))
    for place, record, row in _touches(goal.second, log):
        for earlier, at in touched.get(place, ()):
            lanes = _lane(earlier, at), _lane(record, row)
            if lanes[0] != lanes[1]:
                return Sighting((record.block,), record.array, place[2], lanes)
    return None


_Place = tuple[Block, int | None, tuple[int, ...]]  # block, list member, coordinates


def _touches(access: Access, log: Log) -> Iterator[tuple[_Place, AccessRecord, int]]:
    """Every element that an access touched: by which block, and in which row of which record."""
    for record in _records(access, log):
        for row, coordinates in enumerate(record.elements):
            yield (record.block, record.member, tuple(int(c) for c in coordinates)), record, row


def _performed(access: Access, log: Log) -> Sighting | None:
    """Any execution of an operation that reached an element of its array."""
    for record in _records(access, log):
        if len(record.elements):
            element = tuple(int(c) for c in record.elements[0])
            return Sighting((record.block,), record.array, element, (_lane(record, 0),))
    return None


def _undefined(goal: Holds, obligation: Obligation, log: Log, layouts: Layouts) -> Sighting | None:
    kinds = _kinds(goal, obligation)
    found = [u for u in log.undefined if u.kind in kinds and _is_of(u, obligation.array)]
    for record in at_site(obligation.sites[0], found) if obligation.sites else ():
        if _is_about(record, goal, layouts):
            element = record.element if record.array else None
            return Sighting((record.block,), record.array, element, detail=record.detail)
    return _wrapped_index(obligation, log) if obligation.kind == "overflow" else None


def _wrapped_index(obligation: Obligation, log: Log) -> Sighting | None:
    """An access with an index below 0, in a block in which an earlier value wrapped."""
    wrapped = {u.block for u in log.undefined if u.kind == "overflow"}
    outside = [u for u in log.undefined if u.kind == "out-of-bounds" and u.block in wrapped]
    for record in at_site(obligation.sites[0], outside) if obligation.sites else ():
        if record.element is not None and min(record.element) < 0:
            return Sighting((record.block,), record.array, record.element)
    return None


def _kinds(goal: Holds, obligation: Obligation) -> tuple[str, ...]:
    if goal.access is not None and obligation.kind == "bounds":
        return ("tile-outside",) if goal.access.checked else ("out-of-bounds", "tile-outside")
    return _KINDS.get(obligation.kind, ())


def _is_of(record: UndefinedRecord, array: str) -> bool:
    return not array or not record.array or record.array == array


def _is_about(record: UndefinedRecord, goal: Holds, layouts: Layouts) -> bool:
    """Whether the tile is outside along the axis that the goal is about, where it is about one of several.

    The logged element has the tile's start on every axis. Views have extents of their own: there the
    operation alone decides.
    """
    access = goal.access
    if access is None or record.element is None or len(record.element) != len(access.axes):
        return True
    nodes = set(walk(goal.goal))
    axes = [k for k, axis in enumerate(access.axes) if axis.index in nodes and axis.extent in nodes]
    own = layouts.get(record.array, ())
    if len(axes) != 1 or len(own) != 1 or access.axes[axes[0]].extent.op != "sym":
        return True
    return not 0 <= record.element[axes[0]] < own[0].shape[axes[0]]
