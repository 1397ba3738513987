"""Runs a launch at concrete host inputs and looks for harm: a race, or something undefined."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilecheck.ir.kernel import Kernel
from tilecheck.jit.reference import AccessRecord, Launch, Log, ReplayError, run
from tilecheck.model import Witness
from tilecheck.proof.concrete import Concrete, arguments
from tilecheck.proof.launch_check import Broken

_STEPS = 50_000
_MOST_BLOCKS = 300
_MOST_ELEMENTS = 1 << 17  # of one array
_KEPT = 4  # accesses remembered for a place

_Place = tuple[str, int | None, int]


def replay_launch(kernel: Kernel, broken: Broken, path: str) -> Witness | None:
    """What goes wrong when the launch runs with these inputs; None if nothing was seen."""
    values = {s: v for s, v in broken.concrete.items() if s.name.partition(".stride")[0] not in broken.expanded}
    concrete = Concrete(values).settled(kernel)
    given = arguments(concrete, kernel)
    grid = _grid(kernel, broken)
    if given is None or prod(grid) > _MOST_BLOCKS or 0 in grid:
        return None
    if any(isinstance(a, np.ndarray) and a.size > _MOST_ELEMENTS for a in given.values()):
        return None
    for name in broken.expanded:
        given[name] = np.lib.stride_tricks.as_strided(given[name], strides=(0,) * given[name].ndim)
    try:
        log = run(Launch(path, kernel.name, grid, given, None, _STEPS))
    except ReplayError:
        return None
    return _harm(log, given, grid, broken)


def _grid(kernel: Kernel, broken: Broken) -> tuple[int, int, int]:
    values = {s.name: int(v) for s, v in broken.concrete.items()}
    x, y, z = (values.get(f"grid[{k}]", 1) for k in range(3))
    return x, y, z


def _harm(log: Log, given: dict[str, Any], grid: tuple[int, int, int], broken: Broken) -> Witness | None:
    axes = max((k for k in range(3) if grid[k] > 1), default=0) + 1
    for record in log.undefined:
        return Witness(
            "bounds" if record.kind != "divisor" else "undefined",
            grid[:axes],
            (record.block[:axes],),
            dict(broken.values),
            record.array,
            record.element,
        )
    meeting = _meeting(log, given)
    if meeting is None:
        return None
    first, second, element = meeting
    blocks = tuple(dict.fromkeys((first.block[:axes], second.block[:axes])))
    kind = "alias" if broken.expanded else "overlap"
    return Witness(kind, grid[:axes], blocks, dict(broken.values), first.array, element)


def _meeting(log: Log, given: dict[str, Any]) -> tuple[AccessRecord, AccessRecord, tuple[int, ...]] | None:
    """Two blocks at one place, of which one writes."""
    touched: dict[_Place, tuple[AccessRecord, ...]] = {}
    for record in log.accesses:
        array = given[record.array] if record.member is None else given[record.array][record.member]
        for row in record.elements:
            element = tuple(int(c) for c in row)
            place = (record.array, record.member, _offset(array, element, raw=record.raw))
            before = touched.get(place, ())
            for other in before:
                if other.block != record.block and _conflict(other, record):
                    return other, record, element
            # Accesses of one effect and block meet the same others: one of them stands for all.
            if not any(o.block == record.block and o.effect == record.effect for o in before) and len(before) < _KEPT:
                touched[place] = (*before, record)
    return None


def _conflict(a: AccessRecord, b: AccessRecord) -> bool:
    effects = {a.effect, b.effect}
    return "write" in effects or effects == {"read", "atomic"}


def _offset(array: Any, element: tuple[int, ...], *, raw: bool) -> int:
    if raw:
        return element[0]
    return int(sum(i * s for i, s in zip(element, array.strides, strict=True)))
