"""What is claimed of values that a host makes is true of these values: enumerated over small tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilecheck.ir.contents import Contents, filled, permuted, ranged
from tilecheck.ir.expr import Expr, Kind, Symbol, const, evaluate, sym
from tilecheck.ir.kernel import Contract
from tilecheck.ir.parts import WHOLE
from tilecheck.model import Site, Span
from tilecheck.proof.launches.contracts import claim
from tilecheck.proof.refute.table_contents import Promise, keeps

SITE = Site("k.py", Span(0, 1))
N = Symbol("n", Kind.HOST)
BOUNDS = {
    "filled": [(v,) for v in (-1, 0, 1)],
    "within": [(0, 2), (0, 4), (-2, 1)],
    "within_or": [(0, 2, -1), (1, 4, 0)],
    "distinct": [(), (0,), (1,)],
    "increasing": [()],
    "distinct_pairs": [()],
}
PARTS = (WHOLE, ((0, 2),), ((1, 2),), ((2, 0),), ((-1, 0),))
OF_PARTS = ("filled", "within", "within_or", "distinct", "increasing")
CASES = [
    (kind, bounds, part)
    for kind, all_ in BOUNDS.items()
    for bounds in all_
    for part in (PARTS if kind in OF_PARTS else (WHOLE,))
]


def is_met(condition: Expr, length: int) -> bool:
    """Whether a condition is true of tables of that length."""
    return bool(evaluate(condition, lambda _: length))


def tables() -> list[tuple[Contents, list[tuple[int, ...]]]]:
    """What a text says, and all tables of at most four elements that it admits, by their lengths."""
    found = [(filled(const(value), sym(N)), [(value,) * n for n in range(5)]) for value in (-1, 0, 1)]
    for start, step in itertools.product((-1, 0, 3), (-1, 0, 1, 2)):
        made = [tuple(start + step * i for i in range(n)) for n in range(5)]
        found.append((ranged(const(start), const(step), sym(N)), made))
    orders = [order for n in range(5) for order in itertools.permutations(range(n))]
    found.append((permuted(sym(N)), orders))
    displays = ((), (3,), (0, 1), (1, 0, 0), (0, 0, 1, 1), (2, 1, 0, 3))
    found += [(Contents("listed", listed=d, count=const(len(d))), [d]) for d in displays]
    bounded = [t for n in range(4) for t in itertools.product((0, 1), repeat=n)]
    found.append((Contents("some", low=const(0), high=const(2), count=sym(N)), bounded))
    rising = [t for t in bounded if list(t) == sorted(t)]
    found.append((Contents("some", low=const(0), high=const(2), increasing=True, count=sym(N)), rising))
    return found


@pytest.mark.parametrize(("kind", "bounds", "part"), CASES)
def test_what_is_claimed_is_so(kind: str, bounds: tuple[int, ...], part) -> None:
    contract = Contract(kind, "t", tuple(map(const, bounds)), kind, None, SITE, part=part)
    promise = Promise(kind, bounds, part)
    claimed = 0
    for contents, admitted in tables():
        holds = claim(contract, contents, sym(N), lambda e: e)
        assert holds is not None
        for table in admitted:
            if is_met(holds, len(table)):
                claimed += 1
                assert keeps(np.array(table, np.int64), promise), (contents, table)
    assert claimed > 0


@pytest.mark.parametrize(("kind", "bounds", "part"), CASES)
def test_parts_and_repetitions_hold_less(kind: str, bounds: tuple[int, ...], part) -> None:
    """What is kept of a part, of another order, or of repeated elements is true of these."""
    contract = Contract(kind, "t", tuple(map(const, bounds)), kind, None, SITE)
    promise = Promise(kind, bounds, WHOLE)
    views = {
        "part": (lambda c: c.of_part(ordered=True), lambda t: t[1:]),
        "order": (lambda c: c.of_part(ordered=False), lambda t: t[::-1]),
        "twice": (lambda c: c.repeated(), lambda t: t + t),
    }
    for contents, admitted in tables():
        for less, seen in views.values():
            for table in admitted:
                holds = claim(contract, less(contents), const(len(seen(table))), lambda e: e)
                if holds is not None and is_met(holds, len(table)):
                    assert keeps(np.array(seen(table), np.int64), promise), (contents, table)
