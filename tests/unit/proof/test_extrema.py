"""What comparisons with minima and maxima say of branches follows from them."""

from __future__ import annotations

import random

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import Kind, Symbol, sym
from tilecheck.proof.algebra.extrema import with_branches
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.rungs.entail import follows

A, B, N = (sym(Symbol(name, Kind.SCALAR)) for name in "abi")
FACTS = [
    compare(low, high)
    for compare in (ex.lt, ex.le)
    for low, high in [
        (N, ex.minimum(A, B)),
        (ex.maximum(A, B), N),
        (ex.maximum(A, N), ex.minimum(B, 5)),
        (ex.minimum(A, B), N),
        (N, ex.maximum(A, B)),
        (N, ex.minimum(B, ex.minimum(A, 7))),
        (ex.maximum(B, ex.maximum(A, 7)), N),
        (N, ex.maximum(B, ex.maximum(A, 7))),
    ]
]


def test_they_follow_from_the_fact() -> None:
    rng = random.Random(3)
    for fact in FACTS:
        found = list(with_branches([fact]))
        assert found[0] is fact
        for _ in range(200):
            values = {e.args[0]: rng.randint(-9, 9) for e in (A, B, N)}
            if ex.evaluate(fact, values.__getitem__):
                assert all(ex.evaluate(other, values.__getitem__) for other in found)


def test_only_branches_that_bound_are_named() -> None:
    assert [len(list(with_branches([fact]))) for fact in FACTS] == [3, 3, 5, 1, 1, 5, 5, 1] * 2


def test_one_branch_is_one_step() -> None:
    premises = Premises.of([ex.lt(ex.add(N, 2), ex.minimum(A, B))])
    assert follows(ex.lt(ex.add(N, 2), B), premises, 1)
    assert not follows(ex.lt(ex.add(N, 3), B), premises, 3)
