"""Between which integers floats lie: what a text clamps before it rounds (`floor(minimum(x, N - 1.0))`).

A float x is bounded by an integer e where it is at most (at least) e, or no number. Rounding is monotone, and
all integers up to 2**24 are floats of 32 bits: where x <= e, the sum x + c is at most e + c if that is so
small, whether it is rounded after the sum or along with what x was made by (`fma`). An integer becomes a float
by rounding too, so it is its own bound only where it is so small. Each bound keeps the condition under which
it holds. Quotients are approximate, and not bounded.

That is so for floats of 32 bits or more. A number of compile time takes the type of what stands beside it, and
an integer that of a float beside it, which may be one of 16 bits: so nothing is known of what is made with a
float that may be one, unless the other side is a machine number that certainly has 32 bits, which it is then
widened to.

Triton's minimum and maximum give the other side where one is no number, unless the text asks for that. So a
bound of a side is one of the minimum (its least: of the maximum) if that side is a number; the result then is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from tilecheck.frontend.values.signs import SIGN
from tilecheck.frontend.values.values import Bound, Named, Num, Span, lane
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind

EXACT = 2**24  # integers up to here are floats of 32 bits
KEEPING = frozenset("floor ceil trunc round rint nearbyint".split())  # they leave integers as they are
_LARGE = 2.0**64  # sums of a few numbers that are no larger are finite
_LONGEST = 60  # nodes of a bound: what is longer is not followed
_FLOATS = frozenset({"float32", "float64"})
_REACH = 2**30
FARTHEST = 2**30 + 2**26  # what rounding, also a parameter to a float of 16 bits, makes of it at most
SIZE = "size of "  # where the symbol of a parameter comes from that may be a float, in a limit on a sum


class Uses(Protocol):
    """The part of the executor that is asked."""

    @property
    def dialect(self) -> Any: ...
    def is_integer_memory(self, value: Expr) -> bool: ...


def of_literal(literal: float, *, assigned: bool = False) -> Span | None:
    """The span of a number of the text; `assigned` ones are machine numbers of 32 bits or more."""
    if not abs(literal) <= _LARGE:
        return None
    low = high = None
    if abs(literal) < EXACT:
        low, high = Bound(E.const(math.floor(literal))), Bound(E.const(math.ceil(literal)))
    reach = E.const(math.ceil(abs(literal)))
    return Span(low, high, number=True, finite=True, full=assigned, reach=reach)


def of(num: Num, x: Uses) -> Span | None:
    """The span of a number; of an integer as the float that it becomes."""
    if num.elem is None:
        return num.span
    if not x.dialect.has_pointers or num.unsigned is not None:
        return None
    if num.kind != "int" and not (num.kind == "any" and x.is_integer_memory(num.elem)):
        return None
    bound = Bound(num.elem)
    if num.bits == 32 and num.elem.op in ("add", "mul", "ite"):  # nobody has asked whether it wraps
        bound = Bound(num.elem, exact=exact_where(bound))
    return Span(bound, bound, number=True, finite=True, reach=_reach(num.elem))


def by_binary(op: str, a: Num, b: Num, shape: tuple[Expr, ...], x: Uses) -> Span | None:
    """The span of `a op b`, which is a float."""
    if not x.dialect.has_pointers:  # cuTile's promotions are others
        return None
    one, two = of(a, x), of(b, x)
    full = _is_full((a, one), (b, two))
    if not full and (one is None or two is None):
        return None
    one, two = one or _of_scalar(a), two or _of_scalar(b)
    reach = _joint(op, one.reach, two.reach)
    one, two = _stretched(a, one, shape), _stretched(b, two, shape)
    found = _computed(op, one, two, full=full, compiled=a.bits is None and b.bits is None)
    return None if found is None else _short(replace(found, reach=reach))


def _computed(op: str, a: Span, b: Span, *, full: bool, compiled: bool) -> Span | None:
    match op:
        case "+":
            return _sum(a, b, full=full)
        case "-":
            return _sum(a, _negative(b), full=full)
        case "*":
            return _product(a, b, full=full)
        case "min" if not compiled:
            return _minimum(a, b, full=full)
        case "max" if not compiled:
            return _maximum(a, b, full=full)
        case "/" if full:
            return Span(full=True)
        case _:
            return None


def by_choice(a: Num, b: Num, shape: tuple[Expr, ...], x: Uses) -> Span | None:
    """The span of a float that is `a` or `b`."""
    if not x.dialect.has_pointers:
        return None
    one, two = of(a, x), of(b, x)
    full = _is_full((a, one), (b, two))
    if not full and (one is None or two is None):
        return None
    one, two = one or _of_scalar(a), two or _of_scalar(b)
    reach = _joint("max", one.reach, two.reach)
    one, two = _stretched(a, one, shape), _stretched(b, two, shape)
    low = _either(one.low, two.low, E.minimum)
    high = _either(one.high, two.high, E.maximum)
    number, finite = one.number and two.number, one.finite and two.finite
    return _short(Span(low, high, number=number, finite=finite, full=full, reach=reach))


def negative(span: Span | None) -> Span | None:
    return None if span is None else _negative(span)


def as_float(num: Num, dtype: Any, x: Uses) -> Span | None:
    """The span of a number that is cast to another type than an integer one."""
    name = dtype.name.rpartition(".")[2] if isinstance(dtype, Named) else ""
    if not x.dialect.has_pointers or name not in _FLOATS:
        return None
    span = of(num, x) or _of_scalar(num)
    return replace(span, full=True)


def kept(span: Span | None) -> Span | None:
    """The span of a float that is rounded to an integer, as a float."""
    if span is None or span.reach is None:
        return span
    return replace(span, reach=E.add(span.reach, 1))


def rounded(num: Num, unknown: Expr, known: Expr, to: str) -> Expr:
    """A float cast to the integer type `to`: the `unknown`, of which so much is `known`, within its bounds.

    An integer that bounds a float bounds what is left without its fraction, too. What lies between two bounds
    is small enough for the type. Of what has one bound only, in 32 bits, GPUs make the least or largest integer
    if it lies beyond those.
    """
    span = num.span
    if span is None or to not in ("int32", "int64"):
        return known
    both = span.low is not None and span.high is not None
    if span.number and (both or to == "int32"):
        value, exact = unknown, E.TRUE
        if span.high is not None:
            value, exact = E.minimum(value, span.high.value), E.all_of(exact, exact_where(span.high))
        if span.low is not None:
            value, exact = E.maximum(value, span.low.value), E.all_of(exact, exact_where(span.low))
        known = E.ite(exact, value, known)
    return known if both else _reached(num, span, unknown, known, to)


def _reached(num: Num, span: Span, unknown: Expr, known: Expr, to: str) -> Expr:
    """The same of a float that does not reach far. What is no number becomes 0 in 32 bits, if it is no double;
    and integers that its sign follows from are asked to fit for no other type (`signs.rounded`)."""
    far = near_where(span)
    if far is None or not (span.number or (to == "int32" and num.single)):
        return known
    low = span.low if span.number and span.low is not None and exact_where(span.low) is E.TRUE else None
    natural = to == "int32" and num.bits != 64 and set(E.conjuncts(num.natural)) <= set(E.conjuncts(far))
    least = 0 if natural or (low is not None and low.value is E.ZERO) else -FARTHEST
    return E.ite(far, E.maximum(least, E.minimum(unknown, FARTHEST)), known)


def near_where(span: Span) -> Expr | None:
    """Where a float reaches no farther than `_REACH`, but for what rounding adds to that.

    A parameter that may be a float stands in the sum for itself, and for no integer. So it has a symbol of its
    own there, of which nothing else speaks, and the sum is linear in it: whatever number it is, some integer
    makes this condition as true as that number does (where the sum is small enough, the next below; elsewhere,
    the next above). What follows for all integers holds of it, and the condition can be asked of a launch with
    the number itself.
    """
    if span.reach is None or not span.full or span.reach.value is not None:
        return None
    named = sorted(set(E.symbols(span.reach)), key=lambda s: s.name)
    floats = [s for s in named if s.origin == SIGN]
    signs = [E.le(0, E.sym(s)) for s in named if s.kind in (Kind.SCALAR, Kind.CONSTANT)]
    own = {E.sym(s): E.sym(replace(s, origin=f"{SIZE}{E.render(span.reach)}")) for s in floats}
    rest, literal = _apart(E.substitute(span.reach, own))
    return E.all_of(*signs, E.le(rest, _REACH - literal))


def _of_scalar(num: Num) -> Span:
    """What is known of a number beside a float: a parameter is as large as itself, in any type."""
    if num.elem is None or num.elem.op != "sym" or num.elem.args[0].origin != "untyped" or num.shape:
        return Span()
    return Span(reach=E.sym(replace(num.elem.args[0], origin=SIGN)))


def _joint(op: str, a: Expr | None, b: Expr | None) -> Expr | None:
    """How far `a op b` reaches. It is to be linear in one parameter that may be a float: products of several
    say less of each."""
    if a is None or b is None or op not in ("+", "-", "*", "min", "max"):
        return None
    one, two = ({s for s in E.symbols(side) if s.origin == SIGN} for side in (a, b))
    if len(one | two) > 1 or (op == "*" and one and two):
        return None
    return E.mul(a, b) if op == "*" else E.add(a, b)


def _reach(e: Expr) -> Expr | None:
    """What an integer is at most that is not negative, for the look of it, where a launch's numbers are not."""
    match e.op:
        case "const":
            return e if e.args[0] >= 0 else None
        case "sym":
            symbol = e.args[0]
            if symbol.kind in (Kind.SCALAR, Kind.CONSTANT, Kind.EXTENT):
                return e
            return E.sub(symbol.bound, 1) if symbol.kind is Kind.BLOCK and symbol.bound is not None else None
        case "mod" if _is_of_launch(e.args[1]) and e.args[1].op == "sym":
            return E.sub(e.args[1], 1)
        case "add" | "mul":
            found = [_reach(part) for part in e.args]
            if None in found:
                return None
            return (E.add if e.op == "add" else E.mul)(*(part for part in found if part is not None))
        case _:
            return None


