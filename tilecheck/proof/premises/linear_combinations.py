"""Goals that follow from premises by adding some of them up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from tilecheck.ir.expr import Expr
from tilecheck.proof.algebra.linear import postorder
from tilecheck.proof.algebra.polynomial import (
    UNIT,
    Key,
    Monomial,
    Polynomial,
    atom,
    combine,
    constant,
    divides,
    key,
    literal,
    monomial,
    scaled,
    single,
    split_multiples,
    times,
    without,
)
from tilecheck.proof.premises.clamps import below_ends
from tilecheck.proof.premises.nested_quotients import Quotient, below_quotients, is_count
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.premises.tile_counts import below_counts
from tilecheck.proof.solver.work import NODE, TERM

_DEPTH = 5  # premises in one sum
_MOVING = 2  # and so many more that bound what moves
_RESTS = 250  # that are made in one search
_BRANCHING = frozenset({"min", "max", "ite"})
_QUOTIENTS = 8  # guesses of what one quotient stays below
_FEW = 3  # terms of an inequality that says where a loop ends
_MINIMA = 4  # that are looked at
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
        return self._answer(p, depth, by_moving=False)

    def covers_by_moving(self, p: Polynomial, depth: int = _DEPTH) -> bool:
        """The same by another order: what moves goes first, whatever is in the way besides."""
        return self._answer(p, depth, by_moving=True)

    def _answer(self, p: Polynomial, depth: int, *, by_moving: bool) -> bool:
        premises = self._premises
        answers = premises.forms.answers
        question = (premises.state, key(p), depth, self._most, by_moving)
        found = answers.found.get(question)
        if found is None:
            found = self._by_moving(p, depth) if by_moving else self._found(p, depth)
            answers.keep(question, found)
        else:
            premises.work.spent += NODE
        return found

    def _found(self, p: Polynomial, depth: int) -> bool:
        first = _Descent(self._premises, self._most, moving=True)
        if first.covers(p, depth + _MOVING if depth else 0):
            return True
        return first.is_different and _Descent(self._premises, self._most, moving=False).covers(p, depth)

    def _by_moving(self, p: Polynomial, depth: int) -> bool:
        return _Descent(self._premises, self._most, moving=True, moving_first=True).covers(p, depth + _MOVING)


class _Descent:
    """One search. Mutable: it counts, and remembers what failed and what it has read off the premises, which
    nothing changes meanwhile."""

    def __init__(self, premises: Premises, nodes: int, *, moving: bool, moving_first: bool = False) -> None:
        self._premises = premises
        self._most = nodes
        self._moving = moving
        self._moving_first = moving_first
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
            obstacles = [max(first if self._moving_first else unbounded, key=lambda m: (len(m), m))]
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
        """n - k*m >= 0, for a term n = f*m of p with f >= k >= 1, where m is not negative. So for a sum of such
        factors: (f + g - k)*m >= 0 where f*m and g*m are terms of p and f + g >= k."""
        if p[m] > 0 or m == UNIT or self._premises.term(m).low < 0:
            return
        for n, c in p.items():
            if c > 0 and len(n) > len(m) and divides(m, n):
                factor = without(n, *m)
                least = self._premises.term(factor).low
                if isinstance(least, int) and least >= 1:
                    yield {n: 1, m: -least}
                    continue
                for q in self._premises.at_least_one(factor):
                    whole = times(q, monomial(m))
                    if all(b < 0 or p.get(t, 0) > 0 for t, b in whole.items()):
                        yield whole

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
    v < n       where v is `x if x < n else o` and o < n (`clamps`)
    i < e       where e is a number of tiles and i one of them (`tile_counts`)
    q < e       where e is a quotient of launch values or looked-up numbers, by what `nested_quotients` says
    q <= p      where p = y // d, 1 <= d and x <= y: floor division by a positive number keeps the order
    q <= p - k  where p = y // d, 1 <= d and x <= y - d*k, as (y - d*k) // d = p - k
    q <= y      where 1 <= d and x <= d*y + r with r < d
    q < x       where d is a literal, 2 <= d and 1 <= x. Sound because q >= x would make x >= d*q >= 2*x, and
                so x <= 0
    a <= q < b  where q = (a + b + c) // 2 and c is 0, for a < b: 2*q <= a + b <= 2*b - 1, and 2*a <= a + b.
                With a literal c, or where a is not seen to be below b, as much as the same sums give
    n <= m      where m is a minimum all branches of which are at least n, for n = 1 or 0
    """
    within = _atoms(premises, goal)
    counted = [*below_counts(premises), *below_ends(premises, within, Sums(premises).covers)]
    counted += _least_minima(premises)
    for below in counted:
        premises.learn(below)
    within = _atoms(premises, goal)
    if not any(premises.forms.atoms[index].op == "floordiv" for index in within):
        return bool(counted)
    found = _below_others(premises, within) or bool(counted)
    found = _below_dividends(premises, within) or found
    found = _half_way(premises, within) or found
    found = _steps_below(premises) or found
    found = _bound_known(premises, within) or found
    if _positive_divisors(premises, within):
        _bound_known(premises, within)
        found = True
    return _compared(premises, within | _ends(premises, within)) or found


