"""What contracts say of elements, where the elements are seen to exist.

An instance of a contract is guarded: `i < 0 or n <= i or low <= t[i]`. Of a disjunction all but one term of
which contradict the premises that one follows, and it may show that another element exists: `t[i]` is the
index at which `u` is read. Sound because a term is left out only where its negation follows (rung "entail").

What a search knows of an end is one of two: `i == 0 or t[i] <= x`, it has not moved or a test has moved it.
What contracts say of the element where it began may refute the first, or give the second there as well: so the
second holds in any case.
"""

from __future__ import annotations

from tilecheck.ir.expr import Expr, conjuncts, negate, walk
from tilecheck.proof.premises import Premises
from tilecheck.proof.rungs.entail import follows
from tilecheck.proof.work import ATOM

_ROUNDS = 6  # a table that tells where to look in a table, and so on
_DEPTH = 3  # premises in one sum
_MOST = 120  # disjunctions


def learn_guarded(premises: Premises, *, cases: bool = True) -> list[tuple[Expr, ...]]:
    """Add what is left of disjunctions about values in memory; the terms of those of which more than one is.
    With `cases`, ends of searches are looked at in both cases."""
    facts = [f for f in premises.facts if f.op == "any" and any(n.op == "read" for n in walk(f))][:_MOST]
    left = premises.alternatives
    for _ in range(_ROUNDS):
        settled = True
        for fact in facts:
            terms = left.get(fact, fact.args)
            if len(terms) == 1:
                continue
            left[fact] = rest = _possible(terms, premises)
            if len(rest) == 1:
                premises.assume(rest[0])
                settled = False
            elif not rest:
                premises.contradict = True
        if premises.contradict or (settled and not (cases and _learn_ends(premises, facts))):
            break
    return [left[fact] for fact in facts if len(left[fact]) > 1]


def _learn_ends(premises: Premises, facts: list[Expr]) -> bool:
    """Add what tests say of ends of searches, where it holds of those that have not moved, too; whether
    anything was added."""
    found = False
    for fact in facts:
        if len(premises.alternatives.get(fact, ())) != 2 or not _is_end(fact):
            continue
        began, told = fact.args
        premises.work.charge(ATOM * (len(premises.forms.atoms) + len(premises.inequalities)))
        there = premises.copy()
        there.assume(began)
        learn_guarded(there, cases=False)
        if _is_impossible(there, premises) or all(follows(part, there, _DEPTH) for part in conjuncts(told)):
            premises.alternatives[fact] = (told,)
            premises.assume(told)
            found = True
    return found


def _is_end(fact: Expr) -> bool:
    """Whether it says that a value is what it was, or something of elements that this value tells."""
    began, told = fact.args if len(fact.args) == 2 else (fact, fact)
    if began.op != "eq":
        return False
    places = [index for node in walk(told) if node.op == "read" for index in node.args[1:]]
    return any(side in walk(*places) for side in began.args if side.value is None)


def _is_impossible(there: Premises, before: Premises) -> bool:
    """Whether what was learned contradicts the rest."""
    fresh = (f for f in there.facts if f not in before.facts and f.op in ("le", "lt"))
    return there.contradict or any(follows(negate(fact), there, _DEPTH) for fact in fresh)


def _possible(terms: tuple[Expr, ...], premises: Premises) -> tuple[Expr, ...]:
    """The terms but for those that are refuted; all from the second that is not are left unread."""
    possible: list[Expr] = []
    for number, term in enumerate(terms):
        if not _is_refuted(term, premises):
            possible.append(term)
        if len(possible) == 2:
            return (*possible, *terms[number + 1 :])
    return tuple(possible)


def _is_refuted(term: Expr, premises: Premises) -> bool:
    """Whether its negation follows; each part of that which does is a fact from then on."""
    for part in conjuncts(negate(term)):
        if not follows(part, premises, _DEPTH):
            return False
        premises.facts[part] = None
    return True
