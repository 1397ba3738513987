"""Compares what the IR says a kernel touches with what a launch on the reference backend did touch.

`unadmitted`    logged accesses that no access of the IR admits: the IR misses something, a soundness bug
`unlogged`      elements that the IR admits and that were not touched: it says more than the text does

What was undefined is compared in `undefined`.
"""

from __future__ import annotations

import os.path
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
from soundness_launches import Trial
from soundness_points import Points

from tilecheck.ir.expr import Expr, Kind, Symbol, symbols
from tilecheck.ir.kernel import Access, Effect, Space, block_symbol, extent_symbol
from tilecheck.model import Site
from tilecheck.reference import AccessRecord, UndefinedRecord

Block = tuple[int, int, int]
EFFECTS = {Effect.READ: "read", Effect.ATOMIC: "atomic", Effect.WRITE: "write"}
REACH = {0: (1,), 1: (16, 800), 2: (12, 90), 3: (8, 24)}  # iterations that are tried, per loop
_MOST_POINTS = 60_000
# What leaves a block with values that mean nothing: what it touches afterwards is not the IR's business.
MEANINGLESS = frozenset({"overflow", "slice", "divisor", "member"})


@dataclass
class Tally:
    """How much was compared. Mutable: one trial after another adds to it."""

    both_ways: int = 0
    one_way: Counter[str] = field(default_factory=Counter)  # reason -> how often
    records: int = 0
    undefined: int = 0

    def add(self, other: Tally) -> None:
        self.both_ways += other.both_ways
        self.one_way.update(other.one_way)
        self.records += other.records
        self.undefined += other.undefined


# ---- the values of one block ---------------------------------------------------------------------------------


def launch_values(trial: Trial) -> dict[Symbol, int | bool]:
    """Every launch value, as the arguments really have it."""
    values = _Defaults(trial)
    for name, held in trial.contents.items():
        if isinstance(held, list):
            values[Symbol(f"len({name})", Kind.EXTENT)] = len(held)
            for k in range(held[0].ndim if held else 0):
                for number, part in enumerate(held):
                    values[extent_symbol(f"{name}[{number}]", k)] = part.shape[k]
                values[extent_symbol(f"{name}[*]", k)] = min(part.shape[k] for part in held)
    return values


