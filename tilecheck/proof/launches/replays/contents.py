"""Runs a launch with the values that its host makes, and looks for harm in what was proved with a contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tilecheck.ir.kernel import Kernel
from tilecheck.model import Witness
from tilecheck.proof.launches.contracts import Values
from tilecheck.proof.launches.judge import Broken
from tilecheck.proof.obligation import Disjoint, Obligation
from tilecheck.proof.refute.concrete import FILLS, Concrete, arguments, integer_arrays, layouts
from tilecheck.proof.refute.replay import Sighting, seen
from tilecheck.proof.solver.fuel import Fuel, OutOfFuel
from tilecheck.reference import Launch, ReplayError, StepLimit

_STEPS = 50_000
_MOST_BLOCKS = 64


def replay_with(
    kernel: Kernel, broken: Broken, values: Values, path: str, fuel: Fuel, claims: Sequence[Obligation]
) -> Witness | None:
    """The first of `claims` that is seen to fail when the launch runs with these values in memory, whatever
    fills the arrays that the host does not make; None if there is none, or the launch cannot be run.

    Of a large grid only the blocks at its ends run.
    """
    kept = tuple(c for c in kernel.contracts if not set(c.arrays) & set(values))
    kernel = replace(kernel, contracts=kept)
    witness = None
    for fill in FILLS if integer_arrays(kernel) else FILLS[:1]:
        given = _given(kernel, broken, values, fill)
        grid = _grid(broken)
        if given is None or 0 in grid:
            return None
        try:
            log = fuel.charge(Launch(path, kernel.name, grid, given, _blocks(grid), _STEPS))
        except (StepLimit, ReplayError, OutOfFuel):
            return None
        shown = layouts(given)
        sightings = ((o, seen(o, log, shown)) for o in claims)
        found = next(((o, s) for o, s in sightings if s is not None), None)
        if found is None:
            return None
        witness = _witness(*found, grid, broken)
    return witness


def _given(kernel: Kernel, broken: Broken, values: Values, fill: str) -> dict[str, Any] | None:
    """The arguments of the launch, with these values in the arrays."""
    found = arguments(Concrete(broken.concrete, fill=fill).settled(kernel), kernel)
    if found is None:
        return None
    for name, elements in values.items():
        array = found.get(name)
        if not isinstance(array, np.ndarray) or array.size != len(elements):
            return None
        found[name] = array.astype(np.int32)
        found[name][...] = np.array(elements, np.int64).reshape(array.shape)
    return found


def _grid(broken: Broken) -> tuple[int, int, int]:
    values = {s.name: int(v) for s, v in broken.concrete.items()}
    x, y, z = (values.get(f"grid[{k}]", 1) for k in range(3))
    return x, y, z


def _blocks(grid: tuple[int, int, int]) -> tuple[tuple[int, int, int], ...] | None:
    if prod(grid) <= _MOST_BLOCKS:
        return None
    ends = (sorted({0, min(1, n - 1), max(0, n - 2), n - 1}) for n in grid)
    return tuple((x, y, z) for x, y, z in product(*ends))


def _witness(obligation: Obligation, sighting: Sighting, grid: tuple[int, int, int], broken: Broken) -> Witness:
    axes = max((k for k in range(3) if grid[k] > 1), default=0) + 1
    blocks = tuple(dict.fromkeys(block[:axes] for block in sighting.blocks))
    is_race = isinstance(obligation.goal, Disjoint)
    kind = "overlap" if is_race else "bounds" if obligation.kind == "bounds" else "undefined"
    return Witness(kind, grid[:axes], blocks, dict(broken.values), sighting.array, sighting.element)
