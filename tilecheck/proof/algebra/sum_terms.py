"""A coordinate as a sum of unknowns, each with the factors and divisors on its way into the sum.

For guesses alone: what a contract might say of an unknown, so that the sum stays below an end. A guess that is
wrong is not proposed, as nothing is decided with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import ONE, Expr, Kind, floordiv, mul, render, symbols, walk

_Step = tuple[Expr, Expr]  # a factor, and the divisor of what is multiplied by it


@dataclass(frozen=True, slots=True)
class Leaf:
    """A term `((atom * f2) // d2) * f1 // d1`, with `steps` = ((f1, d1), (f2, d2)), all of them launch values.
    `is_less`: it is subtracted."""

    atom: Expr
    steps: tuple[_Step, ...] = ()
    is_less: bool = False

    @property
    def factor(self) -> Expr:
        return mul(*(factor for factor, _ in self.steps))

    @property
    def is_counted(self) -> bool:
        """Whether it is taken by the element, and not divided."""
        return all(divisor is ONE for _, divisor in self.steps)

    def room(self, end: Expr) -> Expr:
        """How many values from 0 on the atom may have if its term is to stay below `end`, about."""
        for factor, divisor in self.steps:
            end = mul(*sorted((_quotient(end, factor), divisor), key=render))
        return end


def leaves(e: Expr) -> tuple[Leaf, ...]:
    """The terms of a sum that vary, each once, in the order of the text. What is no sum of products with launch
    values has no terms; of a choice, those of both its branches."""
    return tuple(dict.fromkeys(_leaves(e, Leaf(e))))


def shift(e: Expr, leaf: Leaf) -> int:
    """How many steps of a leaf are taken off the sum: 1 for t in `row * n + t - 1` and in `(t - 1) * n`."""
    sums = [node for node in walk(e) if node.op == "add"] if leaf.is_counted else []
    for node in sums:
        is_own = leaf.atom in node.args  # of `(t - 1) * n` the inner sum
        for term in node.args if is_own or node is e else ():
            literal, *others = term.args if term.op == "mul" else (term,)
            if (literal.value or 0) < 0 and mul(*others) is (ONE if is_own else leaf.factor):
                return -int(literal.value)
    return 0


def _leaves(e: Expr, way: Leaf) -> Iterator[Leaf]:
    match e.op:
        case "add" | "min" | "max":
            for term in e.args:
                yield from _leaves(term, way)
        case "ite":
            for term in e.args[1:]:
                yield from _leaves(term, way)
        case "mul":
            varying = [f for f in e.args if not _is_fixed(f)]
            if len(varying) == 1:
                is_negative = (e.args[0].value or 0) < 0
                fixed = mul(-1 if is_negative else 1, *(f for f in e.args if f is not varying[0]))
                yield from _leaves(varying[0], _after(way, fixed, ONE, is_negative != way.is_less))
        case "floordiv" if _is_fixed(e.args[1]):
            yield from _leaves(e.args[0], _after(way, ONE, e.args[1], way.is_less))
        case "read" | "sym" if not _is_fixed(e):
            yield Leaf(e, way.steps, way.is_less)


def _after(way: Leaf, factor: Expr, divisor: Expr, is_less: bool) -> Leaf:
    *before, (last, by) = way.steps or ((ONE, ONE),)
    if by is ONE:
        return Leaf(way.atom, (*before, (mul(last, factor), divisor)), is_less)
    return Leaf(way.atom, (*before, (last, by), (factor, divisor)), is_less)


def _quotient(a: Expr, b: Expr) -> Expr:
    """`a // b`, without the factors that both have."""
    top = list(a.args) if a.op == "mul" else [a]
    bottom = list(b.args) if b.op == "mul" else [b]
    for factor in tuple(bottom):
        if factor in top:
            top.remove(factor)
            bottom.remove(factor)
    return floordiv(mul(*sorted(top, key=render)), mul(*sorted(bottom, key=render)))


def _is_fixed(e: Expr) -> bool:
    return all(n.op != "read" for n in walk(e)) and all(s.kind < Kind.BLOCK for s in symbols(e))
