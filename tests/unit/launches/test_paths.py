"""Joining path conditions, and writing ranks out, change no meaning."""

from __future__ import annotations

import itertools
import random

from tilecheck.frontend.host.run import facts_of, join_paths
from tilecheck.ir.expr import (
    Expr,
    Kind,
    Symbol,
    all_of,
    any_of,
    bool_sym,
    evaluate,
    floordiv,
    mul,
    negate,
    sym,
    symbols,
)
from tilecheck.ir.host import host_extent, host_numel, quotient, row_major, with_ranks

ATOMS = [bool_sym(Symbol(name, Kind.HOST)) for name in "abcd"]


def _random(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.3:
        atom = rng.choice(ATOMS)
        return atom if rng.random() < 0.5 else negate(atom)
    parts = [_random(rng, depth - 1) for _ in range(rng.choice((2, 3)))]
    found = rng.choice((all_of, any_of))(*parts)
    return found if rng.random() < 0.7 else negate(found)


def _table(e: Expr) -> list[bool]:
    rows = itertools.product((False, True), repeat=len(ATOMS))
    return [
        bool(evaluate(e, dict(zip((a.args[0] for a in ATOMS), row, strict=True)).__getitem__)) for row in rows
    ]


def test_joining_is_or() -> None:
    rng = random.Random(1)
    for _ in range(600):
        a, b = _random(rng, 3), _random(rng, 3)
        assert _table(join_paths(a, b)) == _table(any_of(a, b)), (a, b)


def test_facts_are_the_condition() -> None:
    rng = random.Random(2)
    for _ in range(300):
        a = _random(rng, 3)
        assert _table(all_of(*facts_of(a))) == _table(a)


def test_paths_that_split_on_one_test_leave_what_was_known() -> None:
    known, test = ATOMS[0], ATOMS[1]
    assert join_paths(all_of(known, test), all_of(known, negate(test))) is known


def test_a_common_factor_cancels() -> None:
    a, b, c = (sym(Symbol(n, Kind.HOST)) for n in "abc")
    assert quotient(mul(a, b, c), mul(b, c)) is a
    assert quotient(mul(a, b), c) is floordiv(mul(a, b), c)
    assert quotient(mul(6, a), a).value == 6


def test_ranks() -> None:
    count, last = sym(host_numel("x")), sym(host_extent("x", -1))
    first, second = (sym(host_extent("x", k)) for k in range(2))
    assert with_ranks(floordiv(count, last), {"x": 2}) is first
    assert with_ranks(mul(count, last), {"x": 2}) is mul(first, second, second)
    assert with_ranks(count, {"y": 2}) is count
    assert [s.name for s in symbols(with_ranks(last, {"x": 3}))] == ["x.shape[2]"]


def test_row_major() -> None:
    sizes = [sym(Symbol(n, Kind.HOST)) for n in "abc"]
    assert row_major(sizes) == (mul(sizes[1], sizes[2]), sizes[2], mul())
    assert row_major([]) == ()
