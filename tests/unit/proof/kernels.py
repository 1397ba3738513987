"""Small kernels for the tests of the ladder. Not a test module: `conftest` registers it as `proof_kernels`."""

from __future__ import annotations

from tilecheck.analysis.borrow import build
from tilecheck.analysis.facts import Facts
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.ir.expr import ONE, TRUE, ZERO, Expr, Kind, Symbol, sym
from tilecheck.ir.kernel import (
    Access,
    Axis,
    Effect,
    Kernel,
    Space,
    block_symbol,
    extent_symbol,
    grid_symbol,
)
from tilecheck.model import Site, Span
from tilecheck.options import DEFAULT_BUDGET
from tilecheck.proof.decide import decide
from tilecheck.proof.goals.context import Context
from tilecheck.proof.obligation import Goal, Obligation
from tilecheck.registry import load_rules
from tilecheck.text import decode
from tilecheck.verify.stages import state_obligations

# A block sums up the rows of its pages, which a table lists: the text of a Triton kernel.
PAGE_TABLE = """
@triton.jit
def kernel(cache, out, pages, lengths, page_stride, table_stride, D: tl.constexpr, PAGE: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, D)
    length = tl.load(lengths + pid)
    total = tl.zeros([D], tl.float32)
    for n in range(length):
        page = tl.load(pages + pid * table_stride + n // PAGE).to(tl.int64)
        total += tl.load(cache + page * page_stride + n % PAGE * D + lane)
    tl.store(out + pid * D + lane, total)
"""

SITE = Site("kernel.py", Span(0, 1))
BID, BID1 = sym(block_symbol(0)), sym(block_symbol(1))
GRID = sym(grid_symbol(0))
SIZE = sym(Symbol("T", Kind.CONSTANT))
COUNT = sym(Symbol("n", Kind.SCALAR))
EXTENT = sym(extent_symbol("out", 0))
LOOP = sym(Symbol("i", Kind.LOOP))
LANE = Symbol("lane", Kind.LANE, bound=SIZE)


def context(*facts: Expr, grid_axes: tuple[int, ...] = (0,)) -> Context:
    return Context(Kernel("k", "cutile", SITE, (), grid_axes, (), (), (), facts))


def tile(index: Expr, lane: Symbol = LANE, size: Expr = SIZE) -> Axis:
    return Axis(index, size, size, EXTENT, ZERO, lane)


def element(coordinate: Expr) -> Axis:
    return Axis(coordinate, ONE, ONE, EXTENT, ZERO)


def access(
    *axes: Axis,
    array: str = "out",
    effect: Effect = Effect.WRITE,
    guard: Expr = TRUE,
    lanes: tuple[Symbol, ...] = (LANE,),
) -> Access:
    space = Space.TILE if any(axis.lane for axis in axes) else Space.ELEMENT
    return Access(array, effect, space, axes, guard, TRUE, lanes, SITE, 0)


def obligation(goal: Goal, assume: Expr = TRUE) -> Obligation:
    return Obligation("TC201", goal, (SITE,), "cause", 2, "overlap", assume=assume)


def rungs_of_races(text: str, *without: str) -> set[str]:
    """By which rungs races between the blocks of the one kernel in `text` are proved, without those named.

    What is not proved is looked at no further: neither conditions nor counterexamples are sought for it.
    """
    [definition] = find_kernels(Project().add(parse(decode("kernel.py", text.encode()))))
    kernel = lower(definition)
    obligations, _ = state_obligations(Facts(kernel, build(kernel, ())), [entry.rule for entry in load_rules()])
    left_out = frozenset({"launch", *without})
    decision = decide(
        kernel, obligations, "kernel.py", without=left_out, budget=DEFAULT_BUDGET, proves_only=True
    )
    assert not decision.vacuous
    return {settled.rung for settled in decision.settled if settled.obligation.rule == "TC201"}
