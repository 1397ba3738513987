"""The sizes at which 32-bit index arithmetic fits: the standing obligation S5, as a launch can check it."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.ranges import INT32_MAX
from tilecheck.ir.expr import Expr, Kind, Symbol, children, render, symbols, walk
from tilecheck.ir.kernel import Kernel


def int32_limits(kernel: Kernel) -> tuple[str, ...]:
    """Conditions `bound <= 2147483647`, one for each 32-bit value that grows with the sizes of a launch.

    A bound is the largest absolute value by interval arithmetic, as a Python expression over launch values.
    Where a part of a value has none (a loop counter, a value from memory) the rest of it is bounded alone.
    """
    found: dict[str, None] = {}
    for operation in kernel.arithmetic:
        for part in _bounded_parts(operation.value):
            found[f"{_bound(part)} <= {INT32_MAX}"] = None
    return tuple(found)


def _bounded_parts(value: Expr) -> Iterator[Expr]:
    """The largest parts of `value` that have a bound and depend on more than compile-time constants."""
    if all(s.kind is Kind.CONSTANT for s in symbols(value)) or value.op in ("sym", "const"):
        return
    if _bound(value) is not None:
        yield value
        return
    for child in children(value):
        yield from _bounded_parts(child)


def _bound(value: Expr) -> str | None:
    """An upper bound on the absolute value, or None."""
    match value.op:
        case "const":
            return str(abs(int(value.args[0])))
        case "sym":
            return _symbol_bound(value.args[0])
        case "add":
            terms = [_bound(a) for a in value.args]
            return None if None in terms else f"({' + '.join(map(str, terms))})"
        case "mul":
            factors = [_bound(a) for a in value.args]
            return None if None in factors else " * ".join(map(str, factors))
        case "floordiv" | "mod":
            return _quotient_bound(value)
        case "min" | "max" | "ite":
            ways = [_bound(a) for a in value.args[-2:]]
            return None if None in ways else f"max({ways[0]}, {ways[1]})"
        case _:
            return None


def _symbol_bound(symbol: Symbol) -> str | None:
    match symbol.kind:
        case Kind.CONSTANT | Kind.SCALAR | Kind.STRIDE:
            return f"abs({symbol.name})"
        case Kind.EXTENT | Kind.GRID:
            return symbol.name
        case Kind.BLOCK | Kind.LANE if symbol.bound is not None:
            bound = _bound(symbol.bound)
            return None if bound is None else f"({bound} - 1)"
        case _:
            return None


def _quotient_bound(value: Expr) -> str | None:
    """`|a // b| <= cdiv(|a|, b)` and `a % b <= b - 1` for b > 0, which TC301 proves of every divisor.

    Floor division rounds -5 // 3 down to -2.
    """
    top, divisor = value.args
    if any(s.varies for s in symbols(divisor)) or any(e.op == "read" for e in walk(divisor)):
        return None
    if value.op == "mod":
        return f"({render(divisor)} - 1)"
    bound = _bound(top)
    return None if bound is None else f"cdiv({bound}, {render(divisor)})"
