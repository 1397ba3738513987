"""What follows from a set of assertions without a solver: intervals, and sums of inequalities.

Only comparisons are used; other assertions are remembered for literal lookup. Everything found holds for
every assignment that makes the assertions true, so it may be incomplete but not wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tilecheck.ir.expr import Expr, conjuncts
from tilecheck.proof import interval as iv
from tilecheck.proof.forms import Atom, Forms
from tilecheck.proof.interval import Interval
from tilecheck.proof.polynomial import (
    UNIT,
    Key,
    Monomial,
    Polynomial,
    atom,
    combine,
    constant,
    key,
    monomial,
    scaled,
    times,
    without,
)

_ROUNDS = 4  # of bound propagation: bounds may creep for ever (x < y < x), and any prefix is sound
_DEPTH = 5  # premises in one sum
_NODES = 120  # remainders looked at for one goal


@dataclass
class Premises:
    """Mutable: atoms of later questions are added to the same tables."""

    forms: Forms = field(default_factory=Forms)
    facts: dict[Expr, None] = field(default_factory=dict)
    inequalities: list[Polynomial] = field(default_factory=list)  # each is >= 0
    _bounds: list[Interval] = field(default_factory=list)  # one for each atom of `forms`
    _where: dict[Monomial, list[int]] = field(default_factory=dict)
    _divisions: dict[tuple[Key, Key], dict[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, assertions: Sequence[Expr]) -> Premises:
        found = cls()
        for assertion in assertions:
            for fact in conjuncts(assertion):
                found.facts[fact] = None
                found._learn(fact)
        found._meet_atoms()
        found._propagate()
        found._define(0)
        found._propagate()
        return found

    def form(self, e: Expr) -> Polynomial:
        """The canonical form of `e`; its atoms become known."""
        p = self.forms.of(e)
        first = len(self._bounds)
        if first < len(self.forms.atoms):
            self._meet_atoms()
            self._define(first)
        return p

    # -- questions -----------------------------------------------------------------------------------------

    def interval(self, p: Polynomial) -> Interval:
        total = iv.exactly(0)
        for m, coefficient in p.items():
            total = iv.plus(total, self.term(m, coefficient))
        return total

    def term(self, m: Monomial, coefficient: int = 1) -> Interval:
        """The interval of one term."""
        value = iv.exactly(coefficient)
        for a in m:
            value = iv.times(value, self._bounds[a])
        return value

    def is_positive(self, e: Expr) -> bool:
        return self.interval(self.form(e)).low >= 1

    def candidates(self, m: Monomial, sign: int) -> Iterator[Polynomial]:
        """Polynomials that are >= 0 and in which `m` has a coefficient of the given sign: inequalities, and
        their products with monomials that are >= 0."""
        yield from self._with(m, sign, UNIT)
        if len(m) < 2:
            return
        for a in dict.fromkeys(m):
            rest = without(m, a)
            if self.term((a,)).low >= 0:
                yield from self._with(rest, sign, (a,))
            if len(rest) > 1 and self.term(rest).low >= 0:
                yield from self._with((a,), sign, rest)

    def _with(self, m: Monomial, sign: int, factor: Monomial) -> Iterator[Polynomial]:
        for index in self._where.get(m, ()):
            p = self.inequalities[index]
            if p[m] * sign > 0:
                yield p if factor == UNIT else times(p, monomial(factor))

    # -- learning ------------------------------------------------------------------------------------------

    def _learn(self, fact: Expr) -> None:
        if fact.op not in ("lt", "le", "eq"):
            return
        rest = self.forms.difference(fact.args[1], fact.args[0])
        if fact.op == "lt":
            rest = combine(rest, constant(-1))
        self._add(rest)
        if fact.op == "eq":
            self._add(scaled(rest, -1))

    def _add(self, p: Polynomial) -> None:
        for m in p:
            if m != UNIT:
                self._where.setdefault(m, []).append(len(self.inequalities))
        self.inequalities.append(p)

    def _meet_atoms(self) -> None:
        for index in range(len(self._bounds), len(self.forms.atoms)):
            self._bounds.append(self._own(self.forms.atoms[index]))

    def _own(self, a: Atom) -> Interval:
        """The interval of an atom by its operator; the atoms in its arguments have lower numbers."""
        values = [self.interval(p) for p in a.args]
        match a.op:
            case "floordiv":
                return self._quotient(a.args, values)
            case "mod":
                return iv.remainder(values[0], values[1])
            case "min":
                return Interval(min(v.low for v in values), min(v.high for v in values))
            case "max":
                return Interval(max(v.low for v in values), max(v.high for v in values))
            case "ite":
                return iv.hull(values[0], values[1])
            case _:
                return iv.ANY

    def _quotient(self, args: tuple[Polynomial, ...], values: list[Interval]) -> Interval:
        found = iv.quotient(values[0], values[1])
        # x >= d > 0 gives x // d >= 1, which intervals miss for cdiv(n, d) = (n + d - 1) // d.
        if values[1].low >= 1 and self.interval(combine(args[0], args[1], -1)).low >= 0:
            return iv.meet(found, Interval(1, math.inf))
        return found

    def _propagate(self) -> None:
        for _ in range(_ROUNDS):
            before = list(self._bounds)
            for index, a in enumerate(self.forms.atoms):
                if a.args:
                    self._bounds[index] = iv.meet(self._bounds[index], self._own(a))
            for p in self.inequalities:
                self._solve(p)
            if self._bounds == before:
                return

    def _solve(self, p: Polynomial) -> None:
        """Bounds of each atom in p >= 0 from those of the others: c*a >= -(their greatest sum)."""
        values = {m: self.term(m, c) for m, c in p.items()}
        unbounded = [m for m, value in values.items() if value.high == math.inf]
        if len(unbounded) > 1:
            return
        for m in unbounded or values:
            if len(m) != 1:
                continue
            rest = iv.exactly(0)
            for n, value in values.items():
                if n != m:
                    rest = iv.plus(rest, value)
            self._bounds[m[0]] = iv.meet(self._bounds[m[0]], _at_least(p[m], rest.high))

    def _define(self, first: int) -> None:
        """The inequalities that define minima, maxima, quotients and remainders from atom `first` on."""
        for index in range(first, len(self.forms.atoms)):
            a = self.forms.atoms[index]
            if a.op in ("min", "max"):
                for p in a.args:
                    self._add(scaled(combine(p, atom(index), -1), 1 if a.op == "min" else -1))
            elif a.op in ("floordiv", "mod") and self.interval(a.args[1]).low >= 1:
                self._define_division(index, a.op, *a.args)

    def _define_division(self, index: int, op: str, x: Polynomial, d: Polynomial) -> None:
        """For d >= 1: d*q <= x <= d*q + d-1 where q = x // d, r <= d-1 where r = x % d (0 <= r is in the
        interval of r), and with both, x = d*q + r."""
        pair = self._divisions.setdefault((key(x), key(d)), {})
        pair[op] = index
        if op == "mod":
            self._add(combine(combine(d, constant(-1)), atom(index), -1))
        else:
            below = combine(x, times(d, atom(index)), -1)
            self._add(below)
            self._add(combine(combine(d, constant(-1)), below, -1))
        if len(pair) == 2:
            whole = combine(times(d, atom(pair["floordiv"])), atom(pair["mod"]))
            self._add(combine(x, whole, -1))
            self._add(combine(whole, x, -1))


def _at_least(coefficient: int, rest: iv.End) -> Interval:
    """All integers a with coefficient * a + rest >= 0."""
    if isinstance(rest, float):
        return iv.ANY
    if coefficient > 0:
        return Interval(-(rest // coefficient), math.inf)
    return Interval(-math.inf, rest // -coefficient)


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