def _is_full(*sides: tuple[Num, Span | None]) -> bool:
    """Whether the float that is made of these is a machine number of 32 bits or more: one of them is, or one is
    a tile of integers and the rest no smaller floats. A launch's own integer may be compiled as a constant."""
    if any(num.elem is None and span is not None and span.full for num, span in sides):
        return True
    tile = any(num.elem is not None and num.shape for num, _ in sides)
    return tile and all(span is not None for _, span in sides)


def exact_where(bound: Bound) -> Expr:
    """Where the bound holds."""
    return E.all_of(bound.exact, _not_below(bound), _not_above(bound))


def _not_below(bound: Bound) -> Expr:
    rest, literal = _apart(bound.value)
    return E.le(bound.below - EXACT - literal, rest)


def _not_above(bound: Bound) -> Expr:
    rest, literal = _apart(bound.value)
    return E.le(rest, EXACT - bound.above - literal)


def _apart(value: Expr) -> tuple[Expr, int]:
    """A sum, and the literal in it."""
    literal = (value.args[0].value if value.op == "add" else value.value) or 0
    return E.sub(value, literal), literal


def _stretched(num: Num, span: Span, shape: tuple[Expr, ...]) -> Span:
    """A span of a tile that is broadcast: along an axis of size 1 every lane reads position 0."""
    mapping: dict[Expr, Expr] = {}
    for i, size in enumerate(reversed(num.shape)):
        wide = shape[len(shape) - 1 - i]
        if size is E.ONE:
            mapping[lane(i)] = E.ZERO
        elif size is not wide and size.value is None:
            mapping[lane(i)] = E.ite(E.eq(size, 1), E.ZERO, lane(i))

    def moved(bound: Bound | None) -> Bound | None:
        if bound is None or not mapping:
            return bound
        value, exact = (E.substitute(e, mapping) for e in (bound.value, bound.exact))
        return Bound(value, bound.below, bound.above, exact)

    return replace(span, low=moved(span.low), high=moved(span.high))