def _atoms(premises: Premises, goal: Expr) -> frozenset[int]:
    """The atoms that the goal is made of, and those within them."""
    found: dict[int, None] = {}
    todo = [premises.form(node) for node in postorder([goal]) if not node.is_bool]
    while todo:
        fresh = [a for m in todo.pop() for a in m if a not in found]
        found.update(dict.fromkeys(fresh))
        todo += [p for a in fresh for p in premises.forms.atoms[a].args]
    return frozenset(found)


def _ends(premises: Premises, within: frozenset[int]) -> frozenset[int]:
    """The quotients that premises compare moving atoms with: where loops end, `j * S < i * B // S * S`."""
    moving = {a for a in within if premises.moves((a,))}
    found: set[int] = set()
    for p in premises.inequalities:
        atoms = {a for m in p for a in m}
        if len(p) <= _FEW and moving & atoms:
            found |= {
                a for a in atoms - within if premises.forms.atoms[a].op == "floordiv" and premises.moves((a,))
            }
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


def _least_minima(premises: Premises) -> Iterator[Polynomial]:
    """What minima are at least that are divided: `min(n - i * B, B) // 2`, and `cdiv(min(S, n), B)`."""
    atoms = premises.forms.atoms
    inside = (m[0] for a in atoms if a.op == "floordiv" for m in a.args[0] if len(m) == 1)
    minima = [index for index in dict.fromkeys(inside) if atoms[index].op == "min"]
    for index in minima[:_MINIMA]:
        if premises.term((index,)).low >= 1:
            continue
        for least in (1, 0):
            if all(Sums(premises).covers(combine(branch, constant(-least))) for branch in atoms[index].args):
                yield combine(atom(index), constant(-least))
                break


def _below_dividends(premises: Premises, within: frozenset[int]) -> bool:
    """Quotients by literals of what is positive, also under the name of a conditional that is the quotient; of
    a minimum, below each of its branches, as it is no larger than any."""
    found = False
    for index in sorted(within):
        a = premises.forms.atoms[index]
        divisor = literal(a.args[1]) if a.op == "floordiv" else None
        if divisor is None or divisor < 2 or not premises.moves((index,)) or premises.low(a.args[0]) < 1:
            continue
        whole = single(a.args[0])
        minimum = None if whole is None else premises.forms.atoms[whole]
        branches = minimum.args if minimum is not None and minimum.op == "min" else (a.args[0],)
        for name in (index, *premises.names_of(index)):
            for x in branches:
                below = combine(combine(x, constant(-1)), {(name,): 1}, -1)
                if below not in premises.inequalities:
                    premises.learn(below)
                    found = True
    return found


