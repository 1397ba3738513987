"""Intervals of integers with open ends, closed under the operators of `ir.expr`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

Key = TypeVar("Key")
End = int | float  # an integer, or +-math.inf; never another float


class Interval(NamedTuple):
    """All integers from `low` to `high`, both included."""

    low: End
    high: End

    @property
    def is_empty(self) -> bool:
        return self.low > self.high


ANY = Interval(-math.inf, math.inf)


def exactly(value: int) -> Interval:
    return Interval(value, value)


def meet(a: Interval, b: Interval) -> Interval:
    return Interval(max(a.low, b.low), min(a.high, b.high))


def hull(a: Interval, b: Interval) -> Interval:
    return Interval(min(a.low, b.low), max(a.high, b.high))


def plus(a: Interval, b: Interval) -> Interval:
    return Interval(_sum(a.low, b.low), _sum(a.high, b.high))


def times(a: Interval, b: Interval) -> Interval:
    (a_low, a_high), (b_low, b_high) = a, b
    if 0 <= a_low <= a_high and 0 <= b_low <= b_high:
        return Interval(_product(a_low, b_low), _product(a_high, b_high))
    ends = (_product(a_low, b_low), _product(a_low, b_high), _product(a_high, b_low), _product(a_high, b_high))
    return Interval(min(ends), max(ends))


def scaled(a: Interval, scale: int) -> Interval:
    """`a` times a literal other than 0."""
    if scale == 1:
        return a
    low, high = a if scale > 0 else (a.high, a.low)
    return Interval(_product(low, scale), _product(high, scale))


def total(terms: Mapping[Key, int], of: Callable[[Key], Interval]) -> Interval:
    """The sum of intervals, each times a literal other than 0: written out, as it is asked for all the time."""
    low: End = 0
    high: End = 0
    for what, scale in terms.items():
        least, most = of(what)
        if scale < 0:
            least, most = most, least
        if not isinstance(low, float):
            low = low + least * scale if not isinstance(least, float) else least if scale > 0 else -least
        if not isinstance(high, float):
            high = high + most * scale if not isinstance(most, float) else most if scale > 0 else -most
    return Interval(low, high)


def total_low(terms: Mapping[Key, int], of: Callable[[Key], Interval]) -> End:
    """The low end of `total`."""
    low = 0
    for what, scale in terms.items():
        end = of(what)[scale < 0]
        if isinstance(end, float):
            return end if scale > 0 else -end
        low += end * scale
    return low


def quotient(a: Interval, d: Interval) -> Interval:
    """a // d for a divisor that is positive throughout; anything for another."""
    if d.low < 1 or d.high < 1:  # the second: no divisor at all
        return ANY
    ends = [_floor(x, y) for x in a for y in d]
    return Interval(min(ends), max(ends))


def remainder(a: Interval, d: Interval) -> Interval:
    """a % d for a divisor that is positive throughout; anything for another."""
    if d.low < 1:
        return ANY
    if a.low >= 0 and a.high < d.low:
        return a
    return Interval(0, min(d.high - 1, a.high) if a.low >= 0 else d.high - 1)


def common_bits(a: Interval, b: Interval) -> Interval:
    """a & b: of what is not negative it has no more bits, whatever the sign of the other."""
    most = [v.high for v in (a, b) if v.low >= 0]
    return Interval(0, min(most)) if most else ANY


def _sum(x: End, y: End) -> End:
    # Ends of one side only are added, so an infinite end never meets its opposite.
    if isinstance(x, float):
        return x
    return y if isinstance(y, float) else x + y


def _product(x: End, y: End) -> End:
    if x == 0 or y == 0:
        return 0
    if isinstance(x, float) or isinstance(y, float):
        return math.inf if (x > 0) == (y > 0) else -math.inf
    return x * y


def _floor(x: End, d: End) -> End:
    if isinstance(x, float):
        return x
    if isinstance(d, float):
        return 0 if x >= 0 else -1
    return x // d
