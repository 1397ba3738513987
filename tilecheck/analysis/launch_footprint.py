"""The footprint of a kernel for the host that launches it: parameters read and written around its wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilecheck.analysis.dependent import before_wait
from tilecheck.ir import expr as E
from tilecheck.ir.expr import TRUE, Expr, Kind, Symbol
from tilecheck.ir.kernel import Access, Effect, Kernel
from tilecheck.ir.launch_footprint import KernelFootprint, ParameterUse

_SIZES = (1, 64)  # values of all sizes of a launch at which a certain access is checked


def kernel_footprint(kernel: Kernel) -> KernelFootprint:
    """What each launch of a kernel may touch, and what it certainly touches."""
    early = before_wait(kernel)
    made = set(map(id, early))
    late = [access for access in kernel.accesses if id(access) not in made]
    waits = any(wait.guard is TRUE and not wait.loops for wait in kernel.launch_waits)
    guards = E.symbols(*(wait.guard for wait in kernel.launch_waits)) if kernel.launch_waits else ()
    decided_by = tuple(symbol.name for symbol in guards if symbol.kind is Kind.CONSTANT)
    return KernelFootprint(_uses(early), _uses(late), waits, decided_by)


def _uses(accesses: Iterable[Access]) -> tuple[ParameterUse, ...]:
    found: dict[tuple[str, bool], ParameterUse] = {}
    for access in accesses:
        certain = _touches_first_element(access)
        prefix = _prefix(access) if certain else None
        for write in (False, True):
            if access.effect is not (Effect.READ if write else Effect.WRITE):
                key = (access.array, write)
                known = found.get(key, ParameterUse(access.array, write))
                found[key] = replace(
                    known, certain=known.certain or certain, prefix=known.prefix if prefix is None else prefix
                )
    return tuple(found.values())


def _touches_first_element(access: Access) -> bool:
    """Whether the first lane of the first program, in the first iteration, touches element 0 of the array.

    The coordinate must be 0 whatever the scalars are: one with an offset that the launch chooses may lie
    anywhere. Its conditions must hold when all sizes are 1, and when all are 64: they only ask that there is
    something to do. Conditions on anything else (data, flags) are not certain.
    """
    if access.member is not None:
        return False
    if any(_at_origin(axis.coordinate).value != 0 for axis in access.axes):
        return False
    happens = _at_origin(access.happens)
    sizes = (Kind.CONSTANT, Kind.SCALAR, Kind.EXTENT, Kind.STRIDE, Kind.GRID)
    if any(symbol.kind not in sizes for symbol in E.symbols(happens)):
        return False
    if any(node.op in ("bsym", "read") for node in E.walk(happens)):
        return False
    return all(_holds(happens, size) for size in _SIZES)


def _prefix(access: Access) -> Expr | None:
    """How many leading elements all programs together touch, if they are `program * SIZE + lane` without gaps,
    below bounds that do not vary. The end of the array itself counts as no bound."""
    if len(access.axes) != 1 or len(access.lanes) != 1:
        return None
    (axis,), (lane,) = access.axes, access.lanes
    if lane.bound is None:
        return None
    size, at, below = lane.bound, E.sym(lane), E.lt(E.sym(lane), lane.bound)
    blocks = [s for s in E.symbols(axis.coordinate) if s.kind is Kind.BLOCK]
    start = E.mul(E.sym(blocks[0]), size) if blocks else E.ZERO
    if axis.coordinate is not E.add(start, at) or any(block.bound is None for block in blocks):
        return None
    for block in blocks:
        size = E.mul(block.bound or E.ONE, size)
    for term in E.conjuncts(access.happens):
        bound = term.args[1] if term.op == "lt" and term.args[0] is axis.coordinate else None
        if bound is not None and not _varies(bound):
            size = size if bound is axis.extent else E.minimum(size, bound)
        elif term not in (E.TRUE, E.le(0, at), below, E.le(0, axis.coordinate)):
            return None
    return size


_VARYING = (Kind.BLOCK, Kind.LOOP, Kind.LANE, Kind.OPAQUE)


def _varies(e: Expr) -> bool:
    return any(symbol.kind in _VARYING for symbol in E.symbols(e))


def _holds(condition: Expr, size: int) -> bool:
    def value(symbol: Symbol) -> int:
        return size

    return bool(E.evaluate(condition, value))


def _at_origin(e: Expr) -> Expr:
    """The expression in the first program, iteration and lane."""
    varying = (Kind.BLOCK, Kind.LOOP, Kind.LANE)
    return E.substitute(e, {E.sym(s): E.ZERO for s in E.symbols(e) if s.kind in varying})
