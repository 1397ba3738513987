"""Goals that values in memory decide alone, and those that a test, a clamp or a contract bounds."""

from __future__ import annotations

import pytest

from tilecheck import check_source
from tilecheck.analysis.borrow import build
from tilecheck.analysis.facts import Facts
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.options import Options
from tilecheck.proof.conditions.memory_dependence import is_unbounded
from tilecheck.proof.decide import as_decided
from tilecheck.proof.goals.context import Context
from tilecheck.registry import load_rules
from tilecheck.text import decode
from tilecheck.verify.stages import state_obligations

HEAD = "import triton\nimport triton.language as tl\n\n\n"
GATHER = """
@triton.jit
def kernel(ids, x, out, stride, n, D: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)
    t = tl.load(ids + row, mask=row < n, other=0)
    lane = tl.arange(0, D)
    at = t[:, None] * stride + lane[None, :]
    found = tl.load(x + at, mask=(row < n)[:, None])
    tl.store(out + row[:, None] * D + lane[None, :], found, mask=(row < n)[:, None])
"""
PLACES = """
@triton.jit
def kernel(slots, out, stride, n, D: tl.constexpr):
    pid = tl.program_id(0)
    slot = tl.load(slots + pid).to(tl.int64)
    tl.store(out + slot * stride + tl.arange(0, D), 1)
"""
RAGGED = """
@triton.jit
def kernel(x, starts, B: tl.constexpr):
    start = tl.load(starts + tl.program_id(0))
    end = tl.load(starts + tl.program_id(0) + 1)
    for first in range(start, end, B):
        at = first + tl.arange(0, B)
        tl.load(x + at, mask=at < end)
"""


def masked(mask: str) -> str:
    """`GATHER` with a mask of the load."""
    return GATHER.replace("x + at, mask=(row < n)", f"x + at, mask=({mask})")


def unbounded(text: str, contracts: str = "") -> set[tuple[str, str]]:
    """The rules and arrays of the obligations that are not sought conditions for."""
    source = f"{HEAD}{contracts}{text.lstrip()}"
    (definition,) = find_kernels(Project().add(parse(decode("kernel.py", source.encode()))))
    kernel = lower(definition)
    stated, _ = state_obligations(Facts(kernel, build(kernel)), [entry.rule for entry in load_rules()])
    asked = as_decided(kernel, stated)
    return {(o.rule, o.array) for o in asked if is_unbounded(o, Context(kernel))}


@pytest.mark.parametrize(
    "text",
    [
        GATHER,
        GATHER.replace("t[:, None] *", "(t[:, None] - 1) *"),
        GATHER.replace("t[:, None] *", "(t[:, None] // 2) *"),
        GATHER.replace("t[:, None] *", "tl.minimum(t[:, None], n) *"),  # it may be negative
        masked("(row < n) & (t < n)"),
        masked("(row < n) & (t != -1)"),
    ],
)
def test_an_index_that_nothing_bounds(text: str) -> None:
    assert unbounded(text) == {("TC303", "x")}


@pytest.mark.parametrize(
    "text",
    [
        GATHER.replace("t[:, None] *", "tl.maximum(tl.minimum(t[:, None], n), 0) *"),
        masked("(row < n) & (t < n) & (t >= 0)"),
        GATHER.replace("t[:, None] *", "(t[:, None] % 8) *"),
        GATHER.replace("t[:, None] *", "row[:, None] *"),
    ],
)
def test_an_index_with_bounds_is_sought_conditions_for(text: str) -> None:
    assert unbounded(text) == set()


def test_an_index_that_a_contract_bounds_is_sought_conditions_for() -> None:
    assert unbounded(GATHER, "# tilecheck: requires within(ids, 0, n)\n") == set()
    assert unbounded(GATHER, "# tilecheck: requires within(out, 0, n)\n") == {("TC303", "x")}


def test_what_a_read_gives_where_it_is_masked_off_is_not_used() -> None:
    masked_off = PLACES.replace("slots + pid)", "slots + pid, mask=pid < n)").replace("1)", "1, mask=pid < n)")
    assert unbounded(masked_off, "# tilecheck: requires within(slots, 0, 8)\n") == set()
    assert ("TC303", "out") in unbounded(masked_off)


def test_an_element_that_others_bound_grows_with_them() -> None:
    assert unbounded(RAGGED) == {("TC303", "x")}
    assert unbounded(RAGGED.replace("at < end)", "(at < end) & (at >= 0) & (at < B))")) == set()


def test_blocks_that_find_their_places_through_a_table_may_meet() -> None:
    assert unbounded(PLACES) == {("TC303", "out"), ("TC201", "out")}
    assert unbounded(PLACES, "# tilecheck: requires distinct(slots)\n") == {("TC303", "out")}


def test_lanes_that_find_their_places_through_a_table_may_meet() -> None:
    stored = GATHER.replace("out + row[:, None]", "out + t[:, None]")
    assert {("TC201", "out"), ("TC203", "out")} <= unbounded(stored)
    assert not unbounded(stored.replace("lane[None, :], found", "row[:, None] * n + lane[None, :], found")) & {
        ("TC201", "out"),
        ("TC203", "out"),
    }


@pytest.mark.parametrize(
    "text",
    [
        PLACES.replace("slot * stride", "slot * stride + pid * D"),  # the block's id tells them apart
        PLACES.replace("slots + pid", "slots"),  # all blocks meet, whatever the table holds
        PLACES.replace("1)", "1, mask=pid == n)"),  # one block alone stores
        PLACES.replace("out + slot", "slots + slot"),  # the kernel writes the table: no contract bounds it
    ],
)
def test_a_race_that_a_table_does_not_decide_alone(text: str) -> None:
    assert "TC201" not in {rule for rule, _ in unbounded(text)}


def test_it_waits_for_a_contract_without_a_search() -> None:
    report = check_source(HEAD + PLACES, "kernel.py", Options(budget=20_000))
    [kernel] = report.kernels
    assert kernel.reason == "needs-contract"
    assert kernel.steps == 0
    help_ = next(d.help or "" for d in report.diagnostics if "stays inside `out`" in d.message)
    assert help_.startswith("let the mask of the store")  # the repair of the code, and then the contract
    assert "`--propose` verifies that" in help_
    assert "`# tilecheck: requires within(slots, 0, numel(out) // stride) -- why`" in help_
