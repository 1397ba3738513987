"""Which elements the stores of a launch write, as the analysis reads them: all blocks and lanes at once.

The reference backend runs whatever a kernel computes to find where it stores. Where that rests on nothing but
the block, the lane and the launch, and no loop is left before its end, a store is made exactly where its guard
and its mask say. What is not read so counts as not written: an array is found to be written as a whole only if
it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from tilecheck.ir.expr import Expr, Kind, Symbol, symbols, walk
from tilecheck.ir.kernel import Access, Effect, Kernel, Space, block_symbol, extent_symbol, grid_symbol, made_of
from tilecheck.proof.refute.concrete import Concrete

_MOST = 1 << 22  # lanes of all blocks of one store

_Values = np.ndarray[Any, Any]


def is_written_whole(kernel: Kernel, name: str, concrete: Concrete) -> bool:
    """Whether the stores to an array reach each of its elements, in a kernel that leaves no loop early."""
    stores = [a for a in kernel.accesses if a.array == name and a.effect is not Effect.READ]
    read = [store for store in stores if _is_read(store, concrete)]
    ranks = {len(store.axes) for store in read}
    if len(ranks) != 1:
        return False
    written = np.zeros([int(concrete.value(extent_symbol(name, k))) for k in range(ranks.pop())], bool)
    for store in read:
        with np.errstate(all="ignore"):  # divisors of what is not chosen
            _mark(written, store, kernel, concrete)
        if written.all():
            return True
    return False


def _is_read(store: Access, concrete: Concrete) -> bool:
    """Whether it is known which lanes of which blocks make a store."""
    if store.loops or store.member is not None or store.space is Space.RAW:
        return False
    parts = tuple(_parts(store))
    if any(node.op in ("read", "bit") for node in walk(*parts)):
        return False
    return all(
        s.kind in (Kind.BLOCK, Kind.GRID, Kind.LANE) or s in concrete.values or made_of(s) is not None
        for s in symbols(*parts, *(lane.bound for lane in store.lanes if lane.bound is not None))
    )


def _parts(store: Access) -> Iterator[Expr]:
    yield from (store.guard, store.mask, store.inside)
    for axis in store.axes:
        yield axis.coordinate


def _mark(written: _Values, store: Access, kernel: Kernel, concrete: Concrete) -> None:
    """Mark what a store writes; nothing where it has too many lanes."""
    grid = concrete.grid(kernel)
    ends = {block_symbol(k): grid[k] for k in range(len(grid))}
    values: dict[Symbol, Any] = {grid_symbol(k): grid[k] for k in range(len(grid))}
    for lane in store.lanes:
        if lane.bound is None:
            return
        ends[lane] = int(_Evaluation(values, concrete).of(lane.bound))
    if not 0 < prod(ends.values()) <= _MOST:
        return
    for number, (symbol, end) in enumerate(ends.items()):
        values[symbol] = np.arange(end).reshape([-1 if k == number else 1 for k in range(len(ends))])
    evaluation, shape = _Evaluation(values, concrete), tuple(ends.values())
    places = [evaluation.of(axis.coordinate) for axis in store.axes]
    taken = np.ones(shape, bool)
    for condition in (store.guard, store.mask, store.inside):
        taken &= np.asarray(evaluation.of(condition), bool)  # a flag may be a number
    for place, extent in zip(places, written.shape, strict=True):
        taken &= (place >= 0) & (place < extent)
    written[tuple(np.broadcast_to(place, shape)[taken] for place in places)] = True


class _Evaluation:
    """Values of expressions for all blocks and lanes. Mutable: it remembers them."""

    def __init__(self, values: dict[Symbol, Any], concrete: Concrete) -> None:
        self._values = values
        self._concrete = concrete
        self._known: dict[Expr, Any] = {}

    def of(self, e: Expr) -> Any:
        if e not in self._known:
            self._known[e] = self._found(e)
        return self._known[e]

    def _found(self, e: Expr) -> Any:
        if e.value is not None:
            return e.value
        if e.op in ("sym", "bsym"):
            own = self._values.get(e.args[0])
            return self._concrete.value(e.args[0]) if own is None else own
        if e.op in ("true", "false"):
            return np.bool_(e.op == "true")
        parts = [self.of(part) for part in e.args]
        match e.op:
            case "add":
                return sum(parts[1:], parts[0])
            case "mul":
                return prod(parts[1:], start=parts[0])
            case "floordiv":
                return np.floor_divide(*parts)
            case "mod":
                return np.mod(*parts)
            case "min":
                return np.minimum(*parts)
            case "max":
                return np.maximum(*parts)
            case "ite":
                return np.where(*parts)
            case "lt":
                return np.less(*parts)
            case "le":
                return np.less_equal(*parts)
            case "eq":
                return np.equal(*parts)
            case "not":
                return np.logical_not(parts[0])
            case "all" | "any":
                joined = np.logical_and if e.op == "all" else np.logical_or
                found = parts[0]
                for part in parts[1:]:
                    found = joined(found, part)
                return found
            case _:
                raise ValueError(e.op)
