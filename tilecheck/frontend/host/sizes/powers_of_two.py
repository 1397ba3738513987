"""Arithmetic on the bits of sizes: the next power of two by copying the highest bit down, and its test.

n -= 1; n |= n >> 1; n |= n >> 2; ...; n |= n >> 32; n += 1        the next power of two
n & (n - 1)                                                        0 for 0 and for powers of two
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilecheck.frontend.host.calls import power_above
from tilecheck.frontend.values.values import Num
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.host import DEFINED

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor

_BITS = 63  # of sizes: a number whose highest bit is copied so far down is all ones below it


def on_bits(x: HostExecutor, op: str, a: Num, b: Num) -> Num | None:
    """The result of an operator on integers where it is part of these; None where it is not."""
    if a.elem is None or b.elem is None or a.shape or b.shape or "bool" in (a.kind, b.kind):
        return None
    match op:
        case "|":
            return _copied_down(x, a.elem, b.elem)
        case "+" if b.elem is E.ONE and x.copied_down.get(a.elem, (E.ZERO, 0))[1] >= _BITS:
            return _next_power(x, x.copied_down[a.elem][0])
        case "&" if E.sub(a.elem, b.elem) is E.ONE:
            return _without_lowest(x, a.elem)
        case _:
            return None


def _copied_down(x: HostExecutor, whole: Expr, moved: Expr) -> Num | None:
    """`n | n >> k`: of a number whose highest bit stands in `k` places or more, it stands in `k` more then."""
    of, bits = x.copied_down.get(whole, (whole, 1))
    moves = (k for k in range(1, bits + 1) if moved is E.floordiv(whole, 1 << k))
    by = next(moves, None)
    if by is None:
        return None
    name = f"{x.short(of)} with its highest bit copied to {bits + by - 1} more"
    result = E.sym(Symbol(name, Kind.HOST, origin=DEFINED))
    x.copied_down[result] = of, bits + by
    x.define(result, E.any_of(E.lt(of, 0), E.all_of(E.le(of, result), E.le(result, E.add(E.mul(2, of), 1)))))
    return Num((), result, "int", None)


def _next_power(x: HostExecutor, value: Expr) -> Num:
    """All ones below the highest bit of `value`, and 1 more; of a negative number all bits are ones."""
    power = power_above(x, value).elem or E.ZERO
    return Num((), E.ite(E.lt(value, 0), E.ZERO, power), "int", None)


def _without_lowest(x: HostExecutor, n: Expr) -> Num:
    """`n & (n - 1)`: `n` without its lowest bit."""
    rest = E.sym(Symbol(f"{x.short(n)} without its lowest bit", Kind.HOST, origin=DEFINED))
    is_power = E.any_of(E.eq(n, 0), E.eq(n, power_above(x, E.sub(n, 1)).elem or E.ZERO))
    is_none = E.eq(rest, 0)
    both = E.any_of(E.all_of(is_none, is_power), E.negate(E.any_of(is_none, is_power)))
    x.define(rest, E.any_of(E.lt(n, 0), E.all_of(E.le(0, rest), E.le(rest, n), both)))
    return Num((), rest, "int", None)