def _half_way(premises: Premises, within: frozenset[int]) -> bool:
    """Halves of a sum of two ends, where one end is seen to be at most the other; also as what a conditional
    that is the half of their difference makes of it, as `a + (b - a) // 2` is `(a + b) // 2`."""
    found = False
    for index in sorted(within):
        a = premises.forms.atoms[index]
        if a.op != "floordiv" or literal(a.args[1]) != 2 or not premises.moves((index,)):
            continue
        ends = [m for m in a.args[0] if m != UNIT]
        rest = a.args[0].get(UNIT, 0)
        if len(ends) != 2 or any(a.args[0][m] != 1 for m in ends):
            continue
        for low, high in (ends, ends[::-1]):
            for apart in (1, 0):
                if not Sums(premises).covers(combine({high: 1, low: -1}, constant(-apart))):
                    continue
                # 2*q <= 2*high - apart + rest, and 2*q >= 2*low + apart + rest - 1
                most = combine({high: 1}, constant((rest - apart) // 2))
                least = combine({low: 1}, constant((apart + rest) // 2))
                for name in (atom(index), *premises.sums_with(index)):
                    for bound in (combine(most, name, -1), combine(name, least, -1)):
                        if bound not in premises.inequalities:
                            premises.learn(bound)
                            found = True
                break
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
            more = {**above, UNIT: -1}  # what is less is not more: a weaker bound only leads a sum astray
            if above in premises.inequalities or more in premises.inequalities or premises.low(d) < 1:
                continue
            tried += 1
            if tried > _QUOTIENTS:
                return found
            if Sums(premises).covers(combine(y, x, -1)):
                premises.learn(above)
                found = True
    return found


def _steps_below(premises: Premises) -> bool:
    """Quotients of minima, of which a branch is apart from another dividend by steps of the divisor, or is made
    of such steps; also under the name of a conditional that is the quotient."""
    found = False
    known = tuple(premises.quotients())
    for q, x, d in known:
        if not premises.moves((q,)):
            continue
        bounds: list[Polynomial] = []
        for larger in _by_one_branch(premises, x):
            bounds += _whole_quotient(premises, larger, d)
            for p, y, e in known:
                if d != e or premises.moves((p,)):
                    continue
                steps, rest = split_multiples(combine(y, larger, -1), d)
                if any(map(premises.moves, steps)) and Sums(premises).covers(rest):
                    # A quotient z <= k may stand for k, as p - k - q >= 0 gives p - z - q >= 0.
                    less = [z for z, _, _ in known if combine(steps, atom(z), -1) in premises.inequalities]
                    bounds += [combine(atom(p), k, -1) for k in (steps, *map(atom, less))]
        for bound in bounds:
            for name in (q, *premises.names_of(q)):
                above = combine(bound, atom(name), -1)
                if above not in premises.inequalities:
                    premises.learn(above)
                    found = True
    return found


def _by_one_branch(premises: Premises, x: Polynomial) -> Iterator[Polynomial]:
    """What is at least x: x with a branch of a minimum in its place, which is no larger: `min(S, n - i * d)` is
    at most n - i * d."""
    for index in [m[0] for m, c in x.items() if len(m) == 1 and c == 1]:
        a = premises.forms.atoms[index]
        for branch in a.args if a.op == "min" else ():
            yield combine(combine(x, atom(index), -1), branch)


def _whole_quotient(premises: Premises, x: Polynomial, d: Polynomial) -> list[Polynomial]:
    """y >= x // d where x = d*y + r with r < d: the smallest that the text shows."""
    y, rest = split_multiples(x, d)
    least = combine(y, constant(-1)), combine(rest, d)  # x = d*(y - 1) + (r + d)
    for whole, r in (least, (y, rest)) if y else ():
        if premises.low(combine(combine(d, constant(-1)), r, -1)) >= 0:
            return [whole]
    return []


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
