"""Values in memory that send two blocks to one element, or one block before the start of an array.

A contract may exclude such values, so they show no violation. A report names them, so that its reader sees
what a contract has to exclude.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr, Kind
from tilecheck.ir.kernel import Kernel
from tilecheck.proof.conditions.contract_needs import tables_of
from tilecheck.proof.goals.context import Context
from tilecheck.proof.obligation import Disjoint, Holds, Obligation
from tilecheck.proof.refute.concrete import Concrete, arguments, is_admitted, launch_symbols, layouts
from tilecheck.proof.refute.replay import Sighting, seen
from tilecheck.proof.solver.fuel import Fuel, OutOfFuel
from tilecheck.reference import AccessRecord, Log, ReplayError
from tilecheck.reference import Launch as Run

_STATEMENTS = 2000  # of one run
# Sizes of arrays and numbers, and of tiles, in a grid of two blocks.
_TRIALS = ((128, 64), (16, 8), (1024, 512), (64, 64), (2, 1))
_FILL = "ones"  # each element of a table is the same


@dataclass(frozen=True, slots=True)
class Reached:
    """The element that blocks touch, and for each block the cell of memory that leads it there: all hold one
    value."""

    blocks: tuple[tuple[int, ...], ...]
    array: str
    element: tuple[int, ...]
    cells: tuple[tuple[str, tuple[int, ...]], ...]
    value: int


class SmallRuns:
    """Small launches of a kernel over arrays of ones. Mutable: each is run when it is first asked for, once.

    Args:
        kernel: the kernel.
        conditions: that the launches keep.
        path: the kernel's file.
    """

    def __init__(self, kernel: Kernel, conditions: Sequence[Expr], path: str) -> None:
        self.axes = max(kernel.grid_axes, default=0) + 1
        self._made: list[_Run] = []
        self._more = _runs(kernel, conditions, path) if 0 in kernel.grid_axes else iter(())

    def showing(self, obligation: Obligation) -> Iterator[tuple[Sighting, _Run]]:
        """What breaks an obligation in them."""
        for run in self:
            found = seen(obligation, run.log, run.layouts)
            if found is not None and found.element is not None:
                yield found, run

    def __iter__(self) -> Iterator[_Run]:
        for number in itertools.count():
            if number == len(self._made):
                self._made += itertools.islice(self._more, 1)
            if number == len(self._made):
                return
            yield self._made[number]


@dataclass(frozen=True, slots=True)
class _Run:
    """What a launch did, and what its arrays held at the start."""

    log: Log
    layouts: Mapping[str, Any]
    starts: Mapping[str, Any]


def collision(runs: SmallRuns, obligation: Obligation) -> Reached | None:
    """What two blocks do where a table holds one value twice; None if no small run shows it."""
    tables = tables_of(obligation)
    if not tables or not isinstance(obligation.goal, Disjoint):
        return None
    for found, run in runs.showing(obligation):
        if len(set(found.blocks)) > 1:
            own = {name: start for name, start in run.starts.items() if name in tables}
            return _reached(found, run.log, own, runs.axes)
    return None


def outside(runs: SmallRuns, obligation: Obligation) -> Reached | None:
    """Where a block reaches before the start of an array, after it has read another one; None if no small run
    shows it. Where an array ends, launches decide."""
    if not isinstance(obligation.goal, Holds) or obligation.goal.access is None:
        return None
    for found, run in runs.showing(obligation):
        if min(found.element or (0,)) < 0:
            others = {name: start for name, start in run.starts.items() if name != found.array}
            reached = _reached(found, run.log, others, runs.axes)
            if reached is not None:
                return reached
    return None


def _runs(kernel: Kernel, conditions: Sequence[Expr], path: str) -> Iterator[_Run]:
    context, fuel = Context(kernel).under(*conditions), Fuel(len(_TRIALS) * _STATEMENTS)
    for size, tile in _TRIALS:
        concrete = Concrete(_values(context, size, tile), fill=_FILL).settled(kernel)
        given = arguments(concrete, kernel) if is_admitted(concrete, context) else None
        if given is None:
            continue
        starts = {name: value.copy() for name, value in given.items() if isinstance(value, np.ndarray)}
        try:
            log = fuel.run(Run(path, kernel.name, concrete.grid(kernel), given, None, _STATEMENTS))
        except (OutOfFuel, ReplayError):
            continue
        yield _Run(log, layouts(given), starts)


def _values(context: Context, size: int, tile: int) -> dict[Any, int]:
    kinds = {Kind.CONSTANT: tile, Kind.SCALAR: size, Kind.EXTENT: size}
    found = {s: kinds[s.kind] for s in launch_symbols(context) if s.kind in kinds}
    grid = {s: 2 if s.name == "grid[0]" else 1 for s in launch_symbols(context) if s.kind is Kind.GRID}
    return {**found, **grid}


def _reached(found: Sighting, log: Log, starts: Mapping[str, Any], axes: int) -> Reached | None:
    """What blocks touched, with the first element that each has read of the arrays in `starts`."""
    cells = []
    for number, block in enumerate(found.blocks):
        lane = () if found.lanes is None else found.lanes[number]
        reads = [r for r in log.accesses if r.block == block and r.effect == "read" and r.array in starts]
        record = next((r for r in reads if len(r.elements)), None)
        if record is None:
            return None
        cells.append((record.array, _element(record, lane)))
    if len(set(cells)) != len(cells) or not all(_is_inside(at, starts[array].shape) for array, at in cells):
        return None
    values = {int(starts[array][at]) for array, at in cells}
    if len(values) != 1:
        return None
    blocks = tuple(block[:axes] for block in found.blocks)
    return Reached(blocks, found.array, found.element or (), tuple(cells), values.pop())


def _is_inside(at: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(at) == len(shape) and all(0 <= k < n for k, n in zip(at, shape, strict=True))


def _element(record: AccessRecord, lane: tuple[int, ...]) -> tuple[int, ...]:
    """What a lane reads; the first element where the tile has another shape."""
    rows = [k for k, own in enumerate(record.lanes) if tuple(int(c) for c in own) == lane]
    return tuple(int(c) for c in record.elements[rows[0] if rows else 0])
