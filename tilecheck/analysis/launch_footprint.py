"""The footprint of a kernel for the host that launches it: parameters read and written around its wait."""

from __future__ import annotations

from collections.abc import Iterable

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
    return KernelFootprint(_uses(early), _uses(late), waits)


def _uses(accesses: Iterable[Access]) -> tuple[ParameterUse, ...]:
    found: dict[tuple[str, bool], bool] = {}
    for access in accesses:
        certain = _touches_first_element(access)
        for write in (False, True):
            if access.effect is not (Effect.READ if write else Effect.WRITE):
                key = (access.array, write)
                found[key] = found.get(key, False) or certain
    return tuple(ParameterUse(name, write, certain) for (name, write), certain in found.items())


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


def _holds(condition: Expr, size: int) -> bool:
    def value(symbol: Symbol) -> int:
        return size

    return bool(E.evaluate(condition, value))


def _at_origin(e: Expr) -> Expr:
    """The expression in the first program, iteration and lane."""
    varying = (Kind.BLOCK, Kind.LOOP, Kind.LANE)
    return E.substitute(e, {E.sym(s): E.ZERO for s in E.symbols(e) if s.kind in varying})
