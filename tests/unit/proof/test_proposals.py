"""The contracts that the author of a kernel is asked for."""

from __future__ import annotations

import pytest

from tilecheck import check_source
from tilecheck.options import Options

PAIRS = """
import triton
import triton.language as tl


# tilecheck: requires 2 * grid[0] <= numel(work)
# tilecheck: requires rows * W <= numel(x)
# tilecheck: requires rows <= numel(out)
@triton.jit
def kernel(x, out, work, rows, W: tl.constexpr):
    pid = tl.program_id(0)
    row = tl.load(work + pid * 2).to(tl.int64)
    found = tl.load(x + row * W + tl.arange(0, W), mask=row < rows, other=0)
    tl.store(out + pid, tl.sum(found), mask=pid < rows)
"""


@pytest.mark.parametrize("budget", [None, 20_000])
def test_a_contract_about_first_entries_is_proposed_whatever_was_spent(budget: int | None) -> None:
    options = Options() if budget is None else Options(budget=budget)
    report = check_source(PAIRS, "kernel.py", options)
    [kernel] = report.kernels
    assert kernel.reason == "needs-contract"
    # Rows that are none are masked off, and tables may be padded with the number of rows.
    assert any("within(work[0::2], 0, rows + 1)" in (d.help or "") for d in report.diagnostics)


TWO_TABLES = """
import triton
import triton.language as tl


@triton.jit
def kernel(x, places, out):
    first = tl.load(places + tl.program_id(0)).to(tl.int64)
    second = tl.load(places + tl.program_id(0) + 1).to(tl.int64)
    tl.store(out + tl.program_id(0), tl.load(x + first + second))
"""


def helps(text: str, options: Options) -> str:
    return " ".join(d.help or "" for d in check_source(text, "kernel.py", options).diagnostics)


def test_contracts_are_verified_on_demand() -> None:
    guessed, verified = helps(PAIRS, Options()), helps(PAIRS, Options(propose=True))
    assert "may settle it (`--propose` verifies that)" in guessed
    assert "this contract would settle it" not in guessed
    assert "this contract would settle it" in verified
    assert "may settle" not in verified


def test_what_is_not_decided_with_contracts_names_none() -> None:
    """Each of two values is guessed to be an index, and their sum is none."""
    assert "requires within(places, 0, numel(x))" in helps(TWO_TABLES, Options())
    assert "requires" not in helps(TWO_TABLES, Options(propose=True))


def test_with_it_the_access_is_decided() -> None:
    text = PAIRS.replace(
        "# tilecheck: requires 2 *",
        "# tilecheck: requires within(work[0::2], 0, rows)\n# tilecheck: requires 2 *",
    )
    [kernel] = check_source(text, "kernel.py").kernels
    assert {str(o.verdict) for o in kernel.obligations if o.rule == "TC303"} <= {"proved", "conditional"}


SEGMENTS = """
import triton
import triton.language as tl


@triton.jit
def kernel(out, starts, n, B: tl.constexpr):
    first = tl.load(starts + tl.program_id(0)).to(tl.int64)
    last = tl.load(starts + tl.program_id(0) + 1).to(tl.int64)
    offsets = first + tl.program_id(1) * B + tl.arange(0, B)
    tl.store(out + offsets, 1, mask=offsets < last)
"""


def test_a_race_that_numbers_in_memory_tell_lacks_a_contract() -> None:
    """Two blocks meet where the parts that `starts` tells overlap: no launch decides that."""
    [kernel] = check_source(SEGMENTS, "kernel.py", Options()).kernels
    assert kernel.reason == "needs-contract"
    races = [o for o in kernel.obligations if o.rule == "TC201"]
    assert races
    assert {o.verdict for o in races} == {"unknown"}
    told = SEGMENTS.replace("@triton.jit", "# tilecheck: requires increasing(starts)\n@triton.jit")
    [kernel] = check_source(told, "kernel.py", Options()).kernels
    assert all(o.verdict != "unknown" for o in kernel.obligations if o.rule == "TC201")
