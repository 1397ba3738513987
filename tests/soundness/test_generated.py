"""Random kernels: what the IR says that they touch, compared with what the backend sees them touch."""

from __future__ import annotations

from pathlib import Path

import pytest
from soundness_coverage import Tally, unadmitted, unlogged
from soundness_generate import generated
from soundness_launches import trials
from soundness_undefined import unstated

from tilecheck.analysis.borrow import build
from tilecheck.analysis.facts import Facts
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.registry import load_rules
from tilecheck.verify.stages import state_obligations

LAUNCHES = 4
GROUP = 12
GROUPS = range(0, 48, GROUP)


@pytest.mark.parametrize("first", GROUPS)
def test_ir_and_log_agree_on_generated_kernels(first: int, tmp_path: Path) -> None:
    rules = [entry.rule for entry in load_rules()]
    tally, ran = Tally(), 0
    for seed in range(first, first + GROUP):
        program = generated(seed)
        path = tmp_path / f"seed_{seed}.py"
        path.write_text(program.text)
        [definition] = find_kernels(Project().add(load(str(path))))
        try:
            kernel = lower(definition)
        except UnsupportedConstruct:
            continue
        obligations, _ = state_obligations(Facts(kernel, build(kernel, ())), rules)
        # Values that grow in a loop until they wrap are the standing obligation S5, not TC305.
        for trial in trials(kernel, str(path), LAUNCHES, str(seed)):
            ran += 1
            problems = [*unadmitted(trial, tally), *unlogged(trial, tally, exact=not program.early)]
            problems += unstated(trial, obligations, tally, ignore=("overflow",))
            assert not problems, f"seed {seed}\n{problems[0]}\n{program.text}"
    assert ran > 2 * GROUP
    assert tally.records > 10 * GROUP
    assert tally.both_ways
