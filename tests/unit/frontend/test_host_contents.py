"""What the text of a host function says of the elements that a launch is given, and when it says nothing."""

from __future__ import annotations

import textwrap

import pytest

from tilecheck.frontend.launches.discovery import find_launches
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.ir.contents import Contents
from tilecheck.ir.launch import HostTensor
from tilecheck.text import decode

HEAD = """
import functools

import numpy
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from elsewhere import unknown

@triton.jit
def kernel(t, BLOCK: tl.constexpr):
    tl.store(t + tl.arange(0, BLOCK), 1.0)

"""


def held(lines: str, params: str = "x, n, flag") -> Contents | None:
    """The contents of `t` at the last launch of a host function."""
    text = f"{HEAD}def host({params}):\n{textwrap.indent(textwrap.dedent(lines), '    ')}"
    table = Project().add(parse(decode("kernel.py", text.encode())))
    launch = find_launches(table)[-1]
    assert launch.problem is None
    value = dict(launch.arguments)["t"]
    assert isinstance(value, HostTensor)
    return value.contents


LAUNCH = "\nkernel[(2,)](t, BLOCK=2)\n"


@pytest.mark.parametrize(
    ("made", "kind", "start"),
    [
        ("torch.zeros(4, dtype=torch.int32)", "fill", 0),
        ("torch.zeros_like(x)", "fill", 0),
        ("torch.ones(4)", "fill", 1),
        ("torch.full((4,), 7, dtype=torch.int64)", "fill", 7),
        ("x.new_zeros(4)", "fill", 0),
        ("x.new_full((4,), 3)", "fill", 3),
        ("torch.empty(4).zero_()", "fill", 0),
        ("torch.empty(4).fill_(5)", "fill", 5),
        ("torch.zeros(4).clone()", "fill", 0),
        ("torch.zeros(2, 2).t()", "fill", 0),
        ("torch.zeros(4)[1:]", "fill", 0),
        ("torch.arange(9)", "range", 0),
        ("torch.arange(2, 9).to(torch.int32)", "range", 2),
        ("torch.arange(8).view(2, 4).contiguous()", "range", 0),
        ("torch.ones(4, dtype=torch.int64).cumsum(0)", "range", 1),
    ],
)
def test_what_is_made_is_known(made: str, kind: str, start: int) -> None:
    found = held(f"t = {made}{LAUNCH}")
    assert found is not None
    assert (found.kind, found.start.value) == (kind, start)


@pytest.mark.parametrize(
    ("made", "distinct", "increasing"),
    [
        ("torch.randperm(n)", True, False),
        ("torch.arange(8).view(2, 4).t()", True, False),
        ("torch.arange(8)[2:]", True, True),
        ("torch.randint(0, n, (4,))", False, False),
        ("torch.randint(0, 3, (4,)).cumsum(0)", False, True),
        ("torch.argsort(x.view(-1))", True, False),
        ("torch.argsort(x.view(2, -1))", False, False),
        ("torch.sort(x.view(-1)).indices", True, False),
        ("torch.topk(x.view(-1), 2)[1]", True, False),
        ("torch.topk(x.view(4, 8), 2).indices", False, False),
        ("torch.nonzero(x.view(-1))", True, True),
        ("x.clamp(0, 5)", False, False),
        ("torch.arange(4).repeat(2).clamp(0, 3)", False, False),
    ],
)
def test_what_is_known_of_some_elements(made: str, distinct: bool, increasing: bool) -> None:
    found = held(f"t = {made}{LAUNCH}")
    assert found is not None
    assert found.kind == "some"
    assert (found.distinct, found.increasing) == (distinct, increasing)
    assert found.low is not None


@pytest.mark.parametrize(
    "made",
    [
        "torch.empty(4)",
        "torch.full((4,), 2.5)",
        "torch.full((4,), n)",  # which may be no integer
        "torch.arange(300).to(torch.int8)",
        "torch.arange(300, dtype=torch.uint8)",
        "torch.zeros(4).view(torch.int32)",
        "torch.topk(x.view(-1), 2)[0]",
        "torch.cumsum(x.view(-1), 0)",  # of what may be negative
        "torch.cumsum(torch.arange(-3, 4), 0)",
        "torch.ones(2, 2).cumsum(0)",
        "unknown(torch.zeros(4))",
        "torch.full((n.numel(),), 1 << 20).cumsum(0).to(torch.int32)",  # which may wrap
        "torch.cumsum(torch.randint(0, 4, (9,)), 0, dtype=torch.int32)",
        "torch.full((4,), 1 << 40).int()",
        "numpy.sort(numpy.arange(8))",
    ],
)
def test_what_is_made_otherwise_is_not_known(made: str) -> None:
    assert held(f"t = {made}{LAUNCH}") is None


