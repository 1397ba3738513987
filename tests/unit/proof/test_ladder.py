"""Which rung proves what, and that no rung proves what is false."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from proof_brute import random_boolean, random_integer, solutions
from proof_kernels import (
    BID,
    BID1,
    COUNT,
    EXTENT,
    GRID,
    LANE,
    LOOP,
    SIZE,
    access,
    context,
    element,
    obligation,
    tile,
)

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import TRUE, ZERO, Expr, sym
from tilecheck.ir.kernel import Effect, extent_symbol
from tilecheck.proof.goals.context import Context, Outcome
from tilecheck.proof.goals.predicate import negation
from tilecheck.proof.goals.question import Question
from tilecheck.proof.obligation import Between, Disjoint, Goal, Holds, Ordered
from tilecheck.proof.rungs.ladder import NAMES, RUNGS, prove
from tilecheck.proof.solver.session import Session

POSITIVE = ex.le(1, SIZE)
TILES = ex.cdiv(EXTENT, SIZE)
ROWS = sym(extent_symbol("out", 1))


def tried(goal: Goal, where: Context, **more: object) -> Outcome:
    return prove(obligation(goal), where, Session(), **more)


def self_disjoint(*axes: object, between: Between = Between.BLOCKS) -> Disjoint:
    one = access(*axes)
    return Disjoint(one, one, between)


LINE = ex.add(ex.mul(BID, SIZE), sym(LANE))
STRIDED = ex.add(ex.mul(ex.add(BID, ex.mul(LOOP, GRID)), SIZE), sym(LANE))
HIGH_DIGIT = ex.mod(ex.floordiv(BID, COUNT), SIZE)
TOP_DIGIT = ex.floordiv(BID, ex.mul(COUNT, SIZE))
FIRST_OF_GROUP = access(element(ex.floordiv(BID, COUNT)), guard=ex.eq(ex.mod(BID, COUNT), ZERO))


@pytest.mark.parametrize(
    "goal",
    [
        self_disjoint(tile(BID)),
        self_disjoint(tile(ex.add(BID, COUNT))),
        self_disjoint(tile(ex.mul(3, BID))),
        self_disjoint(tile(ex.sub(COUNT, BID))),
        self_disjoint(tile(ex.add(BID, ex.mul(LOOP, GRID)))),
        self_disjoint(tile(ex.floordiv(BID, COUNT)), element(ex.mod(BID, COUNT))),
        self_disjoint(tile(ex.mod(BID, COUNT)), element(HIGH_DIGIT), element(TOP_DIGIT)),
        Disjoint(FIRST_OF_GROUP, FIRST_OF_GROUP, Between.BLOCKS),
        self_disjoint(element(LINE)),
        self_disjoint(element(STRIDED)),
        self_disjoint(tile(BID), between=Between.LANES),
        self_disjoint(element(LINE), between=Between.LANES),
        self_disjoint(element(STRIDED), between=Between.LANES),
        Disjoint(access(tile(BID)), access(tile(BID), effect=Effect.READ), Between.BLOCKS),
    ],
    ids=str,
)
def test_provenance_proves(goal: Disjoint) -> None:
    outcome = tried(goal, context(POSITIVE, ex.le(1, COUNT)))
    assert outcome == Outcome(True, "provenance", outcome.time_ms)


@pytest.mark.parametrize(
    ("goal", "where"),
    [
        (self_disjoint(tile(ZERO)), context(POSITIVE)),
        (self_disjoint(tile(ex.floordiv(BID, 2))), context(POSITIVE)),
        (self_disjoint(tile(BID)), context(POSITIVE, grid_axes=(0, 1))),
        (self_disjoint(tile(ex.add(BID, LOOP))), context(POSITIVE)),
        (self_disjoint(tile(ex.mul(BID, COUNT))), context(POSITIVE)),
        (self_disjoint(element(ex.add(BID, sym(LANE)))), context(POSITIVE)),
        (Disjoint(access(tile(BID)), access(tile(ex.add(BID, 1))), Between.BLOCKS), context(POSITIVE)),
        (Disjoint(access(tile(BID)), access(tile(BID), array="y"), Between.BLOCKS), context(POSITIVE)),
        (self_disjoint(element(ex.floordiv(sym(LANE), 2)), between=Between.LANES), context(POSITIVE)),
    ],
    ids=str,
)
def test_no_rung_proves_what_is_false(goal: Goal, where: Context) -> None:
    outcome = tried(goal, where)
    assert (outcome.proved, outcome.rung, outcome.reason) == (False, "none", "needs-contract")


def test_both_grid_axes_must_be_in_the_index() -> None:
    both = self_disjoint(tile(BID), element(BID1))
    assert tried(both, context(POSITIVE, grid_axes=(0, 1))).rung == "provenance"


@pytest.mark.parametrize(
    ("goal", "given", "facts", "rung"),
    [
        (ex.lt(LOOP, TILES), ex.lt(LOOP, TILES), (), "provenance"),
        (ex.lt(0, SIZE), TRUE, (POSITIVE,), "fold"),
        (ex.lt(0, TILES), TRUE, (POSITIVE, ex.le(1, EXTENT)), "fold"),
        (
            ex.le(ex.add(ex.mul(BID, 1024), sym(LANE)), 2**31 - 1),
            TRUE,
            (ex.le(GRID, 65535), ex.le(SIZE, 4096)),
            "fold",
        ),
        (ex.le(0, ex.mul(BID, SIZE)), TRUE, (POSITIVE,), "fold"),
        (ex.lt(ex.mul(LOOP, SIZE), EXTENT), ex.lt(LOOP, TILES), (POSITIVE,), "entail"),
        (ex.lt(ex.mul(BID, SIZE), EXTENT), TRUE, (POSITIVE, ex.le(GRID, TILES)), "entail"),
        (
            ex.lt(LINE, EXTENT),
            TRUE,
            (POSITIVE, ex.eq(ex.mod(EXTENT, SIZE), 0), ex.le(GRID, ex.floordiv(EXTENT, SIZE))),
            "entail",
        ),
        (ex.lt(ex.minimum(LOOP, COUNT), EXTENT), ex.lt(COUNT, EXTENT), (), "entail"),
        (ex.lt(ex.floordiv(BID, COUNT), ROWS), ex.lt(BID, ex.mul(ROWS, COUNT)), (ex.le(1, COUNT),), "entail"),
    ],
    ids=str,
)
def test_rung_of_a_bound(goal: Expr, given: Expr, facts: tuple[Expr, ...], rung: str) -> None:
    outcome = tried(Holds(goal, given), context(*facts))
    assert (outcome.proved, outcome.rung) == (True, rung)


def test_order_follows_the_array() -> None:
    store, load = access(tile(BID)), access(tile(BID), effect=Effect.READ)
    assert tried(Ordered(store, load, "out"), context()).rung == "provenance"
    other = access(tile(BID), array="y", effect=Effect.READ)
    assert tried(Ordered(store, other, "out"), context()).reason == "needs-contract"


def test_rungs_can_be_left_out() -> None:
    goal = self_disjoint(element(STRIDED))
    assert NAMES == ("provenance", "fold", "entail", "covers", "digits", "tables", "smt")
    assert tried(goal, context(POSITIVE), without=frozenset({"provenance"})).rung == "digits"
    assert tried(goal, context(POSITIVE), without=frozenset({"provenance", "digits"})).rung == "smt"
    outcome = tried(goal, context(POSITIVE), without=frozenset(NAMES))
    assert (outcome.proved, outcome.rung) == (False, "none")


def test_what_is_assumed_is_used() -> None:
    goal = Holds(ex.lt(BID, 4), TRUE)
    assert prove(obligation(goal, ex.lt(BID, 3)), context(), Session()).proved
    assert not prove(obligation(goal), context(), Session()).proved


def hold_against_enumeration(question: Question, rng: random.Random, proved: Counter[str]) -> None:
    """Count a goal that a rung without a solver proves, and look for a counterexample to it."""
    names = [name for name, decide in RUNGS if decide(question)]
    if names:
        proved[names[0]] += 1
        assert next(solutions(question.negated, rng, range(-2, 4), 3000), None) is None, question


def test_cheap_rungs_agree_with_enumeration_on_bounds() -> None:
    """Random premises and goals: what fold and entail prove has no counterexample."""
    rng = random.Random(4)
    leaves = [BID, LOOP, SIZE, COUNT]
    proved: Counter[str] = Counter()
    for _ in range(1600):
        given = ex.all_of(*(random_boolean(rng, leaves, rng.randint(0, 1)) for _ in range(rng.randint(1, 5))))
        base = random_boolean(rng, leaves, rng.randint(0, 1))
        facts = [f for f in (POSITIVE, ex.le(1, COUNT), ex.le(GRID, TILES)) if rng.random() < 0.5]
        question = Question(obligation(Holds(base, given)), context(*facts))
        hold_against_enumeration(question, rng, proved)
    assert min(proved["fold"], proved["entail"]) > 15, proved


def test_cheap_rungs_agree_with_enumeration_on_quotients() -> None:
    """The same where premises limit products and goals speak of quotients, divisors of any sign included."""
    rng = random.Random(9)
    leaves = [BID, LOOP, SIZE, COUNT]
    proved: Counter[str] = Counter()
    for _ in range(1000):
        a, b, c, d = (random_integer(rng, leaves, rng.choice((0, 0, 1))) for _ in range(4))
        choices = [
            ex.le(1, COUNT),
            ex.le(0, LOOP),
            ex.lt(a, ex.mul(COUNT, b)),
            ex.le(c, ex.mul(COUNT, LOOP)),
            ex.ne(d, 0),
            ex.any_of(ex.lt(BID, 0), ex.le(1, COUNT)),
            ex.eq(rng.choice(leaves), rng.choice(leaves)),
            ex.eq(rng.choice(leaves), rng.randint(-1, 3)),
        ]
        given = ex.all_of(*(fact for fact in choices if rng.random() < 0.6))
        quotient = ex.floordiv(rng.choice((a, c, ex.add(a, COUNT))), COUNT)
        goals = [ex.lt(quotient, b), ex.le(quotient, ex.floordiv(c, COUNT)), ex.le(1, d), ex.lt(quotient, LOOP)]
        question = Question(obligation(Holds(rng.choice(goals), given)), context())
        hold_against_enumeration(question, rng, proved)
    assert min(proved["fold"], proved["entail"]) > 30, proved


def test_cheap_rungs_agree_with_enumeration_on_products_of_branches() -> None:
    """The same where minima and conditionals are factors, and products are compared that share one."""
    rng = random.Random(10)
    leaves = [BID, LOOP, SIZE, COUNT]
    proved: Counter[str] = Counter()
    for _ in range(900):
        a, b, c, d = (random_integer(rng, leaves, rng.choice((0, 0, 1))) for _ in range(4))
        chosen = ex.ite(ex.le(rng.choice((0, c)), rng.choice(leaves)), a, b)
        least = rng.choice((ex.minimum(a, b), ex.maximum(a, b), chosen))
        choices = [
            ex.le(rng.randint(0, 2), COUNT),
            ex.le(0, LOOP),
            ex.le(rng.choice((0, 1)), d),
            ex.lt(ex.mul(COUNT, c), ex.mul(COUNT, d)),
            ex.lt(ex.mul(SIZE, LOOP), ex.sub(ex.mul(SIZE, COUNT), rng.choice((0, SIZE)))),
            ex.le(a, d),
            ex.le(b, d),
        ]
        given = ex.all_of(*(fact for fact in choices if rng.random() < 0.6))
        factor = rng.choice((COUNT, SIZE, LOOP))
        product = ex.mul(factor, least)
        goals = [
            ex.le(product, ex.mul(factor, d)),
            ex.le(0, ex.sub(ex.mul(factor, COUNT), rng.choice((factor, ex.mul(factor, LOOP))))),
            ex.lt(c, d),
            ex.le(least, d),
        ]
        question = Question(obligation(Holds(rng.choice(goals), given)), context())
        hold_against_enumeration(question, rng, proved)
    assert min(proved["fold"], proved["entail"]) > 30, proved


def test_provenance_agrees_with_enumeration() -> None:
    """Random index tuples of two accesses: what provenance proves has no counterexample."""
    rng = random.Random(8)
    leaves = [BID, BID1, LOOP, GRID, SIZE, COUNT, sym(LANE)]
    parts = [
        BID,
        BID1,
        LINE,
        STRIDED,
        ex.floordiv(BID, COUNT),
        ex.mod(BID, COUNT),
        ex.add(BID, ex.mul(LOOP, GRID)),
        HIGH_DIGIT,
        TOP_DIGIT,
    ]
    proved: Counter[Between] = Counter()
    for _ in range(800):
        picked = [rng.choice(parts) if rng.random() < 0.7 else random_integer(rng, leaves, 1) for _ in range(2)]
        picked = [
            rng.choice((p, ex.add(p, COUNT), ex.mul(p, rng.randint(-2, 2)), ex.mul(p, COUNT))) for p in picked
        ]
        make = tile if rng.random() < 0.3 else element
        fixed = ex.eq(rng.choice(parts), rng.choice((ZERO, COUNT))) if rng.random() < 0.3 else TRUE
        one = access(make(picked[0]), element(picked[1]), guard=fixed)
        between = rng.choice((Between.BLOCKS, Between.LANES))
        facts = [f for f in (POSITIVE, ex.le(1, COUNT)) if rng.random() < 0.7]
        where = context(*facts, grid_axes=rng.choice(((0,), (0, 1), (1,))))
        question = Question(obligation(Disjoint(one, one, between)), where)
        if RUNGS[0][1](question):
            proved[between] += 1
            found = next(solutions(negation(question.obligation.goal, where), rng, range(4), 3000), None)
            assert found is None, (question, found)
    assert min(proved.values()) > 30, proved


def test_digits_agree_with_enumeration() -> None:
    """Random offsets made of digits, with limits that may be missing: what the rung proves has no
    counterexample."""
    rng = random.Random(15)
    lane = sym(LANE)
    digits = [BID, BID1, LOOP, lane, ex.floordiv(BID, COUNT), ex.mod(BID, COUNT), ex.add(BID, lane)]
    bases = [SIZE, COUNT, ex.mul(SIZE, COUNT), ex.const(3)]
    decide = dict(RUNGS)["digits"]
    proved: Counter[Between] = Counter()
    for _ in range(1200):
        high, low = rng.sample(digits, 2)
        base = rng.choice(bases)
        offset = ex.add(ex.mul(high, base), low)
        if rng.random() < 0.4:
            offset = ex.add(ex.mul(offset, rng.choice(bases)), rng.choice(digits))
        if rng.random() < 0.2:  # counts down
            offset = ex.add(ex.mul(high, base), ex.sub(base, ex.add(low, rng.randint(0, 1))))
        limits = [ex.lt(digit, rng.choice((base, base, SIZE))) for digit in digits if rng.random() < 0.5]
        limits += [ex.lt(low, base)] if rng.random() < 0.5 else [ex.le(low, base)]
        one = access(element(offset), guard=ex.all_of(*limits))
        shifted = ex.add(offset, rng.choice((ZERO, rng.choice(bases))))
        two = (
            one
            if rng.random() < 0.5
            else access(element(shifted), guard=ex.all_of(*limits[rng.randint(0, 1) :]))
        )
        facts = [f for f in (POSITIVE, ex.le(1, COUNT), ex.le(2, COUNT)) if rng.random() < 0.7]
        where = context(*facts, grid_axes=rng.choice(((0,), (0, 1), (1,))))
        between = rng.choice((Between.BLOCKS, Between.LANES, Between.PROGRAM, Between.THREADS))
        question = Question(obligation(Disjoint(one, two, between)), where)
        if decide(question) and not RUNGS[0][1](question):
            proved[between] += 1
            found = next(solutions(negation(question.obligation.goal, where), rng, range(4), 3000), None)
            assert found is None, (question, found)
    assert len(proved) == 4, proved
    assert min(proved.values()) > 5, proved


def test_digits_that_count_down_beside_some_that_count_up_agree_with_enumeration() -> None:
    """The same with `n * f - 1 - k` in one access and another multiple of f in the other."""
    rng = random.Random(16)
    lane = sym(LANE)
    digits = [BID, BID1, LOOP, lane, ex.floordiv(BID, COUNT), ex.mod(BID, COUNT)]
    decide = dict(RUNGS)["digits"]
    proved = 0
    for _ in range(600):
        high, low, last = rng.sample(digits, 3)
        base, width = rng.choice([SIZE, COUNT]), rng.choice([SIZE, COUNT, ex.const(2)])
        guard = ex.all_of(*(ex.lt(d, b) for d, b in ((low, base), (last, width)) if rng.random() < 0.9))
        pair = []
        for _ in range(2):
            start = ex.mul(base, rng.choice((ZERO, ex.const(1), ex.const(2), COUNT, ex.add(COUNT, 1))))
            up, down = ex.add(start, low), ex.sub(start, ex.add(low, rng.choice((1, 1, 1, 0, 2))))
            row = ex.add(ex.mul(high, rng.choice((1, 1, 1, 2)), base), rng.choice((up, down)))
            pair.append(access(element(ex.add(ex.mul(row, width), last)), guard=guard))
        where = context(POSITIVE, ex.le(1, COUNT), grid_axes=rng.choice(((0,), (1,))))
        question = Question(obligation(Disjoint(*pair, Between.BLOCKS)), where)
        if decide(question):
            proved += pair[0] != pair[1]
            found = next(solutions(negation(question.obligation.goal, where), rng, range(4), 3000), None)
            assert found is None, (question, found)
    assert proved > 5
