"""Sums and products over launch values, and the plainest text of `count <= limit`.

Candidates for launch conditions are computed here: what a person would write for an inequality, with one
grid extent or one tile count alone on its left. Nothing in this file is trusted: a condition that comes out
wrong is refused by the prover or is stronger than it need be.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from tilecheck.analysis.limits import Ranges as PromisedRanges
from tilecheck.ir.expr import (
    TRUE,
    Expr,
    Kind,
    Symbol,
    add,
    cdiv,
    children,
    floordiv,
    le,
    mul,
    symbols,
)
from tilecheck.proof.algebra.polynomial import (
    UNIT,
    Monomial,
    Polynomial,
    combine,
    constant,
    key,
    scaled,
    times,
    without,
)

_MAX_MONOMIALS = 40  # a product that would expand to more stays one atom


class Terms:
    """Polynomials over expressions: the table of the expressions that occur as atoms.

    Mutable because it numbers atoms as they appear; numbers, and so the order of terms in a text, depend on
    nothing but the order of the calls. `tiles` are the symbols of tile sizes, `promised` the ranges of values
    in memory.
    """

    def __init__(self, tiles: Iterable[Symbol] = (), promised: PromisedRanges | None = None) -> None:
        self.tiles = frozenset(tiles)
        self.promised = promised or {}
        self._atoms: list[Expr] = []
        self._numbers: dict[Expr, int] = {}
        self._kinds: dict[Expr, int] = {}

    def poly(self, e: Expr) -> Polynomial:
        """`e` as a polynomial; everything but sums, products and literals is an atom."""
        if e.value is not None:
            return constant(e.value)
        if e.op == "add":
            total: Polynomial = {}
            for term in e.args:
                total = combine(total, self.poly(term))
            return total
        if e.op == "mul":
            product = constant(1)
            for factor in e.args:
                other = self.poly(factor)
                if len(product) * len(other) > _MAX_MONOMIALS:
                    return {(self._number(e),): 1}
                product = times(product, other)
            return product
        return {(self._number(e),): 1}

    def _number(self, e: Expr) -> int:
        if e not in self._numbers:
            self._numbers[e] = len(self._atoms)
            self._atoms.append(e)
        return self._numbers[e]

    def atom(self, number: int) -> Expr:
        return self._atoms[number]

    def expr(self, p: Polynomial) -> Expr:
        """The polynomial as an expression, terms in the order of their atoms' first appearance."""
        return add(*(self._term(m, p[m]) for m in sorted(p)))

    def _term(self, m: Monomial, coefficient: int) -> Expr:
        return mul(coefficient, *(self._atoms[number] for number in m))

    def varies(self, m: Monomial) -> bool:
        """Whether anything but launch values occurs in the monomial."""
        return not all(self.uniform(self._atoms[number]) for number in m)

    def uniform(self, e: Expr) -> bool:
        """Whether `e` is a launch value: over launch symbols only, and not read from memory."""
        return self._kind(e) <= Kind.HOST

    def _kind(self, e: Expr) -> int:
        """The largest `Kind` in `e`, a value in memory counting as OPAQUE."""
        stack = [e]
        while stack:
            node = stack[-1]
            todo = [c for c in children(node) if c not in self._kinds]
            if todo and node not in self._kinds:
                stack.extend(todo)
                continue
            stack.pop()
            if node.op in ("sym", "bsym"):
                kind = int(node.args[0].kind)
            elif node.op == "read":
                kind = int(Kind.OPAQUE)
            else:
                kind = max((self._kinds[c] for c in children(node)), default=0)
            self._kinds[node] = kind
        return self._kinds[e]

    def strides(self, p: Polynomial) -> dict[Monomial, Polynomial]:
        """What each varying value in p is multiplied by, which may be a sum: n + m in `i * n + i * m`."""
        found: dict[Monomial, dict[Monomial, int]] = {}
        for m, c in p.items():
            stride = tuple(number for number in m if self.uniform(self._atoms[number]))
            found.setdefault(without(m, *stride), {})[stride] = c
        return dict(found)

    def has_grid(self, m: Monomial) -> bool:
        return any(_has(self._atoms[number], Kind.GRID) for number in m)

    def common(self, p: Polynomial) -> Monomial:
        """The uniform atoms that divide every monomial of `p`."""
        shared: list[int] | None = None
        for m in p:
            rest = list(m)
            if shared is None:
                shared = [number for number in rest if self.uniform(self._atoms[number])]
                continue
            kept = []
            for number in shared:
                if number in rest:
                    rest.remove(number)
                    kept.append(number)
            shared = kept
        return tuple(shared or ())

    def quotient(self, p: Polynomial, a: Polynomial) -> Polynomial:
        """floor(p / a) for a >= 1, written with `cdiv` where that is plainer, without the factors that p and a
        share: floor(c*p / (c*a)) is floor(p / a)."""
        shared = self.common({**p, **a}) if p else UNIT
        p, a = ({without(m, *shared): c for m, c in q.items()} for q in (p, a))
        if dict(a) == {UNIT: 1}:
            return p
        whole, rest = self._divide(p, a)
        if not rest or key(rest) == key(combine(a, constant(1), -1)):
            return whole
        if key(rest) == key(constant(-1)):
            return combine(whole, constant(1), -1)
        part = self._share_of(a)
        if part is not None and key(self.poly(part[0])) == key(rest):
            return combine(whole, self.poly(part[1]))  # x // (x // k) is at least k
        above = combine(rest, constant(1))
        if len(above) < len(rest):  # floor((x - 1) / a) = cdiv(x, a) - 1
            rounded = self.poly(cdiv(self.expr(above), self.expr(a)))
            return combine(combine(whole, rounded), constant(1), -1)
        return combine(whole, self.poly(floordiv(self.expr(rest), self.expr(a))))

    def _share_of(self, a: Polynomial) -> tuple[Expr, Expr] | None:
        """(x, k) when `a` is x // k."""
        if len(a) != 1:
            return None
        ((m, c),) = a.items()
        head = self._atoms[m[0]] if len(m) == 1 and c == 1 else None
        return (head.args[0], head.args[1]) if head is not None and head.op == "floordiv" else None

    def _divide(self, p: Polynomial, a: Polynomial) -> tuple[Polynomial, Polynomial]:
        """(q, r) with p = a * q + r, for a of one monomial: whatever `a` divides goes into q."""
        if len(a) != 1:
            return {}, p
        ((divisor, scale),) = a.items()
        whole: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for m, coefficient in p.items():
            left = list(m)
            divides = coefficient % scale == 0
            for number in divisor:
                if number in left:
                    left.remove(number)
                else:
                    divides = False
            if divides:
                whole[tuple(left)] = coefficient // scale
            else:
                rest[m] = coefficient
        return whole, rest

    # -------------------------------------------------------------------------------------------------

    def limited(self, factor: Polynomial, top: Polynomial, rest: Polynomial) -> tuple[Expr, ...]:
        """Conditions under which factor * v + rest <= 0 for all v <= top; `factor` >= 1, all uniform.

        Where `top` has two grid extents (a*g + h), one of them is the leading digit: the other digits stay
        below a, and then v < a*g. Each choice of the leading digit gives its own two conditions.
        """
        grids = [m for m in sorted(top) if top[m] > 0 and self.has_grid(m)]
        if len(grids) < 2:
            return self.at_most(combine(times(factor, top), rest), {})
        found: list[Expr] = []
        for leading in sorted(grids, key=lambda m: (*self._weight(m), top[m]), reverse=True):
            a = {self._without_grids(leading): top[leading]}
            digit: Polynomial = {leading: top[leading]}
            lower = combine(combine(top, digit, -1), a)
            below = self.limited(constant(1), lower, combine(constant(1), a, -1))
            above = self.at_most(combine(times(factor, combine(digit, constant(1), -1)), rest), {})
            if below and above:
                found += [*below, *above]
        return tuple(found)

    def _without_grids(self, m: Monomial) -> Monomial:
        return tuple(number for number in m if not self.has_grid((number,)))

    def _weight(self, m: Monomial) -> tuple[int, int]:
        """How large a digit's factor is likely to be: run-time values before constants, then how many."""
        factors = [s for number in self._without_grids(m) for s in symbols(self._atoms[number])]
        return len([s for s in factors if s.kind is not Kind.CONSTANT]), len(factors)

    def at_most(self, count: Polynomial, limit: Polynomial) -> tuple[Expr, ...]:
        """The condition `count <= limit` with one grid extent or one count alone on its left.

        Both sides must be uniform. None when that does not work out.
        """
        excess = self._in_tiles(self._without_common_grids(combine(count, limit, -1)))
        grids = [m for m in sorted(excess) if excess[m] > 0 and self.has_grid(m)]
        if not grids:
            return self._without_grid(excess)
        (m, *others) = grids
        head = tuple(number for number in m if self.has_grid((number,)))
        share = {self._without_grids(m): excess[m]}
        rest = {other: -c for other, c in excess.items() if other != m}
        if others or any(self.has_grid(other) for other in rest):
            return ()
        if self._is_share(rest, share):
            return ()  # n // (k * n) is 0 wherever that says anything
        bound = self.quotient(rest, share)
        if len(head) > 1:
            return (le(self._term(head, 1), self.expr(bound)),)
        return self._isolated(self._atoms[head[0]], bound)

    def _without_common_grids(self, excess: Polynomial) -> Polynomial:
        """What is at most 0 where `excess` is, without the grid extents that divide all of it: they are at
        least 1."""
        grids = tuple(
            number
            for number in self.common(excess)
            if self._atoms[number].op == "sym" and self._atoms[number].args[0].kind is Kind.GRID
        )
        return {without(m, *grids): c for m, c in excess.items()} if len(excess) > 1 else excess

    def _is_share(self, p: Polynomial, a: Polynomial) -> bool:
        """Whether `a` is a multiple of the launch value `p`."""
        return len(p) == 1 and UNIT not in p and not self._divide(a, p)[1]

    def _in_tiles(self, excess: Polynomial) -> Polynomial:
        """a*q + rest <= 0 for a tile size a, as q <= floor(-rest / a): tiles are counted, not elements."""
        high = {m: c for m, c in excess.items() if c > 0 and m != UNIT}
        counted = {m: c for m, c in high.items() if self.has_grid(m)} or high
        for number in self.common(counted):
            if not self._is_tile(number):
                continue
            a: Polynomial = {(number,): 1}
            if any(m != UNIT for m in self._divide(counted, a)[0]):
                return self._in_tiles(self._counted(excess, a))
        share = gcd(*counted.values())
        if share > 1 and not all(self._is_tile(number) for m in counted for number in m):
            return self._counted(excess, constant(share))
        return excess

    def _counted(self, excess: Polynomial, a: Polynomial) -> Polynomial:
        whole, rest = self._divide(excess, a)
        return combine(whole, self.quotient(scaled(rest, -1), a), -1)

    def _isolated(self, head: Expr, limit: Polynomial) -> tuple[Expr, ...]:
        """Conditions for `head <= limit`, where the grid extent is somewhere in `head`."""
        if head.op == "sym":
            return (le(head, self.expr(limit)),)
        if head.op == "floordiv":
            # The quotient of x by d is at most L exactly when x is at most d * L + d - 1.
            top, divisor = self.poly(head.args[0]), self.poly(head.args[1])
            bound = combine(times(divisor, limit), combine(divisor, constant(1), -1))
            return self.at_most(top, bound)
        return ()

    def _without_grid(self, excess: Polynomial) -> tuple[Expr, ...]:
        """`excess <= 0` as `low <= high`, without a minus."""
        low = {m: c for m, c in excess.items() if c > 0}
        high = {m: -c for m, c in excess.items() if c < 0}
        return _condition(self.expr(low), self.expr(high))

    def _is_tile(self, number: int) -> bool:
        found = symbols(self._atoms[number])
        return bool(found) and all(s in self.tiles for s in found)


def _has(e: Expr, kind: Kind) -> bool:
    return any(s.kind is kind for s in symbols(e))


def _condition(low: Expr, high: Expr) -> tuple[Expr, ...]:
    found = le(low, high)
    return () if found is TRUE else (found,)


def enlarging(size: Expr) -> frozenset[Symbol]:
    """The numbers that a tile is larger with. What it is divided by counts tiles: there are d tiles of `n // d`
    elements, and as many blocks there may be."""
    if size.op == "sym":
        return frozenset(symbols(size))
    found = frozenset(s for child in children(size) for s in enlarging(child))
    return found - frozenset(symbols(size.args[1])) if size.op == "floordiv" else found
