"""What is found in a kernel alone, held against the launches that are visible."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck import verify_paths
from tilecheck.frontend.launches import discovery
from tilecheck.model import KernelReport
from tilecheck.verify import pipeline

KERNELS = """
import torch
import triton
import triton.language as tl
from elsewhere import unread

@triton.jit
def last_one_wins(o_ptr, BLOCK: tl.constexpr):
    tl.store(o_ptr, tl.program_id(0) * BLOCK)

@triton.jit
def scatter(i_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(i_ptr + offs, mask=offs < n, other=0)
    tl.store(o_ptr + offs % at, 1, mask=offs < n)

@triton.jit
def grow(o_ptr, size, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * size + tl.arange(0, BLOCK)
    tl.store(o_ptr + offs, 1, mask=offs < n)
"""


@pytest.fixture
def verified(tmp_path: Path) -> Callable[[str, str], KernelReport]:
    def run(kernel: str, body: str) -> KernelReport:
        path = tmp_path / "host.py"
        path.write_text(KERNELS + textwrap.dedent(body), encoding="utf-8")
        return verify_paths([f"{path.as_posix()}::{kernel}"]).kernels[0]

    return run


TWICE = """
@triton.jit
def twice(o_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offs, 1)
    tl.store(o_ptr + offs + BLOCK, 2)

def host(n: int):
    twice[(n,)](torch.empty({size}), BLOCK=64)
"""


@pytest.mark.parametrize("size", ["n * 64 + 64", "n * 64"])
def test_a_launch_that_breaks_a_condition_excuses_no_race(size: str, verified) -> None:
    """Where the second store leaves the array, no launch in view shows the race with all in place."""
    assert "TC201" in {
        o.rule for o in verified("twice", TWICE.format(size=size)).obligations if o.verdict == "violated"
    }


@pytest.mark.parametrize(
    ("grids", "expected"),
    [
        ([], "violated"),
        (["(1,)"], "conditional"),
        (["(1, 1, 1)", "(1,)"], "conditional"),
        (["(n,)"], "violated"),
        (["(1,)", "(n,)"], "violated"),
        (["(1,)", "unread(n)"], "unknown"),
        (["unread(n)"], "violated"),
    ],
)
def test_blocks_that_meet_in_one_element(grids: list[str], expected: str, verified) -> None:
    """One block along an axis is a condition only if every launch that is visible has one."""
    calls = "".join(f"\n    last_one_wins[{grid}](o, BLOCK=64)" for grid in grids)
    report = verified("last_one_wins", f"\ndef run(n):\n    assert n > 0\n    o = torch.empty(n){calls}\n")
    assert report.verdict.value == expected
    assert ("grid[0] <= 1" in report.conditions) == (expected == "conditional")


@pytest.mark.parametrize("table", ["torch.tensor(unread(x))", "x.cumsum(0)", "unread(x)", "torch.empty(n)"])
def test_contents_that_the_host_computes(table: str, verified) -> None:
    """What a table holds decides the claim, and no text says what it holds."""
    report = verified(
        "scatter",
        f"""
        def run(x):
            n = x.numel()
            scatter[(triton.cdiv(n, 64),)]({table}, torch.empty(n), n, BLOCK=64)
        """,
    )
    assert (report.verdict.value, report.reason) == ("unknown", "needs-contract")


@pytest.mark.parametrize(
    ("size", "expected"), [("64", "holds"), ("32", "broken"), ("ctx.size", "unread"), ("unread(n)", "unread")]
)
def test_who_answers_for_a_number(size: str, expected: str, verified) -> None:
    """A number in the text is the host's; what an object holds, or unread code computes, is not read."""
    report = verified(
        "grow",
        f"""
        def run(ctx, n):
            grow[(triton.cdiv(n, 64),)](torch.empty(n), {size}, n, BLOCK=64)
        """,
    )
    [at] = report.launches
    assert {c.status for c in at.conditions if "size" in c.text and "numel" not in c.text} == {expected}


def test_launches_of_a_file_are_read_once(tmp_path: Path, monkeypatch) -> None:
    """A file that imports from many others is executed once for all of them; no file without launches is."""
    for name in "ab":
        (tmp_path / f"{name}.py").write_text(KERNELS, encoding="utf-8")
    body = "\ndef run(n):\n    {}[(1,)](torch.empty(n), BLOCK=64)\n"
    text = "import torch\nfrom a import last_one_wins as first\nfrom b import last_one_wins as second\n"
    (tmp_path / "host.py").write_text(text + body.format("first") + body.format("second"), encoding="utf-8")
    read: list[str] = []
    found = discovery.find_launches
    monkeypatch.setattr(
        discovery, "find_launches", lambda table, *a: (read.append(Path(table.file).name), found(table, *a))[1]
    )
    report = pipeline.verify_paths([tmp_path.as_posix()])
    assert read == ["host.py"]
    assert [len(k.launches) for k in report.kernels if k.name == "last_one_wins"] == [1, 1]
