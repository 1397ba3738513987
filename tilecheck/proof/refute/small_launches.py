"""Small launches in a fixed order, for claims that the solver finds no model of.

First every quantity of one kind alike, then mixtures from a small generator with a fixed seed. Extents are
counted in the tiles that the kernel cuts them into, so that literal tile sizes are reached as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tilecheck.ir.expr import Expr, Kind, Symbol, conjuncts, evaluate, symbols, walk
from tilecheck.ir.kernel import Kernel, extent_symbol
from tilecheck.proof.goals.context import Context
from tilecheck.proof.refute.concrete import FILLS, Concrete, is_admitted, kernel_expressions, launch_symbols

_Length = Callable[[int], int]  # from the width of the tiles to an extent
_TRIALS = 250  # candidates looked at; those that break a fact cost only their evaluation
_EVEN = ((2, 2, 2), (3, 2, 2), (2, 1, 4), (4, 2, 3), (2, 4, 1), (3, 1, 5), (4, 4, 2))  # grid, tile, tiles


def small_launches(context: Context) -> Iterator[Concrete]:
    """Launches that meet the kernel's facts and conditions, each once."""
    kernel = context.kernel
    launch = launch_symbols(context)
    booleans = frozenset(n.args[0] for n in walk(*kernel_expressions(kernel)) if n.op == "bsym")
    known: dict[tuple[tuple[Symbol, int | bool], ...], None] = {}
    for number, values in enumerate(_choices(launch, booleans, context)):
        concrete = Concrete(values, fill=FILLS[number % len(FILLS)], integers=False).settled(kernel)
        key = tuple((s, concrete.value(s)) for s in launch)
        if key not in known and is_admitted(concrete, context):
            known[key] = None
            yield concrete


def _choices(
    launch: tuple[Symbol, ...], booleans: frozenset[Symbol], context: Context
) -> Iterator[dict[Symbol, int | bool]]:
    kernel = context.kernel
    sizes = frozenset(symbols(*kernel.powers_of_two))
    for grid, tile, tiles in _EVEN:
        for small in (1, 2):
            values: dict[Symbol, int | bool] = {}
            for symbol in launch:
                values[symbol] = small
                if symbol in booleans:
                    values[symbol] = small == 1
                elif symbol.kind is Kind.GRID:
                    values[symbol] = grid
                elif symbol in sizes:
                    values[symbol] = tile
            with_extents(values, launch, kernel, tiles.__mul__)
            meet_equalities(values, context)
            yield values
    mixture = Mixture()
    for _ in range(_TRIALS):
        values = {}
        for symbol in launch:
            values[symbol] = 1 + mixture.below(4)
            if symbol in booleans:
                values[symbol] = mixture.below(2) == 1
            elif symbol.kind is Kind.GRID:
                values[symbol] = 1 + mixture.below(4)
            elif symbol in sizes:
                values[symbol] = 1 << mixture.below(3)
            elif symbol.kind is Kind.SCALAR:
                values[symbol] = mixture.below(5)
        with_extents(values, launch, kernel, lambda width: width * mixture.below(5) + mixture.below(2))
        meet_equalities(values, context)
        yield values


def with_extents(
    values: dict[Symbol, int | bool], launch: tuple[Symbol, ...], kernel: Kernel, length: _Length
) -> dict[Symbol, int | bool]:
    """`values` with an extent for every axis: from the width of its tiles."""
    widths = _widths(kernel, values)
    for symbol in launch:
        if symbol.kind is Kind.EXTENT:
            values[symbol] = max(1, length(widths.get(symbol, 1)))
        elif symbol.kind is Kind.STRIDE:
            values.pop(symbol)  # C order
    return values


def meet_equalities(values: dict[Symbol, int | bool], context: Context) -> None:
    """Give each value that a fact equates with an expression over others what that expression is."""
    for fact in (term for whole in context.uniform_facts for term in conjuncts(whole)):
        for name, other in (fact.args, fact.args[::-1]) if fact.op == "eq" else ():
            if name.op == "sym" and name.args[0] in values:
                value = _exact(other, values)
                if value is not None:
                    values[name.args[0]] = value
                    break


def _widths(kernel: Kernel, values: Mapping[Symbol, int | bool]) -> dict[Symbol, int]:
    """How wide the tiles along each array axis are."""
    found: dict[Symbol, int] = {}
    for access in kernel.accesses:
        for number, axis in enumerate(access.axes):
            width = _value(axis.step, values)
            if width is not None:
                found.setdefault(extent_symbol(access.array, number), width)
    return found


def _value(e: Expr, values: Mapping[Symbol, int | bool]) -> int | None:
    found = _exact(e, values)
    return None if found is None else max(1, found)


def _exact(e: Expr, values: Mapping[Symbol, int | bool]) -> int | None:
    if not all(s in values for s in symbols(e)) or any(n.op == "read" for n in walk(e)):
        return None
    try:
        return int(evaluate(e, values.__getitem__))
    except ZeroDivisionError:
        return None


class Mixture:
    """A linear congruential generator: the same numbers in every run and on every machine. Mutable state."""

    def __init__(self) -> None:
        self._state = 20250

    def below(self, limit: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._state >> 33) % limit
