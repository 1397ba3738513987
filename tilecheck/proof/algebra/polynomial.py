"""Polynomials with integer coefficients over numbered atoms.

A monomial is the sorted tuple of its atoms (with repetition), `()` being 1; a polynomial maps monomials to
their non-zero coefficients. Values are never changed after they are built.
"""

from __future__ import annotations

from collections.abc import Mapping

Monomial = tuple[int, ...]
Polynomial = Mapping[Monomial, int]
Key = tuple[tuple[Monomial, int], ...]

UNIT: Monomial = ()
ZERO: Polynomial = {}


def constant(value: int) -> Polynomial:
    return {UNIT: value} if value else ZERO


def atom(index: int) -> Polynomial:
    return {(index,): 1}


def monomial(m: Monomial) -> Polynomial:
    return {m: 1}


def combine(p: Polynomial, q: Polynomial, scale: int = 1) -> Polynomial:
    """p + scale * q."""
    total = dict(p)
    for m, coefficient in q.items():
        value = total.get(m, 0) + scale * coefficient
        if value:
            total[m] = value
        else:
            total.pop(m, None)
    return total


def times(p: Polynomial, q: Polynomial) -> Polynomial:
    """The product, distributed."""
    total: dict[Monomial, int] = {}
    for m, a in p.items():
        for n, b in q.items():
            joined = tuple(sorted(m + n)) if m and n else m or n
            value = total.get(joined, 0) + a * b
            if value:
                total[joined] = value
            else:
                total.pop(joined, None)
    return total


def scaled(p: Polynomial, scale: int) -> Polynomial:
    return {m: scale * coefficient for m, coefficient in p.items()} if scale else ZERO


def key(p: Polynomial) -> Key:
    """A hashable form; equal polynomials have equal keys."""
    return tuple(sorted(p.items()))


def literal(p: Polynomial) -> int | None:
    """The value of a constant polynomial, else None."""
    if not p:
        return 0
    return p[UNIT] if len(p) == 1 and UNIT in p else None


def single(p: Polynomial) -> int | None:
    """The atom that `p` consists of, or None when it is anything else."""
    if len(p) != 1:
        return None
    ((m, coefficient),) = p.items()
    return m[0] if len(m) == 1 and coefficient == 1 else None


def split_multiples(p: Polynomial, d: Polynomial) -> tuple[Polynomial, Polynomial]:
    """y and r with p = d*y + r, where y has all that is a multiple of d for the look of it: none, if d is no
    name or product of names."""
    (m, scale), *others = d.items() or ((UNIT, 1),)
    if others or m == UNIT or scale != 1:
        return {}, p
    y = {without(n, *m): c for n, c in p.items() if divides(m, n)}
    return y, {n: c for n, c in p.items() if not divides(m, n)}


def without(m: Monomial, *factors: int) -> Monomial:
    """`m` divided by `factors`, each of which it contains."""
    rest = list(m)
    for factor in factors:
        rest.remove(factor)
    return tuple(rest)


def divides(divisor: Monomial, m: Monomial) -> bool:
    return all(m.count(a) >= divisor.count(a) for a in divisor)
