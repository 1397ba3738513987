"""Verdicts against launches: what is called safe must not go wrong, what is called violated must.

A refutation is the worst bug that a checker can have. To look at one, run `benchmarks/soundness.py` with the
seed that the message names.
"""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from soundness_judge import judge, lowered
from soundness_launches import trials
from soundness_mutate import functions, kernels, mutant
from soundness_oracle import wrongs
from soundness_texts import Reading, Unreadable

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = sorted((ROOT / "fixtures" / "cutile").rglob("*.py"))
LIBRARY = sorted(p for p in (ROOT / "kernels").glob("*.py") if kernels(p.read_bytes()))
LAUNCHES = 8
SEEDS = range(7000, 7040)


def _safe(path: Path) -> list[str]:
    """The kernels of a fixture that it says are safe."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = []
    for function in functions(path.read_bytes()):
        first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
        header = "\n".join(lines[max(0, first - 2) : function.body[0].lineno - 1])
        if re.search(r"# verdict: (proved|conditional)\b", header):
            found.append(function.name)
    return found


def _identity(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# ---- fixtures and library ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [pytest.param(p, id=_identity(p)) for p in LIBRARY])
def test_no_launch_refutes_the_library(path: Path, verified) -> None:
    for name in kernels(path.read_bytes()):
        judgement = judge(path, name, LAUNCHES, name, report=verified(path))
        assert not judgement.problems, "\n".join(judgement.problems[:2])
        assert judgement.launches


@pytest.mark.parametrize("path", [pytest.param(p, id=_identity(p)) for p in FIXTURES if _safe(p)])
def test_no_launch_refutes_a_safe_fixture(path: Path, verified) -> None:
    for name in _safe(path):
        judgement = judge(path, name, LAUNCHES, name, report=verified(path))
        assert not judgement.problems, "\n".join(judgement.problems[:2])


# ---- mutants -------------------------------------------------------------------------------------------------


def test_no_launch_refutes_a_mutant(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    launches = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        original = rng.choice([*FIXTURES, *LIBRARY])
        changed = mutant(original.read_bytes(), rng)
        if changed is None:
            continue
        place = tmp_path / original.parent.name
        if not place.exists():
            shutil.copytree(original.parent, place)
        (place / original.name).write_bytes(changed.source)
        judgement = judge(place / original.name, changed.kernel, LAUNCHES, str(seed))
        problem = "\n".join(judgement.problems[:1])
        assert not judgement.problems, f"seed {seed}: {_identity(original)}: {changed.what}\n{problem}"
        seen[judgement.verdict] += 1
        launches += judgement.launches
        shutil.copyfile(original, place / original.name)
    assert seen["violated"] > len(SEEDS) // 4
    safe = seen["proved"] + seen["conditional"]
    assert safe > len(SEEDS) // 6
    assert launches > safe * LAUNCHES // 2


# ---- the judge itself ----------------------------------------------------------------------------------------

RACES = ["races/dropped_axis.py", "races/grid2d.py", "bounds/outside.py", "mutants/matmul.py"]


@pytest.mark.parametrize("file", RACES)
def test_launches_of_violated_kernels_go_wrong(file: str) -> None:
    """Enough of the launches that are drawn show what is wrong with a kernel."""
    path = ROOT / "fixtures" / "cutile" / file
    wrong = 0
    for name in kernels(path.read_bytes()):
        kernel = lowered(path, name)
        assert kernel is not None
        wrong += any(any(wrongs(t)) for t in trials(kernel, str(path), LAUNCHES, name))
    assert wrong


def test_conditions_are_read_as_python_reads_them() -> None:
    x = np.zeros((6, 4), np.float32)
    tables = {"t": np.array([2, 0, 1]), "pairs": np.array([[0, 1], [1, 1]]), "sums": np.array([0, 2, 2, 3])}
    launch = Reading((3, 2, 1), {"x": x, "xs": [x, x[:2]], "T": 4, **tables})
    true = [
        "grid[0] <= cdiv(x.shape[0], 2)",
        "x.shape[0] % 3 == 0 and not x.shape[1] % 3 == 0",
        "x.stride(0) >= x.shape[1]",
        "xs[*].shape[0] >= 2",
        "x.shape[0] - 1 == 5 if T > 2 else False",
        "min(T, 3) == 3 or T // 0",
        "t[0] == 2 and len(xs) == 2 and numel(x) == 24",
        "within(t, 0, 3) and permutation(t) and distinct(t) and not increasing(t)",
        "distinct_pairs(pairs) and prefix_sum(sums, of=t) and not prefix_sum(t, of=pairs)",
        "within(t[0::2], 1, 3) and within(pairs[:, 0], 0, 2) and increasing(t[1::2])",
        "disjoint(t, x) and not disjoint(x, xs) and not disjoint(xs)",
    ]
    assert [text for text in true if not launch.holds(text)] == []
    assert not launch.holds("x.shape[0] % (T - 4) == 0")
    assert not launch.holds("t[-1] == 1")
    with pytest.raises(Unreadable):
        launch.holds("__import__('os')")
    with pytest.raises(Unreadable):
        launch.holds("y.shape[0] == 1")
