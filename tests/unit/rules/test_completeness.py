"""What a tuner runs many times and puts back each time, and outputs that an author says are filled."""

from __future__ import annotations

import pytest

from tilecheck import check_source

HEAD = """
import triton
import triton.language as tl
from triton.runtime.autotuner import autotune as tune
from elsewhere import their_configs

FEW = [triton.Config({"BLOCK": 64})]
MANY = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]
NAMES = ["x_ptr"]


def made():
    return [triton.Config({"BLOCK": size}) for size in (64, 128)]


"""
IN_PLACE = """
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, x + 1.0, mask=offs < n)
"""


def found(decorator, body=IN_PLACE, head=HEAD):
    text = f"{head}{decorator}\n@triton.jit\ndef kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):{body}"
    return [d for d in check_source(text, "k.py").diagnostics if d.code == "TC502"]


@pytest.mark.parametrize(
    ("decorator", "reported"),
    [
        ("@triton.autotune(MANY, ['n'])", True),
        ("@tune(configs=MANY, key=['n'])", True),
        ("@triton.autotune(made(), ['n'])", True),
        ("@triton.autotune(MANY + FEW, ['n'])", True),
        ("@triton.autotune([*MANY], ['n'])", True),
        ("@triton.autotune([c for c in MANY], ['n'])", True),
        ("@triton.autotune(MANY, ['n'], restore_value=['y_ptr'])", True),
        ("@triton.autotune(MANY, ['n'], restore_value=None)", True),
        ("@triton.heuristics({'BLOCK': lambda a: 64})", False),
        ("@triton.autotune(FEW, ['n'])", False),
        ("@triton.autotune([triton.Config({'BLOCK': 64})], ['n'])", False),
        ("@triton.autotune(MANY, ['n'], restore_value=['x_ptr'])", False),
        ("@triton.autotune(MANY, ['n'], None, ('x_ptr',))", False),
        ("@triton.autotune(MANY, ['n'], None, None, NAMES)", False),
        ("@triton.autotune(MANY, ['n'], restore_value=[n for n in NAMES])", False),
        ("@triton.autotune(MANY, ['n'], pre_hook=lambda args: args['x_ptr'].zero_())", False),
        ("@triton.autotune([triton.Config({}, pre_hook=f) for f in (1, 2)], ['n'])", False),
        ("@triton.autotune(their_configs(), ['n'])", False),
        ("@triton.autotune(MANY + their_configs, ['n'])", False),
        ("@triton.autotune(*MANY)", False),
        ("", False),
    ],
)
def test_what_a_tuner_puts_back(decorator, reported):
    assert bool(found(decorator)) == reported


AT = "\n    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"


@pytest.mark.parametrize(
    ("body", "arrays"),
    [
        (IN_PLACE, ["x_ptr"]),
        (f"{AT}    tl.store(y_ptr + at, tl.load(x_ptr + at))\n", []),
        (f"{AT}    tl.store(x_ptr + at, 1.0)\n    tl.store(y_ptr + at, tl.load(x_ptr + at))\n", []),
        (f"{AT}    tl.atomic_add(x_ptr + at, 1)\n    tl.atomic_xor(y_ptr + at, 1)\n", ["x_ptr", "y_ptr"]),
        (f"{AT}    tl.atomic_add(x_ptr, -1)\n    tl.atomic_min(y_ptr, 1)\n", ["x_ptr"]),
        (f"{AT}    tl.atomic_cas(x_ptr, 0, 1)\n    tl.atomic_xchg(x_ptr, 0)\n", []),
        (f"{AT}    tl.atomic_add(x_ptr, 1)\n    tl.atomic_xchg(x_ptr, 0)\n", []),
    ],
)
def test_what_is_an_update(body, arrays):
    findings = found("@triton.autotune(MANY, ['n'])", body)
    assert [d.message.split("`")[-2] for d in findings] == arrays
    assert all(d.severity.name == "WARNING" and len(d.related) == 1 for d in findings)


# ---- filled outputs ------------------------------------------------------------------------------------------

ROWS = """
import triton
import triton.language as tl
from elsewhere import theirs


@triton.jit
def inner(out, s, n, BLOCK: tl.constexpr):
    c = s + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * n + c, 1.0, mask=c < n)


@triton.jit
def early(out, s, n, BLOCK: tl.constexpr):
    for i in range(3):
        if i == n:
            return
    c = s + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * n + c, 1.0, mask=c < n)


# tilecheck: requires numel(out) == n * grid[0] and n >= 1 -- one program for each row
# tilecheck: fills out
@triton.jit
def kernel(x, out, n, stop, BLOCK: tl.constexpr):
"""


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("for s in range(0, n, BLOCK):\n inner(out, s, n, BLOCK)", True),
        ("for s in range(0, n, BLOCK):\n if s > stop:\n  break\n inner(out, s, n, BLOCK)", False),
        ("for s in range(0, n, BLOCK):\n if s > stop:\n  return\n inner(out, s, n, BLOCK)", False),
        ("for s in range(0, n, BLOCK):\n if s > stop:\n  continue\n inner(out, s, n, BLOCK)", False),
        ("for s in range(0, stop, BLOCK):\n inner(out, s, n, BLOCK)", False),
        ("for s in range(BLOCK, n, BLOCK):\n inner(out, s, n, BLOCK)", False),
        ("for s in range(0, n, BLOCK):\n inner(out, s, n - 1, BLOCK)", False),
        ("for s in range(0, n, BLOCK):\n if tl.load(x) > 0:\n  inner(out, s, n, BLOCK)", False),
        ("for s in range(0, n, BLOCK):\n early(out, s, n, BLOCK)", False),
        ("s = 0\nwhile s < n:\n inner(out, s, n, BLOCK)\n s += BLOCK", False),
        ("if n < 0:\n theirs(n)\nfor s in range(0, n, BLOCK):\n inner(out, s, n, BLOCK)", False),
        ("return", False),
    ],
)
def test_what_is_filled(body, shown):
    """No loop is left early, and each store is made where its path and its mask say."""
    text = ROWS + "".join(f" {line}\n" for line in body.split("\n"))
    report = check_source(text, "k.py")
    kernel = next(k for k in report.kernels if k.name == "kernel")
    told = any(d.code == "TC501" for d in report.diagnostics)
    accepted = kernel.verdict.value in ("proved", "conditional")
    assert (accepted and not told) == shown


def test_what_is_missing_is_told():
    text = """
import triton
import triton.language as tl


# tilecheck: requires numel(out) == n -- as the host does
# tilecheck: fills out
@triton.jit
def kernel(out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 1.0, mask=at < n)
"""
    [finding] = check_source(text, "k.py").diagnostics
    assert finding.code == "TC501"
    assert "`grid[0] >= cdiv(numel(out), BLOCK)`" in finding.help
