"""Rung "covers": what a kernel does in many accesses is one access of more elements, which is proved apart.

    out[(t * B + l) * s + c], out[(t * B + 16 + l) * s + c], ...     one proof for all pairs of them

Sound because of each of both accesses it is proved, from what holds for an instance that performs it, that the
cover's guard, mask and ranges hold where its lanes are the values that the cover names, and that its element
is then the same. So of two blocks that touch one element by the accesses the same two do by the covers; and if
no two blocks do that, none do this. Proofs are remembered: what was proved holds under more conditions, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tilecheck.ir.expr import TRUE, all_of, conjuncts, le, lt, substitute
from tilecheck.ir.kernel import Access
from tilecheck.proof.goals.question import Question
from tilecheck.proof.obligation import Between, Disjoint, Holds
from tilecheck.proof.rewrite.covers import Cover
from tilecheck.proof.rungs import digits, provenance, tables
from tilecheck.proof.rungs.entail import entailed


def decide(question: Question) -> bool:
    goal = question.obligation.goal
    if not isinstance(goal, Disjoint) or goal.between is not Between.BLOCKS:
        return False
    covers = question.known.covers
    kernel = question.context.kernel
    if goal.first.array != goal.second.array or not covers.has_many(goal.first.array, kernel):
        return False
    first, second = covers.of(goal.first), covers.of(goal.second)
    if first is None or second is None:
        return False
    for access, cover in ((goal.first, first), (goal.second, second)):
        if not _once(("inside", access), question, partial(_is_inside, access, cover, question)):
            return False
    pair = tuple(map(_elements, (first.whole, second.whole)))
    return _once(("apart", pair), question, partial(_are_apart, first.whole, second.whole, question))


def _elements(access: Access) -> tuple[object, ...]:
    """What decides which elements an access touches, whatever its place in the text."""
    return access.array, access.axes, access.guard, access.mask, access.lanes


def _once(asked: object, question: Question, proves: Callable[[], bool]) -> bool:
    """Whether something is proved: then also under more conditions; what is not is not under fewer."""
    covers = question.known.covers
    about = (asked, question.obligation.assume)
    given = frozenset(question.context.conditions)
    if any(known <= given for known in covers.proved.get(about, ())):
        return True
    if any(given <= known for known in covers.open.get(about, ())):
        return False
    found = proves()
    (covers.proved if found else covers.open).setdefault(about, []).append(given)
    return found


def _is_inside(access: Access, cover: Cover, question: Question) -> bool:
    """Whether an instance that performs the access is one of the cover, on the same element."""
    whole = cover.whole
    known = question.premises_of(Holds(TRUE, access.happens))
    index = substitute(whole.axes[0].coordinate, cover.values)
    if known.form(index) != known.form(access.axes[0].coordinate):
        return False
    ranges = all_of(*(all_of(le(0, v), lt(v, e.args[0].bound)) for e, v in cover.values.items()))
    wanted = all_of(ranges, substitute(all_of(whole.guard, whole.mask), cover.values))
    return all(term in known.facts or entailed(term, known) for term in conjuncts(wanted))


def _are_apart(first: Access, second: Access, question: Question) -> bool:
    goal = Disjoint(first, second, Between.BLOCKS)
    asked = Question(replace(question.obligation, goal=goal), question.context, question.known)
    return any(rung(asked) for rung in (provenance.decide, digits.decide, tables.decide))
