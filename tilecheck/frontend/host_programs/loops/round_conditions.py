"""Conditions on the round of a loop, of which not all rounds are read."""

from __future__ import annotations

from tilecheck.frontend.host_programs.loops import round_counts
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr

_MOST_ROUNDS = 12  # behind which a condition turns


def holds(m: Machine, condition: Expr, difference: V.Number, origin: str) -> bool:
    """Whether a condition is true in this round.

    Args:
        m: the path.
        condition: the condition in this round.
        difference: of the two numbers that it compares.
        origin: tells the condition from others; empty where it is not known how its numbers were computed.
    """
    if _turns_unread(m, difference):
        return m.choose(("in this round", origin) if origin else None, 2) == 0
    return m.holds(condition) if difference.slopes else round_counts.holds(m, condition)


def origin_of(a: V.Number) -> str:
    """How a number was computed; empty where that is not known."""
    slopes = "".join(f" + {slope!r} for each round of {loop}" for loop, slope in a.slopes)
    return a.origin if a.curved else f"{a.expr!r}{slopes}"


def _turns_unread(m: Machine, difference: V.Number) -> bool:
    """Whether a condition may be another in rounds that are not read: it is open then.

    The difference of the two sides grows by the slope in each round, so a turn lies where it is 0. Where it
    lies near, the rounds that are read must reach behind it.
    """
    if difference.curved:
        return True
    for loop in m.loops:
        slope = next((s for name, s in difference.slopes if name == loop.name), None)
        start = None if slope is None else m.settle(E.sub(difference.expr, E.mul(loop.round, slope))).value
        if slope is None or slope.value is None or start is None:
            continue
        turn = -start // slope.value
        if (
            loop.count is not None and round_counts.bare(m, difference.expr).value is None
        ):  # it counts from the end
            behind = loop.count - turn
            if not 0 <= behind <= _MOST_ROUNDS:
                return True
            loop.behind = max(loop.behind, behind)
            m.knowledge.learn_rounds(loop.site, behind + 1 + m.knowledge.periods.get(loop.site, 1))
            continue
        if 0 <= turn <= _MOST_ROUNDS:
            m.knowledge.learn_rounds(loop.site, turn + 2 + m.knowledge.periods.get(loop.site, 1))
        elif turn > _MOST_ROUNDS and (loop.tail is None or turn < loop.tail):
            return True
    return False
