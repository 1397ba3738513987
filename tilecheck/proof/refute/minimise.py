"""Smaller counterexamples: one value at a time is made smaller, and the launch is replayed each time.

The order is fixed: the grid, tile sizes and other constants, scalars, extents. A step is kept when the claim
is still seen. Steps that break the kernel's facts cost nothing; replays are what the budget counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from tilecheck.ir.expr import Kind, Symbol
from tilecheck.ir.kernel import made_of
from tilecheck.proof.refute.concrete import Concrete

_ORDER = (Kind.GRID, Kind.CONSTANT, Kind.SCALAR, Kind.EXTENT, Kind.STRIDE)
_S = TypeVar("_S")


def minimise(
    concrete: Concrete,
    sighting: _S,
    launch: tuple[Symbol, ...],
    replay: Callable[[Concrete], _S | None],
    has_budget: Callable[[], bool],
) -> tuple[Concrete, _S]:
    """The smallest launch found on which `replay` still sees the claim, and what it saw there.

    Args:
        concrete: a launch on which the claim was seen.
        sighting: what was seen.
        launch: the symbols that may be made smaller.
        replay: runs a launch; None when the claim is not seen or the launch is not admitted.
        has_budget: whether another replay may be spent.
    """
    free = [i for i, symbol in enumerate(launch) if made_of(symbol) is None]
    order = sorted(free, key=lambda i: (_rank(launch[i]), i))
    changed = True
    while changed and has_budget():
        changed = False
        for symbol in (launch[i] for i in order):
            for value in _smaller(symbol, concrete.value(symbol)):
                if not has_budget():
                    return concrete, sighting
                trial = concrete.changed(symbol, value)
                found = replay(trial)
                if found is not None:
                    concrete, sighting, changed = trial, found, True
                    break
    return concrete, sighting


def _rank(symbol: Symbol) -> int:
    return _ORDER.index(symbol.kind) if symbol.kind in _ORDER else len(_ORDER)


def _smaller(symbol: Symbol, value: int | bool) -> Iterator[int]:
    """Smaller values to try, the smallest first; truth values are left alone."""
    if isinstance(value, bool) or symbol.kind not in _ORDER:
        return
    least = 0 if symbol.kind is Kind.SCALAR else 1
    tried = dict.fromkeys((least, 2, value // 2, value - 1))
    yield from (v for v in tried if least <= v < value)
