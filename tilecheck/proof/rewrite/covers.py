"""Accesses that touch whatever several others do: one proof about them stands for one about each pair.

    x + (t * B + l) * s + c          l < 16, t * B + l < n
    x + (t * B + 16 + l) * s + c     l < 16, t * B + 16 + l < n

Both are inside `x + (t * B + place) * s + c` with place < B and t * B + place < n, if B is at least 32. A digit
is what moves inside a block along one stride; its limit is the next step of the block along that stride.

Nothing here is trusted: what an access and its cover have to do with each other is proved (rung "covers").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import ONE, ZERO, Expr, Kind, Symbol, all_of, conjuncts, le, sym, symbols
from tilecheck.ir.kernel import Access, Effect, Kernel, Space
from tilecheck.proof.algebra.polynomial import UNIT, Monomial, Polynomial, combine, divides, times, without
from tilecheck.proof.conditions.generators.counts import is_flag
from tilecheck.proof.conditions.terms import Terms

_OWN = (Kind.LANE, Kind.LOOP)
FEW = 3  # stores to one array: fewer make few pairs


@dataclass(frozen=True, slots=True)
class Cover:
    """`whole` touches whatever the access does: where its own lanes are `values`."""

    whole: Access
    values: Mapping[Expr, Expr]


@dataclass(frozen=True, slots=True)
class _Digit:
    """`stride * moving`, written `stride * place`."""

    stride: Monomial
    moving: Polynomial
    place: Expr


@dataclass
class Covers:
    """The covers of a kernel's accesses, and under which conditions something was proved of them or was not.
    Mutable: it remembers."""

    terms: Terms = field(default_factory=Terms)
    known: dict[Access, Cover | None] = field(default_factory=dict)
    many: dict[str, bool] = field(default_factory=dict)
    proved: dict[object, list[frozenset[Expr]]] = field(default_factory=dict)
    open: dict[object, list[frozenset[Expr]]] = field(default_factory=dict)

    def of(self, access: Access) -> Cover | None:
        if access not in self.known:
            self.known[access] = cover_of(access, self.terms)
        return self.known[access]

    def has_many(self, array: str, kernel: Kernel) -> bool:
        """Whether so many accesses of an array are made, none of them atomic, that covers pay."""
        if array not in self.many:
            sites = {a.position for a in kernel.accesses if a.array == array and a.effect is Effect.WRITE}
            self.many[array] = len(sites) >= FEW and not any(
                a.effect is Effect.ATOMIC or a.synchronised for a in kernel.accesses
            )
        return self.many[array]


def cover_of(access: Access, terms: Terms) -> Cover | None:
    """None where what moves inside a block is no sum of digits, or nothing says how far one may move."""
    if not is_plain(access):
        return None
    index = terms.poly(access.axes[0].index)
    own = {m: c for m, c in index.items() if _moves(m, terms)}
    rest = combine(index, own, -1)
    parts = _parts(own, terms)
    if not parts:
        return None
    still = {m: c for m, c in rest.items() if not terms.varies(m)}
    for m, c in still.items():
        into = [stride for stride in parts if divides(stride, m)]
        if into:
            stride = max(into, key=len)
            parts[stride] = combine(parts[stride], {without(m, *stride): c})
            rest = combine(rest, {m: c}, -1)
    digits: list[_Digit] = []
    for number, stride in enumerate(sorted(parts, key=lambda m: str(terms.expr({m: 1})))):
        limit = _limit(stride, rest, terms)
        if limit is None:
            return None
        place = Symbol(f"place {number}", Kind.LANE, uid=-1 - number, bound=limit)
        digits.append(_Digit(stride, parts[stride], sym(place)))
    whole = rest
    for digit in digits:
        whole = combine(whole, times({digit.stride: 1}, terms.poly(digit.place)))
    axis = replace(access.axes[0], index=terms.expr(whole))
    covering = replace(
        access,
        axes=(axis,),
        guard=all_of(*(t for t in conjuncts(access.guard) if is_flag(t))),
        mask=all_of(*_bounds(access, digits, terms)),
        lanes=tuple(digit.place.args[0] for digit in digits),
        loops=(),
        stepped_by=None,
    )
    return Cover(covering, {digit.place: terms.expr(digit.moving) for digit in digits})


def is_plain(access: Access) -> bool:
    """Whether an access names elements of flat memory by one index, and nothing but its text orders it."""
    axis = access.axes[0] if access.axes else None
    plain = access.flat and access.space is Space.ELEMENT and access.effect is not Effect.ATOMIC
    return (
        plain
        and access.member is None
        and not access.synchronised
        and not access.spare
        and axis is not None
        and axis.step is ONE
        and axis.base is ZERO
        and axis.lane is None
    )


def _moves(m: Monomial, terms: Terms) -> bool:
    return any(s.kind in _OWN for number in m for s in symbols(terms.atom(number)))


def _parts(own: Polynomial, terms: Terms) -> dict[Monomial, Polynomial]:
    """By strides what moves along them; none where something else than a lane or a loop's number does."""
    parts: dict[Monomial, Polynomial] = {}
    for m, c in own.items():
        stride = tuple(number for number in m if terms.uniform(terms.atom(number)))
        moving = without(m, *stride)
        if len(moving) != 1 or terms.atom(moving[0]).op != "sym":
            return {}
        parts[stride] = combine(parts.get(stride, {}), {moving: c})
    return parts


def _limit(stride: Monomial, rest: Polynomial, terms: Terms) -> Expr | None:
    """The smallest step that the block itself makes along a stride, in units of it."""
    steps: list[tuple[int, str, Expr]] = []
    for m, c in rest.items():
        fixed = tuple(number for number in m if terms.uniform(terms.atom(number)))
        if c > 0 and divides(stride, fixed):
            step = {without(fixed, *stride): c}
            if step != {UNIT: 1}:
                e = terms.expr(step)
                steps.append((len(fixed), str(e), e))
    return min(steps, key=lambda found: found[:2])[2] if steps else None


def _bounds(access: Access, digits: list[_Digit], terms: Terms) -> Iterator[Expr]:
    """What the access is bounded by, of its digits: `t * B + place < n`."""
    for term in (*conjuncts(access.guard), *conjuncts(access.mask)):
        if term.op not in ("le", "lt"):
            continue
        low, high = term.args
        excess = combine(terms.poly(low), terms.poly(high), -1)
        if term.op == "lt":
            excess = combine(excess, {UNIT: 1})
        found = _written(excess, digits, terms)
        if found is not None and len([m for m in found if terms.varies(m)]) > 1:  # else its range says it
            yield le(terms.expr({m: c for m, c in found.items() if c > 0}), _minus(found, terms))


def _minus(p: Polynomial, terms: Terms) -> Expr:
    return terms.expr({m: -c for m, c in p.items() if c < 0})


def _written(p: Polynomial, digits: list[_Digit], terms: Terms) -> Polynomial | None:
    """`p` by the places of digits; None where it speaks of none, or of something else that moves."""
    own = {m: c for m, c in p.items() if _moves(m, terms)}
    for digit in digits:
        moving = {m: c for m, c in digit.moving.items() if _moves(m, terms)}
        if own and own == moving:
            return combine(combine(p, digit.moving, -1), terms.poly(digit.place))
    return None
