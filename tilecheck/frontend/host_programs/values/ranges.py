"""What comparisons with literals say of a number: they decide other comparisons of it."""

from __future__ import annotations

from dataclasses import field

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr

_Range = tuple[int | None, int | None]  # the least and the greatest value; None: no bound


@dataclass(slots=True)
class Ranges:
    """The ranges of numbers on one path. Mutable."""

    known: dict[Expr, _Range] = field(default_factory=dict)

    def decide(self, condition: Expr) -> bool | None:
        """Whether a comparison with a literal is true; None if the ranges leave it open."""
        asked = _range_of(condition)
        if asked is None:
            return None
        number, (low, high) = asked
        least, greatest = self.known.get(number, (None, None))
        if _at_least(least, low) and _at_most(greatest, high):
            return True
        above = low is not None and greatest is not None and greatest < low
        below = high is not None and least is not None and least > high
        return False if above or below else None

    def learn(self, condition: Expr) -> None:
        """A comparison is true on this path."""
        found = _range_of(condition)
        if found is None:
            return
        number, (low, high) = found
        least, greatest = self.known.get(number, (None, None))
        lows = [bound for bound in (low, least) if bound is not None]
        highs = [bound for bound in (high, greatest) if bound is not None]
        self.known[number] = (max(lows, default=None), min(highs, default=None))


def _at_least(least: int | None, bound: int | None) -> bool:
    return bound is None or (least is not None and least >= bound)


def _at_most(greatest: int | None, bound: int | None) -> bool:
    return bound is None or (greatest is not None and greatest <= bound)


def _range_of(condition: Expr) -> tuple[Expr, _Range] | None:
    """The number that is compared with a literal, and the values for which that is true."""
    if condition.op not in ("lt", "le", "eq"):
        return None
    left, right = condition.args
    if (left.value is None) == (right.value is None):
        return None
    number = right if left.value is not None else left
    literal = left.value if left.value is not None else right.value
    shift = 0
    if number.op == "add" and len(number.args) == 2 and number.args[0].value is not None:
        shift, number = number.args[0].value, number.args[1]
    bound = literal - shift
    if condition.op == "eq":
        return number, (bound, bound)
    strict = 1 if condition.op == "lt" else 0
    return (number, (bound + strict, None)) if left.value is not None else (number, (None, bound - strict))
