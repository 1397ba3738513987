"""Instances of valid lemmas about products of integers.

`linear` replaces each monomial of two or more unknowns by a fresh constant. Each function here yields facts
that hold for the true product, so adding them never turns a satisfiable query unsatisfiable. Which instances
are made decides only how much can be proved. `docs/soundness.md` gives each lemma's proof.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from tilecheck.proof.algebra.linear import Linear, numeral
from tilecheck.proof.algebra.polynomial import (
    UNIT,
    ZERO,
    Key,
    Monomial,
    Polynomial,
    atom,
    key,
    monomial,
    scaled,
    times,
    without,
)

_DEGREE = 5  # monomials of a higher degree get sign facts only
_EXPANSIONS = 60  # how many times a definition is multiplied out
_PAIRS = 400  # pairs of products with one factor that are compared; a kernel has a dozen


def instantiate(linear: Linear, *, products: bool, definitions: bool) -> None:
    """Add lemmas to `linear`: with `products` also those that make new products, from comparisons and from
    linear definitions (tier A+), with `definitions` from other definitions too (tier B)."""
    found: list[str] = []
    if products:
        found += expansions(linear, _DEGREE if definitions else 1)
        found += directed(linear)
    found += branches(linear, symbolic=products)
    known = linear.polynomials()
    found += signs(linear)
    found += common_factors(linear, known)
    found += twins(linear)
    found += cofactors(linear, known)
    linear.clauses += dict.fromkeys(found)


def signs(linear: Linear) -> Iterator[str]:
    """L1. For t = d*x: d, x >= 1 gives t >= d and t >= x; d, x >= 0 gives t >= 0; d = 0 or x = 0 gives t = 0;
    d >= 0 and x <= -1 gives t <= -d (and with d and x exchanged)."""
    for m in list(linear.products):
        t = linear.name(m)
        for i in range(1 if len(m) == 2 else len(m)):
            d, x = linear.name((m[i],)), linear.name(m[:i] + m[i + 1 :])
            linear.note("sign", atom(m[i]), monomial(m[:i] + m[i + 1 :]))
            yield f"(=> (and (<= 1 {d}) (<= 1 {x})) (and (<= {x} {t}) (<= {d} {t})))"
            yield f"(=> (and (<= 0 {d}) (<= 0 {x})) (<= 0 {t}))"
            yield f"(=> (or (= 0 {d}) (= 0 {x})) (= 0 {t}))"
            yield f"(=> (and (<= 0 {d}) (<= {x} (- 1))) (<= {t} (- {d})))"
            yield f"(=> (and (<= 0 {x}) (<= {d} (- 1))) (<= {t} (- {x})))"


def common_factors(linear: Linear, known: list[Polynomial]) -> Iterator[str]:
    """L2. For products d*x and d*y with d >= 0 and literals a, b >= 1: a*x < b*y gives a*d*x + d <= b*d*y,
    and the same with the sides exchanged; a*x = b*y gives a*d*x = b*d*y. The literals are those with which
    the products occur."""
    coefficients: dict[Monomial, dict[int, None]] = {}
    for p in known:
        for m, c in p.items():
            if len(m) > 1:
                coefficients.setdefault(m, {})[abs(c)] = None
    for d, multiples in _by_factor(linear).items():
        if len(d) > 1 and len(multiples) < 2:
            continue
        if len(d) > 1 and d not in linear.products:
            for k in range(1, len(d)):
                linear.note("sign", monomial(d[:k]), atom(d[k]))
            positive = " ".join(f"(<= 1 {linear.name((a,))})" for a in d)
            yield f"(=> (and {positive}) (<= 1 {linear.name(d)}))"
        pairs = itertools.islice(itertools.combinations(multiples.items(), 2), _PAIRS)
        for (x, dx), (y, dy) in pairs:
            for a, b in _ratios(coefficients.get(dx, {1: None}), coefficients.get(dy, {1: None})):
                yield _ordered_multiples(linear, d, (scaled(monomial(x), a), scaled(monomial(y), b)))


def twins(linear: Linear) -> Iterator[str]:
    """L5. For products d*x and e*y where e is d as the other block sees it, as the size of a group may be:
    d = e and d >= 0 and x < y give d*x + d <= e*y, and so on as in L2."""
    paired = linear.twins()
    for m in list(linear.products):
        other = tuple(sorted(paired.get(a, a) for a in m))
        if other <= m or other not in linear.products:
            continue
        for i, d in enumerate(m):
            e = paired.get(d, d)
            if e == d:
                continue
            x, y = m[:i] + m[i + 1 :], without(other, e)
            same = f"(= {linear.name((d,))} {linear.name((e,))})"
            linear.note("order", atom(d), monomial(x), monomial(y))
            linear.note("equal-factors", atom(d), atom(e), monomial(y))
            yield f"(=> {same} {_orders(linear, (d,), (x, y), (m, other))})"


def cofactors(linear: Linear, known: list[Polynomial]) -> Iterator[str]:
    """L4. For a sum L of the cofactors of d in a compared polynomial, and d >= 0: L >= 1 gives d*L >= d,
    L <= -1 gives d*L <= -d, L = 0 gives d*L = 0, where d*L is written with the products that occur."""
    seen: dict[tuple[int, Key], None] = {}
    for p in known:
        factors = dict.fromkeys(a for m in p if len(m) > 1 for a in m)
        for d in factors:
            rest: dict[Monomial, int] = {}
            for m, c in p.items():
                if d in m:
                    rest[without(m, d)] = rest.get(without(m, d), 0) + c
            if len(rest) < 2 or (len(rest) == 2 and sorted(rest.values()) == [-1, 1]):
                continue  # one product has its signs (L1); a difference of two is L2
            if (d, key(rest)) in seen:
                continue
            seen[d, key(rest)] = None
            yield _multiplied(linear, d, rest)


def branches(linear: Linear, *, symbolic: bool) -> Iterator[str]:
    """L3m. A minimum, maximum or conditional v that equals one of its branches B: v*x = B*x. For literal
    branches; with `symbolic` for all up to degree 2, which makes new products."""
    for m in list(linear.products):
        for i, v in enumerate(m):
            for branch in linear.choices.get(v, ()):
                degree = max((len(n) for n in branch), default=0)
                if degree > (2 if symbolic else 0):
                    continue
                rest = monomial(m[:i] + m[i + 1 :])
                value = times(rest, branch)
                linear.note("equal-factors", atom(v), branch, rest)
                yield f"(=> (= v{v} {linear.term(branch)}) (= {linear.name(m)} {linear.term(value)}))"


def directed(linear: Linear) -> Iterator[str]:
    """L6. Where x is compared with y and a product d*x occurs, name d*y too, so that L2 relates them; where
    x is compared with a literal c, relate d*x and c*d as in L4. Atoms that share a factor (e*x and e*y
    occur) count as compared, because L2 splits on their order."""
    pairs: dict[tuple[int, int], None] = {}
    for p in linear.compared:
        lines = [m for m in p if m]
        if any(len(m) > 1 for m in lines):
            continue
        if len(lines) == 1 and p.get(UNIT):
            yield from (_multiplied(linear, d, p) for d in _partners(linear, lines[0][0]))
        elif len(lines) == 2:
            pairs[lines[0][0], lines[1][0]] = None
    for multiples in _by_factor(linear).values():
        atoms = [x[0] for x in multiples if len(x) == 1]
        pairs.update(dict.fromkeys(itertools.islice(itertools.combinations(atoms, 2), _PAIRS)))
    named = [(d, y) for x, y in pairs for d in _partners(linear, x)]
    named += [(d, x) for x, y in pairs for d in _partners(linear, y)]
    for d, y in named:
        linear.name(tuple(sorted((d, y))))


def _partners(linear: Linear, x: int) -> list[int]:
    """The atoms d for which d*x occurs."""
    return [without(m, x)[0] for m in linear.products if len(m) == 2 and x in m]


def expansions(linear: Linear, degree: int) -> Iterator[str]:
    """L3. An atom u with the definition u = P (a named sum, or a dividend d*q + r where d > 0) inside a
    product: u*x = P*x, multiplied out. For definitions up to `degree`."""
    work = list(linear.products)
    done: dict[tuple[Monomial, int], None] = {}
    while work and len(done) < _EXPANSIONS:
        m = work.pop(0)
        for i, u in enumerate(m):
            definition = linear.definitions.get(u)
            if definition is None or (m, u) in done or max(map(len, definition.value)) > degree:
                continue
            done[m, u] = None
            value = times(monomial(m[:i] + m[i + 1 :]), definition.value)
            if max((len(n) for n in value), default=0) >= _DEGREE:
                continue
            work += [n for n in value if len(n) > 1 and n not in linear.products]
            same = f"(= {linear.name(m)} {linear.term(value)})"
            linear.note("equal-factors", atom(u), definition.value, monomial(m[:i] + m[i + 1 :]))
            yield same if definition.guard is None else f"(=> {definition.guard} {same})"


def _by_factor(linear: Linear) -> dict[Monomial, dict[Monomial, Monomial]]:
    """For each proper factor d of a product: the cofactors x, with the product d*x."""
    found: dict[Monomial, dict[Monomial, Monomial]] = {}
    for m in list(linear.products):
        if len(m) > _DEGREE:
            continue
        for size in range(1, len(m)):
            for d in dict.fromkeys(itertools.combinations(m, size)):
                found.setdefault(d, {})[without(m, *d)] = m
    return found


def _ratios(first: dict[int, None], second: dict[int, None]) -> list[tuple[int, int]]:
    """Pairs of coefficients to compare two products with, in lowest terms; (1, 1) always."""
    pairs = {(1, 1)}
    for a, b in itertools.product(first, second):
        divisor = math.gcd(a, b)
        pairs.add((a // divisor, b // divisor))
    return sorted(pairs)


def _ordered_multiples(linear: Linear, d: Monomial, sides: tuple[Polynomial, Polynomial]) -> str:
    x, y = sides
    linear.note("order", monomial(d), x, y)
    dx, dy = times(monomial(d), x), times(monomial(d), y)
    return _order_text(linear.name(d), linear.term(x), linear.term(y), linear.term(dx), linear.term(dy))


def _orders(
    linear: Linear, d: Monomial, sides: tuple[Monomial, Monomial], whole: tuple[Monomial, Monomial]
) -> str:
    x, y = (linear.name(m) for m in sides)
    dx, dy = (linear.name(m) for m in whole)
    return _order_text(linear.name(d), x, y, dx, dy)


def _order_text(d: str, x: str, y: str, dx: str, dy: str) -> str:
    below = f"(=> (< {x} {y}) (<= (+ {dx} {d}) {dy}))"
    above = f"(=> (< {y} {x}) (<= (+ {dy} {d}) {dx}))"
    return f"(=> (<= 0 {d}) (and {below} {above} (=> (= {x} {y}) (= {dx} {dy}))))"


def _multiplied(linear: Linear, d: int, p: Polynomial) -> str:
    """p >= 1, p <= -1 and p = 0, each multiplied by d >= 0."""
    linear.note("order", atom(d), ZERO, p)
    name, term = f"v{d}", linear.term(p)
    product = linear.term(times(p, atom(d)))
    above = f"(=> (<= 1 {term}) (<= {name} {product}))"
    below = f"(=> (<= {term} {numeral(-1)}) (<= {product} (- {name})))"
    return f"(=> (<= 0 {name}) (and {above} {below} (=> (= {term} 0) (= {product} 0))))"
