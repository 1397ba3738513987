"""What follows from a set of assertions without a solver: intervals, and sums of inequalities.

Only comparisons are used; other assertions are remembered for literal lookup. Everything found holds for
every assignment that makes the assertions true, so it may be incomplete but not wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from tilecheck.ir.expr import Expr, conjuncts, negate
from tilecheck.proof.algebra import interval as iv
from tilecheck.proof.algebra.extrema import with_branches
from tilecheck.proof.algebra.inequalities import Row
from tilecheck.proof.algebra.interval import Interval
from tilecheck.proof.algebra.normal_form import Atom, Forms
from tilecheck.proof.algebra.polynomial import (
    UNIT,
    Key,
    Monomial,
    Polynomial,
    atom,
    combine,
    constant,
    key,
    literal,
    monomial,
    scaled,
    single,
    split_multiples,
    times,
    without,
)
from tilecheck.proof.premises.disjunctions import resolved
from tilecheck.proof.premises.divisibility import as_multiples
from tilecheck.proof.solver.work import Work

_ROUNDS = 4  # of bound propagation: bounds may creep for ever (x < y < x), and any prefix is sound
_LONGEST = 6  # products of more factors are not looked at in all their parts
_LARGE = 1 << 200  # larger bounds are forgotten
_SHARES = 8  # quotients by one divisor that are compared with each other
_NOTHING = iv.exactly(0)
_ONE = iv.exactly(1)


@dataclass
class Premises:
    """Mutable: atoms of later questions are added to the same tables."""

    forms: Forms = field(default_factory=Forms)
    facts: dict[Expr, None] = field(default_factory=dict)
    inequalities: list[Polynomial] = field(default_factory=list)  # each is >= 0
    contradict: bool = False  # nothing satisfies them all, so everything follows
    work: Work = field(default_factory=Work)  # what asking them costs
    patience: int = 80  # remainders that one search for a sum looks at
    # Of disjunctions that were looked at (`guarded_contracts`) the terms that nothing refutes.
    alternatives: dict[Expr, tuple[Expr, ...]] = field(default_factory=dict)
    _bounds: list[Interval] = field(default_factory=list)  # one for each atom of `normal_form`
    _where: dict[Monomial, list[int]] = field(default_factory=dict)
    _divisions: dict[tuple[Key, Key], dict[str, int]] = field(default_factory=dict)
    _rows: list[Row] = field(default_factory=list)  # the inequalities, as propagation reads them
    _reads: list[tuple[int, ...]] = field(default_factory=list)  # for each atom, those in its arguments
    _moving: list[bool] = field(default_factory=list)  # for each atom, whether it may differ in one launch
    _shares: dict[Key, dict[int, Polynomial]] = field(default_factory=dict)
    _apart: list[Polynomial] = field(default_factory=list)  # each is not 0
    _least: dict[Monomial, int] = field(default_factory=dict)  # lower bounds of products
    _taken: dict[int, int] = field(default_factory=dict)  # which branch a conditional is known to be
    # Changes of bounds are numbered: the last one, that of each atom, and the last before each look.
    _tick: int = 0
    _changed: list[int] = field(default_factory=list)
    _looks: dict[object, int] = field(default_factory=dict)
    # The intervals of products, as long as no bound changes.
    _products: dict[Monomial, Interval] = field(default_factory=dict)
    _products_tick: int = 0
    _number: int = 0  # says what was learned, and in which order: see `Answers`

    @classmethod
    def of(cls, assertions: Sequence[Expr]) -> Premises:
        found = cls()
        found.facts = dict.fromkeys(with_branches(c for a in assertions for c in conjuncts(a)))
        found._identify()
        for fact in list(found.facts):
            found._learn(fact)
        found._resolve()
        found._meet_atoms()
        found._propagate()
        found._define(0)
        found._separate()
        found._divide_products()
        found._compare_dividends()
        found._propagate()
        if found._apart:  # divisors that are not 0 may be positive
            found._define(0, again=True)
        return found

    def copy(self) -> Premises:
        """The same premises, to be asked about something else."""
        return replace(
            self,
            forms=self.forms.copy(),
            facts=dict(self.facts),
            alternatives=dict(self.alternatives),
            inequalities=list(self.inequalities),
            _bounds=list(self._bounds),
            _where={m: list(found) for m, found in self._where.items()},
            _divisions={d: dict(pair) for d, pair in self._divisions.items()},
            _shares={d: dict(found) for d, found in self._shares.items()},
            _apart=list(self._apart),
            _least=dict(self._least),
            _taken=dict(self._taken),
            _rows=list(self._rows),
            _reads=list(self._reads),
            _moving=list(self._moving),
            _changed=list(self._changed),
            _looks=dict(self._looks),
            _products=dict(self._products),
        )

    def form(self, e: Expr) -> Polynomial:
        """The canonical form of `e`; its atoms become known."""
        p = self.forms.of(e)
        first = len(self._bounds)
        if first < len(self.forms.atoms):
            self._meet_atoms()
            self._define(first)
        return p

    # -- questions -----------------------------------------------------------------------------------------

    @property
    def state(self) -> tuple[int, int]:
        """What was done to it since it was made: two copies of one set of premises that have the same are the
        same."""
        return self.forms.number, self._number

    def interval(self, p: Polynomial) -> Interval:
        return iv.total(p, self._ends)

    def low(self, p: Polynomial) -> iv.End:
        """The low end of its interval."""
        return iv.total_low(p, self._ends)

    def _ends(self, m: Monomial) -> Interval:
        if len(m) == 1:
            return self._bounds[m[0]]
        return self._product(m) if m else _ONE

    def term(self, m: Monomial, coefficient: int = 1) -> Interval:
        """The interval of one term."""
        return iv.scaled(self._ends(m), coefficient)

    def least(self, m: Monomial, coefficient: int) -> iv.End:
        """The low end of one term other than a literal."""
        value = self._bounds[m[0]] if len(m) == 1 else self._product(m)
        end = value[0] if coefficient > 0 else value[1]
        if isinstance(end, float):
            return end if coefficient > 0 else -end
        return end * coefficient

    def _product(self, m: Monomial) -> Interval:
        if self._products_tick != self._tick:
            self._products = {}
            self._products_tick = self._tick
        found = self._products.get(m)
        if found is None:
            found = self._bounds[m[0]]
            for a in m[1:]:
                found = iv.times(found, self._bounds[a])
            least = self._least.get(m)
            if least is not None and least > found.low:
                found = Interval(least, found.high)
            self._products[m] = found
        return found

    def quotients(self) -> Iterator[tuple[int, Polynomial, Polynomial]]:
        """The quotients x // d by what is positive and not a literal, as the atom, x and d."""
        for index, a in enumerate(self.forms.atoms):
            if a.op == "floordiv" and literal(a.args[1]) is None and self.low(a.args[1]) >= 1:
                yield index, a.args[0], a.args[1]

    def names_of(self, index: int) -> Iterator[int]:
        """The conditionals that are known to be this atom."""
        for other, branch in self._taken.items():
            if single(self.forms.atoms[other].args[branch]) == index:
                yield other

    def sums_with(self, index: int) -> Iterator[Polynomial]:
        """What this atom is, where a conditional is known to be a sum of it and something."""
        for other, branch in self._taken.items():
            whole = self.forms.atoms[other].args[branch]
            if whole.get((index,)) == 1:
                yield combine(atom(other), combine(whole, atom(index), -1), -1)

    def is_positive(self, e: Expr) -> bool:
        return self.low(self.form(e)) >= 1

    def candidates(self, m: Monomial, sign: int, *, moving: bool = False) -> Iterator[Polynomial]:
        """Polynomials that are >= 0 and in which `m` has a coefficient of the given sign: inequalities, and
        their products with monomials that are >= 0. With `moving`, only those that speak of what may differ in
        one launch, if something in `m` does."""
        moving = moving and self.moves(m)
        for part, rest in self._splits(m):
            found = self._where.get(part)
            if found is None or (moving and not self.moves(part)) or (rest and self.term(rest).low < 0):
                continue
            for index in found:
                p = self.inequalities[index]
                if p[part] * sign > 0:
                    yield times(p, monomial(rest)) if rest else p

    def at_least_one(self, m: Monomial) -> Iterator[Polynomial]:
        """Polynomials that are >= 0 and say of a sum with `m` that it is positive: `i + n - 1`."""
        for index in self._where.get(m, ()):
            p = self.inequalities[index]
            if p[m] > 0 and p.get(UNIT, 0) < 0 and len(p) > 2:
                yield p

    def _splits(self, m: Monomial) -> Iterator[tuple[Monomial, Monomial]]:
        """Two parts of a monomial, the first of which is not 1."""
        yield m, UNIT
        for a in dict.fromkeys(m) if len(m) > 1 else ():
            rest = without(m, a)
            yield rest, (a,)
            if len(rest) > 1:
                yield (a,), rest
        for size in range(2, len(m) - 1) if len(m) <= _LONGEST else ():
            for part in dict.fromkeys(combinations(m, size)):
                yield part, without(m, *part)

    def moves(self, m: Monomial) -> bool:
        """Whether something in it may differ between blocks, iterations or lanes."""
        moving = self._moving
        for a in m:  # noqa: SIM110  # asked all the time
            if moving[a]:
                return True
        return False

    # -- learning ------------------------------------------------------------------------------------------

    def learn(self, p: Polynomial) -> None:
        """p >= 0, which the caller has shown to follow."""
        self._number = self.forms.answers.after(self._number, key(p))
        self._add(p)
        self._propagate()
        self._define(0, again=True)

    def assume(self, fact: Expr) -> None:
        """A fact, which the caller has shown to follow."""
        self._number = self.forms.answers.after(self._number, fact)
        first = len(self._bounds)
        for part in conjuncts(fact):
            if part not in self.facts:
                self.facts[part] = None
                self._learn(part)
        self._meet_atoms()
        self._define(first)
        self._propagate()
        self._define(0, again=True)

    def note(self, fact: Expr) -> None:
        """A fact to be looked up alone, which the caller has shown to follow."""
        self._number = self.forms.answers.after(self._number, (fact,))
        self.facts[fact] = None

    def _learn(self, fact: Expr) -> None:
        if fact.op == "not" and fact.args[0].op == "eq":
            self._apart.append(self.forms.difference(*fact.args[0].args))
        if fact.op not in ("lt", "le", "eq"):
            return
        rest = self.forms.difference(fact.args[1], fact.args[0])
        if fact.op == "lt":
            rest = combine(rest, constant(-1))
        self._add(rest)
        if fact.op == "eq":
            self._add(scaled(rest, -1))

    def _add(self, p: Polynomial) -> None:
        for m in p:
            if m != UNIT:
                self._where.setdefault(m, []).append(len(self.inequalities))
        self.contradict |= p.get(UNIT, 0) < 0 and len(p) == 1
        self.inequalities.append(p)
        self._rows.append(Row.of(p))

    def _identify(self) -> None:
        """Write one symbol for two that are equal, a literal for a symbol that equals one, and a product for a
        multiple."""
        for fact in self.facts:
            if fact.op == "eq":
                a, b = fact.args
                if b.op == "sym" and (a.op == "const" or b not in self.forms):
                    a, b = b, a
                if a.op == "sym" and a not in self.forms and b.op in ("sym", "const"):
                    self.forms.identify(a, b)
        for multiple, same, divisor in as_multiples(self.facts):
            if multiple not in self.forms:
                self.forms.identify(multiple, same)
                self.forms.divide_by(divisor)

    def _resolve(self) -> None:
        for part in resolved(self.facts):
            self.facts[part] = None
            self._learn(part)

    def _separate(self) -> None:
        """What is not 0, and not below 0 (or not above), is at least 1 away from it."""
        for p in self._apart:
            low, high = self.interval(p)
            if low == 0:
                self._add(combine(p, constant(-1)))
            elif high == 0:
                self._add(combine(scaled(p, -1), constant(-1)))

    def _divide_products(self) -> None:
        """Of f*q >= 1 with f >= 0: q >= 1, for otherwise q <= 0 and f*q <= 0."""
        for p in list(self.inequalities):
            if p.get(UNIT, 0) >= 0 or len(p) < 3:
                continue
            terms = [m for m in p if m != UNIT]
            shared = tuple(a for a in dict.fromkeys(terms[0]) if all(a in m for m in terms))
            if shared and self.term(shared).low >= 0:
                self._add(combine({without(m, *shared): p[m] for m in terms}, constant(-1)))

    def _meet_atoms(self) -> None:
        for index in range(len(self._bounds), len(self.forms.atoms)):
            a = self.forms.atoms[index]
            self._bounds.append(self._own(a))
            self._reads.append(tuple({n for p in a.args for m in p for n in m}))
            self._moving.append(any(s.varies for s in a.symbols))
            self._changed.append(self._tick)

    def _own(self, a: Atom) -> Interval:
        """The interval of an atom by its operator; the atoms in its arguments have lower numbers."""
        values = [self.interval(p) for p in a.args]
        match a.op:
            case "floordiv":
                return self._quotient(a.args, values)
            case "mod":
                return iv.remainder(values[0], values[1])
            case "min":
                return Interval(min(v.low for v in values), min(v.high for v in values))
            case "max":
                return Interval(max(v.low for v in values), max(v.high for v in values))
            case "ite":
                return iv.hull(values[0], values[1])
            case "bit and":
                return iv.common_bits(*values)
            case _:
                return iv.ANY

    def _branch(self, a: Atom) -> int | None:
        """Which branch a conditional is, where a premise says so, or intervals and one premise decide that."""
        condition = a.condition
        if condition is not None and condition in self.facts:
            return 0
        if condition is not None and negate(condition) in self.facts:
            return 1
        if condition is not None and condition.op == "eq":
            apart = self.interval(self.forms.difference(*condition.args))
            return 0 if apart == _NOTHING else 1 if apart.low > 0 or apart.high < 0 else None
        if condition is None or condition.op not in ("le", "lt"):
            return None
        gap = self.forms.difference(condition.args[1], condition.args[0])  # its atoms have lower numbers
        if condition.op == "lt":
            gap = combine(gap, constant(-1))
        if self._follows(gap):
            return 0
        return 1 if self._follows(combine(constant(-1), gap, -1)) else None

    def _follows(self, p: Polynomial) -> bool:
        """p >= 0, by intervals or because p = q + r with a premise q >= 0 and r >= 0 by intervals."""
        if self.low(p) >= 0:
            return True
        inequalities = self.inequalities
        tried: set[int] = set()
        open_ = [m for m, c in p.items() if m and self.least(m, c) == -math.inf]
        for m in open_ or p:
            having = {i for i in self._where.get(m, ()) if inequalities[i][m] * p[m] > 0}
            # What has no lower bound is left as it is by a premise in which it does not stand.
            tried = tried & having if open_ and m is not open_[0] else tried | having
            if open_ and not tried:
                return False
        return any(self.low(combine(p, inequalities[i], -1)) >= 0 for i in sorted(tried))

    def _quotient(self, args: tuple[Polynomial, ...], values: list[Interval]) -> Interval:
        found = iv.quotient(values[0], values[1])
        # x >= d > 0 gives x // d >= 1, which intervals miss for cdiv(n, d) = (n + d - 1) // d.
        if values[1].low >= 1 and self.low(combine(args[0], args[1], -1)) >= 0:
            return iv.meet(found, Interval(1, math.inf))
        return found

    def _propagate(self) -> None:
        """Narrow bounds round by round. What was looked at is left alone until a bound that it reads has
        changed: it would give the same again."""
        for _ in range(_ROUNDS):
            before = self._tick
            for index, a in enumerate(self.forms.atoms):
                if a.args and self._is_stale(index, self._reads[index]):
                    own = self._own(a)
                    self._narrow(index, own.low, own.high)
            for row in self._rows:
                if self._is_stale(row, row.atoms):
                    self._solve(row)
            if self._tick == before:
                return

    def _is_stale(self, what: object, atoms: tuple[int, ...]) -> bool:
        """Whether a bound of `atoms` has changed since the last look, or there was none; this is the next."""
        last = self._looks.get(what, -1)
        changed = self._changed
        for a in atoms:
            if changed[a] > last:
                self._looks[what] = self._tick
                return True
        return False

    def _narrow(self, index: int, low: iv.End, high: iv.End) -> None:
        old = self._bounds[index]
        if abs(low) > _LARGE:  # bounds that contradict each other drive each other up for ever
            low = old.low
        if abs(high) > _LARGE:
            high = old.high
        if low > old.low or high < old.high:
            new = self._bounds[index] = Interval(max(low, old.low), min(high, old.high))
            self.contradict |= new.is_empty
            self._tick += 1
            self._changed[index] = self._tick

    def _solve(self, row: Row) -> None:
        """Bounds of each atom in p >= 0 from those of the others: c*a >= -(their greatest sum)."""
        total, unbounded = row.literal, 0
        open_atom = None
        for a, c in row.linear:
            end = self._bounds[a][c > 0]  # where c*a is greatest
            if isinstance(end, float):
                if unbounded or (end > 0) != (c > 0):  # the second: an empty interval, nothing need be learned
                    return
                unbounded, open_atom = 1, (a, c)
            else:
                total += c * end
        for m, c in row.products:
            high = self.term(m, c).high
            if isinstance(high, float):
                if unbounded or high < 0:
                    return
                unbounded = 1
            else:
                total += high
        if unbounded:
            if open_atom is not None:
                self._limit(*open_atom, total)
            elif len(row.products) == 1 and row.products[0][1] > 0:
                ((m, c),) = row.products
                self._raise(m, -(total // c))
            return
        for a, c in row.linear:
            end = self._bounds[a][c > 0]
            if not isinstance(end, float):
                self._limit(a, c, total - c * end)

    def _raise(self, m: Monomial, low: int) -> None:
        """m >= low, for a product m. If that is at least 1 and all factors but one are known not to be
        negative, none of them is 0, so all are at least 1: the last has the sign of the product."""
        if _LARGE > low > self._least.get(m, -math.inf):
            self._least[m] = low
            self._tick += 1
            for a in m:
                self._changed[a] = self._tick
        if low >= 1 and sum(self._bounds[a].low < 0 for a in m) <= 1:
            for a in m:
                self._narrow(a, 1, math.inf)

    def _limit(self, a: int, c: int, rest: int) -> None:
        """c*a + rest >= 0. For c > 0 this moves the low end only, and `_solve` reads the high one."""
        if c > 0:
            self._narrow(a, -(rest // c), math.inf)
        else:
            self._narrow(a, -math.inf, rest // -c)

    def _define(self, first: int, *, again: bool = False) -> None:
        """The inequalities that define minima, maxima, quotients and remainders from atom `first` on; `again`,
        those of quotients and remainders whose divisors were not known to be positive before."""
        for index in range(first, len(self.forms.atoms)):
            a = self.forms.atoms[index]
            if a.op in ("min", "max") and not again:
                for p in a.args:
                    self._add(scaled(combine(p, atom(index), -1), 1 if a.op == "min" else -1))
            elif a.op == "ite":
                self._take_branch(index, a)
            elif a.op in ("floordiv", "mod") and self.low(a.args[1]) >= 1:
                if a.op in self._divisions.get((key(a.args[0]), key(a.args[1])), ()):
                    continue
                self._define_division(index, a.op, *a.args)
                if a.op == "floordiv":
                    self._order_quotients(index, *a.args)

    def _take_branch(self, index: int, a: Atom) -> None:
        branch = None if index in self._taken else self._branch(a)
        if branch is not None:
            self._taken[index] = branch
            same = combine(a.args[branch], atom(index), -1)
            self._add(same)
            self._add(scaled(same, -1))

    def _compare_dividends(self) -> None:
        """x >= n*d for a quotient x // d that is at least n >= 1, as d >= 1. Of two names (`BT // BC`) that
        orders them; else it is for bounds alone: in sums it would lead astray more often than it helps."""
        for q, x, d in list(self.quotients()):
            least = self._bounds[q].low
            if not isinstance(least, int) or least < 1:
                continue
            if not self.moves((q,)) and single(x) is not None and single(d) is not None:
                self._add(combine(x, d, -least))
            else:
                self._rows.append(Row.of(combine(x, d, -least)))

    def _order_quotients(self, index: int, x: Polynomial, d: Polynomial) -> None:
        """Of two quotients by one positive divisor, that of the larger dividend is at least the other, and more
        than it if the dividends are that divisor apart: (x + d) // d = x // d + 1."""
        others = self._shares.setdefault(key(d), {})
        for other, y in list(others.items())[:_SHARES]:
            gap = combine(x, y, -1)
            for more, less, apart in ((index, other, gap), (other, index, scaled(gap, -1))):
                if self._follows(combine(apart, d, -1)):
                    self._add({(more,): 1, (less,): -1, UNIT: -1})
                elif self._follows(apart):
                    self._add({(more,): 1, (less,): -1})
        others[index] = x

    def _divide_whole(self, index: int, x: Polynomial, d: Polynomial) -> None:
        """q = y for the quotient q of x = d*y + r by a name or product d >= 1, where 0 <= r < d. So it is where
        x is d*y + d - 1, as the number of blocks in y whole ones is written: with y + 1 and -1."""
        y, rest = split_multiples(x, d)
        if not y:
            return
        for whole, r in ((y, rest), (combine(y, constant(-1)), combine(rest, d))):
            if self._follows(r) and self._follows(combine(combine(d, constant(-1)), r, -1)):
                same = combine(atom(index), whole, -1)
                self._add(same)
                self._add(scaled(same, -1))
                return

    def _define_division(self, index: int, op: str, x: Polynomial, d: Polynomial) -> None:
        """For d >= 1: d*q <= x <= d*q + d-1 where q = x // d, and 1 <= q where d <= x; r <= d-1 where r = x % d
        (0 <= r is in the interval of r), and r <= x where 0 <= x; and with both, x = d*q + r."""
        pair = self._divisions.setdefault((key(x), key(d)), {})
        pair[op] = index
        if op == "mod":
            self._add(combine(combine(d, constant(-1)), atom(index), -1))
            if self.low(x) >= 0:  # x = d*q + r with 0 <= q; for bounds alone, in sums it would lead astray
                self._rows.append(Row.of(combine(x, atom(index), -1)))
        else:
            below = combine(x, times(d, atom(index)), -1)
            self._add(below)
            if self._bounds[index].low < 1 and self._follows(combine(x, d, -1)):
                self._narrow(index, 1, math.inf)
            self._add(combine(combine(d, constant(-1)), below, -1))
            self._divide_whole(index, x, d)
        if len(pair) == 2:
            whole = combine(times(d, atom(pair["floordiv"])), atom(pair["mod"]))
            self._add(combine(x, whole, -1))
            self._add(combine(whole, x, -1))