@pytest.mark.parametrize(
    "written",
    [
        "t[0] = 1",
        "t.sort()",  # of NumPy
        "t += 1",
        "t.add_(1)",
        "t.view(2, 2)[0, 1] = 1",
        "t.data.copy_(x)",
        "unknown(t)",
        "torch.add(x, 1, out=t)",
        "F.relu(t, inplace=True)",
        "torch.distributed.all_reduce(t)",
        "torch.relu_(t)",
        "t.numpy()[0] = 1",
        "x.buffer = t\nunknown()",
        "kernel[(2,)](t, BLOCK=2)",
        "def change():\n    t.add_(1)\nchange()",
        "if flag:\n    t[0] = 1",
        "for i in range(n):\n    t.add_(1)",
        "for i in range(n):\n    kernel[(2,)](t, BLOCK=2)\n    x.add_(1)",
        "while unknown():\n    t.neg_()",
        "try:\n    t.neg_()\nexcept RuntimeError:\n    pass",
    ],
)
def test_what_may_write_makes_it_unknown(written: str) -> None:
    assert held(f"t = torch.zeros(4)\n{written}{LAUNCH}") is None


@pytest.mark.parametrize(
    "between",
    [
        "print(t.sum(), t.max().item())",
        "unknown(x)",
        "x.add_(1)",
        "y = t.view(2, 2)",
        "torch.cumsum(t, 0)",
        "y = t.clone()\ny[0] = 1",
        "assert t.shape[0] == 4",
    ],
)
def test_what_only_reads_leaves_it_known(between: str) -> None:
    assert held(f"t = torch.zeros(4)\n{between}{LAUNCH}") is not None


@pytest.mark.parametrize(
    "lines",
    [
        "t = torch.empty(4)\nif flag:\n    t.zero_()",
        "t = torch.empty(4)\nflag and t.zero_()",
        "t = torch.empty(4)\nfor i in range(n):\n    t.zero_()",
        "t = torch.empty(4)\ntry:\n    t.zero_()\nexcept RuntimeError:\n    pass",
        "t = torch.empty(4)\nt[:2].zero_()",
        "y = torch.ones(4)\nt = y.to(torch.int32)\ny.zero_()",  # which may be a copy
        "t = x[0]\nx[1].zero_()",
        "x.zero_()\nn.add_(1)\nt = x",  # which may be a view of it
        "x.zero_()\nunknown()\nt = x",
    ],
)
def test_what_is_filled_on_some_paths_alone_is_not_known(lines: str) -> None:
    assert held(f"{lines}{LAUNCH}") is None


def test_a_loop_fills_it_before_each_launch() -> None:
    lines = "t = torch.empty(4)\nfor i in range(n):\n    t.zero_()\n    kernel[(2,)](t, BLOCK=2)"
    assert held(lines) is not None


def test_a_loop_that_fills_it_after_the_launch_comes_too_late() -> None:
    assert held("t = torch.empty(4)\nfor i in range(n):\n    kernel[(2,)](t, BLOCK=2)\n    t.zero_()") is None


def test_a_branch_fills_it_for_the_launch_in_it() -> None:
    assert held("t = torch.empty(4)\nif flag:\n    t.zero_()\n    kernel[(2,)](t, BLOCK=2)") is not None


def test_what_the_caller_passes_is_known_once_it_is_filled() -> None:
    found = held(f"x.fill_(3)\nt = x{LAUNCH}")
    assert found is not None
    assert found.start.value == 3


def test_what_a_cache_gives_back_is_not_known() -> None:
    lines = "@functools.lru_cache\ndef made():\n    return torch.zeros(4)\nt = made()"
    assert held(f"{lines}{LAUNCH}") is None


def test_numbers_counted_downwards_are_as_many_as_upwards() -> None:
    found = held(f"t = torch.arange(5, 0, -1){LAUNCH}")
    assert found is not None
    assert found.count is not None
    assert (found.count.value, found.increasing, found.distinct) == (5, False, True)


def test_a_display_is_known_number_by_number() -> None:
    found = held(f"t = torch.tensor([[3, 1], [2, 2]]){LAUNCH}")
    assert found is not None
    assert (found.kind, found.listed) == ("listed", (3, 1, 2, 2))
