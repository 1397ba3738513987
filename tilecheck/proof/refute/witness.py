"""From a replayed launch to the witness that a report shows, in the user's names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from math import prod

import numpy as np

from tilecheck.ir.expr import Kind, Symbol, evaluate, symbols, walk
from tilecheck.ir.kernel import Access, block_symbol, extent_symbol, stride_symbol
from tilecheck.model import Witness
from tilecheck.proof.goals.context import Context
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation
from tilecheck.proof.refute.concrete import Concrete, arguments, contiguous, integer_arrays, launch_symbols
from tilecheck.proof.refute.replay import Block, Sighting

_SHOWN = 16  # memory contents in a witness
_ITERATIONS = 32  # per loop that are searched
_COMBINATIONS = 4096


def witness(obligation: Obligation, context: Context, concrete: Concrete, sighting: Sighting) -> Witness:
    """The witness of an obligation that a replay saw fail."""
    kernel = context.kernel
    axes = max(kernel.grid_axes, default=0) + 1
    return Witness(
        kind=obligation.kind,
        grid=concrete.grid(kernel)[:axes],
        blocks=tuple(block[:axes] for block in sighting.blocks),
        values=_values(context, concrete),
        array=sighting.array or obligation.array,
        element=sighting.element,
        lanes=sighting.lanes,
        iterations=_iterations(obligation, concrete, sighting),
    )


def _values(context: Context, concrete: Concrete) -> dict[str, int | list[int]]:
    """Every launch value but the grid, in the order of the parameters, then memory that is used as integers."""
    kernel = context.kernel
    shown: dict[str, int | list[int]] = {}
    used = launch_symbols(context)
    for param in kernel.params:
        if param.is_array and not param.is_list:
            shape = tuple(int(concrete.value(extent_symbol(param.name, k))) for k in range(param.rank or 1))
            shown.update({f"{param.name}.shape[{k}]": n for k, n in enumerate(shape)})
            strides = concrete.strides(param.name, shape)
            if strides != contiguous(shape):
                shown.update({stride_symbol(param.name, k).name: s for k, s in enumerate(strides)})
    others = (Kind.SCALAR, Kind.CONSTANT)
    arrays = [param.name for param in kernel.params if param.is_array]
    for symbol in used:
        owned = symbol.name.partition(".")[0] in arrays
        length = symbol.kind is Kind.EXTENT and symbol.name.startswith("len(")
        if length or (symbol.kind in others and not owned):
            shown[symbol.name] = int(concrete.value(symbol))
    shown.update(_contents(context, concrete))
    return shown


def _contents(context: Context, concrete: Concrete) -> Iterator[tuple[str, list[int]]]:
    """What the arrays hold that the kernel reads indices from."""
    given = arguments(concrete, context.kernel) or {}
    indices = integer_arrays(context.kernel)
    for name, value in given.items():
        if name in indices and isinstance(value, np.ndarray):
            yield name, [int(v) for v in value.reshape(-1)[:_SHOWN]]


# ---- iterations -----------------------------------------------------------------------------------------


def _iterations(
    obligation: Obligation, concrete: Concrete, sighting: Sighting
) -> tuple[tuple[int, ...], ...] | None:
    """The loop iterations in which the blocks reach the element, where the text alone tells them."""
    goal = obligation.goal
    if sighting.element is None or (isinstance(goal, Holds) and goal.access is None):
        return None
    if isinstance(goal, Disjoint) and goal.between is Between.ITERATIONS:
        both = tuple(islice(_reaches(goal.first, sighting.blocks[0], sighting.element, concrete), 2))
        return both if len(both) == 2 else None
    accesses = (goal.first, goal.second) if not isinstance(goal, Holds) else (goal.access, goal.access)
    found: list[tuple[int, ...]] = []
    for access, block in zip(accesses, sighting.blocks, strict=False):
        if access is None:
            return None
        reached = next(_reaches(access, block, sighting.element, concrete), None)
        if reached is None:
            return None
        found.append(reached)
    return tuple(found) if any(found) else None


def _reaches(
    access: Access, block: Block, element: tuple[int, ...], concrete: Concrete
) -> Iterator[tuple[int, ...]]:
    """The iterations in which `block` touches `element`, as far as a small search finds them."""
    parts = (access.guard, access.mask, *(axis.coordinate for axis in access.axes))
    mentioned = symbols(*parts)
    if any(s.kind is Kind.OPAQUE for s in mentioned) or any(n.op == "read" for n in walk(*parts)):
        return
    loops = [s for s in mentioned if s.kind is Kind.LOOP]
    lanes = [s for s in mentioned if s.kind is Kind.LANE]
    values = {block_symbol(k): i for k, i in enumerate(block)}
    try:
        widths = [int(evaluate(s.bound, concrete.value)) for s in lanes if s.bound is not None]
    except (KeyError, ZeroDivisionError):
        return
    choices = [range(_ITERATIONS)] * len(loops) + [range(w) for w in widths]
    if len(widths) != len(lanes) or len(element) != len(access.axes) or prod(map(len, choices)) > _COMBINATIONS:
        return
    known: set[tuple[int, ...]] = set()
    for chosen in product(*choices):
        trial = {**values, **dict(zip((*loops, *lanes), chosen, strict=True))}
        iteration = chosen[: len(loops)]
        if iteration not in known and _touches(access, element, trial, concrete):
            known.add(iteration)
            yield iteration


def _touches(access: Access, element: tuple[int, ...], values: dict[Symbol, int], concrete: Concrete) -> bool:
    def value(symbol: Symbol) -> int | bool:
        return values[symbol] if symbol.varies else concrete.value(symbol)

    try:
        if not evaluate(access.guard, value) or not evaluate(access.mask, value):
            return False
        places = [int(evaluate(axis.coordinate, value)) for axis in access.axes]
    except (KeyError, ZeroDivisionError):
        return False
    return tuple(places) == element
