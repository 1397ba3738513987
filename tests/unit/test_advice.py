"""What a finding advises: the repair of the code, in the names of its text, before any premise."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tilecheck import check_source
from tilecheck.model import Diagnostic
from tilecheck.text import Source

ROOT = Path(__file__).parents[2]
TRITON = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"
CUTILE = "import cuda.tile as ct\n\n\n@ct.kernel\n"
HISTOGRAM = """
def histogram(x, hist, n, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    b = tl.load(x + offs, mask=offs < n, other=0)
    count = tl.load(hist + b, mask=offs < n)
    tl.store(hist + b, count + 1, mask=offs < n)
"""
HISTOGRAM_OF_CUTILE = """
def histogram(x, hist, T: ct.Constant[int]):
    b = ct.load(x, index=(ct.bid(0),), shape=(T,))
    count = ct.gather(hist, b)
    ct.scatter(hist, b, count + 1)
"""
ONE_CELL = """
def total(x, out, n, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    before = tl.load(out)
    tl.store(out, before + tl.sum(tl.load(x + offs, mask=offs < n, other=0.0), 0))
"""
ZEROED_INSIDE = """
def total(x, out, n, B: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * B + tl.arange(0, B)
    if pid == 0:
        tl.store(out, 0.0)
    tl.atomic_add(out, tl.sum(tl.load(x + offs, mask=offs < n, other=0.0), 0))
"""
UNMASKED = """
def copy(x, out, n, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + offs)
    tl.store(out + offs, v, mask=offs < n)


def copied(x):
    out = torch.empty_like(x)
    copy[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), B=64)
    return out
"""
DIVISORS = """
def fill(out, across, down, B: tl.constexpr):
    b = tl.program_id(0)
    tl.store(out + (b // across * across + b % down) * B + tl.arange(0, B), 1.0)


def filled(down):
    assert down >= 2
    out = torch.zeros(down * 8 * 64, device="cuda")
    fill[(down * 8,)](out, 8, down, B=64)
"""


def found(head: str, body: str) -> tuple[Diagnostic, ...]:
    return check_source(head + textwrap.dedent(body).lstrip("\n"), "k.py").diagnostics


def about_races(diagnostics: tuple[Diagnostic, ...]) -> list[Diagnostic]:
    return [d for d in diagnostics if "one element of" in d.message or d.code.startswith("TC2")]


@pytest.mark.parametrize(
    ("head", "body", "atomic"),
    [
        (TRITON, HISTOGRAM, "tl.atomic_add(hist + b, ...)"),
        (CUTILE, HISTOGRAM_OF_CUTILE, "ct.atomic_add(hist, ...)"),
        (TRITON, ONE_CELL, "tl.atomic_add(out, ...)"),
    ],
)
def test_an_update_that_blocks_share_is_to_be_an_atomic(head: str, body: str, atomic: str) -> None:
    races = about_races(found(head, body))
    assert races
    for race in races:
        assert (race.help or "").startswith("update `")
        assert f"`{atomic}`" in (race.help or "")


def test_the_race_of_a_histogram_is_one_finding_with_two_values_of_the_table() -> None:
    [race] = about_races(found(TRITON, HISTOGRAM))
    assert race.message.endswith(": its index comes from `x`")
    assert race.notes == ("blocks (0,) and (1,) both update `hist[1]` where x[0] = x[64] = 1",)
    before, _, after = (race.help or "").partition("only if they are true of your data")
    assert "atomic_add" in before
    assert "requires distinct(x)" in after
    assert "requires" not in before.partition(";")[0]


def test_zeroing_belongs_before_the_launch() -> None:
    [race] = about_races(found(TRITON, ZEROED_INSIDE))
    assert (race.help or "").startswith("let the host fill `out` before the launch")


def test_an_access_without_a_mask_gets_that_of_its_neighbour() -> None:
    [broken] = [d for d in found(TRITON, UNMASKED) if d.code == "TC402"]
    assert (broken.help or "").startswith("mask the load in line 9: `mask=offs < n`")
    assert [r.message for r in broken.related][1:] == ["this access"]


def test_two_divisors_of_one_number_are_named() -> None:
    races = [d for d in found(TRITON, DIVISORS) if d.witness is not None and d.witness.kind == "overlap"]
    asked = "`tl.program_id(0) // across` goes with `tl.program_id(0) % across`"
    assert races
    assert all(asked in (race.help or "") for race in races)


def test_divisors_of_a_swizzle_are_not_blamed_for_another_race(verified) -> None:
    """`t % size` stands beside `t // area`, which has its own remainder `t % area`."""
    report = verified(ROOT / "fixtures/cutile/swizzle/every_batch_to_the_first.py")
    [race] = about_races(report.diagnostics)
    assert "divide by different" not in (race.help or "")


FLAGS = """
def marked(ends, flags, out):
    i = tl.program_id(0)
    if tl.load(flags + i) >= 0:
        tl.store(out + i, tl.load(ends + i - 1))
"""


def test_where_values_in_memory_let_an_access_happen_the_element_is_named() -> None:
    """A contract may say that the first flag is below 0: nothing is violated."""
    [undecided] = found(TRITON, FLAGS)
    assert undecided.code == "TC906"
    assert "depends on values in memory" in undecided.label
    assert undecided.notes == ("block (0,) touches `ends[-1]` where flags[0] = 1",)


def test_a_text_is_not_parsed_again_for_each_finding_about_it(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = "\n".join(f"    total += tl.load(x + tl.program_id(0) * n - {k})" for k in range(1, 20))
    kernel = f"def before(x, out, n):\n    total = 0.0\n{loads}\n    tl.store(out, total)\n"
    parsed = []
    tree = Source.tree
    monkeypatch.setattr(Source, "tree", lambda source: parsed.append(source) or tree(source))
    assert len(found(TRITON, kernel)) >= 10
    assert len(parsed) <= 2
