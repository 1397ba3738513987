"""Accesses that differ by constant offsets, decided as one access with more lanes.

    x + row * s + offs, x + row * s + n + offs, x + row * s + 2 * n + offs
    x + row * s + k * n + offs       with a lane k < 3: one bound, and one race with itself, for three and six

Sound, and as strong as its members, because the family touches exactly what they do: its mask, guard and lanes
are theirs, and at each value of its lanes k its index is that of a member, as polynomials. So

- a bound of the family is the bounds of all its members;
- of two blocks that touch one element by two members, the same two do so by the family, and the other way
  round: with no order between blocks but that of the launch, nothing else tells members apart;
- so do two threads of one block; and what a goal leaves out, the same lane of two accesses in one iteration,
  that of the family leaves out for those members alone for which theirs do.

A goal of a family stands for those of its members only if it is proved, or holds under conditions; if not,
each of them is decided on its own. Members must leave no gap: conditions for a family are those that all of
its members need together, and no more. Of several layouts that keep members apart, a launch has one: members
at the ends of their families, and next to each other, are asked first, and say what conditions are like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import gcd, prod

from tilecheck.analysis.flags import flags
from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr, Kind, Symbol, add, all_of, const, mul, substitute, sym
from tilecheck.ir.kernel import Access, Kernel
from tilecheck.proof.algebra.polynomial import Polynomial, key
from tilecheck.proof.conditions.terms import Terms
from tilecheck.proof.goals.predicate import are_paired
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation
from tilecheck.proof.rewrite.covers import FEW, is_plain

_BETWEEN = (Between.BLOCKS, Between.PROGRAM, Between.THREADS)


@dataclass(frozen=True, slots=True)
class Families:
    """What is asked in the place of obligations: `asked`, and for each obligation the number of what stands for
    it. `joined` are the numbers of those that stand for several."""

    asked: tuple[Obligation, ...]
    places: tuple[int, ...]
    joined: frozenset[int]


def families(obligations: Sequence[Obligation], kernel: Kernel) -> Families | None:
    """One obligation for those of each family of accesses; None where there is no family."""
    if flags(kernel):
        return None  # what orders blocks may tell members apart
    members = _Search().members(_accesses(obligations))
    stands = {n: found for n, o in enumerate(obligations) if members and (found := _stand_for(o, members))}
    groups: dict[object, list[int]] = {}
    for number, stand in stands.items():
        groups.setdefault((stand.obligation.rule, stand.obligation.goal, stand.obligation.assume), []).append(
            number
        )
    entries: list[tuple[int, bool, Obligation, Sequence[int]]] = []  # a family stands behind its last member
    inner: set[int] = set()
    for numbers in groups.values():
        first_of = {stands[n].end: n for n in reversed(numbers)}
        left = [n for n in numbers if stands[n].end is None or first_of[stands[n].end] != n]
        if len(left) > len(first_of):  # else hardly anything is left to be asked
            entries.append((numbers[-1], True, stands[numbers[0]].obligation, left))
            inner.update(left)
    if not inner:
        return None
    entries += [(n, False, o, (n,)) for n, o in enumerate(obligations) if n not in inner]
    entries.sort(key=lambda entry: entry[:2])
    places = {number: place for place, entry in enumerate(entries) for number in entry[3]}
    joined = frozenset(place for place, entry in enumerate(entries) if entry[1])
    asked = tuple(obligation for _, _, obligation, _ in entries)
    return Families(asked, tuple(places[number] for number in range(len(obligations))), joined)


def unproved(
    obligations: Sequence[Obligation], kernel: Kernel, proves: Callable[[Obligation], bool]
) -> Iterator[Obligation]:
    """Those of the obligations that are not proved, by families first."""
    joined = families(obligations, kernel)
    if joined is None:
        yield from (o for o in obligations if not proves(o))
        return
    proved = {place for place in joined.joined if proves(joined.asked[place])}
    pairs = zip(obligations, joined.places, strict=True)
    yield from (o for o, place in pairs if place not in proved and not proves(o))


def _accesses(obligations: Iterable[Obligation]) -> dict[Access, None]:
    found: dict[Access, None] = {}
    for obligation in obligations:
        match obligation.goal:
            case Disjoint(first, second, between) if between in _BETWEEN:
                found.update({first: None, second: None})
            case Holds(_, _, Access() as access):
                found[access] = None
    return found


@dataclass(frozen=True, slots=True)
class _Stand:
    """What may stand for an obligation, and at which end of families it is, if at one."""

    obligation: Obligation
    end: tuple[int, ...] | None


def _stand_for(obligation: Obligation, members: Mapping[Access, _Member]) -> _Stand | None:
    """The same of the families of its accesses; None where it is not about such, or is trusted or advised."""
    if obligation.unsafe or obligation.advice:
        return None
    match obligation.goal:
        case Disjoint(one, two, between) if between in _BETWEEN and (one in members or two in members):
            first, second = members.get(one, _Member(one)), members.get(two, _Member(two))
            goal = _pair(one, two, between, first, second)
            return (
                None if goal is None else _Stand(replace(obligation, goal=goal), _end(*_moves(first, second)))
            )
        case Holds(goal, given, Access() as access) if access in members:
            if (goal, given) != (access.inside, _performed(access)):  # a bound in other words
                return None
            member = members[access]
            whole = Holds(member.family.inside, _performed(member.family), member.family)
            return _Stand(replace(obligation, goal=whole), _end(*zip(member.place, member.last, strict=True)))
    return None


def _pair(one: Access, two: Access, between: Between, a: _Member, b: _Member) -> Disjoint | None:
    """A goal about the families of two accesses that implies that about them; None where none does."""
    first, second = a.family, b.family
    if between is not Between.BLOCKS:
        # The lanes of two members of one family are never equal. Of others equal lanes in one iteration are
        # left out only if they are for these two.
        same = between is Between.PROGRAM and are_paired(one, two)
        between = Between.PROGRAM if first is second else between
        leaves_out = between is Between.PROGRAM and are_paired(first, second)
        if leaves_out and not same and (a.place == b.place or len(one.lanes) != len(two.lanes)):
            return None
    if first.effect is second.effect and second.position < first.position:
        first, second = second, first
    return Disjoint(first, second, between)


def _end(*moved: tuple[int, int]) -> tuple[int, ...] | None:
    """By how many steps something is moved along each lane of a family, of so many at most; None where that is
    neither none of them, nor one, nor all."""
    steps = tuple(by for by, _ in moved)
    return steps if all(abs(by) in (0, 1, most) for by, most in moved) else None


def _moves(a: _Member, b: _Member) -> Iterator[tuple[int, int]]:
    """From one member to another of a family as large; else from the first member to each."""
    if a.last == b.last:
        yield from ((to - by, most) for by, to, most in zip(a.place, b.place, a.last, strict=True))
    else:
        yield from zip((*a.place, *b.place), (*a.last, *b.last), strict=True)


def _performed(access: Access) -> Expr:
    """Where a lane takes part that nothing checks, whether or not its element exists."""
    return all_of(access.guard, access.lane_facts, access.mask, access.unchecked)


@dataclass(frozen=True, slots=True)
class _Member:
    """An access as its family makes it where the lanes that the family has besides are at `place`, each of them
    at most at `last`."""

    family: Access
    place: tuple[int, ...] = ()
    last: tuple[int, ...] = ()


@dataclass(slots=True)
class _Search:
    """Finds families. Mutable: it numbers terms."""

    terms: Terms = field(default_factory=Terms)

    def members(self, accesses: Iterable[Access]) -> dict[Access, _Member]:
        """Those of the accesses that are in families."""
        alike: dict[object, list[tuple[Access, Polynomial]]] = {}
        for access in accesses:
            if is_plain(access):
                likeness, offset = self._read(access)
                alike.setdefault(likeness, []).append((access, offset))
        found: dict[Access, _Member] = {}
        for members in alike.values():
            if len(members) >= FEW:
                found.update(self._joined(members))
        return found

    def _read(self, access: Access) -> tuple[object, Polynomial]:
        """What members of a family have in common, and the offset by launch values in which they differ."""
        names = {
            lane: Symbol(f"lane {k}", Kind.LANE, -1 - k, lane.bound) for k, lane in enumerate(access.lanes)
        }
        renamed = {sym(old): sym(new) for old, new in names.items()}
        plain = access.mapped(lambda e: substitute(e, renamed), names.__getitem__)
        (axis,) = plain.axes
        index = self.terms.poly(axis.index)
        offset = {m: c for m, c in index.items() if not self.terms.varies(m)}
        moving = key({m: c for m, c in index.items() if m not in offset})
        how = plain.array, plain.effect, plain.guard, plain.mask, plain.unchecked, plain.loops, plain.stepped_by
        return (*how, axis.extent, plain.lanes, moving), offset

    def _joined(self, members: Sequence[tuple[Access, Polynomial]]) -> Iterator[tuple[Access, _Member]]:
        """A family with a lane for each term of the offset that differs; nothing where it would have gaps."""
        offsets = {key(offset): offset for _, offset in members}.values()
        terms = dict.fromkeys(m for offset in offsets for m in offset)
        ranges = {m: _range([offset.get(m, 0) for offset in offsets]) for m in terms}
        moving = {m: found for m, found in ranges.items() if len(found) > 1}
        if prod(map(len, moving.values())) != len(offsets):
            return
        places = [tuple(found.index(offset.get(m, 0)) for m, found in moving.items()) for _, offset in members]
        least = members[places.index((0,) * len(moving))][0]
        index, lanes = least.axes[0].index, list(least.lanes)
        for number, (m, found) in enumerate(moving.items()):
            lane = Symbol(f"member {number}", Kind.LANE, -1 - number, const(len(found)))
            index = add(index, mul(self.terms.expr({m: found.step}), sym(lane)))
            lanes.append(lane)
        family = replace(least, axes=(replace(least.axes[0], index=index),), lanes=tuple(lanes), way=None)
        last = tuple(len(found) - 1 for found in moving.values())
        for (access, _), place in zip(members, places, strict=True):
            yield access, _Member(family, place, last)


def _range(values: Sequence[int]) -> range:
    """The fewest numbers in equal steps that have all values among them."""
    low, high = min(values), max(values)
    return range(low, high + 1, gcd(*(value - low for value in values)) or 1)
