"""What one kernel may cost: a count, and a limit that leaves things open and says nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tilecheck.analysis.borrow import build
from tilecheck.analysis.facts import Facts
from tilecheck.frontend.definitions import Definition, find_kernels
from tilecheck.frontend.launches import find_launches
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules import ModuleTable, Project
from tilecheck.frontend.source import parse
from tilecheck.ir.launch import Launch
from tilecheck.options import DEFAULT_BUDGET
from tilecheck.pipeline import launches_of
from tilecheck.proof.decide import Decision, decide
from tilecheck.proof.obligation import Obligation
from tilecheck.proof.work import Work
from tilecheck.registry import load_rules
from tilecheck.stages import state_obligations
from tilecheck.text import decode
from tilecheck.verdict import conclude

FIXTURES = Path(__file__).parents[3] / "fixtures"
KERNELS = (
    ("cutile/swizzle/grouped.py", "grouped_min"),
    ("triton/rows/layer_norm.py", "layer_norm"),
    ("triton/rows/rms_norm.py", "rms_norm_rows_overlapping"),
    ("triton/rows/layer_norm_backward.py", "weight_gradient_locked"),
)
LAUNCHED = ("triton/launch/vector_add.py", "triton/launch/rows.py")
PARTS = 6


def definitions(file: str) -> tuple[ModuleTable, tuple[Definition, ...]]:
    path = FIXTURES / file
    table = Project().add(parse(decode(str(path), path.read_bytes())))
    return table, find_kernels(table)


@cache
def read(file: str, name: str) -> tuple[Facts, tuple[Obligation, ...], tuple[Launch, ...]]:
    table, found = definitions(file)
    [definition] = [d for d in found if d.name == name]
    launches = launches_of(definition, find_launches(table))
    facts = Facts(lower(definition), build(lower(definition), launches))
    return facts, state_obligations(facts, [entry.rule for entry in load_rules()])[0], launches


def decided(file: str, name: str, work: Work) -> Decision:
    facts, obligations, _ = read(file, name)
    path = str(FIXTURES / file)
    return decide(facts.kernel, obligations, path, without=frozenset(), budget=DEFAULT_BUDGET, work=work)


@pytest.mark.parametrize(("file", "name"), KERNELS)
def test_a_limit_leaves_obligations_open_and_changes_no_other(file: str, name: str) -> None:
    unlimited = Work()
    whole = decided(file, name, unlimited)
    assert whole.work == unlimited.spent > 0
    opened = []
    for share in range(PARTS + 1):
        part = decided(file, name, Work(unlimited.spent * share // PARTS))
        for one, other in zip(part.settled, whole.settled, strict=True):
            if one.status != other.status:
                assert (one.status, one.reason) == ("unknown", "budget"), one.obligation.cause
        opened.append(sum(s.status == "unknown" for s in part.settled))
    assert opened == sorted(opened, reverse=True)
    assert opened[0] > opened[-1] == sum(s.status == "unknown" for s in whole.settled)


@pytest.mark.parametrize("file", LAUNCHED)
def test_a_limit_on_launches_makes_no_condition_hold_and_breaks_none(file: str) -> None:
    changed = 0
    for definition in definitions(file)[1]:
        facts, _, launches = read(file, definition.name)
        decision = decided(file, definition.name, Work())
        reports = [conclude(facts, decision, (), launches, file, b)[0] for b in (DEFAULT_BUDGET, 0)]
        for whole, cut in zip(*(report.launches for report in reports), strict=True):
            for one, other in zip(whole.conditions, cut.conditions, strict=True):
                assert one.text == other.text
                is_weaker = other.status == "unmet" or (one.status, other.status) == ("holds", "caller")
                assert other.status == one.status or is_weaker
                changed += one.status != other.status
    assert changed


def test_the_work_of_a_kernel_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from test_work import KERNELS, Work, decided
for file, name in KERNELS[1:3]:
    work = Work()
    decided(file, name, work)
    print(work.spent)
"""
    outputs = set()
    for seed in ("0", "1"):
        environment = os.environ | {
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        command = [sys.executable, "-c", program, str(Path(__file__).parent)]
        # Not in the checkout, where Python would find folders that shadow what is installed.
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        outputs.add(ran.stdout)
    assert len(outputs) == 1


def test_limits_grow_with_the_budget_and_leave_launches_something() -> None:
    small, large = Work.of_kernel(1000), Work.of_kernel(2000)
    assert small.limit is not None
    assert large.limit == 2 * small.limit
    limits = [Work.of_launches(1000, spent).limit or 0 for spent in (0, 12_000, 10 * small.limit)]
    assert limits == sorted(limits, reverse=True)
    assert limits[0] > limits[-1] > 0
    work = Work(10)
    work.charge(10)
    assert not work.is_spent
    work.charge(1)
    assert work.is_spent
    assert not Work(spent=10**12).is_spent
