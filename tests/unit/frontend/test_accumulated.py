"""What the variables of a loop need after it."""

from __future__ import annotations

import textwrap

import pytest

from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.ir.kernel import Effect
from tilecheck.text import decode

HEAD = """
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, B: tl.constexpr, FLAG: tl.constexpr):
    total = 0.0
    for k in range(n):
        v = tl.load(x + k * B + tl.arange(0, B)).to(tl.float32)
"""
TAIL = """
    tl.store(x, total)
"""


def needed(body: str) -> int:
    """How many reductions the stored value needs."""
    text = HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "        ") + TAIL
    table = Project().add(parse(decode("kernel.py", text.encode())))
    [definition] = [d for d in find_kernels(table) if d.name == "kernel"]
    kernel = lower(definition)
    [store] = [a for a in kernel.accesses if a.effect is Effect.WRITE]
    reductions = {e.position for e in kernel.exchanges if e.loads}
    return len(reductions & store.needs)


@pytest.mark.parametrize(
    "body",
    [
        "total += tl.sum(v, axis=0)",
        "total = tl.maximum(tl.max(v, axis=0), total)",
        "total = total * tl.exp(tl.sum(v, axis=0)) - 1",
        "w = total + tl.sum(v, axis=0)\ntotal = w",
    ],
)
def test_a_sum_needs_all_rounds(body: str) -> None:
    assert needed(body) == 1


@pytest.mark.parametrize(
    "body",
    [
        "total = tl.sum(v, axis=0)",
        "other = tl.sum(v, axis=0)\ntotal += k",
        "total = tl.where(k > 2, total, tl.sum(v, axis=0))",
        "if FLAG:\n    total += tl.sum(v, axis=0)",
        "if k > 2:\n    continue\ntotal += tl.sum(v, axis=0)",
        "total += tl.sum(v, axis=0)\nif FLAG:\n    break",
        "total = total.to(x.dtype.element_ty) + tl.sum(v, axis=0).to(x.dtype.element_ty)",
    ],
)
def test_other_ways_need_nothing_for_certain(body: str) -> None:
    assert needed(body) == 0
