"""Runs a launch at concrete host inputs and looks for harm: a race, or something undefined.

`LaunchRun` looks for obligations that fail, `replay_launch` for anything that goes wrong where a standing
obligation does not hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tilecheck.ir.expr import Symbol
from tilecheck.ir.kernel import Kernel, extent_symbol, stride_symbol
from tilecheck.model import Site, Witness
from tilecheck.proof.goals.context import Context
from tilecheck.proof.launches.judge import Broken
from tilecheck.proof.obligation import Disjoint, Obligation
from tilecheck.proof.refute.concrete import FILLS, Concrete, arguments, integer_arrays, layouts
from tilecheck.proof.refute.counterexample import is_claimable
from tilecheck.proof.refute.replay import Block, Sighting, at_site, seen
from tilecheck.proof.solver.fuel import Fuel
from tilecheck.reference import AccessRecord, Launch, Log, NotInterpretable, ReplayError, StepLimit

_STEPS = 50_000
_MOST_BLOCKS = 64
_MOST_ELEMENTS = 1 << 24  # of one array
_MOST_CELLS = 1 << 22  # of one array of a launch that runs whole
_KEPT = 4  # accesses remembered for a place

_Place = tuple[str, int | None, int]


@dataclass(frozen=True, eq=False)
class LaunchRun:
    """Replays of one launch. `path` is the kernel's file. What goes wrong in an array that is `unknown` counts
    for nothing: the launch does not show what it passes there."""

    kernel: Kernel
    path: str
    fuel: Fuel
    unknown: frozenset[str] = frozenset()

    def is_small(self, broken: Broken) -> bool:
        """Whether the launch can run whole at these inputs."""
        few = prod(_grid(self.kernel, broken)) <= _MOST_BLOCKS
        return few and _elements(self.kernel, broken) <= _MOST_CELLS

    def whole(self, broken: Broken, asked: Sequence[Obligation]) -> Witness | None:
        """An obligation of `asked` that fails when all blocks run, whatever fills memory."""
        asked = [o for o in asked if is_claimable(o, Context(self.kernel))]
        fills = FILLS if integer_arrays(self.kernel) else FILLS[:1]
        witness = None
        for fill in fills:
            witness = self._shown(broken, asked, Concrete(broken.concrete, fill=fill), None)
            if witness is None:
                return None
        return witness

    def of_blocks(self, broken: Broken, obligation: Obligation, blocks: Sequence[Block]) -> Witness | None:
        """The obligation failing when these blocks alone run. Arrays too large to allocate are addresses alone,
        and so count only where no value in memory decides what the blocks do."""
        if not is_claimable(obligation, Context(self.kernel)):
            return None
        concrete = Concrete(broken.concrete, virtual=not integer_arrays(self.kernel))
        return self._shown(broken, (obligation,), concrete, blocks)

    def _shown(
        self, broken: Broken, asked: Sequence[Obligation], concrete: Concrete, blocks: Sequence[Block] | None
    ) -> Witness | None:
        try:
            return self._ran(broken, asked, concrete, blocks)
        except NotInterpretable:  # arrays taken for floats may hold integers
            try:
                return self._ran(broken, asked, replace(concrete, integers=True), blocks)
            except NotInterpretable:
                return None

    def _ran(
        self, broken: Broken, asked: Sequence[Obligation], concrete: Concrete, blocks: Sequence[Block] | None
    ) -> Witness | None:
        concrete = concrete.settled(self.kernel)
        given = arguments(concrete, self.kernel)
        grid = _grid(self.kernel, broken)
        if given is None or 0 in grid:
            return None
        given |= block_shapes(broken)
        chosen = None
        if blocks is not None:
            chosen = [b for b in blocks if all(i < n for i, n in zip(b, grid, strict=True))]
        try:
            log = self.fuel.charge(Launch(self.path, self.kernel.name, grid, given, chosen, _STEPS))
        except NotInterpretable:
            raise
        except ReplayError:
            return None
        unbounded = {*self.unknown, *_of_unknown_size(self.kernel, broken.concrete)}
        for obligation in asked:
            ignored = self.unknown if isinstance(obligation.goal, Disjoint) else unbounded
            if obligation.array in ignored:
                continue
            sighting = seen(obligation, log, layouts(given))
            if sighting is not None and sighting.array not in ignored:
                return _witness(obligation, sighting, grid, broken)
        return None


def _witness(obligation: Obligation, sighting: Sighting, grid: Block, broken: Broken) -> Witness:
    axes = max((k for k in range(3) if grid[k] > 1), default=0) + 1
    blocks = tuple(b[:axes] for b in dict.fromkeys(sighting.blocks))
    values: dict[str, int | list[int]] = dict(broken.values)
    return Witness(
        obligation.kind, grid[:axes], blocks, values, sighting.array, sighting.element, sighting.lanes
    )


class TooLarge(Exception):
    """The launch cannot be replayed at these inputs."""


def replay_launch(
    kernel: Kernel,
    broken: Broken,
    path: str,
    fuel: Fuel,
    open_: Sequence[Obligation] = (),
    unknown: Collection[str] = (),
) -> Witness | None:
    """What goes wrong when the launch runs with these inputs; None if nothing was seen.

    Of a large grid only the blocks at its corners run. What goes wrong where `open_` obligations stand is not
    the launch's doing: no condition was found that keeps it from happening. Nor is what depends on the values
    in memory that decide where a kernel goes: harm counts if it shows whatever fills memory. Nor is what goes
    wrong in an array that is `unknown`, of which the launch does not show what it passes, nor an access outside
    one of which it does not show the size: the caller may pass a larger one.

    Raises:
        TooLarge: the arrays are too large, or the kernel does not end in time.
    """
    if _elements(kernel, broken) > _MOST_ELEMENTS:
        raise TooLarge
    fills = FILLS if integer_arrays(kernel) else FILLS[:1]
    witness = None
    for fill in fills:
        witness = _replayed(kernel, broken, path, fuel, open_, fill, unknown)
        if witness is None:
            return None
    return witness


def _replayed(
    kernel: Kernel,
    broken: Broken,
    path: str,
    fuel: Fuel,
    open_: Sequence[Obligation],
    fill: str,
    unknown: Collection[str],
) -> Witness | None:
    values = {s: v for s, v in broken.concrete.items() if s.name.partition(".stride")[0] not in broken.expanded}
    concrete = Concrete(values, fill=fill).settled(kernel)
    given = arguments(concrete, kernel)
    grid = _grid(kernel, broken)
    if given is None or 0 in grid:
        return None
    given |= block_shapes(broken)
    for name in broken.expanded:
        given[name] = _expanded(given[name], name, broken)
    corners = tuple((x, y, z) for x, y, z in product(*map(_ends, grid)))
    chosen = None if prod(grid) <= _MOST_BLOCKS else corners
    try:
        log = fuel.charge(Launch(path, kernel.name, grid, given, chosen, _STEPS))
    except StepLimit as limit:
        raise TooLarge from limit
    except ReplayError:
        return None
    unbounded = {*unknown, *_of_unknown_size(kernel, values)}
    shown = Log(
        [r for r in log.accesses if r.array not in unknown],
        [r for r in log.undefined if r.array not in unbounded],
    )
    return _harm(shown, given, grid, broken, open_)


def block_shapes(broken: Broken) -> dict[str, int]:
    """The block shapes of descriptors that the launch says."""
    return {s.name: int(v) for s, v in broken.concrete.items() if ".block_shape[" in s.name}


def _of_unknown_size(kernel: Kernel, values: Collection[Symbol]) -> set[str]:
    """The arrays some extent of which `values` does not give."""
    return {
        p.name
        for p in kernel.params
        if p.is_array and any(extent_symbol(p.name, k) not in values for k in range(p.rank or 1))
    }


def _elements(kernel: Kernel, broken: Broken) -> int:
    """The size of the largest array of the launch."""
    sizes = [1]
    for param in kernel.params:
        extents = [broken.concrete.get(extent_symbol(param.name, k), 1) for k in range(param.rank or 0)]
        sizes.append(prod(int(n) for n in extents))
    return max(sizes)


def _expanded(array: Any, name: str, broken: Broken) -> Any:
    """The array with the strides of the launch: 0 along the axes that were expanded."""
    strides = [int(broken.concrete.get(stride_symbol(name, k), 1)) for k in range(array.ndim)]
    return np.lib.stride_tricks.as_strided(array, strides=[s * array.itemsize for s in strides])


def _ends(size: int) -> tuple[int, ...]:
    return tuple(sorted({0, min(1, size - 1), max(0, size - 2), size - 1}))


def _grid(kernel: Kernel, broken: Broken) -> tuple[int, int, int]:
    values = {s.name: int(v) for s, v in broken.concrete.items()}
    x, y, z = (values.get(f"grid[{k}]", 1) for k in range(3))
    return x, y, z


def _harm(
    log: Log, given: dict[str, Any], grid: tuple[int, int, int], broken: Broken, open_: Sequence[Obligation]
) -> Witness | None:
    axes = max((k for k in range(3) if grid[k] > 1), default=0) + 1
    single = [o.sites[0] for o in open_ if not isinstance(o.goal, Disjoint)]
    pairs = [(o.sites[0], o.sites[-1]) for o in open_ if isinstance(o.goal, Disjoint)]
    for record in log.undefined:
        if any(at_site(site, (record,)) for site in single):
            continue
        return Witness(
            "bounds" if record.kind != "divisor" else "undefined",
            grid[:axes],
            (record.block[:axes],),
            dict(broken.values),
            record.array,
            record.element,
        )
    meeting = _meeting(log, given, pairs)
    if meeting is None:
        return None
    first, second, element = meeting
    blocks = tuple(dict.fromkeys((first.block[:axes], second.block[:axes])))
    kind = "alias" if broken.expanded else "overlap"
    return Witness(kind, grid[:axes], blocks, dict(broken.values), first.array, element)


def _meeting(
    log: Log, given: dict[str, Any], open_: Sequence[tuple[Site, Site]]
) -> tuple[AccessRecord, AccessRecord, tuple[int, ...]] | None:
    """Two blocks at one place, of which one writes; pairs of operations that are `open_` do not count."""
    touched: dict[_Place, tuple[AccessRecord, ...]] = {}
    known: dict[tuple[Site, str, int, int], bool] = {}

    def stands(record: AccessRecord, site: Site) -> bool:
        key = (site, record.path, record.start, record.end)
        if key not in known:
            known[key] = bool(at_site(site, (record,)))
        return known[key]

    def is_open(a: AccessRecord, b: AccessRecord) -> bool:
        return any(
            (stands(a, one) and stands(b, two)) or (stands(b, one) and stands(a, two)) for one, two in open_
        )

    for record in log.accesses:
        array = given[record.array] if record.member is None else given[record.array][record.member]
        for row in record.elements:
            element = tuple(int(c) for c in row)
            place = (record.array, record.member, _offset(array, element, raw=record.raw))
            before = touched.get(place, ())
            for other in before:
                if other.block == record.block or not _conflict(other, record):
                    continue
                if not is_open(other, record):
                    return other, record, element
            # Accesses of one effect and block meet the same others: one of them stands for all.
            if (
                not any(o.block == record.block and o.effect == record.effect for o in before)
                and len(before) < _KEPT
            ):
                touched[place] = (*before, record)
    return None


def _conflict(a: AccessRecord, b: AccessRecord) -> bool:
    effects = {a.effect, b.effect}
    return "write" in effects or effects == {"read", "atomic"}


def _offset(array: Any, element: tuple[int, ...], *, raw: bool) -> int:
    if raw:
        return element[0]
    return int(sum(i * s for i, s in zip(element, array.strides, strict=True)))
