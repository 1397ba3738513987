"""Inputs that a host function turns away before it launches, in code that is read and in code that is not."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck import verify_paths

KERNEL = """
import contextlib
import nvtx
import pytest
import sys
import torch
import triton
import triton.language as tl
from elsewhere import decorated, unread

@triton.jit
def fill(o_ptr, BLOCK: tl.constexpr):
    tl.store(o_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1)
"""
LAUNCH = "fill[(triton.cdiv(n, 256),)](torch.empty(n), BLOCK=256)"


@pytest.fixture
def status(tmp_path: Path) -> Callable[..., str]:
    """What becomes of the only condition of `fill` at a launch after `before`, which breaks it on its own."""

    def run(before: str, head: str = "def host(n: int, c, m: int):", launch: str = LAUNCH) -> str:
        path = tmp_path / "host.py"
        body = textwrap.indent(textwrap.dedent(before).strip() + "\n" + launch, "    ")
        path.write_text(f"{KERNEL}\n{head}\n{body}\n", encoding="utf-8")
        launches = verify_paths([f"{path.as_posix()}::fill"]).kernels[0].launches
        found = {condition.status for at in launches for condition in at.conditions}
        return next(word for word in ("broken", "unmet", "unread", "caller", "holds") if word in found)

    return run


READ = [
    "try:\n    assert n % 256 == 0\nfinally:\n    unread(c)",
    "try:\n    assert n % 256 == 0\nfinally:\n    if c:\n        unread(n)",
    "with nvtx.annotate('x'):\n    assert n % 256 == 0",
    "with open('x') as f:\n    if n % 256:\n        return",
    "with contextlib.nullcontext():\n    assert n % 256 == 0",
    "match n % 256:\n    case 0:\n        pass\n    case _:\n        raise ValueError",
    "match n % 256:\n    case 1 | 2:\n        return\n    case 0:\n        pass\n    case k:\n        return",
    "if n % 256:\n    sys.exit(1)",
    "if n % 256:\n    pytest.skip('sizes')",
    "for d in (n, m):\n    if d % 256:\n        return None",
    "if 'T' in str(m) or n % 256:\n    return",
]


@pytest.mark.parametrize("before", READ)
def test_what_is_read_holds(before: str, status) -> None:
    assert status(before) == "holds"


UNREAD = [
    "unread(n % 256 == 0)",
    "k = n % 256\nunread.enforce(k == 0)",
    "if n % 256:\n    unread()",
    "n % 256 and unread()",
    "try:\n    if n % 256:\n        raise ValueError\nexcept TypeError:\n    pass",
    "with unread():\n    assert n % 256 == 0",
    "try:\n    assert n % 256\nexcept AssertionError:\n    unread(c)\nelse:\n    return",
    "open = unread\nwith open(n):\n    assert n % 256 == 0",
    "with contextlib.suppress(ValueError):\n    assert n % 256 == 0",
    "match n % 256:\n    case int():\n        pass\n    case _:\n        return",
    "for d in unread(n):\n    assert d % 256 == 0",
    "while c:\n    assert n % 256 == 0",
    "if n % 256:\n    exit(1)",
    "torch.empty(n).vsplit(n // 256)",
    "if n % 256:\n    m = 3\n    unread()\nelse:\n    unread(c)",
    "if n % 256:\n    if c:\n        return\n    unread()",
    "if n % 256 and unread():\n    m = 3",
    "def check():\n    if n % 256:\n        return unread()\ncheck()",
    "def check():\n    return unread()\nif n % 256 and check():\n    m = 3",
    "for d in range(n % 256):\n    unread()",
    "while True:\n    if c:\n        unread(n % 256 == 0)\n        break\n    else:\n        return",
    "for d in (1, 2):\n    if c:\n        unread(n % 256 == 0)\n        continue\n    return",
    "try:\n    if c:\n        unread(n % 256)\n        raise KeyError\n    return\nexcept KeyError:\n    c = 0",
    "with contextlib.suppress(KeyError):\n    if c:\n        unread(n % 256)\n        c[0]\n    return",
    "def f():\n    if c:\n        unread(n % 256 == 0)\n        return 1\n    raise ValueError\nf()",
    "match c:\n    case 1:\n        unread(n % 256 == 0)\n    case _:\n        return",
    "{0: c}[n % 256]()",
]


@pytest.mark.parametrize("before", UNREAD)
def test_what_is_not_read_may_have_turned_them_away(before: str, status) -> None:
    assert status(before) == "unread"


@pytest.mark.parametrize(
    "head",
    [
        "@decorated\ndef host(n: int):",
        "@pytest.mark.parametrize('n', [256, 512])\ndef host(n):",
        "def host(n: Literal[256, 512]):",
    ],
)
def test_functions_that_are_called_for_some_inputs_only(head: str, status) -> None:
    assert status("pass", head) == "unread"


BLAMED = [
    "pass",
    "print(n)",
    "unread(m)",
    "if m:\n    unread()",
    "try:\n    assert m % 256 == 0\nfinally:\n    pass",
    "try:\n    pass\nfinally:\n    m = 3",
    "match m:\n    case 0:\n        return\n    case _:\n        pass",
    "for d in (m,):\n    if d % 256:\n        return",
    "if m:\n    sys.exit(1)",
    "with nvtx.annotate('x'):\n    assert m > 0",
    "with unread(c):\n    assert n % 2 == 0",
    "if c:\n    unread(n)\n    return",
    "if c:\n    unread(n)\n    raise ValueError",
    "if n % 2:\n    unread()\n    return",
    "def is_small(k):\n    unread()\n    return k < 1\nif is_small(n):\n    return",
]


@pytest.mark.parametrize("before", BLAMED)
def test_what_says_nothing_of_them_does_not(before: str, status) -> None:
    assert status(before) == "broken"


def test_what_one_branch_turns_away_the_other_launches(status) -> None:
    branches = f"if c:\n    unread(n % 256)\nelse:\n    {LAUNCH}"
    assert status("pass", launch=branches) == "broken"
    assert status("pass", launch=branches.replace("    unread", f"    {LAUNCH}\n    unread")) == "broken"


def test_a_header_turns_none_away_in_its_own_body(status) -> None:
    assert status("pass", launch=f"if n > 8:\n    unread()\n    {LAUNCH}") == "broken"


def test_a_decorator_of_a_library_calls_for_every_input(status) -> None:
    assert status("pass", "@torch.no_grad()\ndef host(n: int):") == "broken"


def test_a_launch_in_the_end_of_an_exception_is_seen(status) -> None:
    """There `n % 256 == 0` need not hold."""
    before = f"try:\n    assert n % 256 == 0\nfinally:\n    {LAUNCH}"
    assert status(before, launch="pass") != "holds"


def test_a_launch_in_a_handler_is_not_blamed_for_what_raises_nothing(status) -> None:
    launch = f"try:\n    assert n % 256\nexcept AssertionError:\n    {LAUNCH}"
    assert status("pass", launch=launch) == "unread"


EVEN = """
import torch
import triton
import triton.language as tl
from elsewhere import configurations, flags

@triton.autotune(configurations(), key=["n"])
@triton.heuristics(flags())
@triton.jit
def fill(o_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(o_ptr + offs, 1)
    else:
        tl.store(o_ptr + offs, 1, mask=offs < {bound})

def host(n: int):
    fill[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](torch.empty(n), n)
"""


@pytest.mark.parametrize(("bound", "verdict"), [("n", "conditional"), ("n + 1", "violated")])
def test_a_flag_that_unread_code_computes_is_tried_either_way(bound: str, verdict: str, tmp_path: Path) -> None:
    path = tmp_path / "host.py"
    path.write_text(EVEN.replace("{bound}", bound), encoding="utf-8")
    assert verify_paths([path.as_posix()]).kernels[0].verdict.value == verdict
