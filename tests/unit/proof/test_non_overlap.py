"""No proof is open for want of non-overlap that S1 and S2 do not give: conditions of kind (e) are these two."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck.analysis.borrow import build
from tilecheck.analysis.facts import Facts
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.ir.kernel import Effect
from tilecheck.model import KernelReport, Verdict
from tilecheck.proof.obligation import Disjoint
from tilecheck.registry import load_rules
from tilecheck.verify.pipeline import verify_paths
from tilecheck.verify.stages import state_obligations

FIXTURES = Path(__file__).parents[3] / "fixtures" / "cutile"

TEXT = """
import cuda.tile as ct
import torch

T = 64


# tilecheck: requires distinct(table) -- every row has one source
@ct.kernel
def rows(out, table):
    b = ct.bid(0)
    if b < table.shape[0]:
        ct.scatter(out, ct.gather(table, b), 1)


def passes_the_table_as_output(x, stream):
    ct.launch(stream, (x.shape[0],), rows, (x, x))


@ct.kernel
def add(a, b, out):
    i = ct.bid(0)
    tile = ct.load(a, index=(i,), shape=(T,)) + ct.load(b, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=tile)


def reads_one_tensor_twice(x, stream):
    ct.launch(stream, (ct.cdiv(x.shape[0], T),), add, (x, x, torch.empty_like(x)))


# tilecheck: requires disjoint(a, b, out) -- three buffers
@ct.kernel
def add_disjoint(a, b, out):
    i = ct.bid(0)
    tile = ct.load(a, index=(i,), shape=(T,)) + ct.load(b, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=tile)
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, KernelReport], list[str]]:
    path = tmp_path_factory.mktemp("kernels") / "kernels.py"
    path.write_text(TEXT)
    report = verify_paths([str(path)])
    return {k.name: k for k in report.kernels}, [d.code for d in report.diagnostics]


def test_a_table_that_is_the_output_breaks_what_every_launch_keeps(reports) -> None:
    """Its contract is a premise although the kernel writes through another name: S1 forbids that launch."""
    kernels, codes = reports
    assert kernels["rows"].verdict is Verdict.VIOLATED
    assert "S1" in kernels["rows"].standing
    assert codes == ["TC401"]


def test_arrays_that_are_only_read_may_overlap(reports) -> None:
    kernels, _ = reports
    assert kernels["add"].verdict is Verdict.CONDITIONAL


def test_disjoint_adds_nothing_to_a_proof(reports) -> None:
    kernels, _ = reports
    proved, same = (kernels[name].obligations for name in ("add", "add_disjoint"))
    assert [(o.rule, o.verdict, o.rung) for o in proved] == [(o.rule, o.verdict, o.rung) for o in same]
    assert kernels["add"].conditions == kernels["add_disjoint"].conditions


@pytest.mark.parametrize("folder", ["contracts", "gather", "models", "races", "views"])
def test_every_race_is_within_one_array_that_is_written(folder: str) -> None:
    """What two arrays do to each other is no goal: of any two that matter one is written, which is S1."""
    rules = [loaded.rule for loaded in load_rules()]
    races = 0
    for file in sorted((FIXTURES / folder).glob("*.py")):
        for definition in find_kernels(Project().add(load(str(file)))):
            try:
                kernel = lower(definition)
            except UnsupportedConstruct:
                continue
            obligations, _ = state_obligations(Facts(kernel, build(kernel)), rules)
            for goal in (o.goal for o in obligations if isinstance(o.goal, Disjoint)):
                races += 1
                assert goal.first.array == goal.second.array
                assert {goal.first.effect, goal.second.effect} != {Effect.READ}
    assert races
