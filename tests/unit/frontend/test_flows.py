"""Which stores alone take what a load gave."""

from __future__ import annotations

import textwrap

import pytest

from tilecheck.frontend.dataflow.load_destinations import destinations
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.text import decode

HEAD = """
import triton
import triton.language as tl
import somewhere
from triton.language import flip as minimum

@triton.jit
def half(v):
    return v * 0.5

@triton.jit
def kept(v, p):
    tl.store(p, v)
    return v

@triton.jit
def mean(v):
    return tl.sum(v, axis=0)

if somewhere.fast:
    @triton.jit
    def exp(v):
        return v - tl.max(v, axis=0)
    @triton.jit
    def log(v):
        return v * 2
else:
    @triton.jit
    def exp(v):
        return tl.exp(v)
    log = tl.log

@triton.jit
def kernel(x, y, n, B: tl.constexpr, FLAG: tl.constexpr):
    i = tl.arange(0, B)
"""


def lines(body: str, *, later: bool = False) -> dict[int, list[int]]:
    """The lines of loads whose values reach stores alone, with those of the stores; the body starts at 1."""
    text = HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    table = Project().add(parse(decode("kernel.py", text.encode())))
    [definition] = [d for d in find_kernels(table) if d.name == "kernel"]

    def line(start: int) -> int:
        return text.encode()[:start].count(b"\n") + 1 - HEAD.count("\n")

    whole = destinations(definition)
    found = whole.ever if later else whole.now
    return {line(k.span.start): sorted(line(s.span.start) for s in v) for k, v in found.items()}


@pytest.mark.parametrize(
    "body",
    [
        "v = tl.load(x + i)\ntl.store(x + i, v * 2 + 1)",
        "v = tl.load(x + i)\ntl.store(x + i, 1, mask=v > 0)",
        "v = tl.load(x + i).to(tl.float32)\ntl.store(x + i, half(tl.exp(v)).to(x.dtype.element_ty))",
        "v = tl.load(x + i)\ntl.store(x + i, value=-v if FLAG else v)",
        "v = tl.load(x + i)\ntl.store(x + i, log(v))",
    ],
)
def test_values_reach_a_store(body: str) -> None:
    assert lines(body) == {1: [2]}


def test_a_value_that_gives_a_type_alone_reaches_nothing() -> None:
    assert lines("v = tl.load(x + i)\ntl.store(x + i, tl.zeros((B,), v.dtype))") == {1: []}


def test_branches_and_rounds_of_a_loop_without_the_load_join() -> None:
    body = """
    v = tl.load(x + i)
    if FLAG:
        w = v + 1
    else:
        w = 0
    for k in range(n):
        w = w * v
    tl.store(x + i, w)
    """
    assert lines(body) == {1: [8]}


def test_two_stores_are_both_named() -> None:
    assert lines("v = tl.load(x + i)\ntl.store(x + i, v)\ntl.store(y + i, v)") == {1: [2, 3]}


@pytest.mark.parametrize(
    "use",
    [
        "tl.store(y + v, 1)",
        "tl.store(y + i, v[:, None])",
        "tl.store(y, tl.sum(v, axis=0))",
        "tl.store(y, mean(v))",
        "tl.store(y + i, exp(v))",
        "tl.store(y + i, kept(v, y))",
        "tl.store(y + i, max(v))",
        "w = tl.load(y + v)",
        "tl.atomic_add(y + i, v)",
        "if v > 0:\n    tl.store(y + i, 1)",
        "while v > 0:\n    v = v - 1",
        "for k in range(v):\n    tl.store(y + i, k)",
        "for k in range(n):\n    tl.store(y + i, v)",
        "tl.store(y + i, unknown(v))",
        "tl.store(y + i, minimum(v, 0))",
        "tl.store(y + i, tl.dot(v, v))",
        "tl.store(y + i, v.sum())",
        "tl.store(y + i, v @ v)",
        "tl.store(y + i, (w := v))",
        "assert v > 0",
        "f = lambda: v\ntl.store(y + i, f())",
        "a = [v for k in (1, 2)]",
    ],
)
def test_other_uses_let_a_value_escape(use: str) -> None:
    assert lines("v = tl.load(x + i)\n" + use) in ({}, {2: []})


def test_a_value_of_a_later_round_escapes() -> None:
    body = """
    w = 0.0
    for k in range(n):
        v = tl.load(x + i + k)
        tl.store(x + i + k, w)
        w = v
    """
    assert lines(body) == {}


def test_a_value_after_its_loop_escapes() -> None:
    body = """
    for k in range(n):
        v = tl.load(x + i + k)
        if FLAG:
            break
    tl.store(x + i, v)
    """
    assert lines(body) == {}


def test_a_statement_that_is_not_modelled_leaves_nothing_certain() -> None:
    assert lines("v = tl.load(x + i)\nwith y:\n    pass\ntl.store(x + i, v)") == {}


def test_a_later_round_counts_where_it_is_asked_for() -> None:
    body = """
    total = 0
    for k in range(n):
        total = total + tl.load(x + k)
        tl.store(x + k, total)
    tl.store(y, total)
    """
    assert lines(body) == {}
    assert lines(body, later=True) == {3: [4, 5]}


@pytest.mark.parametrize(
    "use",
    ["for j in range(total):\n    pass", "y += total", "tl.store(y + total, 1)", "tl.store(y, tl.sum(total))"],
)
def test_a_later_round_escapes_as_an_earlier_one(use: str) -> None:
    body = "total = 0\nfor k in range(n):\n    total = total + tl.load(x + k)\n" + use + "\ntl.store(y, 1)"
    assert lines(body, later=True) == {}
