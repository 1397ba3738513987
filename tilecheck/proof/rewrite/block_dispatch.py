"""Obligations taken apart by what a block does: `if pid == 0: ... elif pid == 1: ...`, as one launch copies
several arrays.

After such branches an index is one of several sums, chosen by the id of the block (the same with `tl.where`).
In each case it is one of them, which bounds, distances and candidates for conditions can be read from.

Sound because each block's id is one of the literals that it is compared with, or none of them, so that exactly
one case holds in it: a goal about one block holds if it holds in each case, and one about two blocks if it
holds for each two cases, of which one access stands in the first and one in the second. Two blocks that make
one access may change places, so then the order of two cases does not matter. In a case every comparison of the
id with a literal is known, and the case itself stands in the guards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, count, islice, product

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import (
    FALSE,
    TRUE,
    Expr,
    Kind,
    Symbol,
    all_of,
    conjuncts,
    eq,
    le,
    negate,
    substitute,
    sym,
    walk,
)
from tilecheck.ir.kernel import Access
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation

_MOST = 4  # literals that one id is compared with


@dataclass(frozen=True, slots=True)
class _Way:
    """One case: the id is `value`, or none of the `others` if that is None."""

    block: Symbol
    value: int | None
    others: tuple[int, ...]

    @property
    def least(self) -> int:
        """The smallest id in this case."""
        return next(_not_among(self.others)) if self.value is None else self.value

    @property
    def guard(self) -> Expr:
        block = sym(self.block)
        if self.value is not None:
            return eq(block, self.value)
        return all_of(*(negate(eq(block, other)) for other in self.others))

    def taken(self, *terms: Expr) -> Callable[[Expr], Expr]:
        """What writes into a term what comparisons are here, of those that occur in `terms`."""
        known: dict[Expr, Expr] = {}
        for node in walk(*terms):
            asked = _asked(node)
            truth = self._is(asked[1]) if asked is not None and asked[0] == self.block else None
            if truth is not None:
                known[node] = truth
        return lambda e: substitute(e, known)

    def _is(self, literal: int) -> Expr | None:
        """Whether the id is this literal, where the case tells."""
        if self.value is not None:
            return TRUE if literal == self.value else FALSE
        return FALSE if literal in self.others else None


def dispatched(obligation: Obligation) -> tuple[Obligation, ...]:
    """The cases of an obligation whose terms are chosen by the id of the block; itself where none are."""
    goal = obligation.goal
    if not isinstance(goal, Holds | Disjoint):
        return (obligation,)
    ways = _ways(_terms(goal))
    if not ways:
        return (obligation,)
    if isinstance(goal, Holds):
        found = [_in_one(obligation, goal, way) for way in ways]
    elif goal.between is Between.BLOCKS:
        two = combinations_with_replacement(ways, 2) if goal.first is goal.second else product(ways, repeat=2)
        found = [_in_two(obligation, goal, *pair) for pair in two]
    else:  # one block, whose id is the same in both
        found = [_in_two(obligation, goal, way, way) for way in ways]
    return tuple(case for case in found if case is not None)


def is_dispatched(obligation: Obligation) -> bool:
    """Whether the terms of an obligation are chosen by an id that is compared with several literals."""
    goal = obligation.goal
    return isinstance(goal, Holds | Disjoint) and len(_ways(_terms(goal))) > 2


def settled(obligation: Obligation) -> Obligation:
    """The obligation with what its own guards say of the block's id written into its terms."""
    goal = obligation.goal
    if isinstance(goal, Holds):
        way = _guarded(goal.given, goal.goal)
        return obligation if way is None else _in_one(obligation, goal, way) or obligation
    if not isinstance(goal, Disjoint):
        return obligation
    first = _settled(goal.first)
    second = first if goal.second is goal.first else _settled(goal.second)
    if first is goal.first and second is goal.second:
        return obligation
    return replace(obligation, goal=replace(goal, first=first, second=second))


