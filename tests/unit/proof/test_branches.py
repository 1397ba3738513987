"""Conditionals that contracts and conditions decide are written as the branch that they are, and no others."""

from __future__ import annotations

import pytest
from proof_kernels import context, obligation

from tilecheck import check_source
from tilecheck.ir.expr import Expr, Kind, Symbol, ite, le, lt, read, sym
from tilecheck.options import Options
from tilecheck.proof.obligation import Holds
from tilecheck.proof.premises.shared import KnownPremises
from tilecheck.proof.rewrite.conditionals import Branches

LENGTHS = """
import triton
import triton.language as tl


# tilecheck: requires increasing(start)
# tilecheck: requires within(start, 0, rows + 1)
# tilecheck: requires grid[0] < numel(start)
# tilecheck: requires rows <= numel(x)
@triton.jit
def kernel(x, out, start, rows, BT: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    first = tl.load(start + pid).to(tl.int64)
    n = (tl.load(start + pid + 1).to(tl.int64) - first).to(tl.int32)
    for k in range(tl.cdiv(n, BT)):
        row = (tl.cdiv(n, BT) - 1 - k) * BT + tl.arange(0, BT)
        tl.store(out + first + row, tl.load(x + first + row, mask=row < n, other=0.0), mask=row < n)
"""


def conditions(text: str) -> set[str] | None:
    """The conditions under which the kernel is proved without a solver; None where it is not."""
    [kernel] = check_source(text, "kernel.py", Options(without=frozenset({"smt"}))).kernels
    return set(kernel.conditions) if kernel.verdict.value == "conditional" else None


def test_lengths_that_are_looked_up_are_cast_and_divided() -> None:
    assert conditions(LENGTHS) == {"numel(out) >= rows", "rows <= 2147483647"}


@pytest.mark.parametrize(
    "contract", ["increasing(start)", "within(start, 0, rows + 1)", "grid[0] < numel(start)"]
)
def test_each_premise_is_needed(contract: str) -> None:
    found = conditions(LENGTHS.replace(f"# tilecheck: requires {contract}\n", ""))
    assert found is None or found - {"numel(out) >= rows", "rows <= 2147483647"}


N, X = sym(Symbol("n", Kind.SCALAR)), sym(Symbol("i", Kind.OPAQUE))
LOOKED_UP = read("t", X)
GOAL = lt(ite(le(0, LOOKED_UP), LOOKED_UP, N), 5)


def settled(given: Expr) -> Expr:
    new = Branches(KnownPremises()).settled(obligation(Holds(GOAL, given)), context()).goal
    assert isinstance(new, Holds)
    return new.goal


def test_a_branch_is_taken_where_its_condition_follows() -> None:
    assert settled(le(0, LOOKED_UP)) is lt(LOOKED_UP, 5)
    assert settled(lt(LOOKED_UP, 0)) is lt(N, 5)


def test_nothing_is_chosen_where_neither_follows() -> None:
    assert settled(le(-1, LOOKED_UP)) is GOAL
    assert settled(le(0, read("t", N))) is GOAL
