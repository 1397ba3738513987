"""Whether the rounds of loops that are read show every overlap of parts that move with the round.

Two parts of one axis, `[s*i + a, s*i + b)` in round i and the same shifted by d*s, overlap for some pair of
rounds only if they do for two that are d - 1, d or d + 1 apart. So rounds as far apart as that must be read.
Parts that move at different speeds, or of which one stands still, may first meet later: they count as the
whole axis.
"""

from __future__ import annotations

from tilecheck.frontend.host_programs.knowledge import Relearn
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr

_FARTHEST = 4  # rounds


def check(m: Machine) -> None:
    """Raises: Relearn, if more rounds must be read, or if a memory must count as a whole."""
    for (memory, _), cuts in m.cuts.items():
        moving = [cut for cut in cuts if cut.slope is not E.ZERO]
        if not moving or memory in m.knowledge.spread:
            continue
        shifts = [_shift(m, moving[0].start, cut.start, moving[0].slope) for cut in moving]
        known = [shift for shift in shifts if shift is not None]
        speed = _polynomial(m.settle(moving[0].slope))
        same = all(_polynomial(m.settle(cut.slope)) == speed for cut in moving)
        if len(moving) < len(cuts) or not same or len(known) < len(shifts):
            m.knowledge.spread.add(memory)
            raise Relearn
        for cut in moving:
            if cut.loop is not None:
                m.knowledge.learn_rounds(cut.loop, max(known) - min(known) + 2)


def _shift(m: Machine, first: Expr, second: Expr, slope: Expr) -> int | None:
    """By how many rounds one part is ahead of another; None if that is no small number of them."""
    difference = _polynomial(m.settle(E.sub(second, first)))
    for rounds in range(-_FARTHEST, _FARTHEST + 1):
        if difference == _polynomial(m.settle(E.mul(rounds, slope))):
            return rounds
    return None


_Monomial = tuple[Expr, ...]


def _polynomial(e: Expr) -> dict[_Monomial, int]:
    """An expression as a sum of products, of which equal ones are one."""
    if e.value is not None:
        return {(): e.value} if e.value else {}
    parts = [_polynomial(part) for part in e.args] if e.op in ("add", "mul") else []
    if not parts:
        return {(e,): 1}
    found = parts[0]
    for part in parts[1:]:
        found = _sum(found, part) if e.op == "add" else _product(found, part)
    return {monomial: factor for monomial, factor in found.items() if factor}


def _sum(a: dict[_Monomial, int], b: dict[_Monomial, int]) -> dict[_Monomial, int]:
    return {monomial: a.get(monomial, 0) + b.get(monomial, 0) for monomial in (*a, *b)}


def _product(a: dict[_Monomial, int], b: dict[_Monomial, int]) -> dict[_Monomial, int]:
    found: dict[_Monomial, int] = {}
    for one, factor in a.items():
        for other, times in b.items():
            monomial = tuple(sorted((*one, *other), key=E.render))
            found[monomial] = found.get(monomial, 0) + factor * times
    return found
