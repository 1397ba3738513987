"""Masks that a flag of compile time makes weaker: what both cases say stands by itself, and the rest is taken
case by case."""

from __future__ import annotations

import random
from dataclasses import replace

from proof_kernels import BID, COUNT, LANE, SIZE, access, element, obligation

from tilecheck.ir.expr import (
    Expr,
    Kind,
    Symbol,
    add,
    all_of,
    any_of,
    bool_sym,
    conjuncts,
    either,
    evaluate,
    lt,
    mul,
    negate,
    sym,
    symbols,
)
from tilecheck.proof.cases import cases
from tilecheck.proof.obligation import Between, Disjoint

FLAG = bool_sym(Symbol("ALIGNED", Kind.CONSTANT))


def _truth(rng: random.Random, depth: int = 2) -> Expr:
    if depth == 0:
        found = bool_sym(Symbol(f"b{rng.randrange(4)}", Kind.OPAQUE))
        return negate(found) if rng.random() < 0.3 else found
    join = all_of if rng.random() < 0.7 else any_of
    return join(*(_truth(rng, depth - 1) for _ in range(rng.randrange(4))))


def test_either_is_the_choice() -> None:
    rng = random.Random(7)
    for _ in range(2000):
        cond, a, b = _truth(rng), _truth(rng), _truth(rng)
        chosen = either(cond, a, b)
        for _ in range(4):
            values = {s: rng.random() < 0.5 for s in symbols(cond, a, b)}
            wanted = evaluate(a if evaluate(cond, values.__getitem__) else b, values.__getitem__)
            assert evaluate(chosen, values.__getitem__) == wanted


def test_what_both_say_stands_by_itself() -> None:
    row, col = lt(BID, COUNT), lt(sym(LANE), COUNT)
    assert conjuncts(either(FLAG, row, all_of(row, col))) == (row, any_of(FLAG, col))
    assert conjuncts(either(FLAG, all_of(row, col), row)) == (row, any_of(negate(FLAG), col))


def test_a_race_is_taken_case_by_case() -> None:
    col = lt(sym(LANE), COUNT)
    store = replace(access(element(add(mul(BID, SIZE), sym(LANE)))), mask=any_of(FLAG, col))
    goals = [case.goal for case in cases(obligation(Disjoint(store, store, Between.BLOCKS)))]
    guards = [goal.first.guard for goal in goals if isinstance(goal, Disjoint)]
    masks = [goal.first.mask for goal in goals if isinstance(goal, Disjoint)]
    assert guards == [FLAG, negate(FLAG)]
    assert masks[1] is col
