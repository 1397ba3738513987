"""Which block, iteration and lane writes a given element, for an access that tiles its array.

A coordinate such as `(ct.bid(0) * T + l0) * pitch + ct.bid(1) * S + l1` is read as a number of several digits:
dividing an element by `pitch`, then by `T` and `S`, gives its block and its lane. Whether that comes out right
is not known here: it is among the `goals`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from tilecheck.dataclass import dataclass
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.kernel import Access, extent_symbol

_DIGITS = (Kind.BLOCK, Kind.LOOP, Kind.LANE)
_MOST_TERMS = 4  # of a sum, whose order is tried
_MOST_WAYS = 12


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes an element: a value for each block index, iteration and lane of the access.

    `goals` hold if it is so. `divisors` are positive if the values mean anything. `needs` would make the values
    lie in their ranges.
    """

    goals: tuple[Expr, ...]
    divisors: tuple[Expr, ...]
    needs: tuple[Expr, ...]


def writers(access: Access) -> Iterator[Writer]:
    """Ways to read the coordinates as digits; none where a block, iteration or lane is not one of them."""
    symbols = E.symbols(access.guard, access.mask, *(axis.coordinate for axis in access.axes))
    if access.member is not None or any(s.kind is Kind.OPAQUE for s in symbols):
        return  # which are not chosen
    digits = [s for s in symbols if s.kind in _DIGITS]
    for order in _orders(access):
        found = _Digits(order)
        elements = []
        for number, axis in enumerate(access.axes):
            extent = E.sym(extent_symbol(access.array, number))
            element = E.sym(Symbol("element", Kind.LANE, number, bound=extent))
            elements.append(element)
            found.read(axis.coordinate, element, extent)
        found.join()
        if found.failed:
            continue
        value = {E.sym(s): found.values.get(s, (E.ZERO, E.ONE))[0] for s in digits}
        goals = [E.substitute(part, value) for part in (access.guard, access.mask)]
        needs = []
        for axis, element in zip(access.axes, elements, strict=True):
            goals.append(E.eq(E.substitute(axis.coordinate, value), element))
            goals.append(E.substitute(axis.inside, value))  # a view is left where the array goes on
        for symbol in digits:
            goals.append(E.le(0, value[E.sym(symbol)]))
            if symbol.bound is not None:
                goals.append(E.lt(value[E.sym(symbol)], symbol.bound))
                needs.append(E.le(found.values.get(symbol, (E.ZERO, E.ONE))[1], symbol.bound))
        parts = tuple(part for goal in goals for part in E.conjuncts(goal))
        yield Writer(parts, tuple(found.divisors), tuple(needs))


def _orders(access: Access) -> list[tuple[Expr, ...]]:
    """The orders in which terms of sums may be taken, from the most significant one on."""
    sums = [n for axis in access.axes for n in E.walk(axis.coordinate) if n.op == "add"]
    terms = list(dict.fromkeys(t for s in sums for t in E.children(s) if _factor(t) is not E.ONE))
    if len(terms) > _MOST_TERMS:
        return [tuple(terms)]
    return list(permutations(terms))[:_MOST_WAYS]


class _Digits:
    """Reads coordinates. Mutable: it gathers the values, each with a bound that it is less than."""

    def __init__(self, order: tuple[Expr, ...]) -> None:
        self.order = order
        self.values: dict[Symbol, tuple[Expr, Expr]] = {}
        self.divisors: dict[Expr, None] = {}
        self.parts: dict[tuple[Expr, Expr], dict[str, tuple[Expr, Expr]]] = {}
        self.failed = False

    def read(self, e: Expr, target: Expr, bound: Expr) -> None:
        """Let `e` be `target`, which is less than `bound`."""
        terms = E.children(e) if e.op == "add" else (e,)
        moving = [t for t in terms if _moves(t)]
        fixed = E.add(*(t for t in terms if not _moves(t)))
        if not moving:
            return  # the goals say whether it is
        if len(moving) == 1 and _factor(moving[0]).value == -1:  # counted from the end
            self._read_term(moving[0], E.sub(fixed, target), E.add(fixed, 1))
            return
        target, bound = E.sub(target, fixed), E.sub(bound, fixed)
        # Those with a factor of 1 are least significant.
        moving.sort(key=lambda t: self.order.index(t) if t in self.order else len(self.order))
        for number, term in enumerate(moving):
            factor = _factor(term)
            self._read_term(term, *self._quotient(target, bound, factor))
            if number + 1 < len(moving):
                target, bound = E.mod(target, factor), factor

    def _quotient(self, target: Expr, bound: Expr, factor: Expr) -> tuple[Expr, Expr]:
        if factor is E.ONE:
            return target, bound
        self.divisors[factor] = None
        return E.floordiv(target, factor), E.cdiv(bound, factor)

    def _read_term(self, term: Expr, target: Expr, bound: Expr) -> None:
        inner = next(f for f in (E.children(term) if term.op == "mul" else (term,)) if _moves(f))
        match inner.op:
            case "sym":
                symbol = inner.args[0]
                self.failed |= self.values.setdefault(symbol, (target, bound))[0] is not target
            case "add":
                self.read(inner, target, bound)
            case "floordiv" | "mod" if not _moves(inner.args[1]):
                whole, divisor = inner.args
                self.parts.setdefault((whole, divisor), {})[inner.op] = (target, bound)
            case _:
                self.failed = True

    def join(self) -> None:
        """Read what quotients and remainders are made of."""
        for _ in range(_MOST_TERMS):
            parts, self.parts = self.parts, {}
            for (whole, divisor), found in parts.items():
                self.divisors[divisor] = None
                quotient, most = found.get("floordiv", (E.ZERO, E.ONE))
                rest, _ = found.get("mod", (E.ZERO, E.ONE))
                self.read(whole, E.add(E.mul(quotient, divisor), rest), E.mul(most, divisor))
        self.failed |= bool(self.parts)


def _moves(e: Expr) -> bool:
    return any(s.kind in _DIGITS for s in E.symbols(e))


def _factor(term: Expr) -> Expr:
    """What a term is a multiple of; several factors that move make it no digit, which the goals will show."""
    return E.mul(*(f for f in E.children(term) if not _moves(f))) if term.op == "mul" else E.ONE
