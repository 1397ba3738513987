"""Rung "provenance": where an element's coordinates come from decides who touches it.

Two instances that touch one element agree on its coordinates. From values on which they agree, more follow
(`Agreed`): if in the end they agree on every block index (for two blocks) or on every lane (for two lanes),
they are one instance, so the accesses are disjoint. Nothing but the shape of the index expressions, the
ranges of block indices and lanes, the positivity of divisors, and what guards fix to one value is used; other
guards only make an access rarer.

Each step holds because both instances compute the same expression from their own symbols. "Shared" means
built from symbols that have one value for both.

    shift   a + s with s shared                                   gives a
    scale   a * s with s shared and not 0                         gives a
    digits  a * n + l with n shared, l a block index or lane of range n   gives a and l, for 0 <= l < n
    divmod  x // n and x % n with n shared and positive           give x, which is n * (x // n) + x % n
            x // n alone where n is 1, and without the factors of n that are 1
            the same with y // (a*n), which is x // n, where x is y // a
    lone    block ids of an axis with one block, or of which guards leave one; lanes of a tile with one element
    fixed   e == s in the guards of both, with s shared           gives e
    whole   an expression of agreed symbols, or values, only is agreed
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tilecheck.ir.expr import Expr, Kind, Symbol, conjuncts, sym, symbols, walk
from tilecheck.ir.kernel import Access, Axis, Space, block_symbol, common_loops
from tilecheck.proof.algebra import interval as iv
from tilecheck.proof.algebra.polynomial import Key, Monomial, Polynomial, key, single, times, without
from tilecheck.proof.goals.instances import Varies
from tilecheck.proof.goals.predicate import (
    are_paired,
    differs_between_iterations,
    differs_between_lanes,
    differs_between_threads,
    has_lanes,
)
from tilecheck.proof.goals.question import Question
from tilecheck.proof.obligation import Between, Disjoint, Holds, Ordered
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.rewrite.block_dispatch import only_id
from tilecheck.proof.rewrite.equal_lanes import with_equal_lanes

_ONE = iv.exactly(1)


def decide(question: Question) -> bool:
    goal = question.obligation.goal
    if isinstance(goal, Ordered):
        # The language threads one token through all accesses to an array, in program order.
        return goal.first.array == goal.second.array == goal.array
    if isinstance(goal, Holds):
        return _is_given(goal, question)
    renamed = with_equal_lanes(goal)
    return _is_one(goal, question) or (renamed is not None and _is_one(renamed, question))


def _is_one(goal: Disjoint, question: Question) -> bool:
    meeting = meeting_of(goal, question)
    if meeting is None:
        return False
    meeting.agreed.conclude()
    return meeting.is_one_instance


def _is_given(goal: Holds, question: Question) -> bool:
    """Every part of the goal stands literally among the premises."""
    given = (*question.context.uniform_facts, goal.given, question.obligation.assume)
    known = {fact for premise in given for fact in conjuncts(premise)}
    return all(part in known for part in conjuncts(goal.goal))


@dataclass(frozen=True)
class Meeting:
    """What two instances that touch one element agree on, and the symbols on which two different ones differ:
    agreeing on all of those, they are one. None where no symbols tell. `places` are the pairs of values that
    are equal, the first computed by the instance of the first access."""

    agreed: Agreed
    telling: tuple[Symbol, ...] | None
    places: tuple[tuple[Expr, Expr], ...]

    @property
    def is_one_instance(self) -> bool:
        return self.telling is not None and all(map(self.agreed.includes, self.telling))


def meeting_of(goal: Disjoint, question: Question) -> Meeting | None:
    """None where agreement says nothing."""
    first, second = goal.first, goal.second
    raw = Space.RAW in (first.space, second.space)
    if first.array != second.array or raw or len(first.axes) != len(second.axes):
        return None
    found = _who(goal, question)
    if found is None:
        return None
    varies, telling = found
    agreed = Agreed(question.uniform, varies)
    agreed.meet_lone(telling or (), (first.guard, second.guard))
    places = tuple(_same_places(first, second))
    fixed = [_fixed(access, varies) for access in (first, second)]
    for one, two in (*places, *((e, e) for e, to in fixed[0] if (e, to) in fixed[1])):
        agreed.learn(agreed.premises.form(one), agreed.premises.form(two))
    return Meeting(agreed, telling, places)


def _who(goal: Disjoint, question: Question) -> tuple[Varies, tuple[Symbol, ...] | None] | None:
    """What may differ between the two instances, and what does for certain."""
    first, second = goal.first, goal.second
    match goal.between:
        case Between.BLOCKS:
            axes = question.context.kernel.grid_axes
            return (lambda s: s.varies, tuple(map(block_symbol, axes))) if axes else None
        case Between.LANES:
            named = first.lanes == second.lanes and has_lanes(first) and has_lanes(second)
            return (differs_between_lanes, first.lanes) if named else None
        case Between.ITERATIONS if first.stepped_by is not None:
            return differs_between_iterations(first), (first.stepped_by,)
        case Between.PROGRAM if first.lanes == second.lanes and are_paired(first, second):
            return differs_between_threads(first, second), (*first.lanes, *common_loops(first, second))
        case Between.PROGRAM | Between.THREADS:
            return differs_between_threads(first, second), None
        case _:
            return None


def _same_places(first: Access, second: Access) -> Iterator[tuple[Expr, Expr]]:
    """Pairs of expressions that are equal when the two accesses touch one element."""
    if first.member is not None and second.member is not None:
        yield first.member, second.member
    for one, two in zip(first.axes, second.axes, strict=True):
        yield one.coordinate, two.coordinate
        if _is_one_tiling(one, two):
            yield one.index, two.index


def _fixed(access: Access, varies: Varies) -> tuple[tuple[Expr, Expr], ...]:
    """The values of which the access is performed for one alone, and that one: `i`, `n` where `i == n`."""
    found: dict[tuple[Expr, Expr], None] = {}
    for term in conjuncts(access.happens):
        for e, to in (term.args, term.args[::-1]) if term.op == "eq" else ():
            if not any(map(varies, symbols(to))) and not any(n.op == "read" for n in walk(to)):
                found[e, to] = None
    return tuple(found)


def _is_one_tiling(one: Axis, two: Axis) -> bool:
    """Whether elements i*s + l and j*s + m (from one base, 0 <= l, m < size <= s) are equal only for i = j."""
    if (one.step, one.base) != (two.step, two.base) or any(s.varies for s in symbols(one.step, one.base)):
        return False
    return all(a.step is a.size and a.lane is not None and a.lane.bound is a.size for a in (one, two))


@dataclass
class Agreed:
    """What two instances agree on. Mutable: it grows until nothing more follows."""

    premises: Premises
    varies: Varies
    atoms: dict[int, None] = field(default_factory=dict)
    symbols: dict[Symbol, None] = field(default_factory=dict)
    known: dict[Key, Polynomial] = field(default_factory=dict)

    def copy(self) -> Agreed:
        """The same, to learn more on trial."""
        return Agreed(self.premises.copy(), self.varies, dict(self.atoms), dict(self.symbols), dict(self.known))

    def learn(self, one: Polynomial, two: Polynomial) -> None:
        """Two values, one computed by each instance, are equal: if by one expression, they agree on it."""
        if key(one) == key(two):
            self.known.setdefault(key(one), one)

    def meet_lone(self, symbols: Sequence[Symbol], guards: tuple[Expr, Expr]) -> None:
        """Of a grid axis with one block, and of a tile with one element, both have the only one; and of an
        axis with few blocks, of which guards leave both the same."""
        for symbol in symbols:
            size = symbol.bound if symbol.kind in (Kind.BLOCK, Kind.LANE) else None
            if size is None:
                continue
            most = self.premises.interval(self.premises.form(size)).high
            left = [only_id(guard, symbol, most) for guard in guards] if symbol.kind is Kind.BLOCK else [None]
            if most <= 1 or (left[0] is not None and left[0] == left[-1]):
                self.symbols[symbol] = None
                p = self.premises.form(sym(symbol))
                self.learn(p, p)

    def includes(self, symbol: Symbol) -> bool:
        return symbol in self.symbols

    def conclude(self) -> None:
        """Apply the steps until nothing new follows. Each adds an atom or a value built from parts of one,
        so this ends."""
        before = -1
        while before != len(self.atoms) + len(self.known):
            before = len(self.atoms) + len(self.known)
            for p in list(self.known.values()):
                self._simplify(p)
            self._join_divisions()

    def is_shared(self, index: int) -> bool:
        """Whether an atom has one value for both instances: all that it is made of has."""
        a = self.premises.forms.atoms[index]
        if index in self.atoms or all(s in self.symbols or not self.varies(s) for s in a.symbols):
            return True
        made = a.args and a.condition is None
        return bool(made) and all(self.is_shared(i) for p in a.args for m in p for i in m)

    def _agree(self, index: int) -> None:
        self.atoms[index] = None
        a = self.premises.forms.atoms[index]
        if a.op == "sym":
            self.symbols[a.symbols[0]] = None

    def _simplify(self, p: Polynomial) -> None:
        rest = self._descaled({m: c for m, c in p.items() if not all(map(self.is_shared, m))})
        if len(rest) == 1 and len(next(iter(rest))) == 1:
            self._agree(next(iter(rest))[0])
        elif rest:
            self.known.setdefault(key(rest), rest)
            for m in rest:
                self._split_digit(rest, m)

    def _descaled(self, p: Polynomial) -> Polynomial:
        """`p` without its common literal factor and the shared atoms that are positive and in every term."""
        if not p:
            return p
        divisor = math.gcd(*p.values())
        p = {m: c // divisor for m, c in p.items()}
        for a in next(iter(p)):
            if self.is_shared(a) and self.premises.term((a,)).low >= 1 and all(a in m for m in p):
                p = {without(m, a): c for m, c in p.items()}
        return p

    def _split_digit(self, p: Polynomial, m: Monomial) -> None:
        """p = a * n + l, where l is the symbol of `m` and n its range."""
        if len(m) != 1 or p[m] != 1:
            return
        symbol = self._ranged(m[0])
        if symbol is None or symbol.bound is None:
            return
        base = self.premises.form(symbol.bound)
        if len(base) != 1 or not all(self.is_shared(a) for n in base for a in n):
            return
        ((factors, scale),) = base.items()
        digits: dict[Monomial, int] = {}
        for n, c in p.items():
            if n == m:
                continue
            if c % scale or any(n.count(a) < factors.count(a) for a in factors):
                return
            digits[without(n, *factors)] = c // scale
        self._agree(m[0])
        self.known.setdefault(key(digits), digits)

    def _ranged(self, index: int) -> Symbol | None:
        """The block index or lane that an atom is, if it varies."""
        a = self.premises.forms.atoms[index]
        if a.op != "sym" or a.symbols[0].kind not in (Kind.BLOCK, Kind.LANE):
            return None
        return a.symbols[0]

    def _join_divisions(self) -> None:
        """Quotient and remainder of one division by something shared and positive give the dividend."""
        parts: dict[tuple[Key, Key], dict[str, Polynomial]] = {}
        for index in self.atoms:
            a = self.premises.forms.atoms[index]
            if a.op in ("floordiv", "mod"):
                x, d = a.args[0], self._without_ones(a.args[1])
                parts.setdefault((key(x), key(d)), {})[a.op] = x
                shared = all(self.is_shared(i) for m in d for i in m)
                if not shared or self.premises.interval(d).low < 1:
                    continue
                whole = a.op == "floordiv" and self.premises.interval(d).high <= 1
                if whole or len(parts[key(x), key(d)]) == 2 or (a.op == "mod" and self._has_quotient(x, d)):
                    self.known.setdefault(key(x), x)

    def _without_ones(self, d: Polynomial) -> Polynomial:
        """A divisor without the factors that are 1: it has the same value."""
        if len(d) != 1:
            return d
        ((m, c),) = d.items()
        return {tuple(a for a in m if self.premises.term((a,)) != _ONE): c}

    def _has_quotient(self, x: Polynomial, d: Polynomial) -> bool:
        """Whether x // d is agreed, written as y // (a * d) where x is y // a."""
        index = single(x)
        inner = None if index is None else self.premises.forms.atoms[index]
        if inner is None or inner.op != "floordiv":
            return False
        y, a = inner.args
        return any(
            atom.op == "floordiv"
            and key(atom.args[0]) == key(y)
            and key(self._without_ones(atom.args[1])) == key(self._without_ones(times(a, d)))
            for atom in map(self.premises.forms.atoms.__getitem__, self.atoms)
        )
