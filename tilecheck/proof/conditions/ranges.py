"""How large a program value can get, in launch values: the guesses that candidates are made from.

The bounds are read off the text (loop ranges, guards, masks, block and lane ranges) and assume that block
indices, iteration numbers and the like are not negative. They are guesses: only the prover decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import gcd

from tilecheck.analysis.limits import likely_ranges_of
from tilecheck.ir.expr import ZERO, Expr, Kind, add, conjuncts, floordiv, le, lt, maximum, mul, neg, render, sub
from tilecheck.proof.algebra.polynomial import UNIT, Key, Monomial, Polynomial, combine, constant, key, scaled
from tilecheck.proof.conditions.terms import Terms
from tilecheck.proof.premises.clamps import ends_of

_ALTERNATIVES = 3
_DEPTH = 12


class Ranges:
    """Inclusive upper bounds of the expressions of one obligation, from its path conditions."""

    def __init__(self, terms: Terms, known: Iterable[Expr]) -> None:
        self.terms = terms
        self._upper: dict[Key, dict[Expr, None]] = {}
        self._rough: dict[tuple[Key, Expr], None] = {}  # of what is bounded as a part of a sum only
        self._stated: dict[Key, None] = {}  # those that a condition bounds as they are
        self._known: dict[Expr, None] = {}
        for condition in known:
            for part in conjuncts(condition):
                self._known[part] = None
                self._learn(part)
                if part.op == "any":  # `n < 0 or i < n`, as unsigned numbers are compared
                    moving = [one for one in part.args if not terms.uniform(one)]
                    if len(moving) == 1:
                        self._learn(moving[0])

    def _learn(self, part: Expr) -> None:
        """Note what `a <= b`, `a < b` or `a == b` says of the varying part of `a`: of its terms with a plus,
        and of all where others have a minus."""
        if part.op not in ("lt", "le", "eq"):
            return
        if part.op != "eq" and part.args[1].op == "min":  # below both: `i < min(B, n - k)` bounds `k + i` too
            for branch in part.args[1].args:
                self._learn(lt(part.args[0], branch) if part.op == "lt" else le(part.args[0], branch))
        if part.op == "lt" and part.args[1].op == "mul":
            self._learn_quotient(*part.args)
        terms = self.terms
        sides = [part.args] if part.op != "eq" else [part.args, part.args[::-1]]
        for a, b in sides:
            excess = combine(terms.poly(a), terms.poly(b), -1)
            if part.op == "lt":
                excess = combine(excess, constant(1))
            varying = {m: c for m, c in excess.items() if terms.varies(m)}
            high = {m: c for m, c in varying.items() if c > 0}
            if high:
                self._note(high, scaled(combine(excess, high, -1), -1))
            if high and len(high) < len(varying):
                self._add(varying, terms.expr(scaled(combine(excess, varying, -1), -1)))
                # `starts[n] + (last - k) * B + lane < starts[n + 1]`: a table says how large the right side is.
                looked_up = {m: c for m, c in varying.items() if c < 0 and self._is_element(m)}
                rest = combine(varying, looked_up, -1)
                if looked_up and len(high) < len(rest):
                    self._add(rest, terms.expr(scaled(combine(excess, rest, -1), -1)))

    def _learn_quotient(self, x: Expr, product: Expr) -> None:
        """`x < (min(a + c, n) - a) * d` bounds `x // d + a`: rows that are taken apart by their length."""
        still = [factor for factor in product.args if self.terms.uniform(factor)]
        moving = [factor for factor in product.args if factor not in still]
        if len(still) != 1 or len(moving) != 1 or moving[0].op != "add":
            return
        ends = [term for term in moving[0].args if term.op == "min"]
        if len(ends) == 1:
            before = (neg(term) for term in moving[0].args if term is not ends[0])
            self._learn(lt(add(floordiv(x, still[0]), *before), ends[0]))

    def _is_element(self, m: Monomial) -> bool:
        return len(m) == 1 and self.terms.atom(m[0]).op == "read"

    def _note(self, high: Polynomial, bound: Polynomial) -> None:
        terms = self.terms
        self._add(high, terms.expr(bound))
        self._stated[key(high)] = None
        for m, coefficient in high.items():
            moving = [number for number in m if not terms.uniform(terms.atom(number))]
            still = tuple(number for number in m if number not in moving)
            if len(moving) != 1 or (len(high) == 1 and not still and coefficient == 1):
                continue
            # The other terms are taken to be at least 0.
            part: Polynomial = {(moving[0],): 1}
            if len(high) == 1:
                self._stated[key(part)] = None
            top = terms.expr(terms.quotient(bound, {still: coefficient}))
            self._add(part, top)
            if len(high) > 1 and not self._is_lane(moving[0]):  # as masks say more than sizes
                self._rough.setdefault((key(part), top))

    def _is_lane(self, number: int) -> bool:
        atom = self.terms.atom(number)
        return atom.op == "sym" and atom.args[0].kind is Kind.LANE

    def known(self, *, parts: bool = True) -> Iterator[tuple[Polynomial, Expr]]:
        """The sums that a condition bounds, each by its plainest launch value. Of one term `k * B` it is `k`
        that is bounded best: by a whole number. Without `parts`, not the remainders and block indices of which
        only sums are bounded: `k * B + l < n` leaves room for `n // B` blocks, not for as many as there are."""
        for p, bounds in self._upper.items():
            if not parts and p not in self._stated and self._has_own(p):
                continue
            if len(p) == 1 and (len(p[0][0]) > 1 or p[0][1] != 1):
                continue
            plain = [bound for bound in self._sorted(p, bounds) if self.terms.uniform(bound)]
            if not plain and len(p) > 1:
                plain = sorted(
                    (top for bound in bounds for top in self.highest(bound)), key=lambda e: len(render(e))
                )
            if plain:
                yield dict(p), plain[0]

    def _has_own(self, p: Key) -> bool:
        """Whether it is one value that is bounded by what it is."""
        e = self.terms.expr(dict(p))
        return e.op == "mod" or (e.op == "sym" and e.args[0].kind is Kind.BLOCK)

    def _add(self, p: Polynomial, bound: Expr) -> None:
        self._upper.setdefault(key(p), {})[bound] = None

    # -------------------------------------------------------------------------------------------------

    def highest(self, e: Expr, depth: int = 0, *, own: bool = False) -> tuple[Expr, ...]:
        """Launch values that `e` is guessed not to exceed, the best guess first; if its `own`, from what it is
        made of before what conditions say of it."""
        if self.terms.uniform(e):
            return (e,)
        if depth > _DEPTH:
            return ()
        found: dict[Expr, None] = {}
        if own:
            found.update(dict.fromkeys(self._by_operator(e, depth + 1)))
        for bound in self._bounds(e):
            if bound is not e:
                found.update(dict.fromkeys(self.highest(bound, depth + 4)))
        found.update(dict.fromkeys(self._by_operator(e, depth + 1)))
        return tuple(found)[:_ALTERNATIVES]

    def _bounds(self, e: Expr) -> Iterator[Expr]:
        """What conditions say of a value, or of what varies in it: `(i + first) * B + l < n` as it is."""
        terms = self.terms
        p = terms.poly(e)
        yield from self._sorted(key(p), self._upper.get(key(p), ()))
        varying = {m: c for m, c in p.items() if terms.varies(m)}
        if len(varying) < len(p):
            still = terms.expr(combine(p, varying, -1))
            for bound in self._sorted(key(varying), self._upper.get(key(varying), ())):
                yield terms.expr(terms.poly(add(bound, still)))

    def _sorted(self, p: Key, bounds: Iterable[Expr]) -> list[Expr]:
        """What is said of a value itself, before what follows from a sum that it is in: of `start + k` below
        both n and `start + B` it is B that k stays below."""
        return sorted(bounds, key=lambda bound: (p, bound) in self._rough)

    def _by_operator(self, e: Expr, depth: int) -> Iterator[Expr]:
        match e.op:
            case "sym":
                symbol = e.args[0]
                if symbol.kind in (Kind.BLOCK, Kind.LANE) and symbol.bound is not None:
                    for bound in self.highest(symbol.bound, depth):
                        yield sub(bound, 1)
            case "add":
                yield from self._half_way(e, depth)
                yield from self._sum(e, depth)
            case "mul":
                yield from self._product(e, depth)
            case "floordiv":
                yield from self._half_way(e, depth)
                for top in self.highest(e.args[0], depth):
                    if self.terms.uniform(e.args[1]):
                        terms = self.terms
                        yield terms.expr(terms.quotient(terms.poly(top), terms.poly(e.args[1])))
                    else:
                        yield top
            case "mod":
                for divisor in self.highest(e.args[1], depth):
                    yield sub(divisor, 1)
                yield from self.highest(e.args[0], depth)
            case "min":  # where both ends are cut off, the launch value at the upper one says most
                both = any(branch.op == "max" for branch in e.args)
                for branch in sorted(e.args, key=lambda arg: both and not self.terms.uniform(arg)):
                    yield from self.highest(branch, depth)
            case "read":
                for _, high in likely_ranges_of(e, self.terms.promised):
                    yield from self.highest(sub(high, 1), depth)
            case "ite" if self._known.keys() >= set(conjuncts(e.args[0])):
                yield from self.highest(e.args[1], depth)
            case "max" | "ite":
                for compared, other in ends_of(e) if e.op == "ite" else ():
                    # `x if x < n else 0`, the lanes beyond the end of a row, which may have no other
                    below = compared.op == "lt"
                    ends = [sub(top, 1) if below else top for top in self.highest(compared.args[1], depth)]
                    yield from ends[:1]
                    yield from (maximum(end, other) for end in ends[:1] if self.terms.uniform(other))
                yield from self._either(e.args[-2], e.args[-1], depth, larger=e.op == "max")

    def _half_way(self, e: Expr, depth: int) -> Iterator[Expr]:
        """`(a + b) // 2` and `a + (b - a) // 2` are below b where a is, as in a search by halves."""
        halves = [(t, half) for t in (e.args if e.op == "add" else (e,)) if (half := _half(t)) is not None]
        if len(halves) != 1:
            return
        terms, (text, half) = self.terms, halves[0]
        twice = terms.poly(add(mul(2, sub(e, text)), half.args[0]))
        ends = [m for m in twice if m != UNIT]
        if len(ends) != 2 or any(twice[m] != 1 for m in ends):
            return
        for a, b in (ends, ends[::-1]):
            end: Polynomial = {b: 1}
            for below in (1, 0):
                if terms.expr(combine(end, constant(below), -1)) in self._upper.get(key({a: 1}), ()):
                    past = (twice.get(UNIT, 0) - below) // 2
                    yield from self.highest(terms.expr(combine(end, constant(past))), depth)
                    return

    def _sum(self, e: Expr, depth: int) -> Iterator[Expr]:
        """Sums of the terms' bounds; a varying term with a minus is at most 0."""
        sums: list[tuple[Expr, ...]] = [()]
        for term in e.args:
            options = self.highest(term, depth)
            sums = [(*s, option) for s in sums for option in options][:_ALTERNATIVES]
        for s in sums:
            yield self.terms.expr(self.terms.poly(add(*s)))

    def _product(self, e: Expr, depth: int) -> Iterator[Expr]:
        if e.args[0].value is not None and e.args[0].value < 0:
            yield ZERO
            return
        products: list[tuple[Expr, ...]] = [()]
        for factor in e.args:
            products = [(*p, option) for p in products for option in self.highest(factor, depth)]
            products = products[:_ALTERNATIVES]
        for p in products:
            yield mul(*p)

    def _either(self, a: Expr, b: Expr, depth: int, *, larger: bool) -> Iterator[Expr]:
        firsts, seconds = self.highest(a, depth), self.highest(b, depth)
        if larger and not (firsts and seconds):
            return
        if a.op == "mod" and seconds == (ZERO,):  # a truncated remainder: the other branch is at most 0
            yield from firsts
            return
        for first in firsts[:1]:
            for second in seconds[:1]:
                yield maximum(first, second)
        yield from firsts
        yield from seconds

    # -------------------------------------------------------------------------------------------------

    def split(self, excess: Polynomial) -> tuple[Polynomial, Polynomial, Polynomial]:
        """`excess <= 0` as (a, v, u): a * v + u <= 0 with v varying, a its common factor, u uniform.

        Varying terms with a minus are left out: they can only help.
        """
        terms = self.terms
        moving = {m: c for m, c in excess.items() if terms.varies(m) and c > 0}
        still = {m: c for m, c in excess.items() if not terms.varies(m)}
        shared = terms.common(moving)
        scale = gcd(*moving.values()) or 1
        inner: dict[tuple[int, ...], int] = {}
        for m, coefficient in moving.items():
            rest = list(m)
            for number in shared:
                rest.remove(number)
            inner[tuple(rest)] = coefficient // scale
        return {shared: scale}, inner, still


def _half(e: Expr) -> Expr | None:
    """The quotient by 2 that `e` is, where a negative one may be rounded otherwise."""
    half: Expr = e.args[1] if e.op == "ite" else e
    return half if half.op == "floordiv" and half.args[1].value == 2 else None


def largest(ranges: Ranges, a: Expr, b: Expr) -> Iterator[Expr]:
    """Conditions for a <= b, from the largest values of what varies in it."""
    terms = ranges.terms
    shared, moving, still = ranges.split(combine(terms.poly(a), terms.poly(b), -1))
    if not moving:
        if any(m != UNIT for m in still):
            yield from terms.at_most(still, {})
        return
    for top in ranges.highest(terms.expr(moving)):
        yield from terms.limited(shared, terms.poly(top), still)
