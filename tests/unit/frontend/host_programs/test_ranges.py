"""Comparisons with literals decide each other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilecheck.frontend.host_programs.values.ranges import Ranges
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol

Paths = Callable[..., list[list[str]]]
N = E.sym(Symbol("n", Kind.HOST))


@pytest.mark.parametrize(
    ("known", "asked", "answer"),
    [
        (E.le(N, 4), E.le(N, 8), True),
        (E.le(N, 4), E.le(N, 2), None),
        (E.le(N, 4), E.lt(4, N), False),
        (E.lt(4, N), E.le(5, N), True),
        (E.lt(4, N), E.lt(5, N), None),
        (E.eq(N, 3), E.lt(N, 4), True),
        (E.eq(N, 3), E.eq(N, 4), False),
        (E.le(E.add(N, 1), 4), E.le(N, 3), True),
        (E.le(E.add(N, 1), 4), E.le(N, 2), None),
        (E.le(N, E.add(N, 1)), E.le(N, 2), None),
    ],
)
def test_decide(known: Expr, asked: Expr, answer: bool | None) -> None:
    ranges = Ranges()
    ranges.learn(known)
    assert ranges.decide(asked) is answer


def test_two_bounds_meet() -> None:
    ranges = Ranges()
    ranges.learn(E.le(2, N))
    ranges.learn(E.le(N, 2))
    assert ranges.decide(E.eq(N, 2)) is True


def test_the_first_size_that_fits_has_one_path_for_each_size(paths: Paths) -> None:
    found = paths(
        """
        def f(x: torch.Tensor, n: int):
            sizes = [1, 2, 4]
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                x[: next(size for size in sizes if size >= n)].zero_()
        """
    )
    writes = sorted(line.split("writes ")[1] for path in found for line in path)
    assert writes == ["x[0:1]", "x[0:2]", "x[0:4]"]
