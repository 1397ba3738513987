"""Kernels that are decided for the literals which every launch in view passes, and for no others."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck import verify_paths
from tilecheck.model import KernelReport

Decided = Callable[..., KernelReport]

# Each element is written once in a tile of 32 or 64; in one of 128, elements 0 and 64 go to one place.
KERNEL = """
import torch
import triton
import triton.language as tl
from elsewhere import size, unread

@triton.jit
def kernel(x, out, n, SIZE: tl.constexpr, GATHERS: tl.constexpr = False):
    i = tl.arange(0, SIZE)
    at = i // 32 % 2 * 32 + i % 32
    begin = tl.program_id(0) * SIZE
    if GATHERS:
        tl.store(out + tl.load(x + begin + i), 1)
    tl.store(out + begin + at, 2, mask=begin + i < n)
"""


@pytest.fixture
def decided(tmp_path: Path) -> Decided:
    def run(*launches: str, head: str = "") -> KernelReport:
        path = tmp_path / "host.py"
        body = "".join(f"    {launch}\n" for launch in launches)
        text = KERNEL.replace("@triton.jit", f"{head}@triton.jit") + textwrap.dedent(
            """
            def run(x, n):
                assert n % 64 == 0
                out = torch.empty(n, dtype=torch.int32)
            """
        )
        path.write_text(text + body + "    return out\n", encoding="utf-8")
        [kernel] = verify_paths([str(path)]).kernels
        return kernel

    return run


def test_the_values_that_every_launch_passes_are_conditions(decided: Decided) -> None:
    for flag in ("", ", GATHERS=False"):  # the default, or in so many words
        kernel = decided(f"kernel[(n // 64,)](x, out, n, SIZE=64{flag})")
        assert kernel.verdict.value == "conditional"
    assert kernel.conditions[:2] == ("SIZE == 64", "GATHERS == 0")
    assert kernel.premises == ()
    assert {c.status for launch in kernel.launches for c in launch.conditions} == {"holds"}


@pytest.mark.parametrize(
    "launches",
    [
        ("kernel[(n // 128,)](x, out, n, SIZE=128, GATHERS=False)",),
        ("kernel[(n // 64,)](x, out, n, SIZE=64, GATHERS=True)",),
        ("kernel[(n // 64,)](x, out, n, SIZE=size(), GATHERS=False)",),
        (
            "kernel[(n // 64,)](x, out, n, SIZE=64, GATHERS=False)",
            "kernel[(n // 64,)](x, out, n, SIZE=64, GATHERS=True)",
        ),
        (
            "kernel[(n // 64,)](x, out, n, SIZE=64, GATHERS=False)",
            "kernel[(n // 64,)](*unread(x, out, n))",
        ),
        ("pass",),
    ],
)
def test_other_launches_leave_it_open_or_show_the_harm(decided: Decided, launches: tuple[str, ...]) -> None:
    assert decided(*launches).verdict.value in ("unknown", "violated")


def test_what_an_author_fixes_is_no_condition_of_the_launches(decided: Decided) -> None:
    launch = "kernel[(n // 64,)](x, out, n, SIZE=64, GATHERS=False)"
    kernel = decided(launch, head="# tilecheck: requires SIZE == 64\n")
    assert kernel.verdict.value == "conditional"
    assert [p.origin for p in kernel.premises] == ["source"]
