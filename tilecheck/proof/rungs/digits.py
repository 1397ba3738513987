"""Rung "digits": equal offsets into flat memory have equal digits.

    x + row * stride + col,  0 <= col < n <= stride      equal offsets have equal rows and equal columns

Two instances that touch one element compute equal values p and q. Where one launch value f divides terms of
both, p = f*a + l and q = f*b + m. If 0 <= l < f and 0 <= m < f, then a = p // f = q // f = b, and so l = m: two
more pairs of equal values, which are split further. What rung "provenance" concludes from values that both
instances compute alike does the rest; or a pair cannot be equal, as one value is less than something shared and
the other is not (`lane` and `lane + n` for lanes below n).

Sound because each bound rests on what holds for the instance that it speaks of: for the launch, for the ranges
of its block indices and lanes, what the obligation assumes of it, and that its access happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from itertools import product
from math import gcd

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import TRUE, ZERO, Expr, add, all_of, conjuncts, le, lt, mul, walk
from tilecheck.ir.kernel import Access
from tilecheck.proof.algebra.linear import meaning
from tilecheck.proof.algebra.polynomial import (
    UNIT,
    Key,
    Monomial,
    Polynomial,
    combine,
    constant,
    divides,
    key,
    times,
    without,
)
from tilecheck.proof.goals.question import Question
from tilecheck.proof.obligation import Disjoint, Holds
from tilecheck.proof.premises.linear_combinations import bound_quotients
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.rewrite.equal_lanes import with_equal_lanes
from tilecheck.proof.rungs.entail import follows
from tilecheck.proof.rungs.equal_dividends import dividends
from tilecheck.proof.rungs.provenance import Agreed, Meeting, meeting_of

_Pair = tuple[Polynomial, Polynomial]

_DEPTH = 4  # premises that bound one digit
_SPLITS = 32  # that are looked at for one goal
_PATIENCE = 30  # remainders that one search looks at: bounds of digits are found early, and most tried are none
_FEW = 3  # factors that are tried in any order


def decide(question: Question) -> bool:
    found = equalities(question)
    if found is not None and found.is_refuted:
        return True
    goal = question.obligation.goal
    renamed = with_equal_lanes(goal) if isinstance(goal, Disjoint) else None
    found = None if renamed is None else _equalities(question, renamed)
    return found is not None and found.is_refuted


@dataclass(frozen=True, slots=True)
class Equalities:
    """What two instances that touch one element agree on, `pairs` of values that are equal then, the first
    computed by the instance of the first access, and whether that cannot be (`is_refuted`)."""

    meeting: Meeting
    pairs: tuple[tuple[Expr, Expr], ...]
    is_refuted: bool
    _equal: _Equal

    def are_refuted_by(self, *values: Expr) -> bool:
        """Whether they cannot be if the instances agree on more `values`, which both compute alike."""
        agreed = self.meeting.agreed.copy()
        for value in values:
            agreed.learn(agreed.premises.form(value), agreed.premises.form(value))
        return _concluded(replace(self.meeting, agreed=agreed), self._equal.under(agreed)).is_refuted


def equalities(question: Question) -> Equalities | None:
    """None where equal elements do not mean equal coordinates."""
    if "equalities" not in question.found:
        goal = question.obligation.goal
        question.found["equalities"] = _equalities(question, goal) if isinstance(goal, Disjoint) else None
    found: Equalities | None = question.found["equalities"]
    return found


def _equalities(question: Question, goal: Disjoint) -> Equalities | None:
    meeting = meeting_of(goal, question)
    if meeting is None:
        return None
    form = meeting.agreed.premises.form
    equal = _Equal(question, goal, meeting.agreed, [(form(one), form(two)) for one, two in meeting.places])
    return _concluded(meeting, equal)


def _concluded(meeting: Meeting, equal: _Equal) -> Equalities:
    while True:
        meeting.agreed.conclude()
        if meeting.is_one_instance or equal.is_impossible():
            return Equalities(meeting, (), True, equal)
        if not (equal.split() or equal.drop_divisor() or equal.join() or equal.squeeze()):
            return Equalities(meeting, tuple(equal.parts()), False, equal)


@dataclass
class _Equal:
    """Values that two instances compute and that are equal. Mutable: it grows as they are split."""

    question: Question
    goal: Disjoint
    agreed: Agreed
    pairs: list[_Pair]
    _tried: dict[tuple[Key, Key, Key], None] = field(default_factory=dict)
    _digits: dict[tuple[Access, Key, Key], bool] = field(default_factory=dict)
    _premises: dict[Access, Premises] = field(default_factory=dict)
    _replaced: dict[tuple[Key, Key], None] = field(default_factory=dict)  # pairs that others say
    _small: dict[int, None] = field(default_factory=dict)  # remainders that were looked at
    _squeezed: dict[Expr, None] = field(default_factory=dict)  # terms of guards that were looked at
    _fixed: dict[tuple[Access, Key, Key], None] = field(default_factory=dict)  # values that were looked at
    _inside: dict[int, frozenset[int]] | None = None

    def under(self, agreed: Agreed) -> _Equal:
        """The same values, to be split where more is agreed on; digits stay digits."""
        known = {digit: True for digit, is_shown in self._digits.items() if is_shown}
        fresh = replace(self, agreed=agreed, pairs=list(self.pairs), _tried={}, _squeezed={}, _fixed={})
        return replace(fresh, _digits=known)

    def parts(self) -> Iterator[tuple[Expr, Expr]]:
        """The pairs that were not split."""
        for one, two in self.pairs:
            if (key(one), key(two)) not in self._replaced:
                yield self._meaning(one), self._meaning(two)

    def drop_divisor(self) -> bool:
        """`x % d` is x where 0 <= x < d: another value that both compute alike."""
        for index in list(self.agreed.atoms):
            a = self.agreed.premises.forms.atoms[index]
            if a.op != "mod" or index in self._small or key(a.args[0]) in self.agreed.known:
                continue
            self._small[index] = None
            x, d = (self._meaning(part) for part in a.args)
            small = all_of(le(ZERO, x), lt(x, d))
            if x.op == "floordiv":  # y // n < d exactly where y < n * d, for a positive n
                y, n = x.args
                small = all_of(le(1, n), le(ZERO, y), lt(y, mul(n, d)))
            if all(
                follows(small, self._known_of(access), _DEPTH) for access in (self.goal.first, self.goal.second)
            ):
                self.agreed.learn(a.args[0], a.args[0])
                return True
        return False

    def join(self) -> bool:
        """Quotients and remainders by what is positive for the instances give what was divided."""
        known = self._known_of(self.goal.first)
        found = list(dividends(self.agreed, lambda goal: follows(goal, known, _DEPTH)))
        for y in found:
            self.agreed.learn(y, y)
        return bool(found)

    def squeeze(self) -> bool:
        """Where both guards say `a <= b`, and `b <= a` follows for each instance, b - a is 0 for both: in
        `last <= i` what may differ between them is minus what is shared."""
        first, second = self.goal.first, self.goal.second
        others = set(conjuncts(second.guard))
        for term in conjuncts(first.guard):
            if term not in others or term.op not in ("le", "lt") or term in self._squeezed:
                continue
            self._squeezed[term] = None
            gap = self.agreed.premises.forms.difference(term.args[1], term.args[0])
            moving = {m: c for m, c in gap.items() if not all(map(self.agreed.is_shared, m))}
            back = le(term.args[1], add(term.args[0], 1 if term.op == "lt" else 0))
            if moving and all(self._holds(back, self._known_of(access)) for access in (first, second)):
                self.agreed.learn(moving, moving)
                return True
        return False

    def split(self) -> bool:
        """Split one pair into two; whether that was possible. What was split is looked at last."""
        whole = [pair for pair in self.pairs if (key(pair[0]), key(pair[1])) in self._replaced]
        parts = [pair for pair in self.pairs if pair not in whole]
        for one, two in [*parts[::-1], *((p, p) for p in self.agreed.known.values()), *whole]:
            for f, (digit, other), highs in self._ways(one, two):
                tried = key(digit), key(other), key(f)
                if tried in self._tried or len(self._tried) >= _SPLITS:
                    continue
                self._tried[tried] = None
                if self._is_digit(digit, f, self.goal.first) and self._is_digit(other, f, self.goal.second):
                    self._replaced[key(one), key(two)] = None
                    for pair in (highs, (digit, other)):
                        self.pairs.append(pair)
                        self.agreed.learn(*pair)
                    return True
        return False

    def _ways(self, one: Polynomial, two: Polynomial) -> Iterator[tuple[Polynomial, _Pair, _Pair]]:
        """Factors f with what may be the digits of two equal values, and what f is then multiplied by: each
        value is `f * high + digit`, and something that is added to both. What f divides of that stays with
        the high parts, a part of which may count down from it."""
        p, q = self._without_shared(one, two)
        same = combine(one, p, -1)
        for f in self._factors(p):
            for (high, low), (other_high, other_low) in product(self._apart(p, f), self._apart(q, f)):
                if high and low and other_high:
                    for more, left in self._shifts(same, f, (*low.values(), *other_low.values())):
                        digits = combine(low, more), combine(other_low, more)
                        yield f, digits, (combine(high, left), combine(other_high, left))

    def _apart(self, p: Polynomial, f: Polynomial) -> Iterator[_Pair]:
        """High and low parts of p, `p = f * high + low`: those of its terms that f divides and the others; and,
        where something counts down, what is shared of the first ones with the others: `n * f - 1 - k` is
        `(n - 1) * f + (f - 1 - k)`, though nothing may be added to the other value."""
        high, low = _divided(p, f)
        yield high, low
        shared = {m: c for m, c in high.items() if all(map(self.agreed.is_shared, m))}
        if shared and any(c < 0 for c in low.values()):
            yield combine(high, shared, -1), combine(low, times(f, shared))

    def _shifts(self, same: Polynomial, f: Polynomial, terms: tuple[int, ...]) -> Iterator[_Pair]:
        """What is added to both digits alike before they are looked at: nothing, or launch values, as a mask
        may speak of the sum. What counts down does so from something shared, (n - 1 - k) * s + ..., or from the
        end of a part, (i * n + n - 1 - k) * s, or from one place before an end that is not. Each with what is
        added to both high parts, which are as equal with it."""
        high, low = _divided(same, f)
        if any(c < 0 for c in terms):
            yield same, {}
            if high:
                yield combine(low, f), combine(high, constant(1), -1)
            yield constant(-1), high  # the last place before an end: `end - 1 - k`
            return
        yield {}, high
        _, part = _divided({m: c for m, c in same.items() if not self.agreed.premises.moves(m)}, f)
        if part:
            yield part, high

    def is_impossible(self) -> bool:
        """Whether two values that are to be equal lie on either side of something shared, or never differ by a
        multiple of what divides all their terms: `2 * x` and `2 * y + 1`; or one is a value that a guard fixes
        the other to and that it does not have, as block n - 1 writes where the next one would."""
        first, second = self.goal.first, self.goal.second
        for one, two in self.pairs:
            if key(one) == key(two):
                continue
            p, q = self._without_shared(one, two)
            if _are_apart(p, q):
                return True
            for below, its, above, other in ((p, first, q, second), (q, second, p, first)):
                if any(self._differs(below, value, its) for value in self._values(above, other)):
                    return True
                limit = {m: c for m, c in above.items() if all(map(self.agreed.is_shared, m))}
                tried = key(below), key(above), key(limit)
                if not limit or tried in self._tried or len(self._tried) >= _SPLITS:
                    continue
                self._tried[tried] = None
                value, end, rest = self._meaning(below), self._meaning(limit), self._meaning(above)
                if follows(lt(value, end), self._known_of(its), _DEPTH) and follows(
                    le(end, rest), self._known_of(other), _DEPTH
                ):
                    return True
        return False

    def _values(self, p: Polynomial, access: Access) -> Iterator[Polynomial]:
        """What p is, by guards that fix it, or it but for something shared, to something shared."""
        form = self.agreed.premises.form
        for term in conjuncts(access.happens):
            if term.op != "eq" or any(e.is_bool or e.op == "read" for e in walk(*term.args)):
                continue
            for e, to in (term.args, term.args[::-1]):
                value = combine(form(to), combine(p, form(e), -1))
                if all(self.agreed.is_shared(a) for m in value for a in m):
                    yield value

    def _differs(self, p: Polynomial, value: Polynomial, access: Access) -> bool:
        """Whether p is never that value for an instance that performs the access."""
        tried = access, key(p), key(value)
        if tried in self._fixed or len(self._fixed) >= _SPLITS:
            return False
        self._fixed[tried] = None
        known = self._known_of(access)
        one, other = self._meaning(p), self._meaning(value)
        return self._holds(lt(one, other), known) or self._holds(lt(other, one), known)

    def _without_shared(self, p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Both without the terms that stand in both and have one value for both instances."""
        same = {m: c for m, c in p.items() if q.get(m) == c and all(map(self.agreed.is_shared, m))}
        return combine(p, same, -1), combine(q, same, -1)

    def _factors(self, p: Polynomial) -> Iterator[Polynomial]:
        """What is shared in a term that is not: what spans most of the others first, then what divides most
        terms."""
        found: dict[Key, Polynomial] = {}
        sums: dict[Monomial, dict[Monomial, int]] = {}  # what each value that is not shared is multiplied by
        for m, c in p.items():
            shared = tuple(a for a in m if self.agreed.is_shared(a))
            if len(shared) < len(m):
                sums.setdefault(without(m, *shared), {})[shared] = c
                if (shared, abs(c)) != ((), 1):
                    found[key({shared: abs(c)})] = {shared: abs(c)}
        found.update((key(f), f) for f in sums.values() if len(f) > 1)
        spans = self._spans() if len(found) > _FEW else {}

        def place(f: Polynomial) -> tuple[int, int]:
            return -max((len(spans.get(a, ())) for m in f for a in m), default=0), len(_divided(p, f)[1])

        yield from sorted(found.values(), key=place)

    def _spans(self) -> dict[int, frozenset[int]]:
        """For each stride those that lie inside it, by what is known of the launch: `n * s <= t`. Only a guess
        of what to try first: each digit is proved."""
        if self._inside is None:
            inside: dict[int, set[int]] = {}
            for q in self.agreed.premises.inequalities:
                outer = [m[0] for m, c in q.items() if c > 0 and len(m) == 1]
                inner = [a for m, c in q.items() if c < 0 and len(m) > 1 for a in m]
                if len(outer) == 1 and outer[0] not in inner:
                    inside.setdefault(outer[0], set()).update(inner)
            for _ in inside:
                for found in inside.values():
                    found.update(*(inside[a] for a in list(found) if a in inside))
            self._inside = {a: frozenset(found) for a, found in inside.items()}
        return self._inside

    def _is_digit(self, p: Polynomial, f: Polynomial, access: Access) -> bool:
        """0 <= p < f for an instance that performs the access. What is found is learned: of `h*s_h + n*s_n`
        that `n*s_n` is below s_h, before that the whole is below s_b."""
        asked = access, key(p), key(f)
        if asked in self._digits or len(self._digits) >= _SPLITS:
            return self._digits.get(asked, False)
        self._digits[asked] = False  # until it is shown
        known = self._known_of(access)
        for g in self._factors(p):
            high, low = _divided(p, g)
            if high and low and self._is_digit(low, g, access):
                break
        value, limit = self._meaning(p), self._meaning(f)
        if self._holds(le(ZERO, value), known) and self._holds(lt(value, limit), known):
            known.learn(combine(combine(known.form(limit), known.form(value), -1), constant(-1)))
            self._digits[asked] = True
        return self._digits[asked]

    def _holds(self, goal: Expr, known: Premises) -> bool:
        """Whether it follows, if need be from what quotients stay below: `b // n * B + l < n * B`."""
        if follows(goal, known, _DEPTH):
            return True
        return bound_quotients(known, goal) and follows(goal, known, _DEPTH)

    def _meaning(self, p: Polynomial) -> Expr:
        return meaning(p, self.agreed.premises.forms.meanings())

    def _known_of(self, access: Access) -> Premises:
        found = self._premises.get(access)
        if found is None:
            goal = Holds(TRUE, access.happens)
            found = self._premises[access] = self.question.premises_of(goal)
            found.patience = _PATIENCE
        return found


def _are_apart(p: Polynomial, q: Polynomial) -> bool:
    """Whether the literals in them differ by no multiple of what divides all other terms of both."""
    divisor = gcd(*(c for m, c in (*p.items(), *q.items()) if m != UNIT))
    return divisor > 1 and (p.get(UNIT, 0) - q.get(UNIT, 0)) % divisor != 0


def _divided(p: Polynomial, f: Polynomial) -> tuple[Polynomial, Polynomial]:
    """a and l with p = f*a + l, where each term of a gives terms of p: all of them, for an f that is a sum."""
    (factors, scale), *_ = f.items()
    high: dict[Monomial, int] = {}
    low = p
    for m, c in p.items():
        if c % scale or not divides(factors, m):
            continue
        part = {without(m, *factors): c // scale}
        whole = times(part, f)
        if all(low.get(n) == b for n, b in whole.items()):
            high.update(part)
            low = combine(low, whole, -1)
    return high, low
