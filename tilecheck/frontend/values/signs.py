"""Which numbers are not negative: integers for the look of them, floats by what they are computed from.

A float that is scaled, rounded and cast to an integer is some integer (`floor(i * scale)`). It is not negative
where all that went into it is not, whatever it was rounded to. Of a float this is remembered as a condition on
the launch's own numbers (`scale >= 0`), so it says the same in every lane and block.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from tilecheck.frontend.values.values import Num
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol

_LEAST, _LARGEST = 2.0**-126, 3.4028234663852886e38  # of 32 bits, other than 0
SIGN = "sign"  # where a launch value comes from of which the sign alone is asked: it may be a float
KEEPING = frozenset("floor ceil trunc round rint nearbyint sqrt sqrt_rn".split())


def is_natural(
    e: Expr, assumed: frozenset[Symbol], positive: frozenset[Expr], known: frozenset[Expr] = frozenset()
) -> bool:
    """Whether `e` is not negative for the look of it: sums and products of what is not, the symbols in
    `assumed` and the values in `known` included. `a - 1` is not negative where `a` is a sum with a term that is
    at least 1.

    A divisor is positive, by an obligation of its own: so a quotient has the sign of what is divided, and no
    remainder is negative.
    """
    if e in known:
        return True
    match e.op:
        case "const":
            return bool(e.args[0] >= 0)
        case "sym":
            symbol = e.args[0]
            natural = (Kind.EXTENT, Kind.GRID, Kind.BLOCK, Kind.LOOP, Kind.LANE)
            return symbol in assumed or e in positive or symbol.kind in natural
        case "add" if e.args[0].value is not None and e.args[0].value < 0:
            rest = e.args[1:]
            ones = sum(1 for t in rest if t in positive or (t.op == "sym" and t.args[0].kind is Kind.GRID))
            return ones + e.args[0].value >= 0 and all(is_natural(t, assumed, positive, known) for t in rest)
        case "floordiv":  # whose divisor has an obligation of its own
            return is_natural(e.args[0], assumed, positive | {e.args[1]}, known)
        case "mod":
            return True
        case "add" | "mul" | "min":
            return all(is_natural(t, assumed, positive, known) for t in e.args)
        case "max":
            return any(is_natural(t, assumed, positive, known) for t in e.args)
        case "ite":
            return all(is_natural(t, assumed, positive, known) for t in e.args[1:])
        case _:
            return False


class Uses(Protocol):
    """The part of the executor that is asked."""

    @property
    def positive(self) -> frozenset[Expr]: ...
    def is_integer_memory(self, value: Expr) -> bool: ...
    def fits(self, value: Expr, shape: tuple[Expr, ...] = ()) -> Expr: ...


class Guarded(Protocol):
    """The same of a place in the text."""

    @property
    def guard(self) -> Expr: ...
    def is_integer_memory(self, value: Expr) -> bool: ...


def guarded(x: Guarded) -> frozenset[Expr]:
    """What is not negative wherever this code is reached, as its guard says: `start - k` in a loop that counts
    down to 0. Of what may be no integer, -1 < v says nothing about 0."""
    found = set()
    for term in E.conjuncts(x.guard):
        low, value = term.args if term.op in ("le", "lt") else (E.const(-1), term)
        if low.value is None or low.value < -1 or (low.value == -1 and term.op != "lt"):
            continue
        if low.value >= 0 or x.is_integer_memory(value):
            found.add(value)
    return frozenset(found)


def natural(num: Num, x: Uses) -> Expr:
    """A condition on launch values under which no lane of `num` is negative; floats may be no number."""
    if num.elem is None or num.kind == "data":
        return num.natural
    if num.kind == "bool":
        return E.TRUE
    own = list(E.walk(num.elem))
    if any(n.op in ("floordiv", "mod") and not x.is_integer_memory(n) for n in own):
        return E.FALSE  # of floats, a remainder has the sign of what is divided
    if any(n.op == "mul" and not is_of_32_bits(replace(num, elem=n), x) for n in own):
        return E.FALSE
    needed = {s for s in E.symbols(num.elem) if s.kind in (Kind.SCALAR, Kind.CONSTANT)}
    if not is_natural(num.elem, frozenset(needed), x.positive):
        return E.FALSE
    for symbol in sorted(needed, key=lambda s: s.name):
        if is_natural(num.elem, frozenset(needed - {symbol}), x.positive):
            needed.discard(symbol)
    named = (E.sym(s) for s in sorted(needed, key=lambda s: s.name))
    signs = (s if x.is_integer_memory(s) else E.sym(replace(s.args[0], origin=SIGN)) for s in named)
    return E.all_of(*(E.le(0, s) for s in signs))


def of_literal(value: float) -> Expr:
    """Whether a literal is not negative, and makes numbers of 32 bits."""
    return E.TRUE if value >= 0 and is_single(value) else E.FALSE


def is_single(literal: float) -> bool:
    """Whether a literal makes numbers of 32 bits: one that is too large or small for them makes some of 64."""
    return literal == 0 or _LEAST <= abs(literal) <= _LARGEST


def single(a: Num, b: Num, x: Uses) -> bool:
    """Whether what is made of both is of 32 bits. What is made while it compiles may be a literal of 64."""
    return is_of_32_bits(a, x) and is_of_32_bits(b, x) and not (a.bits is None and b.bits is None)


def is_of_32_bits(num: Num, x: Uses) -> bool:
    """Whether a number is no float of 64 bits. Memory may hold such, and an assigned constant may be one."""
    if num.elem is None:
        return num.single
    if num.kind != "any" or x.is_integer_memory(num.elem):
        return True
    floats = [n for n in E.walk(num.elem) if n.op in ("read", "sym") and not x.is_integer_memory(n)]
    allowed = (Kind.SCALAR, Kind.CONSTANT) if num.bits is None else (Kind.SCALAR,)
    return all(n.op == "sym" and n.args[0].kind in allowed for n in floats)


def wholes(*nums: Num) -> tuple[Num, ...]:
    """The integers that `natural` speaks of as such, of which no part in 32 bits must have wrapped."""
    made = ("add", "mul")
    own = [n for n in nums if n.elem is not None and any(e.op in made for e in E.walk(n.elem))]
    return tuple(dict.fromkeys((*own, *(m for n in nums if n.elem is None for m in n.wholes))))


def by_binary(op: str, a: Num, b: Num, x: Uses) -> Expr:
    """Of `a op b` as floats. Infinity times 0 is no number: a maximum of that and a negative number would be
    negative, so it asks for both; one with what certainly is a number is that number or more. A quotient by
    -0.0, which is not below 0, may be negative: a divisor is asked to be above 0. What is no number and of 64
    bits becomes a negative integer: a product or a quotient is asked to have 32."""
    if op == "max" and (_is_natural_number(a) or _is_natural_number(b)):
        return E.TRUE
    if op in ("*", "/") and not (is_of_32_bits(a, x) and is_of_32_bits(b, x)):
        return E.FALSE
    if op == "/":
        return E.all_of(natural(a, x), _positive(b, x))
    return E.all_of(natural(a, x), natural(b, x)) if op in ("+", "*", "min", "max") else E.FALSE


def _literal(num: Num) -> float | None:
    """The number that stands in the text, if that is what it is."""
    if num.elem is not None:
        return num.elem.value if num.kind == "int" else None
    return num.way[2] if num.way is not None and num.way[1] == "literal" else None


def _is_natural_number(num: Num) -> bool:
    literal = _literal(num)
    return literal is not None and 0 <= literal <= _LARGEST


def _positive(num: Num, x: Uses) -> Expr:
    """A condition on launch values under which a number of 32 bits is above 0, or is 0.0 rounded from that."""
    literal = _literal(num)
    if literal is not None:
        return E.TRUE if literal > 0 and is_single(literal) else E.FALSE
    if num.elem is None or num.elem.op != "sym" or num.elem.args[0].kind not in (Kind.SCALAR, Kind.CONSTANT):
        return E.FALSE
    if x.is_integer_memory(num.elem):
        return E.le(1, num.elem)
    return E.lt(0, E.sym(replace(num.elem.args[0], origin=SIGN)))


def rounded(num: Num, unknown: Expr, to: str, x: Uses) -> Expr:
    """A float cast to the integer type `to`, some integer. In 32 bits GPUs convert what is too large to the
    largest one, and what is no number to 0; in 64 bits that may come out negative."""
    known = natural(num, x) if to == "int32" and num.bits != 64 else E.FALSE
    if known is not E.FALSE:
        for whole in wholes(num):
            assert whole.elem is not None
            if whole.bits != 32 or whole.elem.op not in ("add", "mul", "ite"):
                continue
            if x.fits(whole.elem, whole.shape) is not whole.elem:
                return unknown  # what was rounded before, and something: it may have wrapped
    return E.ite(known, E.maximum(0, unknown), unknown)
