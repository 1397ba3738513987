"""Grid axes along which every visible launch has one block.

A kernel that reads such an axis and would go wrong with two blocks along it is used as its author means it:
`grid[0] <= 1` is then a launch condition like any other. Of a kernel without visible launches nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilecheck.ir.expr import ONE, Expr, le, sym
from tilecheck.ir.kernel import Kernel, Requirement, grid_symbol
from tilecheck.ir.launch import Launch
from tilecheck.proof.conditions import condition_text
from tilecheck.proof.decide import Decision

_OPEN = ("violated", "unknown")


def single_axes(kernel: Kernel, launches: Sequence[Launch]) -> tuple[int, ...]:
    """The axes that the kernel reads and that have one block in every launch, all of which are read."""
    grids = [launch.grid for launch in launches if launch.problem is None]
    if len(grids) < len(launches):
        return ()
    return tuple(
        axis
        for axis in kernel.grid_axes
        if grids and all(grid is not None and (*grid, ONE, ONE)[axis] is ONE for grid in grids)
    )


def with_single_axes(
    kernel: Kernel, decision: Decision, launches: Sequence[Launch], decide: Callable[[Kernel], Decision]
) -> Decision:
    """The decision under the condition that these axes have one block, where less is open then."""
    if decision.vacuous or _open(decision) == 0:
        return decision
    conditions: list[Expr] = [le(sym(grid_symbol(axis)), 1) for axis in single_axes(kernel, launches)]
    if not conditions:
        return decision
    given = tuple(Requirement(c, condition_text(c), None, kernel.site) for c in conditions)
    narrow = decide(replace(kernel, requires=(*kernel.requires, *given)))
    if _open(narrow) >= _open(decision):
        return decision
    return replace(narrow, conditions=tuple(dict.fromkeys((*conditions, *narrow.conditions))))


def _open(decision: Decision) -> int:
    return sum(s.status in _OPEN for s in decision.settled)