class _Defaults(dict[Symbol, int | bool]):
    """A launch symbol that was not drawn has its default, the one that the arguments were made with."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial.concrete.values)
        self.trial = trial

    def __contains__(self, symbol: object) -> bool:
        return isinstance(symbol, Symbol) and (super().__contains__(symbol) or symbol.kind <= Kind.GRID)

    def __missing__(self, symbol: Symbol) -> int | bool:
        if symbol.kind is Kind.GRID:
            return self.trial.grid[int(symbol.name[5])]
        return self.trial.concrete.value(symbol)


def values_in(trial: Trial, block: Block) -> dict[Symbol, Any]:
    values = launch_values(trial)
    values.update({block_symbol(k): i for k, i in enumerate(block)})
    return values


def merged(values: Mapping[Symbol, Any], more: Mapping[Symbol, Any], trial: Trial) -> dict[Symbol, Any]:
    both = _Defaults(trial)
    both.update(values)
    both.update(more)
    return both


@dataclass(frozen=True, slots=True)
class Places:
    """The elements that an access touches, as terms over its lanes, block and iteration."""

    parts: tuple[Expr, ...]
    loops: tuple[Symbol, ...]
    lane_facts: Expr
    inside: Expr
    coordinates: tuple[Expr, ...]


@cache  # each access is held against many records
def _places(access: Access) -> Places:
    inside, coordinates = access.inside, tuple(axis.coordinate for axis in access.axes)
    own = () if access.member is None else (access.member,)
    parts = (access.guard, access.mask, inside, *coordinates, *own)
    return Places(parts, tuple(loops_of(parts)), access.lane_facts, inside, coordinates)


def loops_of(parts: Sequence[Expr]) -> list[Symbol]:
    return [s for s in symbols(*parts) if s.kind is Kind.LOOP]


def combinations(loops: Sequence[Symbol], reach: int) -> dict[Symbol, Any]:
    """Every combination of iteration numbers below `reach`, as columns."""
    grid = np.indices((reach,) * len(loops)).reshape(len(loops), reach ** len(loops))
    return {s: grid[i].reshape(-1, 1) for i, s in enumerate(loops)}


def _chosen(columns: Mapping[Symbol, Any], rows: Any) -> dict[Symbol, Any]:
    return {s: column[rows] for s, column in columns.items()}


@cache
def _real(path: str) -> str:
    return os.path.realpath(path)


def is_at(site: Site, record: AccessRecord | UndefinedRecord, *, exact: bool) -> bool:
    if _real(site.file) != _real(record.path):
        return False
    if exact:
        return (site.span.start, site.span.end) == (record.start, record.end)
    inner = site.span.start <= record.start and record.end <= site.span.end
    return inner or (record.start <= site.span.start and site.span.end <= record.end)


# ---- the log is admitted -------------------------------------------------------------------------------------


def unadmitted(trial: Trial, tally: Tally) -> Iterator[str]:
    """Every logged access that no access of the IR admits."""
    lost = {u.block for u in trial.log.undefined if u.kind in MEANINGLESS}
    for record in trial.log.accesses:
        if not len(record.elements):
            continue
        if record.block in lost:
            tally.one_way["undefined before"] += 1
            continue
        tally.records += 1
        of = (record.array, record.effect)
        same = [a for a in trial.kernel.accesses if (a.array, EFFECTS[a.effect]) == of]
        candidates = [a for a in same if is_at(a.site, record, exact=True)]
        candidates = candidates or [a for a in same if is_at(a.site, record, exact=False)]
        admitted = any(_admits(a, record, trial) for a in candidates)
        if not admitted and not _in_parts(candidates, record, trial):
            yield _not_admitted(record, candidates, trial)


def _in_parts(candidates: Sequence[Access], record: AccessRecord, trial: Trial) -> bool:
    """Whether a store whose lanes are sent elsewhere is taken apart: each lane is of one of the parts."""
    if not any(access.spare for access in candidates):
        return False
    rows = (slice(k, k + 1) for k in range(len(record.elements)))
    parts = (replace(record, elements=record.elements[k], lanes=record.lanes[k]) for k in rows)
    return all(any(_admits(access, part, trial) for access in candidates) for part in parts)


def _not_admitted(record: AccessRecord, candidates: Sequence[Access], trial: Trial) -> str:
    pairs = zip(record.elements.tolist(), record.lanes.tolist(), strict=True)
    rows = [f"element {element} lane {lane}" for element, lane in pairs]
    shown = "".join(f"\n    {_text(a)}" for a in candidates)
    return (
        f"{trial.describe()}\n  {record.effect} of {record.array} (member {record.member})"
        f" at bytes {record.start}:{record.end} in block {record.block}: {rows[:8]}"
        f"\n  is admitted by none of {len(candidates)} accesses:{shown}"
    )


def _text(access: Access) -> str:
    places = [*_places(access).coordinates]
    return f"{places} where {access.guard}, mask {access.mask}, bytes {access.site.span}"


def _admits(access: Access, record: AccessRecord, trial: Trial) -> bool:
    """Whether one iteration of the access touches all of these elements in these lanes."""
    if (access.space is Space.RAW) != record.raw or len(access.axes) != record.elements.shape[1]:
        return False
    if (access.order, access.scope) != (record.order, record.scope):
        return False
    if (access.member is None) != (record.member is None):
        return False
    values = values_in(trial, record.block)
    loops = _places(access).loops
    if len(loops) > max(REACH):  # how often earlier loops ran: unknown
        loops = tuple(s for s in loops if s in access.loops)[: max(REACH)]
    for reach in REACH[len(loops)]:
        combined = combinations(loops, reach)
        guard = Points(merged(values, combined, trial), trial.contents).of(access.guard).maybe
        possible = np.flatnonzero(np.broadcast_to(guard, (reach ** len(loops), 1)))
        for count in (1, len(record.elements)):  # the first row leaves few combinations for the others
            if not len(possible):
                break
            chosen = _chosen(combined, possible)
            points = merged(values, chosen, trial)
            possible = possible[_covers(access, record, count, points, trial, len(possible))]
        if len(possible):
            return True
    return False


def _covers(
    access: Access,
    record: AccessRecord,
    count: int,
    values: Mapping[Symbol, Any],
    trial: Trial,
    iterations: int,
) -> Any:
    """Of the iterations in `values`, those that may touch the first `count` elements of the record."""
    lanes = {}
    for symbol in access.lanes:
        axis = int(symbol.name.removeprefix("lane "))
        if axis < record.lanes.shape[1]:
            lanes[symbol] = record.lanes[:count, axis].reshape(1, -1)
    points, own = Points(merged(values, lanes, trial), trial.contents), _places(access)
    fine = np.ones((iterations, count), bool)
    for condition in (own.lane_facts, access.mask, own.inside):
        fine = fine & points.of(condition).maybe
    for number, coordinate in enumerate(own.coordinates):
        place = points.of(coordinate)
        fine = fine & ((place.data == record.elements[:count, number].reshape(1, -1)) | ~place.known)
    if access.member is not None:
        member = points.of(access.member)
        fine = fine & ((member.data == record.member) | ~member.known)
    return fine.all(axis=1)


# ---- what is admitted was logged -----------------------------------------------------------------------------


def unlogged(trial: Trial, tally: Tally, *, exact: bool) -> Iterator[str]:
    """Every access of which the IR admits, in some block, elements that the block did not touch.

    `exact` says whether the IR claims to say no more than the text: not where a loop may end early.
    """
    undefined = {u.block for u in trial.log.undefined}
    touched = _touched(trial)
    for access in trial.kernel.accesses:
        reason = None if exact else "a loop that may end early"
        if any(s.kind is Kind.OPAQUE for s in symbols(*_places(access).parts)):
            reason = "data that is not modelled"
        if access.synchronised:
            reason = "a branch on an atomic"
        for block in product(*map(range, trial.grid)):
            if reason is None and block in undefined:
                tally.one_way["undefined behaviour"] += 1
                continue
            admitted = None if reason else _admitted(access, block, trial)
            if admitted is None:
                tally.one_way[reason or "too many points"] += 1
                continue
            tally.both_ways += 1
            missing = admitted - _logged(access, block, touched)
            if missing:
                yield (
                    f"{trial.describe()}\n  {EFFECTS[access.effect]} of {access.array} in block {block}:"
                    f" the IR admits {sorted(missing)[:8]}, which was not touched:\n    {_text(access)}"
                )


_Key = tuple[str, int, int, str, str, Block]


def _touched(trial: Trial) -> dict[_Key, set[tuple[int, ...]]]:
    found: dict[_Key, set[tuple[int, ...]]] = {}
    for r in trial.log.accesses:
        key = (_real(r.path), r.start, r.end, r.array, r.effect, r.block)
        member = -1 if r.member is None else r.member
        found.setdefault(key, set()).update((member, *row) for row in r.elements.tolist())
    return found


def _logged(access: Access, block: Block, touched: Mapping[_Key, set[tuple[int, ...]]]) -> set[tuple[int, ...]]:
    span, file = access.site.span, _real(access.site.file)
    own = touched.get((file, span.start, span.end, access.array, EFFECTS[access.effect], block))
    if own is not None:
        return own
    found: set[tuple[int, ...]] = set()  # a site of which the two sides count parentheses differently
    for (path, start, end, array, effect, of), elements in touched.items():
        nested = (span.start <= start and end <= span.end) or (start <= span.start and span.end <= end)
        if (path, array, effect, of) == (file, access.array, EFFECTS[access.effect], block) and nested:
            found |= elements
    return found


def _admitted(access: Access, block: Block, trial: Trial) -> set[tuple[int, ...]] | None:
    """The elements that the IR admits for one block; None when there are too many points to look at."""
    values = values_in(trial, block)
    loops = _places(access).loops
    points = Points(values, trial.contents)
    sizes = [points.of(s.bound) for s in access.lanes if s.bound is not None]
    if len(sizes) != len(access.lanes) or any(s.data.ndim or not s.known for s in sizes):
        return None
    widths = [int(s.data) for s in sizes]
    if prod(widths) > _MOST_POINTS:
        return None
    cells = np.indices(widths).reshape(len(widths), prod(widths))
    lanes = {s: cells[i].reshape(1, -1) for i, s in enumerate(access.lanes)}
    for reach in REACH.get(len(loops), ()):
        combined = combinations(loops, reach)
        guard = Points(merged(values, combined, trial), trial.contents).of(access.guard)
        holds = np.flatnonzero(np.broadcast_to(guard.surely, (reach ** len(loops), 1)))
        chosen = _chosen(combined, holds)
        if any((column == reach - 1).any() for column in chosen.values()):
            continue  # there may be more iterations
        if len(holds) * cells.shape[1] > _MOST_POINTS * 10:
            return None
        where = merged(values, {**chosen, **lanes}, trial)
        return _elements(access, where, trial, (len(holds), cells.shape[1]))
    return None


def _elements(
    access: Access, values: Mapping[Symbol, Any], trial: Trial, shape: tuple[int, int]
) -> set[tuple[int, ...]]:
    points = Points(values, trial.contents)
    sure = np.ones(shape, bool)
    for condition in (access.mask, _places(access).inside):
        sure = sure & points.of(condition).surely
    places = [points.of(coordinate) for coordinate in _places(access).coordinates]
    if access.member is not None:
        places.insert(0, points.of(access.member))
    columns = []
    for place in places:
        sure = sure & place.known
        columns.append(np.broadcast_to(place.data, shape))
    rows = np.stack([c[sure] for c in columns], axis=1)
    prefix = () if access.member is not None else (-1,)
    return {(*prefix, *row) for row in rows.tolist()}