def reached(guards: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """How many blocks there are where some block meets each of the guards: more than the id that they ask for.
    The last one says most."""
    needed: dict[Symbol, int] = {}
    for guard in guards:
        for block in dict.fromkeys(asked[0] for asked in map(_asked, walk(guard)) if asked is not None):
            way = _way(guard, block)
            if way is not None:
                needed[block] = max(needed.get(block, 0), way.least)
    if len(needed) != 1:
        return ()
    ((block, least),) = needed.items()
    return tuple(le(k + 1, block.bound) for k in range(1, least + 1) if block.bound is not None)


def second_ids(guards: tuple[Expr, ...]) -> Iterator[tuple[Symbol, int]]:
    """For an id that guards say is none of some literals, the second smallest that is left: so many blocks
    leave one that meets them."""
    for guard in guards:
        for block in dict.fromkeys(asked[0] for asked in map(_asked, walk(guard)) if asked is not None):
            way = _way(guard, block)
            if way is not None and way.value is None:
                yield block, next(islice(_not_among(way.others), 1, None))


def only_id(guard: Expr, block: Symbol, most: float) -> int | None:
    """The one id below `most` that a guard leaves, which says of some that it is none of them; `most` if it
    leaves no id, and so no block, of which anything may be said."""
    way = _way(guard, block)
    if way is None or way.value is not None or most > len(way.others) + 1:
        return None
    left = [k for k in range(int(most)) if k not in way.others]
    return (*left, int(most))[0] if len(left) <= 1 else None


def in_order(first: Expr, second: Expr) -> int:
    """1 where guards put blocks into two cases of one id of which the first has the smaller ids, -1 where the
    second has, and else 0."""
    for block in dict.fromkeys(asked[0] for asked in map(_asked, walk(first)) if asked is not None):
        one, other = _way(first, block), _way(second, block)
        if one is not None and other is not None and one.least != other.least:
            return 1 if one.least < other.least else -1
    return 0


def _not_among(literals: tuple[int, ...]) -> Iterator[int]:
    return (k for k in count() if k not in literals)


def _asked(node: Expr) -> tuple[Symbol, int] | None:
    """The id of a block and the literal that `node` asks it to be."""
    if node.op != "eq":
        return None
    for one, other in (node.args, node.args[::-1]):
        if one.op == "sym" and one.args[0].kind is Kind.BLOCK and other.value is not None:
            return one.args[0], other.value
    return None


def _ways(terms: Sequence[Expr]) -> tuple[_Way, ...]:
    """The cases of the id that is asked for most, those of small ids first; none if there are too many."""
    literals: dict[Symbol, dict[int, None]] = {}
    for node in walk(*terms):
        tests = (node.args[0],) if node.op == "ite" else node.args if node.op == "any" else ()
        for test in walk(*tests):
            asked = _asked(test)
            if asked is not None:
                literals.setdefault(asked[0], {})[asked[1]] = None
    if not literals:
        return ()
    block = max(literals, key=lambda b: len(literals[b]))
    others = tuple(sorted(literals[block]))
    if len(others) > _MOST:
        return ()
    ways = (*(_Way(block, value, others) for value in others), _Way(block, None, others))
    return tuple(sorted(ways, key=lambda way: way.least))


def _way(guard: Expr, block: Symbol) -> _Way | None:
    """The case that the terms of a guard put a block into."""
    terms = conjuncts(guard)
    for term in terms:
        asked = _asked(term)
        if asked is not None and asked[0] == block:
            return _Way(block, asked[1], ())
    denied = [_asked(term.args[0]) for term in terms if term.op == "not"]
    others = tuple(sorted({asked[1] for asked in denied if asked is not None and asked[0] == block}))
    return _Way(block, None, others) if others else None


def _guarded(guard: Expr, *terms: Expr) -> _Way | None:
    """The case that a guard puts a block into, where terms (or the guard itself) are chosen by its id."""
    ways = _ways([*terms, guard])
    return _way(guard, ways[0].block) if ways else None


def _settled(access: Access) -> Access:
    way = _guarded(access.guard, access.mask, *(axis.coordinate for axis in access.axes))
    return access if way is None else _access(access, way)


def _terms(goal: Holds | Disjoint) -> list[Expr]:
    if isinstance(goal, Holds):
        return [goal.goal, goal.given]
    accesses = (goal.first, goal.second)
    return [e for a in accesses for e in (a.guard, a.mask, *(axis.coordinate for axis in a.axes))]


def _in_one(obligation: Obligation, goal: Holds, way: _Way) -> Obligation | None:
    """A goal about one block in one case; None where it is not reached there."""
    taken = way.taken(goal.goal, goal.given, obligation.assume)
    given = all_of(taken(goal.given), way.guard)
    if given is FALSE:
        return None
    access = None if goal.access is None else _access(goal.access, way)
    new = replace(goal, goal=taken(goal.goal), given=given, access=access)
    return replace(obligation, goal=new, assume=taken(obligation.assume))


def _in_two(obligation: Obligation, goal: Disjoint, one: _Way, other: _Way) -> Obligation | None:
    """Two accesses in one case each; None where one of them does not happen there. What is assumed is assumed
    of both blocks, and so left as it is where they are in two cases."""
    first = _access(goal.first, one)
    second = first if goal.second is goal.first and one is other else _access(goal.second, other)
    if FALSE in (first.guard, second.guard, first.mask, second.mask):
        return None
    assume = one.taken(obligation.assume)(obligation.assume) if one is other else obligation.assume
    return replace(obligation, goal=replace(goal, first=first, second=second), assume=assume)


def _access(access: Access, way: _Way) -> Access:
    parts = [e for axis in access.axes for e in (axis.index, axis.step, axis.size, axis.extent, axis.base)]
    member = () if access.member is None else (access.member,)
    found = access.mapped(way.taken(access.guard, access.mask, *member, *parts))
    return replace(found, guard=all_of(found.guard, way.guard))
