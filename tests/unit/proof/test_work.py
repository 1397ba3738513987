"""What one kernel may cost: a count, and a limit that leaves things open and says nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

from tilecheck.analysis.borrow import build
from tilecheck.analysis.facts import Facts
from tilecheck.findings.verdict import conclude
from tilecheck.frontend.kernels.definitions import Definition, find_kernels
from tilecheck.frontend.launches.discovery import find_launches
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import ModuleTable, Project
from tilecheck.frontend.text.source import parse
from tilecheck.ir.launch import Launch
from tilecheck.model import KernelReport
from tilecheck.options import DEFAULT_BUDGET
from tilecheck.overlay import overlaid
from tilecheck.proof.decide import Decision, decide
from tilecheck.proof.launches.visible import Judges
from tilecheck.proof.obligation import Obligation
from tilecheck.proof.solver.work import Work
from tilecheck.registry import load_rules
from tilecheck.text import decode
from tilecheck.verify.launch_sites import launches_of
from tilecheck.verify.stages import state_obligations

FIXTURES = Path(__file__).parents[3] / "fixtures"
KERNELS = (
    ("cutile/swizzle/grouped.py", "grouped_min"),
    ("triton/rows/layer_norm.py", "layer_norm"),
    ("triton/rows/rms_norm.py", "rms_norm_rows_overlapping"),
    ("triton/rows/layer_norm_backward.py", "weight_gradient_locked"),
)


def _printed(program: str, folder: Path, seed: str) -> str:
    """What a program prints under a hash seed."""
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", program, str(Path(__file__).parent)]
    # In the checkout Python would find folders that shadow the installed package.
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


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


def _concluded(
    facts: Facts, decision: Decision, launches: tuple[Launch, ...], file: str, budget: int
) -> KernelReport:
    units = Work.of_launches(budget, len(launches))
    with closing(Judges(facts.kernel, Work(units))) as judges:
        return conclude(facts, decision, (), launches, judges, file)[0]


@pytest.mark.parametrize("file", LAUNCHED)
def test_a_limit_on_launches_makes_no_condition_hold_and_breaks_none(file: str) -> None:
    changed = 0
    for definition in definitions(file)[1]:
        facts, _, launches = read(file, definition.name)
        decision = decided(file, definition.name, Work())
        reports = [_concluded(facts, decision, launches, file, b) for b in (DEFAULT_BUDGET, 0)]
        for whole, cut in zip(*(report.launches for report in reports), strict=True):
            for one, other in zip(whole.conditions, cut.conditions, strict=True):
                assert one.text == other.text
                is_weaker = other.status == "unmet" or (one.status, other.status) == ("holds", "caller")
                assert other.status == one.status or is_weaker
                changed += one.status != other.status
    assert changed


ROWS = """
import torch
import triton
import triton.language as tl

@triton.jit
def gated(a, b, c, stride, n: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * stride
    i = tl.arange(0, BLOCK)
    x = tl.load(a + row + i, mask=i < n, other=0)
    tl.store(c + row + i, x * tl.load(b + row + i, mask=i < n, other=0), mask=i < n)

def host(a, b):
    shape = a.shape
    n = shape[-1]
    a = a.view(-1, n)
    b = b.view(-1, n)
    c = torch.empty_like(a)
    gated[(a.shape[0],)](a, b, c, c.stride(-2), n=n, BLOCK=triton.next_power_of_2(n))
    return c.view(*shape)
"""


def test_no_launch_is_blamed_for_conditions_that_were_not_asked() -> None:
    """What only the caller can meet looks like the host's own where the work was spent before it was asked."""
    table = Project().add(parse(decode("host.py", ROWS.encode())))
    [definition] = find_kernels(table)
    launches = launches_of(definition, find_launches(table))
    kernel = lower(definition)
    facts = Facts(kernel, build(kernel, launches))
    obligations, _ = state_obligations(facts, [entry.rule for entry in load_rules()])
    decision = decide(kernel, obligations, "host.py", without=frozenset(), budget=DEFAULT_BUDGET, work=Work())
    with overlaid({"host.py": ROWS.encode()}):
        budgets = [DEFAULT_BUDGET >> shift for shift in range(14)]
        whole, *limited = (_concluded(facts, decision, launches, "host.py", budget) for budget in budgets)
    assert whole.verdict.value == "conditional"
    assert {report.verdict.value for report in limited} == {"conditional", "unknown"}


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
    outputs = {_printed(program, tmp_path, seed) for seed in ("0", "1")}
    assert len(outputs) == 1


UNRANKED = """
import triton
import triton.language as tl

@triton.jit
def add(x, y, z, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n) + tl.load(z + i, mask=i < n)
    tl.store(o + i, total, mask=i < n)

def host(x, y, z, o):
    add[(triton.cdiv(x.shape[0], 256),)](x, y, z, o, x.shape[0] * x.stride(0) + y.stride(0) + z.stride(0), 256)
"""


def test_what_is_asked_about_a_launch_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    """Its tensors have no known rank: several facts of a kind are written for each."""
    (tmp_path / "host.py").write_text(UNRANKED, encoding="utf-8")
    program = """
from tilecheck import verify_paths
from tilecheck.ir.expr import render
from tilecheck.proof.launches.judge import Judge
answer = Judge._answer
def printed(self, goal, budget):
    print([render(fact) for fact in goal])
    return answer(self, goal, budget)
Judge._answer = printed
verify_paths(["host.py"])
"""
    outputs = {_printed(program, tmp_path, seed) for seed in ("0", "1", "2")}
    assert len(outputs) == 1
    assert "z.stride(0)" in next(iter(outputs))


def test_limits_grow_with_the_budget_and_leave_launches_something() -> None:
    small, large = Work.of_kernel(1000), Work.of_kernel(2000)
    assert small.limit is not None
    assert large.limit == 2 * small.limit
    limits = [Work.of_launches(1000, count) for count in (0, 1, 10, 1000)]
    assert limits == sorted(limits)
    assert 0 < limits[0] == limits[1] < limits[2] < limits[3] <= 100_000
    work = Work(10)
    work.charge(10)
    assert not work.is_spent
    work.charge(1)
    assert work.is_spent
    assert not Work(spent=10**12).is_spent
