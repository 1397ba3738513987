"""Candidates for offsets into flat memory: how long the memory must be, and the signs of its strides.

    x + row * stride + col, col < n      numel(x) >= (grid[0] - 1) * stride + n, stride >= 0

The largest offset is put together from what masks and loop bounds say of the sums in it, each sum as a whole:
in `(k * B + l) * stride`, spelled as two terms, the mask on `k * B + l` decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from tilecheck.ir.expr import (
    ZERO,
    Expr,
    Kind,
    add,
    children,
    conjuncts,
    le,
    mul,
    negate,
    number_symbols,
    render,
    sub,
    substitute,
    sym,
    walk,
)
from tilecheck.ir.kernel import Access
from tilecheck.proof.algebra.polynomial import Key, Monomial, Polynomial, combine, key, times, without
from tilecheck.proof.conditions.generators.counts import is_flag
from tilecheck.proof.conditions.ranges import Ranges
from tilecheck.proof.conditions.terms import Terms

_ALTERNATIVES = 3


def conditions(terms: Terms, access: Access) -> Iterator[Expr]:
    """Conditions under which the flat array behind `access` is long enough, the least demanding first."""
    (axis,) = access.axes
    ranges = Ranges(terms, (access.guard, access.mask, access.lane_facts))
    lengths: dict[Key, Expr] = {}
    for top in chain(*(highest(terms, ranges, index) for index in (*_branches(terms, axis.index), axis.index))):
        length = terms.poly(add(top, 1))
        plainest = min(add(top, 1), factored(terms, length), key=lambda e: len(render(e)))
        lengths.setdefault(key(length), plainest)
    yield from (le(length, axis.extent) for length in lengths.values())
    for part in conjuncts(access.mask):  # `n < 0 or i < n` bounds an unsigned i where n is not negative
        if part.op == "any" and not terms.uniform(part):
            yield from (negate(one) for one in part.args if terms.uniform(one) and not is_flag(one))
    for symbol in number_symbols(axis.index):
        if symbol.kind is Kind.SCALAR or (symbol.kind is Kind.CONSTANT and symbol not in terms.tiles):
            yield le(ZERO, sym(symbol))
    yield from _first(terms, terms.poly(axis.index))  # which says more than the signs


def _first(terms: Terms, index: Polynomial) -> Iterator[Expr]:
    """Where what all elements are moved by is a difference, it is not negative: n >= c in
    `(n - c + i) * stride`."""
    still = {m: c for m, c in index.items() if not terms.varies(m)}
    shared = terms.common(still)
    start = {without(m, *shared): c for m, c in still.items()}
    if any(c < 0 for c in start.values()) and any(c > 0 for c in start.values()):
        yield from terms.at_most({m: -c for m, c in start.items()}, {})


def _outside_tables(e: Expr) -> Iterator[Expr]:
    """The parts of an index, but for what tells which element of a table is looked up, and what is cut off at
    both ends, as what a search finds is."""
    if e.op != "read":
        yield e
        for part in children(e):
            if e.op != "max" or part.op != "min":
                yield from _outside_tables(part)


def _branches(terms: Terms, index: Expr) -> Iterator[Expr]:
    """The index with a branch of a minimum in its place, which it never exceeds: in
    `first + min(n, end - first)` it is `end` that is bounded, where a contract says how large it is."""
    yield from _before_branches(terms, index)
    smaller = [node for node in _outside_tables(index) if node.op == "min" and not terms.uniform(node)]
    if terms.promised and len(smaller) == 1:
        yield from (substitute(index, {smaller[0]: branch}) for branch in smaller[0].args)


def _before_branches(terms: Terms, index: Expr) -> Iterator[Expr]:
    """The index with the last element before a branch in the place of a part of the minimum of branches: of
    `i + min(n - i, B) // 2`, as Triton divides, `i + n - i - 1`. That is no less where the minimum is not 0."""
    nodes = tuple(walk(index))
    for part in nodes:
        if part.op != "floordiv" or part.args[0].op != "min" or (part.args[1].value or 0) < 2:
            continue
        whole = next((node for node in nodes if node.op == "ite" and node.args[1] is part), part)
        moving = (branch for branch in part.args[0].args if not terms.uniform(branch))
        yield from (substitute(index, {whole: sub(branch, 1)}) for branch in moving)


def factored(terms: Terms, p: Polynomial) -> Expr:
    """`n * s - s + 1` as `(n - 1) * s + 1`: what most terms share stands once."""
    shares: dict[int, int] = {}
    for m in p:
        for number in dict.fromkeys(m):
            shares[number] = shares.get(number, 0) + 1
    most = max(shares, key=lambda number: (shares[number], number), default=None)
    if most is None or shares[most] < 2:
        return terms.expr(p)
    inner = {without(m, most): c for m, c in p.items() if most in m}
    rest = {m: c for m, c in p.items() if most not in m}
    return add(mul(factored(terms, inner), terms.atom(most)), factored(terms, rest))


def highest(terms: Terms, ranges: Ranges, index: Expr) -> Iterator[Expr]:
    """Upper bounds of a sum, those that use the bounds of whole sums first."""
    whole: list[Expr] = []
    rest: Polynomial = {}
    for own in (True, False):
        whole, rest = _whole(terms, ranges, index, own=own)
        varying = {m: c for m, c in rest.items() if terms.varies(m)}
        still = terms.expr(combine(rest, varying, -1))
        each = [_term(terms, ranges, m, c, own=own) for m, c in varying.items()]
        if all(top is not None for top in each):
            yield add(*whole, *(top for top in each if top is not None), still)
    for top in ranges.highest(terms.expr(varying))[:_ALTERNATIVES]:
        yield add(*whole, top, still)
    if whole:
        yield from ranges.highest(index)[:_ALTERNATIVES]


def _whole(terms: Terms, ranges: Ranges, index: Expr, *, own: bool) -> tuple[list[Expr], Polynomial]:
    """Bounds of the sums in `index` that conditions speak of, and what is left of it: values that have bounds
    of their `own` are left, where only sums that they are in are bounded."""
    rest: Polynomial = dict(terms.poly(index))
    whole: list[Expr] = []
    for inner, bound in sorted(ranges.known(parts=not own), key=lambda found: -len(found[0])):
        factor = factor_of(terms, rest, inner)
        if factor is not None:
            rest = combine(rest, times(factor, inner), -1)
            whole.append(mul(bound, terms.expr(factor)))
    return whole, rest


def _term(terms: Terms, ranges: Ranges, m: Monomial, coefficient: int, *, own: bool) -> Expr | None:
    """`bound * factor` for one varying term: what varies in it is bounded alone, if `own` by what it is made of
    (`x % n` by n) before what conditions say of sums that it is in."""
    if coefficient < 0:
        return None
    moving = [terms.atom(number) for number in m if not terms.uniform(terms.atom(number))]
    factor = mul(coefficient, *(terms.atom(number) for number in m if terms.uniform(terms.atom(number))))
    bounds = [ranges.highest(e, own=own)[:1] for e in moving]
    return mul(*(b[0] for b in bounds), factor) if all(bounds) else None


def factor_of(terms: Terms, p: Polynomial, inner: Polynomial) -> Polynomial | None:
    """A launch value f with `p = f * inner + ...`, where f is one positive monomial."""
    first, scale = next((m, c) for m, c in inner.items() if c > 0)
    for m, coefficient in p.items():
        f = _quotient(m, first)
        if f is None or coefficient <= 0 or coefficient % scale or terms.varies(f):
            continue
        factor = {f: coefficient // scale}
        product = times(factor, inner)
        if all(p.get(k) == c for k, c in product.items()):
            return factor
    return None


def _quotient(m: Monomial, divisor: Monomial) -> Monomial | None:
    rest = list(m)
    for number in divisor:
        if number not in rest:
            return None
        rest.remove(number)
    return tuple(rest)
