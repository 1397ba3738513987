"""Candidates for races that atomics order: how many blocks count, and that the flag has its element."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.flags import observed
from tilecheck.ir.expr import Expr, add, conjuncts, le, sym, symbols
from tilecheck.ir.kernel import Access, Kernel, grid_symbol


def flag_conditions(kernel: Kernel, access: Access) -> Iterator[Expr]:
    """Conditions under which what a block saw of a flag orders its access after those of all others.

    Outside its array a checked atomic returns anything. Who is the last of `n` to count is the last of the grid
    if that has at most `n` blocks.
    """
    for atomic in observed(kernel, access) if access.synchronised else ():
        for axis in atomic.axes if atomic.checked else ():
            if not any(s.varies for s in symbols(axis.coordinate)):
                yield le(add(axis.coordinate, 1), axis.extent)
        for part in conjuncts(access.guard) if len(kernel.grid_axes) == 1 else ():
            if part.op == "eq" and atomic.result in part.args:
                for last in part.args:
                    if last.value is None and not any(s.varies for s in symbols(last)):
                        yield le(sym(grid_symbol(kernel.grid_axes[0])), add(last, 1))
