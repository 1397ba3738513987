"""Launches behind operations that give a tensor itself another shape or other memory."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck import verify_paths

KERNEL = """
import torch
import triton
import triton.language as tl
from elsewhere import keep

@triton.jit
def copy(x, out, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + o, tl.load(x + o, mask=o < n), mask=o < n)
"""
Statuses = dict[str, str]


@pytest.fixture
def statuses(tmp_path: Path) -> Callable[[str, str], Statuses]:
    """What each requirement of the kernel comes to at the launch."""

    def run(before: str, pair: str) -> Statuses:
        path = tmp_path / "host.py"
        body = f"def host(x: torch.Tensor, n: int):\n{textwrap.indent(before, '    ')}\n"
        launch = f"    copy[(triton.cdiv(n, 16),)]({pair}, n, B=16)\n"
        path.write_text(f"{KERNEL}\n{body}{launch}", encoding="utf-8")
        (kernel,) = verify_paths([f"{path.as_posix()}::copy"]).kernels
        return {c.text: c.status for la in kernel.launches for c in la.conditions}

    return run


@pytest.mark.parametrize(
    "before",
    [
        "y = torch.empty(n)\nz = y[:]\ny.resize_(4)\ny = z",
        "y = torch.empty(n)\ny.resize_(keep(4))",
        "y = torch.empty(n)\nz = y[:]\ny.set_(torch.empty(4))",
        "y = torch.empty(n)\ny.data = torch.empty(4)",
    ],
)
def test_a_tensor_that_got_another_size_need_not_be_long_enough(before: str, statuses) -> None:
    found = statuses(f"a = torch.empty(n)\n{before}", "a, y")
    assert found["numel(out) >= n"] == "unread"
    assert found["numel(x) >= n"] == "holds"


def test_the_sizes_that_a_call_names_are_known(statuses) -> None:
    for before in ("y.resize_(n)", "y.resize_((2, n))", "y.resize_(x.shape)\nn = y.numel()"):
        assert statuses(f"y = torch.empty(2)\n{before}", "x, y")["numel(out) >= n"] == "holds"
    assert statuses("y = torch.empty(2)\ny.resize_(4)", "x, y")["numel(out) >= n"] == "broken"
    assert statuses("y = torch.empty(n)\ny.resize_(4)", "x, y")["numel(out) >= n"] == "holds"  # its buffer


def test_what_was_read_of_a_tensor_before_does_not_hold_after(statuses) -> None:
    found = statuses("y = x\nn = y.numel()\nx.resize_(4)", "x, torch.empty(n)")
    assert found["numel(x) >= n"] == "unread"
    assert found["numel(out) >= n"] == "holds"


def test_another_input_keeps_its_sizes_where_s1_says_that_it_is_another(tmp_path: Path) -> None:
    """Passed twice, `y.resize_(4)` would change `x`, of which the numbers were read."""
    path = tmp_path / "host.py"
    text = """
def both(x, y):
    y.resize_(x.shape)
    copy[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), B=16)

def one(x, y):
    y.resize_(x.shape)
    copy[(triton.cdiv(x.numel(), 16),)](torch.empty_like(x), y, x.numel(), B=16)

def none(x, y):
    y.resize_(4)
    copy[(triton.cdiv(x.numel(), 16),)](x, torch.empty_like(x), x.numel(), B=16)

def other(x, y):
    if y is None:
        y = torch.empty_like(x)
    else:
        y.resize_(x.shape)
    copy[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), B=16)
"""
    path.write_text(f"{KERNEL}\n{text}", encoding="utf-8")
    (kernel,) = verify_paths([f"{path.as_posix()}::copy"]).kernels
    found = {la.function: {c.status for c in la.conditions} for la in kernel.launches}
    assert found["both"] <= {"holds", "caller"}
    assert found["other"] <= {"holds", "caller"}
    assert not found["one"]
    assert not found["none"]


def test_a_tensor_that_the_caller_may_have_passed_twice_changes_too(statuses) -> None:
    found = statuses("a = x[0]\nn = a.numel()\nx.t_()", "a, torch.empty(n)")
    assert found["numel(x) >= n"] == "unread"


@pytest.mark.parametrize("before", ["y.resize_(4)", "y.t_()", "y.squeeze_()"])
def test_other_tensors_stay_as_they_are(before: str, statuses) -> None:
    found = statuses(f"a, b, y = torch.empty(n), torch.empty(n), torch.empty(n)\n{before}", "a, b")
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize(
    "before",
    [
        "y = torch.empty(n)\ny.data = x",
        "y = torch.empty(0)\ny.set_(x)",
        "y = torch.empty(n)\ny.set_(x.view(-1))",
    ],
)
def test_a_tensor_may_have_the_memory_that_it_was_given(before: str, statuses) -> None:
    (status,) = (s for text, s in statuses(before, "x, y").items() if text.startswith("S1"))
    assert status in ("unmet", "broken")


@pytest.mark.parametrize(
    "before",
    [
        "y = torch.empty(n)\nfor _ in range(2):\n    y.resize_(4)",
        "y = torch.empty(n)\nkeep(y, y.resize_(4))",
        "y = torch.empty(n)\nboth = [y]\ny.resize_(4)",
    ],
)
def test_a_change_that_is_not_followed_ends_the_reading(before: str, statuses) -> None:
    assert statuses(before, "x, y") == {}
