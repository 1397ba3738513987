"""Obligations taken case by case: an index that is one sum under a compile-time flag and another without it.

Sound because a flag has one value in every launch, so that an obligation holds if it holds in each of its
cases. A case has its flag in the guards and nothing of the other case in its terms, and needs conditions of its
own. What is chosen by the id of the block is taken apart too, see `block_dispatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product

from tilecheck.ir.expr import (
    FALSE,
    ONE,
    TRUE,
    Expr,
    Kind,
    Symbol,
    all_of,
    conjuncts,
    eq,
    ite,
    negate,
    substitute,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.kernel import Access
from tilecheck.proof.conditions.generators.counts import is_flag
from tilecheck.proof.obligation import Disjoint, Holds, Obligation
from tilecheck.proof.rewrite import block_dispatch

_MOST_FLAGS = 2


def settled(obligation: Obligation) -> Obligation:
    """The obligation with the flags of its own guards in its terms: what is under `if A` needs nothing of what
    would be without A."""
    obligation = block_dispatch.settled(obligation)
    goal = obligation.goal
    if not isinstance(goal, Holds | Disjoint):
        return obligation
    guards = [goal.given] if isinstance(goal, Holds) else [goal.first.guard, goal.second.guard]
    terms = {term for term in conjuncts(all_of(*guards)) if is_flag(term)}
    flags = (*_choices(goal), *_flags(goal), *_size_flag(goal))
    chosen = {flag: TRUE for flag in flags if flag in terms}
    chosen |= {flag: FALSE for flag in flags if negate(flag) in terms}
    return (_case(obligation, chosen) or obligation) if chosen else obligation


def cases(obligation: Obligation) -> tuple[Obligation, ...]:
    """The cases of an obligation; itself where neither flags nor the block's id decide between its terms."""
    flags = deciding(obligation)
    found = []
    for values in product((TRUE, FALSE), repeat=len(flags)) if flags else ():
        chosen = dict(zip(flags, values, strict=True))
        case = _case(obligation, chosen)
        if case is not None:
            found.append(case)
    return tuple(case for part in found or [obligation] for case in block_dispatch.dispatched(part))


def deciding(obligation: Obligation) -> tuple[Expr, ...]:
    """The flags by which an obligation is taken apart."""
    goal = obligation.goal
    if not isinstance(goal, Holds | Disjoint):
        return ()
    return tuple(dict.fromkeys((*_flags(goal)[:_MOST_FLAGS], *_size_flag(goal))))


def _flags(goal: Holds | Disjoint) -> tuple[Expr, ...]:
    """What decides at compile time between two terms of a goal: what that is made of, if it is little, as all
    of it is known then."""
    choices = _choices(goal)
    parts = tuple(dict.fromkeys(part for flag in choices for part in _parts(flag)))
    return parts if len(parts) <= _MOST_FLAGS and not any(map(_is_broadcast, parts)) else choices


def _choices(goal: Holds | Disjoint) -> tuple[Expr, ...]:
    """The conditions of compile time on which terms of a goal depend. Not whether a tile has one element, and
    so is broadcast: where it has, there is mostly nothing to save."""
    terms = _terms(goal)
    choices = [node.args[0] for node in walk(*terms) if node.op == "ite" and is_flag(node.args[0])]
    masks = [goal.first.mask, goal.second.mask] if isinstance(goal, Disjoint) else [goal.given]
    choices += [_plain(flag) for node in walk(*masks) if node.op == "any" for flag in _asked(node)]
    return tuple(dict.fromkeys(flag for flag in choices if not _is_broadcast(flag)))


def _parts(flag: Expr) -> Iterator[Expr]:
    """The flags that a flag is made of."""
    if flag.op in ("all", "any", "not"):
        for part in flag.args:
            yield from _parts(part)
    else:
        yield flag


def is_apart_first(obligation: Obligation) -> bool:
    """Whether an obligation is looked at as a whole only where its cases were not enough: what a block's id
    chooses between, and what stands under a mask that a flag takes away. As a whole that would need as much
    memory, and as few blocks, as without the mask, which is not what launches with it have."""
    goal = obligation.goal
    if not isinstance(goal, Holds | Disjoint):
        return False
    masks = [goal.given] if isinstance(goal, Holds) else [goal.first.mask, goal.second.mask]
    is_masked = any(node.op == "any" and any(_asked(node)) and _varies(node) for node in walk(*masks))
    return is_masked or block_dispatch.is_dispatched(obligation)