def _short(span: Span) -> Span:
    def kept(bound: Bound | None) -> Bound | None:
        short = bound is not None and max(E.size_of(bound.value), E.size_of(bound.exact)) <= _LONGEST
        return bound if short else None

    reach = span.reach if span.reach is not None and E.size_of(span.reach) <= _LONGEST else None
    return replace(span, low=kept(span.low), high=kept(span.high), reach=reach)


def _negative(span: Span) -> Span:
    def turned(bound: Bound | None) -> Bound | None:
        return None if bound is None else Bound(E.neg(bound.value), bound.above, bound.below, bound.exact)

    low, high = turned(span.high), turned(span.low)
    return replace(span, low=low, high=high)


def _sum(a: Span, b: Span, *, full: bool) -> Span:
    """Infinity less infinity is no number."""
    low, high = _added(a.low, b.low), _added(a.high, b.high)
    number = a.number and b.number and (a.finite or b.finite)
    return Span(low, high, number=number, finite=a.finite and b.finite, full=full)


def _added(a: Bound | None, b: Bound | None) -> Bound | None:
    if a is None or b is None:
        return None
    for one, two in ((a, b), (b, a)):
        c = two.value.value
        if c is not None and exact_where(two) is E.TRUE:
            below, above = max(one.below + c, 0), max(one.above - c, 0)
            return Bound(E.add(one.value, c), below, above, one.exact)
    return Bound(E.add(a.value, b.value), exact=E.all_of(exact_where(a), exact_where(b)))


