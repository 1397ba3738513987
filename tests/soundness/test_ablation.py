"""Each rung of the ladder left out: verdicts get weaker, and none gets wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from soundness_judge import judge

from tilecheck.model import KernelReport, Verdict
from tilecheck.options import RUNGS, Options
from tilecheck.verify.pipeline import verify_paths

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = [
    "kernels/vector_add.py",
    "kernels/transpose.py",
    "fixtures/cutile/atomics/tickets.py",
    "fixtures/cutile/bounds/divisors.py",
    "fixtures/cutile/bounds/outside.py",
    "fixtures/cutile/gather/tables.py",
    "fixtures/cutile/loops/nested.py",
    "fixtures/cutile/ownership/unsafe_blocks.py",
    "fixtures/cutile/races/dropped_axis.py",
    "fixtures/cutile/races/grid2d.py",
    "fixtures/cutile/swizzle/paired_blocks.py",
    "fixtures/triton/attention/sequences.py",
    "fixtures/triton/loops/rows_in_pieces.py",
]
LAUNCHES = 6
# What a verdict may become: what is said with less to go by, never the contrary.
WEAKER = {
    Verdict.PROVED: {Verdict.PROVED, Verdict.CONDITIONAL, Verdict.TRUSTED, Verdict.UNKNOWN},
    Verdict.CONDITIONAL: {Verdict.CONDITIONAL, Verdict.TRUSTED, Verdict.UNKNOWN},
    Verdict.TRUSTED: {Verdict.TRUSTED, Verdict.UNKNOWN},
    Verdict.VIOLATED: {Verdict.VIOLATED, Verdict.UNKNOWN},
    Verdict.UNKNOWN: {Verdict.UNKNOWN},
}


def _rungs(kernel: KernelReport) -> set[str]:
    return {o.rung for o in kernel.obligations}


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("path", [pytest.param(ROOT / name, id=name) for name in SAMPLE])
def test_a_rung_left_out_weakens_verdicts_at_most(path: Path, rung: str, verified) -> None:
    report = verify_paths([str(path)], Options(without=frozenset({rung})))
    wrong = []
    for before, after in zip(verified(path).kernels, report.kernels, strict=True):
        assert rung not in _rungs(after)
        assert rung != "launch" or not after.conditions
        assert after.internal_error is None
        if after.verdict not in WEAKER[before.verdict]:
            wrong.append(f"{after.name}: {before.verdict.value} became {after.verdict.value}")
        elif after.conditions != before.conditions:
            judgement = judge(path, after.name, LAUNCHES, rung, report=report)
            wrong += judgement.problems[:1]
    assert not wrong, "\n".join(wrong)


def test_the_sample_uses_every_rung(verified) -> None:
    """So that leaving one out is felt: something is then proved by another, or not at all."""
    used = {r for name in SAMPLE for kernel in verified(ROOT / name).kernels for r in _rungs(kernel)}
    assert set(RUNGS) <= used
    verdicts = {kernel.verdict for name in SAMPLE for kernel in verified(ROOT / name).kernels}
    assert verdicts == set(Verdict)


def test_with_nothing_left_nothing_is_proved_that_needs_a_proof() -> None:
    report = verify_paths([str(ROOT / "kernels/vector_add.py")], Options(without=frozenset(RUNGS)))
    assert {o.verdict for k in report.kernels for o in k.obligations} == {"unknown"}
    assert {k.verdict for k in report.kernels} == {Verdict.UNKNOWN}
