"""What the text of a host function says of the elements of a tensor that it makes. Plain data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import ONE, ZERO, Expr, add, const, maximum, minimum, mul, sub
from tilecheck.ir.host import EXTENT, NUMEL

_HALF = 1 << 31


@dataclass(frozen=True, slots=True)
class Contents:
    """The elements of a tensor, in row-major order, over HOST symbols.

    fill: each is `start`. range: element i is `start + i * step`. listed: element i is `listed[i]`. some: what
    the other fields say alone. Each element is at least `low` and less than `high`, where these are given;
    `distinct` and `increasing` are those of the contracts. `count` is the number of elements of the tensor that
    was made, of which this may be a part. `own` says that no value in a tensor of the caller decides them.
    """

    kind: str
    start: Expr = ZERO
    step: Expr = ZERO
    listed: tuple[int, ...] = ()
    low: Expr | None = None
    high: Expr | None = None
    distinct: bool = False
    increasing: bool = False
    count: Expr | None = None
    own: bool = True

    @property
    def expressions(self) -> tuple[Expr, ...]:
        every = (self.start, self.step, self.low, self.high, self.count)
        return tuple(e for e in every if e is not None)

    @property
    def fits_32_bits(self) -> bool:
        """Whether every element fits: it is a literal that does, or less than a size (S4)."""
        match self.kind:
            case "fill":
                return _fits(self.start)
            case "range":
                return (self.start is ZERO and self.step in (ZERO, ONE)) or all(map(_fits, self._range()[:2]))
            case "listed":
                return all(-_HALF <= v < _HALF for v in self.listed)
            case _:
                ends = (self.low, self.high)
                return all(e is not None and (_fits(e) or e is self.count) for e in ends)

    def mapped(self, change: Callable[[Expr], Expr]) -> Contents:
        """The same with every expression changed."""
        low, high, count = (None if e is None else change(e) for e in (self.low, self.high, self.count))
        return replace(self, start=change(self.start), step=change(self.step), low=low, high=high, count=count)

    def of_part(self, *, ordered: bool) -> Contents:
        """What holds of any part; with `ordered` one that keeps the order of its elements."""
        if self.kind == "fill":
            return self
        if self.kind == "some":
            return replace(self, increasing=self.increasing and ordered)
        low, high, distinct, rises = self._range() if self.kind == "range" else self._listed()
        return Contents(
            "some", low=low, high=high, distinct=distinct, increasing=rises and ordered, own=self.own
        )

    def repeated(self) -> Contents:
        """What holds where an element may occur several times, in any order."""
        part = self.of_part(ordered=False)
        return part if part.kind == "fill" else replace(part, distinct=False)

    def _range(self) -> tuple[Expr | None, Expr | None, bool, bool]:
        step = self.step.value
        if self.count is None or step is None:
            return None, None, False, False
        last = add(self.start, mul(sub(self.count, 1), self.step))
        low, high = (self.start, last) if step >= 0 else (last, self.start)
        return low, add(high, 1), step != 0, step >= 0

    def _listed(self) -> tuple[Expr | None, Expr | None, bool, bool]:
        if not self.listed:
            return None, None, True, True
        rises = all(a <= b for a, b in zip(self.listed, self.listed[1:], strict=False))
        distinct = len(set(self.listed)) == len(self.listed)
        return const(min(self.listed)), const(max(self.listed) + 1), distinct, rises


def _fits(e: Expr | None) -> bool:
    if e is None:
        return False
    size = e.op == "sym" and e.args[0].origin in (EXTENT, NUMEL)
    return size or (e.value is not None and -_HALF <= e.value <= _HALF)


def filled(value: Expr, count: Expr | None) -> Contents:
    """Every element is `value`."""
    return Contents("fill", value, low=value, high=add(value, ONE), increasing=True, count=count)


def ranged(start: Expr, step: Expr, count: Expr) -> Contents:
    """`arange(start, _, step)` of `count` elements."""
    last = add(start, mul(sub(count, 1), step))
    rises, moves = step.value is not None and step.value >= 0, step.value not in (None, 0)
    ends = minimum(start, last), add(maximum(start, last), 1)
    return Contents(
        "range", start, step, low=ends[0], high=ends[1], distinct=moves, increasing=rises, count=count
    )


def permuted(count: Expr) -> Contents:
    """The numbers from 0 to `count - 1` in some order."""
    return Contents("some", low=ZERO, high=count, distinct=True, count=count)
