"""Goals that follow from premises by adding some of them up."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tilecheck.proof.polynomial import (
    UNIT,
    Key,
    Monomial,
    Polynomial,
    combine,
    constant,
    key,
    scaled,
    times,
    without,
)
from tilecheck.proof.premises import Premises

_DEPTH = 5  # premises in one sum
_NODES = 120  # remainders looked at for one goal
_QUOTIENTS = 12  # guesses of what a quotient stays below


class Sums:
    """Searches for a goal p >= 0 as a sum of premises with positive factors, plus what intervals show.

    Each step removes one term of p that is not bounded from below, with a premise q in which that monomial
    has a coefficient of the same sign: |q_m| * p = rest + |p_m| * q, so rest >= 0 gives p >= 0.
    """

    def __init__(self, premises: Premises) -> None:
        self._premises = premises
        self._failed: dict[Key, int] = {}
        self._nodes = 0

    def covers(self, p: Polynomial, depth: int = _DEPTH) -> bool:
        """Whether p >= 0 follows from at most `depth` premises."""
        p = _tightened(p)
        if self._premises.interval(p).low >= 0:
            return True
        self._nodes += 1
        if depth == 0 or self._nodes > _NODES or self._failed.get(key(p), -1) >= depth:
            return False
        if any(self._removed(p, m, depth) for m in self._obstacles(p)):
            return True
        self._failed[key(p)] = depth
        return False

    def _obstacles(self, p: Polynomial) -> list[Monomial]:
        """A term without a lower bound has to go in any case, so one is enough; else any negative one may."""
        lows = [(m, self._premises.term(m, c).low) for m, c in p.items() if m != UNIT]
        unbounded = [m for m, low in lows if low == -math.inf]
        if unbounded:
            return [max(unbounded, key=lambda m: (len(m), m))]
        return sorted((m for m, low in lows if low < 0), key=lambda m: (-len(m), m))[:3]

    def _removed(self, p: Polynomial, m: Monomial, depth: int) -> bool:
        if self._by_branches(p, m, depth):
            return True
        coefficient = p[m]
        for q in self._premises.candidates(m, coefficient):
            rest = combine(scaled(p, abs(q[m])), q, -abs(coefficient))
            if self.covers(rest, depth - 1):
                return True
        return False

    def _by_branches(self, p: Polynomial, m: Monomial, depth: int) -> bool:
        """A minimum, maximum or conditional is one of its branches: enough that each of them will do."""
        if len(m) != 1:
            return False
        a = self._premises.forms.atoms[m[0]]
        if a.op not in ("min", "max", "ite"):
            return False
        rest = {n: c for n, c in p.items() if n != m}
        return all(self.covers(combine(rest, branch, p[m]), depth - 1) for branch in a.args)


def _tightened(p: Polynomial) -> Polynomial:
    """p / g rounded down, g the divisor of all but the literal: g*x + c >= 0 exactly when x + c // g >= 0."""
    divisor = math.gcd(*(c for m, c in p.items() if m != UNIT))
    if divisor <= 1:
        return p
    return {m: c // divisor for m, c in p.items() if c // divisor}


def bound_quotients(premises: Premises) -> bool:
    """Add q <= e - 1 or q <= e for quotients q = x // d, where a premise says something of d*e; whether any
    was found. Sound because d >= 1 and d*e - d*q >= 1 - k*d give e - q > -k for integers e and q."""
    found = False
    guesses = list(dict.fromkeys(_guesses(premises)))[:_QUOTIENTS]
    for q, divisor, share in guesses:
        rest = times(dict(divisor), combine(dict(share), {(q,): 1}, -1))
        for k in (0, 1):
            below = combine(dict(share), combine({(q,): 1}, constant(1 - k)), -1)
            if premises.interval(below).low >= 0:
                break
            slack = (
                combine(rest, constant(-1)) if k == 0 else combine(combine(rest, dict(divisor)), constant(-1))
            )
            if Sums(premises).covers(slack):
                premises.learn(below)
                found = True
                break
    return found


def _guesses(premises: Premises) -> Iterator[tuple[int, Key, Key]]:
    """A quotient, its divisor d, and e for which a premise has d*e with a positive factor."""
    for q, d in premises.quotients():
        if len(d) != 1:
            continue
        ((divisor, scale),) = d.items()
        for p in premises.inequalities:
            for m, c in p.items():
                if c > 0 and len(m) > len(divisor) and c % scale == 0 and _divides(divisor, m):
                    rest = without(m, *divisor)
                    if q not in rest:
                        yield q, key(d), key({rest: c // scale})


def _divides(divisor: Monomial, m: Monomial) -> bool:
    return all(m.count(a) >= divisor.count(a) for a in divisor)