def _product(a: Span, b: Span, *, full: bool) -> Span:
    """Of a number and a literal, which is an integer; infinity times 0 is no number."""
    number = a.finite and b.finite
    for one, two in ((a, b), (b, a)):
        c = None if two.low is None or two.low != two.high else two.low.value.value
        if c is not None and two.low is not None and exact_where(two.low) is E.TRUE:
            least, most = (one.low, one.high) if c >= 0 else (one.high, one.low)
            low, high = (
                None if e is None else Bound(E.mul(c, e.value), exact=exact_where(e)) for e in (least, most)
            )
            return Span(low, high, number=number, full=full)
    return Span(number=number, full=full)


def _minimum(a: Span, b: Span, *, full: bool) -> Span:
    low, high = _either(a.low, b.low, E.minimum), _of_numbers(a, b, E.minimum)
    return Span(low, high, number=a.number or b.number, finite=a.finite and b.finite, full=full)


def _maximum(a: Span, b: Span, *, full: bool) -> Span:
    low, high = _of_numbers(a, b, E.maximum), _either(a.high, b.high, E.maximum)
    return Span(low, high, number=a.number or b.number, finite=a.finite and b.finite, full=full)


def _of_numbers(a: Span, b: Span, join: Callable[[Expr, Expr], Expr]) -> Bound | None:
    """What a minimum is at most, or a maximum at least: what one of the sides is, or a better bound of both;
    that of the launch, if the other differs in blocks."""
    found = [s.high if join is E.minimum else s.low for s in (a, b) if s.number]
    bounds = [bound for bound in found if bound is not None]
    if len(bounds) < 2:
        return bounds[0] if bounds else None
    of_launch = [bound for bound in bounds if _is_of_launch(bound.value)]
    return of_launch[0] if len(of_launch) == 1 else _joined(bounds[0], bounds[1], join)


def _either(a: Bound | None, b: Bound | None, join: Callable[[Expr, Expr], Expr]) -> Bound | None:
    return None if a is None or b is None else _joined(a, b, join)


def _joined(a: Bound, b: Bound, join: Callable[[Expr, Expr], Expr]) -> Bound:
    """The larger or the smaller of two bounds.

    Of a bound n + c and a literal, the larger is the literal where n is so small that n + c is no bound: with
    the least n with which it is one, the same steps give what is no smaller, and no larger than the literal.
    So it is with the smaller one.
    """
    for one, two in ((a, b), (b, a)):
        literal = two.value.value
        if literal is not None and exact_where(two) is E.TRUE:
            value, exact = join(one.value, two.value), exact_where(one)
            if one.exact is E.TRUE and join is E.maximum and literal >= one.below - EXACT:
                exact = _not_above(one)
            elif one.exact is E.TRUE and join is E.minimum and literal <= EXACT - one.above:
                exact = _not_below(one)
            return Bound(value, exact=exact)
    return Bound(join(a.value, b.value), exact=E.all_of(exact_where(a), exact_where(b)))


def _is_of_launch(value: Expr) -> bool:
    kinds = (Kind.SCALAR, Kind.CONSTANT, Kind.EXTENT)
    return all(n.op != "read" for n in E.walk(value)) and all(s.kind in kinds for s in E.symbols(value))


def fits(value: Expr) -> bool:
    """Whether a sum of what is clamped to literals fits in 32 bits, whatever else it is made of."""
    low, high = _ends(value)
    return low >= -(2**31) and high < 2**31


def _ends(e: Expr) -> tuple[float, float]:
    """Between which literals a value lies for the look of it, infinities where nothing says."""
    match e.op:
        case "const":
            return e.args[0], e.args[0]
        case "ite":
            ends = [_ends(branch) for branch in e.args[1:]]
            return min(low for low, _ in ends), max(high for _, high in ends)
        case "min" | "max":
            ends, end = [_ends(branch) for branch in e.args], min if e.op == "min" else max
            return end(low for low, _ in ends), end(high for _, high in ends)
        case "add":
            ends = [_ends(term) for term in e.args]
            return sum(low for low, _ in ends), sum(high for _, high in ends)
        case "mul" if e.args[0].value is not None and len(e.args) == 2:
            low, high = (e.args[0].value * end for end in _ends(e.args[1]))
            return min(low, high), max(low, high)
        case _:
            return -math.inf, math.inf
