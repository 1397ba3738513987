"""Kernels that order accesses by atomics: no verdict contradicts what some or all interleavings do."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from soundness_protocols import falling_roles, has_race, random_roles, text

from tilecheck.verify.pipeline import verify_paths

KERNELS = 16  # for each seed


@pytest.mark.parametrize(("make", "seed"), [*((random_roles, s) for s in range(2)), (falling_roles, 0)])
def test_no_verdict_contradicts_an_interleaving(make, seed: int, tmp_path: Path) -> None:
    """What is called safe has no race in any interleaving, and what is called violated has one."""
    found: Counter[tuple[str, bool | None]] = Counter()
    for number in range(KERNELS):
        rng = random.Random(f"{seed}:{number}")
        roles, programs = make(rng), rng.choice((2, 2, 3))
        path = tmp_path / f"kernel_{number}.py"
        path.write_text(text(roles, programs))
        [kernel] = verify_paths([str(path)]).kernels
        races = has_race(roles, programs)
        assert kernel.internal_error is None, kernel.internal_error
        assert (kernel.verdict.value, races) not in (("conditional", True), ("proved", True)), path.read_text()
        assert (kernel.verdict.value, races) != ("violated", False), path.read_text()
        found[kernel.verdict.value, races] += 1
    assert found["conditional", False]
    assert found["violated", True]
