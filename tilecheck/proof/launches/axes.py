"""Grid axes along which every visible launch has one block.

A kernel that reads such an axis and would go wrong with two blocks along it is used as its author means it:
`grid[0] <= 1` is then a launch condition like any other. Of a kernel without visible launches nobody knows.
So is `cdiv(V, BV) <= 1` where a block index is taken apart into `bid // cdiv(V, BV)` and `bid % cdiv(V, BV)`, a
store is placed by the first alone, and the text of every launch shows that there is no more than one such tile;
and `n <= 1` for a number n that is passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tilecheck.ir.expr import ONE, Expr, Kind, any_of, le, lt, sym, symbols, walk
from tilecheck.ir.kernel import Access, Effect, Kernel, Requirement, grid_symbol
from tilecheck.ir.launch import Launch
from tilecheck.proof.conditions.abduction import condition_text
from tilecheck.proof.conditions.candidates import tile_symbols
from tilecheck.proof.decide import Decision
from tilecheck.proof.launches.visible import Judges

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
    narrow = _under(kernel, conditions, decide)
    return narrow if _open(narrow) < _open(decision) else decision


def with_single_digits(
    kernel: Kernel, launches: Sequence[Launch], judges: Judges, decide: Callable[[Kernel], Decision]
) -> Decision | None:
    """The decision under the condition that decoded axes have one tile, without which blocks would store the
    same elements; None where every launch is not seen to meet that."""
    lost = tuple(dict.fromkeys(digit for a in kernel.accesses for digit in _lost_digits(a, kernel)))
    if not lost or any(launch.problem is not None for launch in launches):
        return None
    all_ = [judges.of(launch) for launch in launches]
    asked = {c: _compiled(c, kernel) for c in lost}
    single = [c for c in lost if all_ and all(j.follows(j.rewritten(asked[c])) for j in all_)]
    narrow = _under(kernel, single, decide) if single else None
    return None if narrow is None or narrow.vacuous else narrow


def _compiled(condition: Expr, kernel: Kernel) -> Expr:
    """The condition, or that it divides by the size of a tile which is none: no such launch compiles, as no
    power of two is 0. A host that passes `next_power_of_2(K)` passes 0 for a K of 0."""
    sizes = [size for size in kernel.powers_of_two if set(symbols(size)) & set(symbols(condition))]
    return any_of(condition, *(lt(size, 1) for size in sizes))


def _under(kernel: Kernel, conditions: Sequence[Expr], decide: Callable[[Kernel], Decision]) -> Decision:
    given = tuple(Requirement(c, condition_text(c), None, kernel.site) for c in conditions)
    narrow = decide(replace(kernel, requires=(*kernel.requires, *given)))
    return replace(narrow, conditions=tuple(dict.fromkeys((*conditions, *narrow.conditions))))


def _lost_digits(access: Access, kernel: Kernel) -> Iterator[Expr]:
    """`n <= 1` for the numbers of tiles n by which a store divides a block index, without taking remainders."""
    if access.effect is not Effect.WRITE:
        return
    tiles = tile_symbols(kernel)
    nodes = tuple(walk(*(axis.coordinate for axis in access.axes), access.guard, access.mask))
    decoded = [n for n in nodes if n.op in ("floordiv", "mod") and _has_block(n.args[0])]
    kept = {factor for n in decoded if n.op == "mod" for factor in _factors(n.args[1])}
    for node in decoded:
        for factor in _factors(node.args[1]) if node.op == "floordiv" else ():
            counts = factor.op == "floordiv" and any(s in tiles for s in symbols(factor.args[1]))
            counts |= factor.op == "sym" and factor.args[0] not in tiles
            if counts and factor not in kept and all(s.kind <= Kind.HOST for s in symbols(factor)):
                yield le(factor, 1)


def _has_block(e: Expr) -> bool:
    return any(s.kind is Kind.BLOCK for s in symbols(e))


def _factors(e: Expr) -> tuple[Expr, ...]:
    return e.args if e.op == "mul" else (e,)


def _open(decision: Decision) -> int:
    return sum(s.status in _OPEN for s in decision.settled)
