"""Numbers that conditions say are equal go by one name, and no others do."""

from __future__ import annotations

import itertools
import random

from proof_kernels import context, obligation

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.proof.obligation import Holds
from tilecheck.proof.rewrite.equal_names import by_one_name

NUMBERS = [ex.sym(Symbol(name, Kind.SCALAR)) for name in "abcd"]
A, B, C, D = NUMBERS


def named(goal: Expr, *conditions: Expr) -> Expr:
    found = by_one_name(obligation(Holds(goal, ex.lt(B, C))), context().under(*conditions))
    assert isinstance(found.goal, Holds)
    return found.goal.goal


def test_one_name_for_what_is_equal() -> None:
    goal = ex.le(ex.mul(A, D), ex.add(ex.mul(B, D), C))
    assert named(goal) is goal
    assert named(goal, ex.eq(A, 1), ex.le(A, B)) is goal
    assert named(goal, ex.eq(A, B)) in (ex.le(ex.mul(n, D), ex.add(ex.mul(n, D), C)) for n in (A, B))
    assert len(ex.symbols(named(goal, ex.eq(A, B), ex.eq(B, C), ex.eq(C, D)))) == 1


def test_the_new_goal_says_the_same_where_the_conditions_hold() -> None:
    rng = random.Random(5)
    for _ in range(200):
        conditions = [ex.eq(*rng.sample(NUMBERS, 2)) for _ in range(rng.randrange(4))]
        sums = [ex.add(ex.mul(*rng.choices(NUMBERS, k=2)), rng.choice(NUMBERS)) for _ in range(2)]
        goal = ex.le(*sums)
        other = named(goal, *conditions)
        for values in itertools.product((-2, 0, 1, 3), repeat=4):
            value = dict(zip((n.args[0] for n in NUMBERS), values, strict=True)).__getitem__
            if all(ex.evaluate(c, value) for c in conditions):
                assert ex.evaluate(goal, value) == ex.evaluate(other, value), (conditions, goal)
