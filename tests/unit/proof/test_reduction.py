"""The search for the part of the candidates that a proof needs."""

from __future__ import annotations

import random
from itertools import combinations

from tilecheck.ir.expr import Expr, Kind, Symbol, le, sym
from tilecheck.proof.conditions.minimisation import sufficient


def conditions(count: int) -> tuple[Expr, ...]:
    return tuple(le(n, sym(Symbol("n", Kind.SCALAR))) for n in range(count))


def test_parts_are_enough_and_none_of_them_can_be_left_out() -> None:
    rng = random.Random(1)
    for _ in range(200):
        choices = conditions(rng.randint(1, 9))
        enough = [
            frozenset(rng.sample(choices, rng.randint(0, len(choices)))) for _ in range(rng.randint(0, 3))
        ]

        def proves(some: tuple[Expr, ...], enough: list[frozenset[Expr]] = enough) -> bool:
            return any(part <= set(some) for part in enough)

        found = list(sufficient(proves, choices))
        assert bool(found) == bool(enough)
        for part in found:
            assert proves(part)
            assert not part or not any(proves(fewer) for fewer in combinations(part, len(part) - 1))


def test_early_candidates_are_preferred() -> None:
    a, b, c, d = conditions(4)
    ways = ({b, d}, {a, c}, {a, d})
    assert next(sufficient(lambda some: any(way <= set(some) for way in ways), (a, b, c, d))) == (a, c)


def test_a_part_that_will_not_do_is_followed_by_another() -> None:
    a, b, c = conditions(3)
    assert list(sufficient(lambda some: bool({a, c} & set(some)), (a, b, c))) == [(a,), (c,)]


def test_what_no_part_may_have_is_left_out_at_once() -> None:
    a, b, c, d = conditions(4)
    asked: list[tuple[Expr, ...]] = []

    def proves(some: tuple[Expr, ...]) -> bool:
        asked.append(some)
        return a in some or {c, d} <= set(some)

    assert list(sufficient(proves, (a, b, c, d), refused=lambda choice: choice is a)) == [(c, d)]
    assert all(a not in some for some in asked[1:])


def test_where_all_that_is_enough_is_refused_there_is_no_part() -> None:
    a, b, c = conditions(3)
    asked: list[tuple[Expr, ...]] = []

    def proves(some: tuple[Expr, ...]) -> bool:
        asked.append(some)
        return a in some

    assert not list(sufficient(proves, (a, b, c), refused=lambda choice: choice is a))
    assert asked == [(a, b, c), (b, c)]


def test_nothing_is_refused_where_all_are_not_enough() -> None:
    def refused(choice: Expr) -> bool:
        raise AssertionError(choice)

    assert not list(sufficient(lambda _: False, conditions(3), refused))
