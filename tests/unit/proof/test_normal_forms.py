"""Chains of divisions, canonical forms and intervals keep the value; deep expressions are no trouble."""

from __future__ import annotations

import itertools
import random

import pytest
from proof_brute import integers, random_boolean, random_integer

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import Expr, Kind, Symbol, evaluate, sym, symbols
from tilecheck.proof.algebra import interval as iv
from tilecheck.proof.algebra import mixed_radix
from tilecheck.proof.algebra.normal_form import Forms
from tilecheck.proof.premises.linear_combinations import Sums
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import satisfiable

X, N, H, C = integers("x", "n", "h", "c")


def digits(rng: random.Random, depth: int) -> Expr:
    """Quotients and remainders of x by products of n, h and literals."""
    value = ex.add(X, rng.randint(-1, 1)) if rng.random() < 0.3 else X
    for _ in range(rng.randint(1, depth)):
        divisor = ex.mul(*rng.choices((N, H, ex.const(2), ex.const(3)), k=rng.randint(1, 2)))
        value = rng.choice((ex.floordiv, ex.mod))(value, divisor)
    return value


def test_digit_form_keeps_the_value_for_positive_divisors() -> None:
    rng = random.Random(1)
    chained = 0
    for _ in range(150):
        before = [ex.eq(digits(rng, 3), digits(rng, 2)), ex.lt(digits(rng, 2), N)]
        after = mixed_radix.normalise(before)
        if after is None:
            continue
        chained += 1
        for _ in range(30):
            values = {s: rng.randint(1, 5) for s in symbols(*before)}
            values[X.args[0]] = rng.randint(-60, 60)
            assert all(evaluate(d, values.__getitem__) > 0 for d in after.positive)
            for a, b in zip(before, after.assertions, strict=True):
                assert evaluate(a, values.__getitem__) == evaluate(b, values.__getitem__), (a, b, values)
    assert chained > 40


def test_three_digits_share_their_quotients() -> None:
    found = mixed_radix.normalise(
        [ex.eq(ex.floordiv(X, ex.mul(H, N)), ex.mod(ex.floordiv(X, N), H)), ex.lt(ex.mod(X, N), C)]
    )
    assert found is not None
    assert found.assertions[0] is ex.eq(ex.floordiv(ex.floordiv(X, N), H), ex.mod(ex.floordiv(X, N), H))


def test_digit_form_is_not_used_where_a_divisor_may_be_zero() -> None:
    """With n = 0 and h = 0 nothing is known of the digits, so this has no proof without the ranges."""
    k1, k2 = (sym(Symbol("b", Kind.BLOCK, instance=k)) for k in (1, 2))
    index = [
        lambda b: ex.floordiv(b, ex.mul(H, N)),
        lambda b: ex.mod(ex.floordiv(b, N), H),
        lambda b: ex.mod(b, N),
    ]
    equal = [ex.eq(f(k1), f(k2)) for f in index]
    assert satisfiable([*equal, ex.ne(k1, k2), ex.le(1, N), ex.le(1, H)]).status == "unsat"
    assert satisfiable([*equal, ex.ne(k1, k2)]).status != "unsat"


def test_canonical_forms_keep_the_value() -> None:
    rng = random.Random(2)
    leaves = [X, N, H]
    forms = Forms()
    seen: dict[object, Expr] = {}
    for _ in range(600):
        e = random_integer(rng, leaves, 2)
        if any(node.op == "read" for node in ex.walk(e)):
            continue
        k = tuple(sorted(forms.of(e).items()))
        other = seen.setdefault(k, e)
        for values in ({s: rng.randint(-4, 6) for s in (x.args[0] for x in leaves)} for _ in range(5)):
            assert outcome(e, values) in (outcome(other, values), None) or outcome(other, values) is None, (
                e,
                other,
            )


def outcome(e: Expr, values: dict[Symbol, int]) -> int | None:
    try:
        return int(evaluate(e, values.__getitem__))
    except ZeroDivisionError:
        return None


@pytest.mark.parametrize(
    ("operation", "exact"),
    [
        (iv.plus, lambda a, b: a + b),
        (iv.times, lambda a, b: a * b),
        (iv.quotient, lambda a, b: a // b if b else None),
        (iv.remainder, lambda a, b: a % b if b else None),
        (iv.hull, lambda a, b: a),
        (iv.common_bits, lambda a, b: a & b),
    ],
)
def test_intervals_contain_every_value(operation, exact) -> None:
    ends = range(-4, 5)
    ranges = [iv.Interval(a, b) for a in ends for b in ends if a <= b]
    ranges += [iv.Interval(a, float("inf")) for a in (-2, 0, 3)] + [iv.Interval(float("-inf"), 2), iv.ANY]
    for p, q in itertools.product(ranges, ranges):
        found = operation(p, q)
        for a, b in itertools.product(inside(p), inside(q)):
            value = exact(a, b)
            assert value is None or found.low <= value <= found.high, (p, q, a, b)


def inside(p: iv.Interval) -> list[int]:
    low, high = max(p.low, -6), min(p.high, 6)
    return sorted({int(low), int(high), int((low + high) // 2)})


def test_premises_hold_what_they_say() -> None:
    """Intervals and sums of random premises, against assignments that make the premises true."""
    rng = random.Random(3)
    leaves = [X, N, H]
    free = [x.args[0] for x in leaves]
    trials = [dict(zip(free, v, strict=True)) for v in itertools.product(range(-3, 4), repeat=3)]
    decided = 0
    for _ in range(90):
        given = [random_boolean(rng, leaves, rng.randint(0, 1)) for _ in range(rng.randint(1, 4))]
        if any(node.op == "read" for g in given for node in ex.walk(g)):
            continue
        premises = Premises.of(given)
        goals = [ex.sub(a, b) for a, b in itertools.permutations(leaves, 2)]
        goals += [ex.add(a, b, rng.randint(-3, 3)) for a, b in itertools.combinations(leaves, 2)]
        shown = [g for g in goals if Sums(premises).covers(premises.form(g))]
        decided += len(shown)
        for values in trials:
            if not all(outcome(g, values) for g in given):
                continue
            for g in shown:
                assert outcome(g, values) >= 0, (given, g, values)
            for g in goals:
                known = premises.interval(premises.form(g))
                assert known.low <= outcome(g, values) <= known.high, (given, g, values)
    assert decided > 15


def test_deep_expressions_do_not_overflow_the_stack() -> None:
    value = X
    for k in range(60):
        value = ex.add(ex.floordiv(value, 2), k % 3) if k % 2 else ex.minimum(value, ex.add(value, N))
    nested = X
    for _ in range(100):
        nested = ex.floordiv(nested, N)
    session = Session(budget=50_000)
    assert satisfiable([ex.lt(value, -5), ex.lt(nested, X)], session=session, prove_only=True).status != "unsat"
    assert Premises.of([ex.lt(value, N)]).is_positive(ex.const(1))
