"""What contracts say of elements, where the elements are seen to exist.

An instance of a contract is guarded: `i < 0 or n <= i or low <= t[i]`. Of a disjunction all but one term of
which contradict the premises that one follows, and it may show that another element exists: `t[i]` is the
index at which `u` is read. Sound because a term is left out only where its negation follows (rung "entail").
"""

from __future__ import annotations

from tilecheck.ir.expr import Expr, conjuncts, negate, walk
from tilecheck.proof.premises import Premises
from tilecheck.proof.rungs.entail import follows

_ROUNDS = 6  # a table that tells where to look in a table, and so on
_DEPTH = 3  # premises in one sum
_MOST = 120  # disjunctions


def learn_guarded(premises: Premises) -> list[tuple[Expr, ...]]:
    """Add what is left of disjunctions about values in memory; the terms of those of which more than one is."""
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
        if settled or premises.contradict:
            break
    return [left[fact] for fact in facts if len(left[fact]) > 1]


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
