"""Rung "tables": blocks that look up where to write meet only where a contract is broken.

    n, c = table[bid];  lo, hi = starts[n], starts[n + 1];  out[lo + c * B + lane], c * B + lane < hi - lo

What rung "digits" concludes of two instances that touch one element is that some values are equal: here
`lo + c * B + lane`. Were the rows of the table equal, the blocks would be one, by what rung "provenance"
concludes from values that both compute alike; so the rows differ, and a contract says that the pairs in them
do. That leaves a few cases (`n < n'`, `n > n'`, `n == n'` and `c < c'`, ...), and in each of them an equality
is refuted by adding up premises (rung "entail"). Without a table, `n` itself is less in one block.

Sound because the cases are all there are: of a disjunction that holds one term holds, and the first that does
is not preceded by one. Each case is refuted from what holds for both instances, what contracts say of the
elements that they read, and that equal elements have equal values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from tilecheck.ir.expr import (
    TRUE,
    ZERO,
    Expr,
    Kind,
    all_of,
    any_of,
    conjuncts,
    eq,
    le,
    lt,
    ne,
    negate,
    substitute,
    sym,
    symbols,
    walk,
)
from tilecheck.proof.algebra.linear import meaning
from tilecheck.proof.algebra.polynomial import without
from tilecheck.proof.goals.instances import in_instance, symbol_in_instance
from tilecheck.proof.goals.question import Question
from tilecheck.proof.obligation import Between, Disjoint, Holds
from tilecheck.proof.premises.guarded_contracts import learn_guarded
from tilecheck.proof.premises.linear_combinations import below_counts_of
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.rungs.digits import Equalities, equalities
from tilecheck.proof.rungs.entail import entailed, follows
from tilecheck.proof.rungs.provenance import Agreed

_CASES = 24  # that are looked at
_MOST_WORK = 40_000_000  # for one goal, as cases may be dear: more than one budget of a kernel
_DEPTH = 5  # premises in one sum
_PAIRS = 3  # equal values that are refuted

_Pairs = tuple[tuple[Expr, Expr], ...]


def decide(question: Question) -> bool:
    goal = question.obligation.goal
    if not isinstance(goal, Disjoint) or goal.between is not Between.BLOCKS:
        return False
    if not any(contract.is_about_values for contract in question.context.kernel.contracts):
        return False
    found = equalities(question)
    if found is None or found.meeting.telling is None:
        return False
    chosen = _telling(found)
    pairs = tuple((in_instance(one, 1), in_instance(two, 2)) for one, two in chosen)
    known = question.negated
    first, second = (_reads(known, n) for n in (1, 2))
    tables = frozenset(node.args[0] for node in (*first, *second))
    apart = tuple(_apart(first, second, found))
    if not apart:  # nothing says that two blocks are two
        return False
    facts = (
        *(fact for fact in known if _concerns(fact, tables)),
        *_shared(found),
        *(ne(one, two) for one, two in apart),
        *_functional(first, second),
        *_digits(question, goal, found.meeting.agreed, chosen),
        *_counted(question, goal, chosen),
    )
    return _Search(pairs, apart).refutes(question.known.of(facts))


class _Search:
    """Looks for a contradiction case by case. Mutable: it counts the cases."""

    def __init__(self, pairs: _Pairs, apart: _Pairs) -> None:
        self._pairs = pairs  # of values that are equal
        self._apart = apart  # of values that are not
        self._left = _CASES
        self._until: int | None = None  # how much the work may come to

    def refutes(self, premises: Premises) -> bool:
        self._left -= 1
        if self._until is None:
            self._until = premises.work.spent + _MOST_WORK
        cases = False
        open_ = learn_guarded(premises)
        denied = any(ne(*two) in premises.facts for pair in self._pairs for two in (pair, pair[::-1]))
        if premises.contradict or denied or any(self._differ(*pair, premises) for pair in self._pairs):
            return True
        for case in self._cases(open_, premises):
            if self._left <= 0 or premises.work.spent > self._until:
                return False
            assumed = premises.copy()
            for fact in case:
                assumed.assume(fact)
            if not self.refutes(assumed):
                return False
            cases = True
        return cases

    def _cases(self, open_: Sequence[tuple[Expr, ...]], premises: Premises) -> Iterable[tuple[Expr, ...]]:
        for terms in open_:
            # What one term says already leaves nothing to tell apart.
            if all(map(_is_choice, terms)) and not any(follows(t, premises, _DEPTH) for t in terms):
                return _cases(terms)
        for one, two in self._apart:
            if not self._differ(one, two, premises):
                return ((lt(one, two),), (lt(two, one),))
        return ()

    def _differ(self, one: Expr, two: Expr, premises: Premises) -> bool:
        # Elements that are known to be equal are written as one: they cancel.
        same = {
            fact.args[1]: fact.args[0] for fact in premises.facts if fact.op == "eq" and _are_elements(fact)
        }
        one, two = substitute(one, same), substitute(two, same)
        return any(follows(lt(a, b), premises, _DEPTH) for a, b in ((one, two), (two, one)))


def _are_elements(fact: Expr) -> bool:
    return all(side.op == "read" for side in fact.args)


def _is_choice(term: Expr) -> bool:
    """Two values that are equal or are not."""
    return term.op == "eq" or (term.op == "not" and term.args[0].op == "eq")


def _cases(terms: tuple[Expr, ...]) -> Iterator[tuple[Expr, ...]]:
    """Each term, where none before it holds; values that differ are one less than the other, or more."""
    before: tuple[Expr, ...] = ()
    for term in terms:
        if term.op == "not":
            a, b = term.args[0].args
            yield (*before, lt(a, b))
            yield (*before, lt(b, a))
        else:
            yield (*before, term)
        before = (*before, negate(term))


def _concerns(fact: Expr, tables: frozenset[str]) -> bool:
    """Whether it may matter: not how long other arrays are, nor that the elements are equal, as pairs say."""
    extents = (s.name for s in symbols(fact) if s.kind is Kind.EXTENT)
    is_known = fact.op != "eq" or not any(s.varies for s in symbols(fact))
    return is_known and all(name.partition(".")[0] in tables for name in extents)


def _reads(known: tuple[Expr, ...], instance: int) -> list[Expr]:
    """The elements that one instance reads."""
    found = [node for node in walk(*known) if node.op == "read"]
    return [node for node in found if in_instance(node, instance) is node]


def _shared(found: Equalities) -> Iterator[Expr]:
    """The symbols on which the instances agree are equal."""
    for symbol in found.meeting.agreed.symbols:
        yield eq(*(sym(symbol_in_instance(symbol, n)) for n in (1, 2)))


def _apart(first: list[Expr], second: list[Expr], found: Equalities) -> Iterator[tuple[Expr, Expr]]:
    """Indices that would make the instances one if they were equal: they differ."""
    others = {in_instance(node, 0): node for node in second}
    tried: dict[tuple[Expr, ...], None] = {}
    for node in first:
        here = in_instance(node, 0)
        other = others.get(here, node)
        if other is node or here.args[1:] in tried:
            continue
        tried[here.args[1:]] = None
        if len(here.args) == 2 and found.are_refuted_by(here.args[1]):
            yield node.args[1], other.args[1]


def _telling(found: Equalities) -> _Pairs:
    """The equal values that are made of looked-up numbers, short ones first: what is equal otherwise does not
    tell blocks apart."""
    pairs = dict.fromkeys(found.pairs)
    made = [p for p in pairs if any(node.op == "read" for node in walk(*p))]
    return tuple(sorted(made or pairs, key=lambda p: sum(len(e.args) for e in p))[:_PAIRS])


def _digits(question: Question, goal: Disjoint, agreed: Agreed, pairs: _Pairs) -> Iterator[Expr]:
    """`l` in `t[i] * s + l` is a digit, `0 <= l < s`, where that follows for the instance that computes it: two
    looked-up numbers are then a whole `s` apart. Proved from what one instance knows, which is much less to
    look through than what both do."""
    for instance, access in enumerate((goal.first, goal.second), start=1):
        known = question.premises_of(Holds(TRUE, access.happens))
        for pair in pairs:
            for low, step in _steps(pair[instance - 1], agreed):
                digit = all_of(le(ZERO, low), lt(low, step))
                if entailed(digit, known):
                    yield from (in_instance(fact, instance) for fact in conjuncts(digit))


def _counted(question: Question, goal: Disjoint, pairs: _Pairs) -> Iterator[Expr]:
    """`i // n < cdiv(ends[n] - starts[n], B)`, where it follows for the instance that computes it: with
    `before[n]` added, it is one of the blocks of sequence n. So does `0 <= i // n`, which what i is made of may
    not show: an i that counts down is `m - 1 - j`."""
    for instance, access in enumerate((goal.first, goal.second), start=1):
        values = [pair[instance - 1] for pair in pairs]
        if not any(node.op == "floordiv" for node in walk(*values)):
            continue
        known = question.premises_of(Holds(TRUE, access.happens))
        for value in values:
            for less, more in below_counts_of(known, value):
                terms = known.forms.meanings()
                yield in_instance(lt(terms[less], terms[more]), instance)
                if known.term((less,)).low < 0 and entailed(le(ZERO, terms[less]), known):
                    yield in_instance(le(ZERO, terms[less]), instance)


def _steps(value: Expr, agreed: Agreed) -> Iterator[tuple[Expr, Expr]]:
    """The terms of a sum with no looked-up numbers (all of them, and those that differ between blocks), and
    what each looked-up number is multiplied with."""
    forms = agreed.premises.forms
    p = forms.of(value)
    looked_up = {m: [a for a in m if forms.atoms[a].op.startswith("read ")] for m in p}
    lows = [{m: c for m, c in p.items() if not looked_up[m]}]
    lows.append({m: c for m, c in lows[0].items() if not all(map(agreed.is_shared, m))})
    for m, reads in looked_up.items():
        step = without(m, *reads)
        if len(reads) == 1 and (step or p[m] > 1) and all(map(agreed.is_shared, step)):
            for low in lows if lows[0] != lows[1] else lows[:1]:
                meanings = forms.meanings()
                yield meaning(low, meanings), meaning({step: p[m]}, meanings)


def _functional(first: list[Expr], second: list[Expr]) -> Iterator[Expr]:
    """Equal elements have equal values: said of those that both look up alike."""
    for a, b in product(first, second):
        if a is not b and in_instance(a, 0) is in_instance(b, 0):
            indices = zip(a.args[1:], b.args[1:], strict=True)
            yield any_of(*(ne(i, j) for i, j in indices), eq(a, b))
