"""Powers of two of numbers of compile time, `1 << n` and `2 ** n`, in Triton kernels.

Each is a constant with a name of its own, `2 ** n`, one wherever it is asked of the same n; conditions may hold
it.
"""

from __future__ import annotations

from dataclasses import replace

from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.execute.tiles import assume_where_compiled
from tilecheck.frontend.values.values import Num
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind
from tilecheck.ir.kernel import CheckKind, made_of, power_of, power_symbol


def power_of_two(x: Executor, n: Num, *, shifts: bool) -> Num | None:
    """`1 << n`, if it `shifts`, or `2 ** n`; None where n is neither a choice of literals nor a parameter, to
    which a literal may be added.

    Python shifts by integers alone, and raises an error for a negative one: such code does not compile. A power
    with a negative exponent is a fraction. One that is used as an integer, or taken for one, is none; that its
    exponent is not negative is a check of its own then.
    """
    if not x.dialect.has_pointers or n.elem is None:
        return None
    known = power_of(n.elem)
    if known is not None:
        return Num((), known, "int", None)
    base, added = _split(n.elem)
    if base is None or not base.args[0].name.isidentifier():
        return None
    symbol = power_symbol(base.args[0].name, added)
    if shifts:
        x.use_as_integer(n.elem)
        # A contract is not compiled. What is not known in a guard may be a condition of compile time.
        if not x.contract and all(s.kind is not Kind.OPAQUE for s in E.symbols(x.guard)):
            assume_where_compiled(x, E.le(0, n.elem))
    elif x.knows("integers", symbol.name):
        x.use_as_integer(n.elem)
        x.check(CheckKind.EXPONENT, E.le(0, n.elem), E.render(n.elem))
    else:
        return Num((), E.sym(replace(symbol, origin="untyped")), "any", None)
    power = E.sym(symbol)
    if not x.contract:
        before = len(x.overflow.checks)
        x.fits(power)  # 2 ** 31 that is assigned to a name is an unsigned number
        x.overflow.test(x.overflow.since(before))
    _relate(x, base, added)
    x.facts[E.any_of(E.lt(n.elem, 0), E.le(E.add(n.elem, 1), power))] = None
    return Num((), power, "int", None)


def _relate(x: Executor, n: Expr, added: int) -> None:
    """Note how many times another power of the same number goes into this one, or the other way round."""
    name = n.args[0].name
    for symbol in E.symbols(*x.facts):
        other = made_of(symbol)
        if other is None or other.rounds or other.name != name or other.added == added:
            continue
        low, high = sorted((other.added, added))
        least, most = (E.sym(power_symbol(name, k)) for k in (low, high))
        x.facts[E.any_of(E.lt(E.add(n, low), 0), E.eq(most, E.mul(1 << (high - low), least)))] = None


def _split(e: Expr) -> tuple[Expr | None, int]:
    """A parameter of compile time, and the literal that is added to it."""
    terms = e.args if e.op == "add" else (e,)
    literals = [t.value for t in terms if t.value is not None]
    others = [t for t in terms if t.value is None]
    if len(others) != 1 or others[0].op != "sym" or others[0].args[0].kind is not Kind.CONSTANT:
        return None, 0
    return others[0], sum(literals)
