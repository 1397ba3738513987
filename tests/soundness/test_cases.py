"""The prover against enumeration: random index expressions, and proved ones with one mistake.

To look at a case, give its number to `drawn` and print `text()`, or run `benchmarks/soundness.py --level ir
--seed NUMBER --count 1`.
"""

from __future__ import annotations

from collections import Counter

import pytest
from soundness_cases import CONTRACTS, GOALS, Case, Place, Reach, drawn
from soundness_decided import decide, mutants, whole
from soundness_truth import Runner

from tilecheck.ir.kernel import Space
from tilecheck.proof.rungs import provenance
from tilecheck.proof.solver import lemmas

COUNT = 300
MUTATED = range(9000, 9080)
WHOLE = [n for n in range(9000, 9060) if n % 5]


def test_no_launch_refutes_a_proved_case() -> None:
    seen: Counter[str] = Counter()
    for number in range(COUNT):
        case = drawn(number)
        decided = decide(case, number)
        assert not decided.refuted, f"case {number}: {decided.rung}, {decided.wrong}\n{case.text()}"
        seen[decided.verdict] += 1
        seen[case.goal] += 1
        seen["wrong"] += decided.wrong is not None
        seen["table"] += case.contract in CONTRACTS
    assert seen["proved"] > COUNT // 5
    assert seen["wrong"] > COUNT // 3
    assert all(seen[word] > COUNT // 25 for word in (*GOALS, "table"))


def test_no_launch_refutes_a_mutant_of_a_proved_case() -> None:
    wrong: Counter[str] = Counter()
    for number, name, case, decided in mutants(MUTATED):
        assert not decided.refuted, f"case {number}, {name}: {decided.wrong}\n{case.text()}"
        if decided.wrong is not None:
            wrong[decided.verdict] += 1
    assert wrong["violated"] > 15
    assert wrong["violated"] >= 0.8 * wrong.total()


def test_no_launch_refutes_launch_conditions() -> None:
    safe = launches = 0
    for number in WHOLE:
        case = drawn(number)
        decided = whole(case, number)
        assert not decided.refuted, f"case {number}: {decided.rung}, {decided.wrong}\n{case.text()}"
        safe += decided.verdict != "open"
        launches += decided.ran
    assert safe >= 4
    assert launches > 10 * safe


# ---- the enumeration itself ----------------------------------------------------------------------------------


def _line(goal: str, *, size: str = "T", guard: str = "True", index: str = "b0") -> Case:
    reach = Reach((Place(index, "T", size),), Space.TILE, guard)
    return Case(goal, reach, reach, ("T >= 1", "S >= 1"))


LAUNCH = {"T": 2, "S": 1, "n": 5, "m": 1, "G0": 3, "G1": 1, "E0": 5, "E1": 1, "L": 0, "t": []}


@pytest.mark.parametrize(
    ("case", "wrong"),
    [
        (_line("blocks"), False),
        (_line("blocks", size="T + 1"), True),
        (_line("blocks", size="T + 1", guard="b0 % 2 == 0"), False),
        (_line("blocks", index="b0 // 2"), True),
        (_line("blocks", index="b0 + k * G0", guard="k < 2"), False),
        (_line("lanes"), False),
        (_line("iterations", index="b0 + k // 2", guard="k < 2"), True),
        (_line("bounds"), False),
        (_line("bounds", index="b0 + 1"), True),
    ],
)
def test_enumeration(case: Case, wrong: bool) -> None:
    assert (Runner.of(case).refuted(LAUNCH) is not None) == wrong


def _any_refuted(count: int) -> bool:
    return any(decide(drawn(number), number).refuted for number in range(count))


def test_a_wrong_lemma_is_caught(monkeypatch) -> None:
    def too_strong(linear):  # every product is at least 1
        return (f"(<= 1 {linear.name(m)})" for m in list(linear.products))

    monkeypatch.setattr(lemmas, "signs", too_strong)
    assert _any_refuted(300)


def test_a_wrong_rung_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(provenance, "_is_one_tiling", lambda one, two: True)
    assert _any_refuted(300)
