"""The row-major layout of flat memory that keeps all elements of an access apart.

    x + b * s_b + h * s_h + n * s_n,  h < H, n < N       s_n >= 1, s_h >= N * s_n, s_b >= H * s_h

Each stride spans what the digits inside it can reach. Which digit lies inside which is a guess: strides that
come later in the parameters are smaller. Nothing here is trusted: the search asks for a proof under all of the
conditions, and then leaves out those that it does without.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilecheck.ir.expr import ONE, Expr, Kind, add, le, mul, symbols
from tilecheck.ir.kernel import Access, Kernel
from tilecheck.proof.candidates_flat import factor_of
from tilecheck.proof.conditions_ranges import Ranges
from tilecheck.proof.conditions_terms import Terms
from tilecheck.proof.polynomial import Monomial, Polynomial, combine, times, without

_STRIDES = (Kind.SCALAR, Kind.STRIDE, Kind.CONSTANT)


@dataclass(frozen=True, slots=True)
class _Digit:
    """`stride * digit` with digit < count; `factors` are those of the stride that are no literals."""

    stride: Expr
    count: Expr
    factors: Monomial


def layout(access: Access, kernel: Kernel, terms: Terms) -> tuple[Expr, ...]:
    """The conditions, innermost first; none where the index is not a sum of bounded digits."""
    if kernel.language != "triton" or len(access.axes) != 1:
        return ()
    digits = _digits(access, terms)
    if digits is None:
        return ()
    names = {param.name: position for position, param in enumerate(kernel.params)}

    def place(digit: _Digit) -> tuple[int, int, int]:
        """Inner digits first: strides of fewer factors, and of those the ones named later; small literals."""
        own = [names.get(s.name.partition(".")[0], 0) for s in symbols(digit.stride)]
        return len(digit.factors), -max(own, default=0), digit.stride.value or 0

    inner: _Digit | None = None
    conditions: list[Expr] = []
    for digit in sorted(digits, key=place):
        low = ONE if inner is None else mul(inner.count, inner.stride)
        condition = le(low, digit.stride)
        if symbols(condition):
            conditions.append(condition)
        inner = digit
    return tuple(conditions)


def is_layout(condition: Expr, terms: Terms) -> bool:
    """Whether it says of one stride how far it reaches at least."""
    low, high = condition.args if condition.op == "le" else (ONE, ONE)
    if high.op != "sym" or high.args[0].kind not in _STRIDES or high.args[0] in terms.tiles:
        return False
    return high.args[0] not in symbols(low) and all(s.kind is not Kind.GRID for s in symbols(low))


def _digits(access: Access, terms: Terms) -> list[_Digit] | None:
    ranges = Ranges(terms, (access.guard, access.mask, access.lane_facts))
    index = terms.poly(access.axes[0].index)
    rest: Polynomial = {m: c for m, c in index.items() if terms.varies(m)}
    still = combine(index, rest, -1)
    found: list[_Digit] = []
    for inner, bound in sorted(ranges.known(), key=lambda known: -len(known[0])):
        factor = factor_of(terms, rest, inner)
        if factor is not None:
            rest = combine(rest, times(factor, inner), -1)
            found.append(_Digit(terms.expr(factor), add(bound, 1), next(iter(factor))))
    by_stride: dict[tuple[Monomial, int], list[Expr]] = {}
    for m, c in rest.items():
        if c < 0:
            return None
        stride = tuple(number for number in m if terms.uniform(terms.atom(number)))
        moving = [terms.atom(number) for number in m if number not in stride]
        by_stride.setdefault((stride, c), []).append(mul(*moving))
    for (stride, c), moving in by_stride.items():
        tops = ranges.highest(add(*moving))
        if not tops:
            return None
        found.append(_Digit(terms.expr({stride: c}), add(tops[0], 1), stride))
    return _shifted(found, still, terms)


def _shifted(digits: list[_Digit], still: Polynomial, terms: Terms) -> list[_Digit]:
    """The digits, each reaching further by the part of what is added that its stride divides; a part that
    several divide goes to the one with most factors."""
    found = sorted(digits, key=lambda digit: -len(digit.factors))
    for m, c in still.items():
        for number, digit in enumerate(found):
            divides = all(m.count(a) >= digit.factors.count(a) for a in digit.factors)
            if divides and c > 0 and digit.stride.value in (None, 1):
                more = terms.expr({without(m, *digit.factors): c})
                found[number] = replace(digit, count=add(digit.count, more))
                break
    return found
