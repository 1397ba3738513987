"""Terms of sums, and what values are whatever the names of their lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

from tilecheck.ir.expr import ONE, ZERO, Expr, Kind, Symbol, add, mul, rebuild, sym, symbols, walk

_LANE = sym(Symbol("lane", Kind.LANE))

Terms = Mapping[Expr, Sequence[tuple[int, Expr]]]  # of a sum: its terms without literals and lanes -> these


def terms_of(value: Expr) -> Iterator[tuple[int, Expr]]:
    """The terms of a sum, each a literal times a term that is none."""
    for part in value.args if value.op == "add" else (value,):
        if part.value is not None:
            yield part.value, ONE
        elif part.op == "mul" and part.args[0].value is not None:
            yield part.args[0].value, mul(*part.args[1:])
        else:
            yield 1, part


def without_lanes(value: Expr) -> Expr:
    """The lanes of an operation and of the access that it feeds have names of their own: forget them. Of an
    axis of size 1 there is one lane, whatever the tile is broadcast to."""
    if all(s.kind is not Kind.LANE for s in symbols(value)):
        return value

    def named(node: Expr) -> Expr | None:
        if node.op == "sym" and node.args[0].kind is Kind.LANE:
            return ZERO if node.args[0].bound is ONE else _LANE
        return _LANE if node.op == "ite" and _is_stretched(node) else None

    return rebuild(value, named)


def _is_stretched(node: Expr) -> bool:
    """Whether it is the lane of a tile that is broadcast, if its size is not 1 (`numbers.stretch`)."""
    test, first, second = node.args
    lane = second.op == "sym" and second.args[0].kind is Kind.LANE
    return lane and first is ZERO and test.op == "eq" and ONE in test.args


@lru_cache(maxsize=512)
def sums_in(root: Expr) -> tuple[Terms, ...]:
    """Each sum in an expression, the largest first; what is no sum is one of a single term."""
    found = []
    for node in walk(root):
        own: dict[Expr, list[tuple[int, Expr]]] = {}
        for factor, term in () if node.is_bool else terms_of(node):
            own.setdefault(without_lanes(term), []).append((factor, term))
        found.append(own)
    return tuple(found)


def bases_of(*values: Expr) -> Counter[Expr]:
    """The terms of sums, without literals as factors and without lanes; each literal beside them is a 1."""
    return Counter(without_lanes(term) for value in values for f, term in terms_of(value) if f)


def has_factors(term: Expr, base: Expr) -> bool:
    """Whether all factors of one term are among those of another, both without lanes."""
    return not Counter(_factors(base)) - Counter(_factors(term))


def _factors(term: Expr) -> tuple[Expr, ...]:
    return term.args if term.op == "mul" else (term,)


def parts_of(sums: Sequence[Terms], value: Expr) -> Iterator[Expr]:
    """A value with the lanes that its terms have in the first sum that has them all, whatever their literals
    are there; or that its factors have in other terms."""
    wanted = [(factor, without_lanes(term)) for factor, term in terms_of(value) if term is not ONE]
    literal = sum(factor for factor, term in terms_of(value) if term is ONE)
    own = next((own for own in sums if all(base in own for _, base in wanted)), None)
    if own is not None:
        for chosen in product(*(own[base] for _, base in wanted)):
            terms = (mul(factor, term) for (factor, _), (_, term) in zip(wanted, chosen, strict=True))
            yield add(literal, *terms)
    elif len(wanted) == 1 and not literal:
        (factor, base), *_ = wanted
        found = {term: None for own in sums for b in own if has_factors(b, base) for _, term in own[b]}
        for term in found:
            left = Counter(_factors(base))
            kept = []
            for own_factor in _factors(term):
                name = without_lanes(own_factor)
                if left[name]:
                    left[name] -= 1
                    kept.append(own_factor)
            yield mul(factor, *kept)


def has_multiple(sums: Iterable[Terms], value: Expr) -> bool:
    """Whether a multiple of `value`, and perhaps other terms, is one of the sums, or a factor of a term."""
    if value.value is not None:
        return False
    (first, base), *rest = ((factor, without_lanes(term)) for factor, term in terms_of(value))
    for own in sums:
        for factor, _ in own.get(base, ()):
            times, left = divmod(factor, first)
            if not left and all(any(f == times * g for f, _ in own.get(b, ())) for g, b in rest):
                return True
        products = () if value.op == "add" else (term for term in own if has_factors(term, base))
        if any(not factor % first for term in products for factor, _ in own[term]):
            return True
    return False
