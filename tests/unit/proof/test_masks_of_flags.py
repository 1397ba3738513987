"""Masks that a flag of compile time makes weaker: what both cases say stands by itself, and the rest is taken
case by case."""

from __future__ import annotations

import random
from dataclasses import replace

from proof_kernels import BID, COUNT, LANE, SIZE, access, element, obligation

from tilecheck import check_source
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
from tilecheck.proof.obligation import Between, Disjoint
from tilecheck.proof.rewrite.case_split import cases

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


TEXT = """
import triton
import triton.language as tl


@triton.jit
def masked(out_ptr, n, m, BM: tl.constexpr, BN: tl.constexpr, EVEN_M: tl.constexpr, EVEN_N: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    p = out_ptr + i[:, None] * n + j[None, :]
    if EVEN_M and EVEN_N:
        mask = None
    elif EVEN_M:
        mask = j[None, :] < n
    elif EVEN_N:
        mask = i[:, None] < m
    else:
        mask = (i[:, None] < m) & (j[None, :] < n)
    tl.store(p, 1.0, mask)
"""


def test_each_case_needs_what_its_mask_lets_through() -> None:
    [kernel] = check_source(TEXT, "kernel.py").kernels
    assert kernel.verdict.value == "conditional"
    found = set(kernel.conditions)
    assert {
        "not (not EVEN_M and not EVEN_N) or m * n <= numel(out_ptr)",
        "not (EVEN_M and not EVEN_N) or BM * n * grid[0] <= numel(out_ptr)",
        "not (EVEN_M and EVEN_N) or grid[1] <= n // BN",
    } <= found
    assert not any(c.startswith("grid[") or "numel(out_ptr) >=" in c for c in found)  # asked of all launches


def test_no_case_is_ruled_out_to_save_another() -> None:
    text = TEXT.replace("(i[:, None] < m) & (j[None, :] < n)", "j[None, :] < n")
    [kernel] = check_source(text, "kernel.py").kernels
    flags = "EVEN_M", "not EVEN_M", "EVEN_N", "not EVEN_N", "EVEN_M or EVEN_N", "EVEN_M or not EVEN_N"
    assert kernel.verdict.value == "conditional"
    assert not {*flags, "not EVEN_M or not EVEN_N"} & set(kernel.conditions)
