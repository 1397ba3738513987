"""What contracts say of elements, where the elements are seen to exist.

An instance of a contract is guarded: `i < 0 or n <= i or low <= t[i]`. Of a disjunction all but one term of
which contradict the premises that one follows, and it may show that another element exists: `t[i]` is the
index at which `u` is read. Sound because a term is left out only where its negation follows (rung "entail").

What a search knows of an end is one of two: `i == 0 or t[i] <= x`, it has not moved or a test has moved it.
What contracts say of the element where it began may refute the first, or give the second there as well: so the
second holds in any case.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilecheck.ir.expr import Expr, all_of, conjuncts, le, lt, negate, symbols, walk
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.rungs.entail import follows
from tilecheck.proof.solver.work import ATOM

_ROUNDS = 6  # a table that tells where to look in a table, and so on
_DEPTH = 3  # premises in one sum
_MOST = 120  # disjunctions


def learn_guarded(premises: Premises) -> list[tuple[Expr, ...]]:
    """Add what is left of disjunctions about values in memory; the terms of those of which more than one is."""
    facts = _about_memory(premises)
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


def _about_memory(premises: Premises) -> list[Expr]:
    return [f for f in premises.facts if f.op == "any" and any(n.op == "read" for n in walk(f))][:_MOST]


# ---- ends of searches --------------------------------------------------------------------------------------


def about_ends(assertions: Iterable[Expr]) -> tuple[Expr, ...]:
    """The assertions that tell what tests say of ends of searches: those that speak of no other values and
    elements than the facts about these ends do. None where there are no ends."""
    facts = tuple(dict.fromkeys(part for a in assertions for part in conjuncts(a)))
    ends = [fact for fact in facts if _is_end(fact)]
    if not ends:
        return ()
    elements = _elements(*ends)
    spoken = {fact: _elements(fact) for fact in facts}
    near = [fact for fact in facts if fact.op == "any" and spoken[fact] and spoken[fact] <= elements]
    own = set(symbols(*near))
    own.update(s for symbol in tuple(own) if symbol.bound is not None for s in symbols(symbol.bound))
    return tuple(fact for fact in facts if own.issuperset(symbols(fact)) and spoken[fact] <= elements)


def learn_ends(premises: Premises) -> dict[Expr, Expr]:
    """What tests say of ends of searches, where it holds of those that have not moved, too, by the fact that
    says that it is one or the other; and that they have moved, where they must have."""
    learn_guarded(premises)
    ends = [fact for fact in premises.facts if _is_end(fact)]
    found: dict[Expr, Expr] = {}
    for _ in ends:  # one may tell another
        before = len(found)
        for fact in ends:
            told = None if fact in found or premises.contradict else _told(premises, fact)
            if told is not None:
                found[fact] = told
                premises.alternatives[fact] = (told,)
                premises.assume(told)
                learn_guarded(premises)
        if len(found) == before:
            break
    return found


def _told(premises: Premises, fact: Expr) -> Expr | None:
    """What a test says of an end, if that holds where the end has not moved, or if it must have."""
    began: Expr = fact.args[0]
    told: Expr = fact.args[1]
    premises.work.charge(ATOM * (len(premises.forms.atoms) + len(premises.inequalities)))
    there = premises.copy()
    there.assume(began)
    learn_guarded(there)
    if _is_impossible(there, premises):
        for a, b in (began.args, began.args[::-1]):
            if follows(le(a, b), premises, _DEPTH):
                return all_of(told, lt(a, b))
        return told
    return told if all(follows(part, there, _DEPTH) for part in conjuncts(told)) else None


def _is_end(fact: Expr) -> bool:
    """Whether it says that a value is what it was, or something of elements that this value tells."""
    if fact.op != "any" or len(fact.args) != 2 or fact.args[0].op != "eq":
        return False
    places = set(walk(*_places(fact.args[1])))
    return any(side in places for side in fact.args[0].args if side.value is None)


def _elements(*facts: Expr) -> frozenset[Expr]:
    return frozenset(node for node in walk(*facts) if node.op == "read")


def _places(fact: Expr) -> list[Expr]:
    """Where the elements are that it speaks of."""
    return [index for node in walk(fact) if node.op == "read" for index in node.args[1:]]


def _is_impossible(there: Premises, before: Premises) -> bool:
    """Whether what was learned contradicts the rest."""
    fresh = (f for f in there.facts if f not in before.facts and f.op in ("le", "lt"))
    if there.contradict or any(follows(negate(fact), there, _DEPTH) for fact in fresh):
        return True
    denied = [f.args[0] for f in there.facts if f.op == "not" and f.args[0].op == "all"]
    return any(all(follows(part, there, _DEPTH) for part in whole.args) for whole in denied)


# ---- disjunctions ------------------------------------------------------------------------------------------


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
        premises.note(part)
    return True
