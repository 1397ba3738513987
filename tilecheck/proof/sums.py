"""Goals that follow from premises by adding some of them up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from tilecheck.ir.expr import Expr
from tilecheck.proof.clipped import below_ends
from tilecheck.proof.counted import below_counts
from tilecheck.proof.linear import postorder
from tilecheck.proof.nested import Quotient, below_quotients, is_count
from tilecheck.proof.polynomial import (
    UNIT,
    Key,
    Monomial,
    Polynomial,
    combine,
    constant,
    divides,
    key,
    monomial,
    scaled,
    single,
    times,
    without,
)
from tilecheck.proof.premises import Premises
from tilecheck.proof.work import NODE, TERM

_DEPTH = 5  # premises in one sum
_MOVING = 2  # and so many more that bound what moves
_RESTS = 250  # that are made in one search
_BRANCHING = frozenset({"min", "max", "ite"})
_QUOTIENTS = 8  # guesses of what one quotient stays below
_GUESS = 8  # remainders looked at for one of them: most are wrong


class Sums:
    """Searches for a goal p >= 0 as a sum of premises with positive factors, plus what intervals show.

    Each step removes one term of p that is not bounded from below, with a premise q in which that monomial
    has a coefficient of the same sign: |q_m| * p = rest + |p_m| * q, so rest >= 0 gives p >= 0.
    """

    def __init__(self, premises: Premises, nodes: int | None = None) -> None:
        self._premises = premises
        self._most = premises.patience if nodes is None else nodes

    def covers(self, p: Polynomial, depth: int = _DEPTH) -> bool:
        """Whether p >= 0 follows from at most `depth` premises, or from a few more that bound what moves: `t`
        in `t * n` has bounds in which `n` is a factor, and `n` itself is better left alone."""
        first = _Descent(self._premises, self._most, moving=True)
        if first.covers(p, depth + _MOVING if depth else 0):
            return True
        return first.is_different and _Descent(self._premises, self._most, moving=False).covers(p, depth)


class _Descent:
    """One search. Mutable: it counts, and remembers what failed and what it has read off the premises, which
    nothing changes meanwhile."""

    def __init__(self, premises: Premises, nodes: int, *, moving: bool) -> None:
        self._premises = premises
        self._most = nodes
        self._moving = moving
        self._failed: dict[Key, int] = {}
        self._removable: dict[tuple[Monomial, bool], bool] = {}
        self._found: dict[tuple[Monomial, bool], tuple[Polynomial, ...]] = {}
        self._nodes = self._rests = 0
        self.is_different = False  # whether other premises might have been tried

    def covers(self, p: Polynomial, depth: int) -> bool:
        if self._nodes > self._most or self._rests > _RESTS:
            return False
        premises = self._premises
        premises.work.spent += NODE + TERM * len(p)
        p = _tightened(p)
        least: int | float = p.get(UNIT, 0)
        negative: list[Monomial] = []
        unbounded: list[Monomial] = []
        for m, c in p.items():
            if not m:
                continue
            low = premises.least(m, c)
            if isinstance(low, float):
                if low < 0:
                    unbounded.append(m)
                continue  # no value at all, so no smaller than 0
            least += low
            if low < 0:
                negative.append(m)
        if not unbounded and least >= 0:
            return True
        self._nodes += 1
        if depth == 0:
            return False
        known = key(p)
        if self._failed.get(known, -1) >= depth:
            return False
        # A term without a lower bound has to go in any case, so one is enough, and all is in vain where one has
        # no premise that removes it; else any negative one may go.
        if unbounded:
            # What moves has to go by a premise; of the rest, what is in the way may cancel when it does.
            first = [m for m in unbounded if premises.moves(m)] or unbounded
            for m in first:
                if not self._is_removable(p, m):
                    return False
            obstacles = [max(unbounded, key=lambda m: (len(m), m))]
        else:
            obstacles = sorted(negative, key=lambda m: (-len(m), m))[:3]
        for m in obstacles:
            if self._removed(p, m, depth):
                return True
        self._failed[known] = depth
        return False

    def _removed(self, p: Polynomial, m: Monomial, depth: int) -> bool:
        if self._by_branches(p, m, depth):
            return True
        coefficient = p[m]
        found = self._candidates(m, coefficient)
        rests = [combine(scaled(p, abs(q[m])), q, -abs(coefficient)) for q in (*self._multiples(p, m), *found)]
        self.is_different |= self._premises.moves(m)
        self._rests += len(rests)
        if len(rests) > 1:
            rests.sort(key=self._left)
        return any(self.covers(rest, depth - 1) for rest in rests)

    def _candidates(self, m: Monomial, sign: int) -> tuple[Polynomial, ...]:
        found = self._found.get((m, sign > 0))
        if found is None:
            found = tuple(self._premises.candidates(m, sign, moving=self._moving))
            self._found[m, sign > 0] = found
        return found

    def _left(self, p: Polynomial) -> tuple[int, int, int]:
        """How much of p is still to be shown: first what has no lower bound and moves."""
        premises = self._premises
        open_ = moving = 0
        for m, c in p.items():
            if m and premises.least(m, c) == -math.inf:
                open_ += 1
                moving += premises.moves(m)
        return moving, open_, len(p)

    def _is_removable(self, p: Polynomial, m: Monomial) -> bool:
        known = self._removable.get((m, p[m] > 0))
        if known is None:
            branching = any(self._premises.forms.atoms[a].op in _BRANCHING for a in m)
            known = branching or bool(self._candidates(m, p[m]))
            self._removable[m, p[m] > 0] = known
        return known or next(self._multiples(p, m), None) is not None

    def _multiples(self, p: Polynomial, m: Monomial) -> Iterator[Polynomial]:
        """n - k*m >= 0, for a term n = f*m of p with f >= k >= 1, where m is not negative."""
        if p[m] > 0 or m == UNIT or self._premises.term(m).low < 0:
            return
        for n, c in p.items():
            if c > 0 and len(n) > len(m) and divides(m, n):
                least = self._premises.term(without(n, *m)).low
                if isinstance(least, int) and least >= 1:
                    yield {n: 1, m: -least}

    def _by_branches(self, p: Polynomial, m: Monomial, depth: int) -> bool:
        """A minimum, maximum or conditional is one of its branches: enough that each of them will do, also as
        a factor. Of a minimum that is subtracted, times what is not negative, one is enough: it is no larger
        than any. So it is of a maximum that is added."""
        for index in dict.fromkeys(m):
            a = self._premises.forms.atoms[index]
            if a.op not in _BRANCHING:
                continue
            rest = {n: c for n, c in p.items() if n != m}
            factor = without(m, index)
            rests = [combine(rest, times(branch, monomial(factor)), p[m]) for branch in a.args]
            helps = a.op == ("min" if p[m] < 0 else "max") and self._premises.term(factor).low >= 0
            if helps:
                rests.sort(key=self._left)
            if (any if helps else all)(self.covers(r, depth - 1) for r in rests):
                return True
        return False


def _tightened(p: Polynomial) -> Polynomial:
    """p / g rounded down, g the divisor of all but the literal: g*x + c >= 0 exactly when x + c // g >= 0."""
    divisor = 0
    for m, c in p.items():
        if m:
            divisor = math.gcd(divisor, c)
            if divisor == 1:
                return p
    if not divisor:
        return p
    return {m: c // divisor for m, c in p.items() if c // divisor}


def bound_quotients(premises: Premises, goal: Expr) -> bool:
    """Add what follows of the quotients q = x // d in `goal` and is not seen by adding premises up; whether
    anything was.

    1 <= d      where d is a minimum, maximum or conditional all branches of which are at least 1
    0 <= q      where 1 <= d and 0 <= x
    a*q < e     where 1 <= d = a*b, 1 <= b and x < b*e. Sound because b*a*q <= x < b*e; and where b is a
                minimum, maximum or conditional, b*e is one of its branches times e: enough that x is below each
    v < n       where v is `x if x < n else o` and o < n (`clipped`)
    i < e       where e is a number of tiles and i one of them (`counted`)
    q < e       where e is a quotient of launch values or looked-up numbers, by what `nested` says
    q <= p      where p = y // d, 1 <= d and x <= y: floor division by a positive number keeps the order
    """
    within = _atoms(premises, goal)
    counted = [*below_counts(premises), *below_ends(premises, within, Sums(premises).covers)]
    for below in counted:
        premises.learn(below)
    within = _atoms(premises, goal)
    if not any(premises.forms.atoms[index].op == "floordiv" for index in within):
        return bool(counted)
    found = _below_others(premises, within) or bool(counted)
    found = _bound_known(premises, within) or found
    if _positive_divisors(premises, within):
        _bound_known(premises, within)
        found = True
    return _compared(premises, within) or found


def _atoms(premises: Premises, goal: Expr) -> frozenset[int]:
    """The atoms that the goal is made of, and those within them."""
    found: dict[int, None] = {}
    todo = [premises.form(node) for node in postorder([goal]) if not node.is_bool]
    while todo:
        fresh = [a for m in todo.pop() for a in m if a not in found]
        found.update(dict.fromkeys(fresh))
        todo += [p for a in fresh for p in premises.forms.atoms[a].args]
    return frozenset(found)


def _bound_known(premises: Premises, within: frozenset[int]) -> bool:
    """For the quotients by what is known to be positive."""
    found = False
    guess = Sums(premises, _GUESS)
    for q, x, d in [quotient for quotient in premises.quotients() if quotient[0] in within]:
        if premises.term((q,)).low < 0 and Sums(premises).covers(x):
            premises.learn({(q,): 1})
            found = True
        tried = 0
        for a, b, share in dict.fromkeys(_shares(premises, q, d)):
            e = dict(share)
            below = combine(combine(e, constant(-1)), times(dict(a), {(q,): 1}), -1)
            rest = combine(constant(-1), x, -1)
            branches = _branches(premises, dict(b))
            if below in premises.inequalities or premises.low(below) >= 0:
                continue
            tried += 1
            if tried > _QUOTIENTS:
                break
            if all(guess.covers(combine(times(branch, e), rest)) for branch in branches):
                premises.learn(below)
                found = True
    return found


def _below_others(premises: Premises, within: frozenset[int]) -> bool:
    """Between quotients by two divisors, one of which is a quotient itself or divides one."""
    everywhere = list(premises.quotients())
    known = [quotient for quotient in everywhere if quotient[0] in within]
    counts = [quotient for quotient in everywhere if is_count(premises, quotient)]
    moving = [quotient for quotient in known if premises.moves((quotient[0],)) and quotient not in counts]
    still = [*(quotient for quotient in known if not premises.moves((quotient[0],))), *counts]
    found = False
    for quotient in moving:
        for less, _ in _proved_below(premises, quotient, still):
            premises.learn(less)
            found = True
    return found


def _proved_below(
    premises: Premises, quotient: Quotient, others: Iterable[Quotient]
) -> Iterator[tuple[Polynomial, int]]:
    """The others that a quotient is less than: a polynomial that is not negative, and the atom of the other."""
    for less, enough, other in below_quotients(premises, quotient, others):
        if Sums(premises, _GUESS).covers(enough):
            yield less, other


def below_counts_of(premises: Premises, value: Expr) -> Iterator[tuple[int, int]]:
    """The quotients in `value` that are less than a number of blocks that is looked up, as pairs of atoms."""
    within = _atoms(premises, value)
    everywhere = list(premises.quotients())
    counts = [quotient for quotient in everywhere if is_count(premises, quotient)]
    for quotient in everywhere if counts else ():
        if quotient[0] in within and premises.moves((quotient[0],)) and quotient not in counts:
            yield from ((quotient[0], other) for _, other in _proved_below(premises, quotient, counts))


def _compared(premises: Premises, within: frozenset[int]) -> bool:
    """Between quotients by one positive divisor, one of them a launch value: the order of what is divided."""
    found = False
    tried = 0
    known = tuple(premises.quotients())
    for p, y, e in known:
        for q, x, d in known:
            if q not in within or p == q or premises.moves((p,)) or not premises.moves((q,)) or d != e:
                continue
            above: Polynomial = {(p,): 1, (q,): -1}
            if above in premises.inequalities or premises.low(d) < 1:
                continue
            tried += 1
            if tried > _QUOTIENTS:
                return found
            if Sums(premises).covers(combine(y, x, -1)):
                premises.learn(above)
                found = True
    return found


def _positive_divisors(premises: Premises, within: frozenset[int]) -> bool:
    found = False
    for a in [premises.forms.atoms[index] for index in sorted(within)]:
        if a.op not in ("floordiv", "mod") or premises.low(a.args[1]) >= 1:
            continue
        branches = _branches(premises, a.args[1])
        if len(branches) < 2:
            continue
        if all(Sums(premises).covers(combine(branch, constant(-1))) for branch in branches):
            premises.learn(combine(a.args[1], constant(-1)))
            found = True
    return found


def _branches(premises: Premises, d: Polynomial) -> tuple[Polynomial, ...]:
    """What `d` may be equal to."""
    index = single(d)
    a = None if index is None else premises.forms.atoms[index]
    return a.args if a is not None and a.op in ("min", "max", "ite") else (d,)


def _shares(premises: Premises, q: int, d: Polynomial) -> Iterator[tuple[Key, Key, Key]]:
    """a, b with a*b = d and e for which a premise has b*e, or a branch of b times e, with a positive factor; of
    a branch that is a sum, one of its terms times e."""
    for a, b in _splits(premises, d):
        for divisor, scale in [term for branch in _branches(premises, b) for term in branch.items()]:
            if scale < 1 or (not divisor and len(b) > 1):
                continue
            for p in premises.inequalities:
                for m, c in p.items():
                    if c > 0 and len(m) > len(divisor) and c % scale == 0 and divides(divisor, m):
                        rest = without(m, *divisor)
                        if q not in rest:
                            yield key(a), key(b), key({rest: c // scale})
                whole = _whole_share(premises, p, divisor, scale)
                if len(whole) > 1 and not any(q in rest for rest in whole):
                    yield key(a), key(b), key(whole)


def _whole_share(premises: Premises, p: Polynomial, divisor: Monomial, scale: int) -> Polynomial:
    """All that a premise has times the divisor, where some of it moves: `x < n*d - first*d` has n - first."""
    if not divisor:
        return {}
    parts = {m: c for m, c in p.items() if len(m) > len(divisor) and divides(divisor, m) and c % scale == 0}
    moves = any(premises.moves(m) and c < 0 for m, c in parts.items())
    return {without(m, *divisor): c // scale for m, c in parts.items()} if moves else {}


def _splits(premises: Premises, d: Polynomial) -> Iterator[tuple[Polynomial, Polynomial]]:
    """a and b with a*b = d and b >= 1: 1 and d, and for a product each of its factors."""
    yield constant(1), d
    if len(d) != 1:
        return
    ((m, c),) = d.items()
    for index in dict.fromkeys(m):
        if (len(m) > 1 or c > 1) and c > 0 and premises.term((index,)).low >= 1:
            yield {without(m, index): c}, {(index,): 1}
