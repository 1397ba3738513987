"""What was proved of a block helps to prove more of it, and never itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from proof_kernels import BID, COUNT, EXTENT, SIZE, context, obligation

from tilecheck.ir.expr import TRUE, all_of, le, lt, mul
from tilecheck.proof.decide import _Fact, _prove_all, _with_facts
from tilecheck.proof.obligation import Holds
from tilecheck.proof.solver.session import Session
from tilecheck.verify.pipeline import verify_paths

GEMM = Path(__file__).parents[3] / "fixtures" / "cutile" / "models" / "gemm.py"
GUARD = lt(BID, COUNT)
FACT = _Fact(frozenset([GUARD]), le(1, SIZE), lt(BID, EXTENT))


def _bound(given=GUARD, stage=1):
    return replace(obligation(Holds(lt(mul(BID, SIZE), mul(EXTENT, SIZE)), given)), stage=stage)


def test_a_fact_comes_with_its_assumption() -> None:
    assert _with_facts(_bound(), [FACT]).assume is all_of(FACT.assume, FACT.goal)


def test_a_fact_helps_under_more_guards_and_not_under_fewer() -> None:
    narrow = _bound(all_of(GUARD, lt(COUNT, SIZE)))
    assert _with_facts(narrow, [FACT]).assume is not TRUE
    assert _with_facts(_bound(TRUE), [FACT]).assume is TRUE


def test_no_fact_helps_what_all_facts_assume() -> None:
    assert _with_facts(_bound(stage=0), [FACT]).assume is TRUE


def test_bounds_before_a_loop_are_proved_before_those_inside() -> None:
    outside, inside = _bound(), _bound(all_of(GUARD, lt(COUNT, SIZE)))
    known = context(le(COUNT, EXTENT), le(1, SIZE))
    outcomes, facts = _prove_all([inside, outside], known, Session(), frozenset())
    assert [o.proved for o in outcomes] == [True, True]
    assert [o.rung for o in outcomes] != ["smt", "smt"]
    assert all(f.given <= frozenset([GUARD]) for f in facts)


def test_conditions_that_divisors_need_are_asked_for() -> None:
    [kernel] = verify_paths([f"{GEMM}::persistent_grouped_batched"]).kernels
    assert "GROUP >= 1" in kernel.conditions
