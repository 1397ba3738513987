"""Numbers of rounds: the one that is read stands for others, on which conditions may come out otherwise."""

from __future__ import annotations

from math import lcm

from tilecheck.frontend.host_programs.knowledge import Relearn
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr

_TRIED = (1, 2, 3, 5, 9, 17, 33, 65, 129, 1 << 10, 1 << 20, 1 << 40)  # how many rounds more there may be


def read_with(m: Machine, count: Expr, rounds: int, *, more: bool) -> None:
    """On this path a loop has so many rounds; they stand for `more` of them too."""
    m.know(count, rounds)
    if more:
        m.stand_ins[count] = rounds


def share_rounds(m: Machine, count: Expr, rounds: int, period: int, read: int | None) -> tuple[int, int]:
    """The rounds that must be read, and their period, of all loops of one number of rounds. `read` is how many
    items there are, if a list of so many stands for all.

    Raises:
        Relearn: a loop before this one was read with too few of them.
    """
    known = m.knowledge.counts.get(count, (0, 1))
    shared = max(known[0], rounds), lcm(known[1], period)
    if shared != known:
        m.knowledge.counts[count] = shared
        if count in m.stand_ins or (read is not None and read < shared[0]):
            raise Relearn
    return shared


def bare(m: Machine, e: Expr) -> Expr:
    """The expression with the numbers that this path knows, but for those that stand for others."""
    known = {number: value for number, value in m.settled.items() if number not in m.stand_ins}
    return E.substitute(e, known)


def holds(m: Machine, condition: Expr) -> bool:
    """Whether a condition on no round is true: chosen where other numbers of rounds decide it otherwise."""
    if m.stand_ins:
        left = bare(m, condition)
        if left.value is None and left is not E.TRUE and left is not E.FALSE:
            answers = {answer for answer in _answers(m, left) if answer is not None}
            if len(answers) > 1:
                return _chosen(m, left)
    return m.holds(condition)


def _answers(m: Machine, condition: Expr) -> list[bool | None]:
    """What the condition is for the numbers of rounds that are read, and for greater ones."""
    found: list[bool | None] = []
    for more in (0, *_TRIED):
        numbers = {count: E.const(rounds + more) for count, rounds in m.stand_ins.items()}
        answer = E.substitute(condition, numbers)
        found.append(answer is E.TRUE if answer is E.TRUE or answer is E.FALSE else None)
    return found


def _chosen(m: Machine, condition: Expr) -> bool:
    decided = m.open_ranges.decide(condition)
    if decided is None:
        decided = m.choose(("rounds", condition), 2) == 0
        m.open_ranges.learn(condition if decided else E.negate(condition))
    return decided


def may_be(m: Machine, count: Expr, rounds: int, *, more: bool) -> bool:
    """Whether what this path knows of a number of rounds admits so many, or so many and more."""
    condition = E.le(rounds, count) if more else E.eq(count, rounds)
    return (
        condition is not E.FALSE
        and m.ranges.decide(condition) is not False
        and E.negate(condition) not in m.facts
    )
