"""Compares the undefined behaviour that a launch showed with the obligations that were stated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
from soundness_coverage import (
    MEANINGLESS,
    REACH,
    Block,
    Tally,
    combinations,
    is_at,
    loops_of,
    merged,
    values_in,
)
from soundness_launches import Trial
from soundness_points import Points

from tilecheck.ir.expr import Expr, Kind, symbols
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation
from tilecheck.reference import UndefinedRecord

_RULES = {
    "tile-outside": ("TC302",),
    "out-of-bounds": ("TC303",),
    "divisor": ("TC301",),
    "slice": ("TC304",),
    "overflow": ("TC305",),
    "duplicate": ("TC203",),
    "member": ("TC306",),
}


def unstated(
    trial: Trial, obligations: Sequence[Obligation], tally: Tally, ignore: Sequence[str] = ()
) -> Iterator[str]:
    """Every undefined operation that no obligation, false for these values, speaks of."""
    seen: set[tuple[str, int, int, str, Block]] = set()
    lost: set[Block] = set()
    for record in trial.log.undefined:
        key = (record.kind, record.start, record.end, record.array, record.block)
        if key in seen or record.block in lost:
            continue
        seen.add(key)
        if record.kind in MEANINGLESS:
            lost.add(record.block)
        if record.kind in ignore:
            continue
        tally.undefined += 1
        own = [o for o in obligations if o.rule in _RULES[record.kind]]
        exact = [o for o in own if any(is_at(s, record, exact=True) for s in o.sites)]
        near = exact or [o for o in own if any(is_at(s, record, exact=False) for s in o.sites)]
        if not any(_is_false(o, record, trial) for o in near):
            goals = "\n".join(f"    {o.rule} {o.goal}" for o in near)
            yield f"{trial.describe()}\n  {record}\n  is denied by none of {len(near)} obligations:\n{goals}"


def _is_false(obligation: Obligation, record: UndefinedRecord, trial: Trial) -> bool:
    goal = obligation.goal
    if isinstance(goal, Disjoint):  # that two lanes meet was checked lane by lane in `unadmitted`
        return goal.between is Between.LANES and goal.first.array == record.array
    return isinstance(goal, Holds) and _fails(goal, obligation.assume, record.block, trial)


def _fails(goal: Holds, assume: Expr, block: Block, trial: Trial) -> bool:
    """Whether the goal may be false in some iteration and lane where what is given may hold."""
    values = values_in(trial, block)
    parts = (goal.given, goal.goal, assume)
    loops = loops_of(parts)[: max(REACH)]  # others are unknown
    lanes = [s for s in symbols(*parts) if s.kind is Kind.LANE]
    start = Points(values, trial.contents)
    sizes = [start.of(s.bound) for s in lanes if s.bound is not None]
    if len(sizes) != len(lanes) or any(s.data.ndim or not s.known for s in sizes):
        return True  # lanes that are not known
    widths = [int(s.data) for s in sizes]
    cells = np.indices(widths).reshape(len(widths), prod(widths))
    rows = {s: cells[i].reshape(1, -1) for i, s in enumerate(lanes)}
    for reach in REACH[len(loops)]:
        points = Points(merged(values, {**combinations(loops, reach), **rows}, trial), trial.contents)
        given, holds, assumed = (points.of(e) for e in (goal.given, goal.goal, assume))
        if np.any(given.maybe & assumed.maybe & ~holds.surely):
            return True
    return False