def _varies(e: Expr) -> bool:
    return any(s.varies for s in symbols(e))


def _asked(either: Expr) -> Iterator[Expr]:
    """The flags of a mask that says less where one is set: `ALIGNED or col < n`."""
    for term in either.args:
        yield from (part for part in conjuncts(term) if is_flag(part))


def _plain(flag: Expr) -> Expr:
    """A flag without its negation."""
    return flag.args[0] if flag.op == "not" else flag


def _size_flag(goal: Holds | Disjoint) -> tuple[Expr, ...]:
    """What decides most about the sizes of its tiles."""
    bounds = [lane.bound for lane in _own_lanes(goal) if lane.bound is not None]
    asked = [node.args[0] for node in walk(*bounds) if node.op == "ite" and is_flag(node.args[0])]
    times = {flag: asked.count(flag) for flag in asked if not _is_broadcast(flag)}
    return (max(times, key=lambda flag: times[flag]),) if times else ()


def _is_broadcast(flag: Expr) -> bool:
    return flag.op == "eq" and ONE in flag.args


def _own_lanes(goal: Holds | Disjoint) -> tuple[Symbol, ...]:
    accesses = [goal.access] if isinstance(goal, Holds) else [goal.first, goal.second]
    own = [lane for access in accesses if access is not None for lane in access.lanes]
    return (*own, *(s for s in symbols(*_terms(goal)) if s.kind is Kind.LANE))


def _terms(goal: Holds | Disjoint) -> list[Expr]:
    if isinstance(goal, Holds):
        return [goal.goal, goal.given]
    return [e for a in (goal.first, goal.second) for e in (a.mask, *(axis.coordinate for axis in a.axes))]


def _case(obligation: Obligation, chosen: dict[Expr, Expr]) -> Obligation | None:
    """The obligation where flags have these values; None if the accesses are not reached there."""
    under = all_of(*(flag if value is TRUE else negate(flag) for flag, value in chosen.items()))
    goal = obligation.goal
    assert isinstance(goal, Holds | Disjoint)
    lanes = _lanes(goal, chosen)
    values = {**chosen, **{sym(lane): sym(same) for lane, same in lanes.items()}}
    whole = _whole(lanes.get(lane, lane) for lane in _own_lanes(goal))

    def taken(e: Expr) -> Expr:
        e = substitute(e, values)
        return substitute(e, whole) if whole else e

    assume = taken(obligation.assume)
    if isinstance(goal, Holds):
        access = None if goal.access is None else _access(goal.access, taken, under, lanes)
        given = all_of(taken(goal.given), under)
        dead = given is FALSE
        new: Holds | Disjoint = replace(goal, goal=taken(goal.goal), given=given, access=access)
    else:
        first = _access(goal.first, taken, under, lanes)
        second = first if goal.second is goal.first else _access(goal.second, taken, under, lanes)
        dead = FALSE in (first.guard, second.guard)
        new = replace(goal, first=first, second=second)
    return None if dead else replace(obligation, goal=new, assume=assume)


def _lanes(goal: Holds | Disjoint, chosen: dict[Expr, Expr]) -> dict[Symbol, Symbol]:
    """The lanes of tiles whose sizes the flags decide, with these sizes."""
    found = {}
    for lane in _own_lanes(goal):
        bound = None if lane.bound is None else substitute(lane.bound, chosen)
        if bound is not lane.bound:
            found[lane] = replace(lane, bound=bound)
    return found


def _whole(lanes: Iterable[Symbol]) -> dict[Expr, Expr]:
    """`lane` for `0 if size == 1 else lane`, which is how a tile of that size is broadcast: where the lane
    itself is below that size, it is 0 if the size is 1."""
    bounded = [(sym(lane), lane.bound) for lane in dict.fromkeys(lanes) if lane.bound is not None]
    return {ite(eq(bound, 1), 0, lane): lane for lane, bound in bounded if bound.value is None}


def _access(access: Access, taken: Callable[[Expr], Expr], under: Expr, lanes: dict[Symbol, Symbol]) -> Access:
    found = access.mapped(taken, lambda lane: lanes.get(lane, lane))
    return replace(found, guard=all_of(found.guard, under))
