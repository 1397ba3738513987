"""Accesses that differ by constant offsets are decided as one, where that says the same; else one by one."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tilecheck import check_source
from tilecheck.model import KernelReport, Verdict
from tilecheck.options import Options

HEAD = """
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, s, n, B: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, B)
    v = tl.load(x + row * B + offs)
"""
IN_PLACE = """
import triton
import triton.language as tl


@triton.jit
def kernel(out, B: tl.constexpr):
    offs = tl.program_id(0) * 4 * B + tl.arange(0, B)
"""


def _stores(*indices: str, mask: str = "offs < n") -> str:
    return HEAD + "".join(f"    tl.store(out + {index}, v, mask={mask})\n" for index in indices)


def _checked(text: str, **options: object) -> KernelReport:
    [kernel] = check_source(text, "kernel.py", Options(**options)).kernels  # type: ignore[arg-type]
    return kernel


def _assert_as_one_by_one(text: str, folder: Path) -> KernelReport:
    """Where queries are kept, each obligation is decided on its own."""
    together, apart = _checked(text), _checked(text, dump_smt=str(folder))
    assert (together.verdict, together.reason) == (apart.verdict, apart.reason)
    assert together.conditions == apart.conditions
    open_of = [[o.rule for o in report.obligations if o.verdict == "unknown"] for report in (together, apart)]
    assert open_of[0] == open_of[1]
    return together


@pytest.mark.parametrize("mask", ["offs < n", "offs < B"])
def test_stores_side_by_side(mask: str, tmp_path: Path) -> None:
    text = _stores(*(f"row * s + {k} * n + offs" for k in range(5)), mask=mask)
    assert _assert_as_one_by_one(text, tmp_path).verdict is Verdict.CONDITIONAL


def test_offsets_of_two_terms(tmp_path: Path) -> None:
    places = product(range(2), range(3))
    text = _stores(*(f"row * s + {i} * n + {j} * B + offs" for i, j in places), mask="offs < B")
    assert _assert_as_one_by_one(text, tmp_path).verdict is Verdict.CONDITIONAL


def test_many_stores_take_no_more_work_than_few() -> None:
    reports = [_checked(_stores(*(f"row * s + {k} * n + offs" for k in range(count)))) for count in (8, 24)]
    assert [len(report.obligations) for report in reports] == [2 + 8 + 36 + 28 + 7, 2 + 24 + 300 + 276 + 23]
    few, many = (report.steps for report in reports)
    assert few is not None
    assert many is not None
    assert many <= few


@pytest.mark.parametrize(
    "offsets",
    [
        ("0", "n", "3 * n"),  # a gap
        ("0", "n", "B"),  # no steps of one length
    ],
)
def test_offsets_with_gaps_are_decided_one_by_one(offsets: tuple[str, ...], tmp_path: Path) -> None:
    text = _stores(*(f"row * s + {offset} + offs" for offset in offsets))
    _assert_as_one_by_one(text, tmp_path)


@pytest.mark.parametrize(
    ("index", "mask", "verdict"),
    [
        ("row * n + {k} * n + offs", "offs < n", Verdict.VIOLATED),  # each row reaches into the next
        ("row // 2 * s + {k} * n + offs", "offs < n", Verdict.VIOLATED),  # blocks meet
        ("(row * 4 + {k}) * B + offs", "offs < B", Verdict.CONDITIONAL),  # apart
        (
            "(row + {k} * tl.num_programs(0)) * B + offs",
            "offs < B",
            Verdict.CONDITIONAL,
        ),  # in steps of the grid
    ],
)
def test_a_family_is_safe_where_its_members_are(
    index: str, mask: str, verdict: Verdict, tmp_path: Path
) -> None:
    text = _stores(*(index.format(k=k) for k in range(4)), mask=mask)
    assert _assert_as_one_by_one(text, tmp_path).verdict is verdict


def test_threads_of_two_members_may_meet(tmp_path: Path) -> None:
    text = _stores(*(f"row * s + {k} + offs" for k in range(4)))
    assert _assert_as_one_by_one(text, tmp_path).verdict is Verdict.VIOLATED


@pytest.mark.parametrize(("shift", "verdict"), [("", Verdict.CONDITIONAL), (" - B", Verdict.VIOLATED)])
def test_lanes_that_store_what_they_loaded(shift: str, verdict: Verdict, tmp_path: Path) -> None:
    """Equal lanes in one iteration may meet, in members of two families too; no others may."""
    places = [f"out + offs + {k} * B" for k in range(4)]
    text = IN_PLACE + "".join(f"    tl.store({place}, tl.load({place}{shift}))\n" for place in places)
    assert _assert_as_one_by_one(text, tmp_path).verdict is verdict


@pytest.mark.parametrize("step", ["n", "4 * n"])
def test_families_in_loops(step: str, tmp_path: Path) -> None:
    stores = "".join(
        f"        tl.store(out + row * s + k * {step} + {j} * n + offs, v, mask=offs < n)\n" for j in range(4)
    )
    _assert_as_one_by_one(f"{HEAD}    for k in range(0, 3):\n{stores}", tmp_path)
