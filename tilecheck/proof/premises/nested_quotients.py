"""Quotients inside quotients: segments of S elements, each of S // B blocks.

    n = S // B;  S % B == 0, i * B < T        gives  i // n < cdiv(T, S)
    m = T // n;  T % n == 0, i * B < T        gives  i // n < cdiv(m, B)

That a quotient q = x // d stays below another one, e = y // f, for d, f >= 1: of f*e >= y - f + 1, as every
remainder is at most f - 1, and f*x < d*(y - f + 1) follows f*x < f*d*e, so x < d*e. As d*q <= x, q < e. Adding
premises up would have to divide by f for that. Where f = t*d, as d = f // t and t divides f, t*x < y - f + 1 is
enough: it is multiplied by d.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilecheck.ir.expr import Expr, Kind, eq, mod, walk
from tilecheck.ir.kernel import Access
from tilecheck.proof.algebra import interval as iv
from tilecheck.proof.algebra.polynomial import Polynomial, combine, constant, key, single, times, without
from tilecheck.proof.premises.premises import Premises

Quotient = tuple[int, Polynomial, Polynomial]


def below_quotients(
    premises: Premises, quotient: Quotient, others: Iterable[Quotient]
) -> Iterator[tuple[Polynomial, Polynomial, int]]:
    """Bounds of q = x // d by other quotients, of launch values or looked-up numbers: pairs of polynomials, the
    first of which is not negative if the second is not, each with the atom of the other quotient. All divisors
    are positive."""
    q, x, d = quotient
    for e, y, f in others:
        less: Polynomial = {(e,): 1, (q,): -1, (): -1}
        t = _share(premises, d, f)
        if less in premises.inequalities or (t is None and not _is_nested(premises, y)):
            continue
        least = combine(combine(y, f, -1), constant(1))
        high, low = (times(d, least), times(f, x)) if t is None else (least, times(t, x))
        yield less, combine(combine(high, constant(-1)), low, -1), e


def is_count(premises: Premises, quotient: Quotient) -> bool:
    """Whether looked-up numbers are divided, and nothing else that may differ between blocks: the number of
    blocks of a sequence, `(ends[n] - starts[n] + B - 1) // B`."""
    moving = [a for m in quotient[1] for a in m if premises.moves((a,))]
    return bool(moving) and all(premises.forms.atoms[a].op.startswith("read ") for a in moving)


def _is_nested(premises: Premises, y: Polynomial) -> bool:
    return any(premises.forms.atoms[a].op == "floordiv" for m in y for a in m)


def _share(premises: Premises, d: Polynomial, f: Polynomial) -> Polynomial | None:
    """t >= 1 with f = t*d: where f is written as such a product, or d is f // t and f % t is known to be 0."""
    index = single(d)
    if index is not None and len(f) == 1 and index in next(iter(f)):
        ((m, c),) = f.items()
        t = {without(m, index): c}
        return t if premises.interval(t).low >= 1 else None
    inner = None if index is None else premises.forms.atoms[index]
    if inner is None or inner.op != "floordiv" or key(inner.args[0]) != key(f):
        return None
    wanted = key(f), key(inner.args[1])
    is_whole = any(
        a.op == "mod" and tuple(map(key, a.args)) == wanted and premises.term((number,)) == iv.exactly(0)
        for number, a in enumerate(premises.forms.atoms)
    )
    return inner.args[1] if is_whole and premises.interval(inner.args[1]).low >= 1 else None


def whole_segments(accesses: Iterable[Access]) -> tuple[Expr, ...]:
    """`S % B == 0` for the quotients `S // B` of two numbers of the launch that are divided again, or by which
    is divided, in places and guards of accesses."""
    found: dict[Expr, None] = {}
    for access in accesses:
        nodes = walk(access.guard, *(axis.coordinate for axis in access.axes))
        outer = [node for node in nodes if node.op in ("floordiv", "mod")]
        for node in walk(*(argument for division in outer for argument in division.args)):
            if node.op == "floordiv" and all(map(_is_number, node.args)):
                found[eq(mod(*node.args), 0)] = None
    return tuple(found)


def _is_number(e: Expr) -> bool:
    return e.op == "sym" and e.args[0].kind in (Kind.SCALAR, Kind.CONSTANT)
