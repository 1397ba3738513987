"""Rung "tables": what it proves of blocks that look up where to write, and that each premise is needed."""

from __future__ import annotations

import pytest
from proof_kernels import rungs_of_races

from tilecheck import check_source
from tilecheck.ir.expr import Expr, Kind, Symbol, le, ne, read, sym
from tilecheck.options import Options
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.rungs.tables import _Search

KERNEL = """
import triton
import triton.language as tl


# tilecheck: requires distinct_pairs(work)
# tilecheck: requires within(work[0::2], 0, numel(start) - 1)
# tilecheck: requires within(work[1::2], 0, rows)
# tilecheck: requires increasing(start)
# tilecheck: requires within(start, 0, rows + 1)
# tilecheck: requires 2 * grid[0] <= numel(work)
@triton.jit
def kernel(out, work, start, rows, BT: tl.constexpr):
    pid = tl.program_id(0)
    sequence = tl.load(work + pid * 2)
    chunk = tl.load(work + pid * 2 + 1).to(tl.int64)
    first, end = tl.load(start + sequence), tl.load(start + sequence + 1)
    row = chunk * BT + tl.arange(0, BT)
    tl.store(out + first + row, row, mask=row < end - first)
"""
SEQUENCES = """
import triton
import triton.language as tl


# tilecheck: requires increasing(start)
# tilecheck: requires within(start, 0, rows + 1)
# tilecheck: requires grid[0] < numel(start)
@triton.jit
def kernel(out, start, rows, BT: tl.constexpr):
    pid = tl.program_id(0)
    first, end = tl.load(start + pid), tl.load(start + pid + 1)
    for k in range(0, end - first, BT):
        row = k + tl.arange(0, BT)
        tl.store(out + first + row, row, mask=row < end - first)
"""
# Blocks of BC rows in chunks of BT rows, for each of H heads: what says where is decoded from one block id.
DECODED = """
import triton
import triton.language as tl


# tilecheck: requires chunks(work, of=start, size=BT)
# tilecheck: requires increasing(start)
# tilecheck: requires within(start, 0, rows + 1)
# tilecheck: requires 2 * cdiv(grid[0], NC) <= numel(work)
# tilecheck: requires NC * BC <= BT
# tilecheck: requires NC >= 1
# tilecheck: requires H >= 1
# tilecheck: requires grid[1] <= H
@triton.jit
def kernel(out, work, start, rows, H: tl.constexpr, NC: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr):
    pid, head = tl.program_id(0), tl.program_id(1) % H
    sequence = tl.load(work + pid // NC * 2)
    chunk = tl.load(work + pid // NC * 2 + 1).to(tl.int64)
    first, end = tl.load(start + sequence), tl.load(start + sequence + 1)
    row = chunk * BT + pid % NC * BC + tl.arange(0, BC)
    p = out + (first * H + head) * BT + row[:, None] * (H * BT) + tl.arange(0, BT)[None, :]
    old = tl.load(p, mask=(row < end - first)[:, None], other=0.0)
    tl.store(p, old + 1, mask=(row < end - first)[:, None])
"""
# Each part of a head walks over its sequence from the last row to the first.
BACKWARDS = """
import triton
import triton.language as tl


# tilecheck: requires increasing(start)
# tilecheck: requires within(start, 0, rows + 1)
# tilecheck: requires grid[0] < numel(start)
# tilecheck: requires grid[2] <= H
# tilecheck: requires H >= 1
@triton.jit
def kernel(out, start, rows, H: tl.constexpr):
    pid, part, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first, end = tl.load(start + pid).to(tl.int64), tl.load(start + pid + 1).to(tl.int64)
    p = out + (part * rows + first + (end - first - 1)) * H + head
    for _ in range(0, end - first):
        tl.store(p, 0.0)
        p -= H
"""
# A row of the output for each row that a table lists: no mask says that it is inside its sequence.
TOKENS = """
import triton
import triton.language as tl


# tilecheck: requires chunks(work, of=start, size=1)
# tilecheck: requires increasing(start)
# tilecheck: requires within(start, 0, rows + 1)
# tilecheck: requires 2 * grid[0] <= numel(work)
# tilecheck: requires H >= 1
# tilecheck: requires grid[1] <= H
@triton.jit
def kernel(out, work, start, rows, H: tl.constexpr):
    pid, head = tl.program_id(0), tl.program_id(1) % H
    sequence, row = tl.load(work + pid * 2), tl.load(work + pid * 2 + 1).to(tl.int64)
    first = tl.load(start + sequence).to(tl.int64)
    tl.store(out + (first + row) * H + head, 0.0)
"""
# The halves of a chunk, each stored for itself: chunks of fewer rows would overlap.
HALVES = """
import triton
import triton.language as tl


# tilecheck: requires chunks(work, of=start, size=BT)
# tilecheck: requires increasing(start)
# tilecheck: requires within(start, 0, rows + 1)
@triton.jit
def kernel(out, work, start, rows, H: tl.constexpr, BT: tl.constexpr):
    pid, head = tl.program_id(0), tl.program_id(1) % H
    sequence, chunk = tl.load(work + pid * 2), tl.load(work + pid * 2 + 1).to(tl.int64)
    first, end = tl.load(start + sequence).to(tl.int64), tl.load(start + sequence + 1).to(tl.int64)
    row, column = chunk * BT + tl.arange(0, 16), tl.arange(0, 16)
    p = out + (first * H + head) * BT + row[:, None] * (H * BT) + column[None, :]
    kept = (column < BT)[None, :]
    tl.store(p, 0.0, mask=(row < end - first)[:, None] & kept)
    tl.store(p + 16 * (H * BT), 0.0, mask=(row + 16 < end - first)[:, None] & kept)
"""


def races(text: str) -> set[str]:
    """By which rungs races between blocks are proved, without a solver."""
    return rungs_of_races(text, "smt")


@pytest.mark.parametrize("text", [KERNEL, SEQUENCES, DECODED, BACKWARDS, TOKENS])
def test_blocks_that_look_up_where_to_write_are_apart(text: str) -> None:
    assert races(text) == {"tables"}
    [kernel] = check_source(text, "kernel.py", Options(without=frozenset({"smt", "launch"}))).kernels
    assert {o.rung for o in kernel.obligations if o.rule == "TC201"} == {"tables"}


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        (KERNEL, "# tilecheck: requires distinct_pairs(work)\n", ""),
        (KERNEL, "# tilecheck: requires increasing(start)\n", ""),
        (KERNEL, "within(work[1::2], 0, rows)", "within(work[1::2], 0 - rows, rows)"),
        (KERNEL, "within(work[0::2], 0, numel(start) - 1)", "within(work[0::2], 0, numel(start) + 1)"),
        (KERNEL, "2 * grid[0] <= numel(work)", "grid[0] <= numel(work)"),
        (KERNEL, ", mask=row < end - first", ""),
        (KERNEL, "row < end - first", "row <= end - first"),
        (KERNEL, "chunk * BT", "chunk * (BT - 1)"),
        (KERNEL, "out + first + row", "out + row"),
        (KERNEL, "work + pid * 2 + 1", "work + pid * 2 + 3"),
        (KERNEL, "work + pid * 2)", "work + pid // 2 * 2)"),
        (SEQUENCES, "# tilecheck: requires increasing(start)\n", ""),
        (SEQUENCES, "grid[0] < numel(start)", "grid[0] <= numel(start) + 1"),
        (SEQUENCES, "row < end - first", "row <= end - first"),
        (SEQUENCES, "tl.load(start + pid), ", "tl.load(start + pid // 2), "),
        (BACKWARDS, "within(start, 0, rows + 1)", "within(start, 0, rows + 2)"),
        (BACKWARDS, "within(start, 0, rows + 1)", "within(start, 0 - 1, rows + 1)"),
        (BACKWARDS, "part * rows", "part * (rows - 1)"),
        (BACKWARDS, "range(0, end - first)", "range(0, end - first + 1)"),
        (BACKWARDS, "# tilecheck: requires increasing(start)\n", ""),
        (BACKWARDS, "requires grid[2] <= H", "requires grid[2] <= H + 1"),
        (TOKENS, "chunks(work, of=start, size=1)", "distinct_pairs(work)"),
        (TOKENS, "# tilecheck: requires increasing(start)\n", ""),
        (TOKENS, "requires grid[1] <= H", "requires grid[1] <= H + 1"),
        (TOKENS, "(first + row)", "(first + row * 2)"),
        (DECODED, "requires NC * BC <= BT", "requires NC * BC <= BT + BC"),
        (DECODED, "requires grid[1] <= H", "requires grid[1] <= H + 1"),
        (DECODED, "2 * cdiv(grid[0], NC) <= numel(work)", "2 * (grid[0] // NC) <= numel(work)"),
        (DECODED, "chunks(work, of=start, size=BT)", "within(work[0::2], 0, numel(start) - 1)"),
        (DECODED, "tl.program_id(1) % H", "tl.program_id(1) % H // 2"),
        (DECODED, "pid % NC * BC", "pid % (NC + 1) * BC"),
        (DECODED, "pid // NC * 2)", "pid // (NC + 1) * 2)"),
    ],
)
def test_each_premise_is_needed(text: str, right: str, wrong: str) -> None:
    assert right in text
    assert races(text.replace(right, wrong)) != {"tables"}


def test_the_conditions_of_decoded_blocks_are_found_without_a_solver() -> None:
    text = DECODED.replace("# tilecheck: requires NC * BC <= BT\n", "").replace(
        "# tilecheck: requires grid[1] <= H\n", ""
    )
    [kernel] = check_source(text, "kernel.py", Options(without=frozenset({"smt"}))).kernels
    assert kernel.verdict.value == "conditional"
    assert {"grid[1] <= H", "BT >= NC * BC"} <= set(kernel.conditions)


def test_the_length_of_memory_for_listed_rows_is_found() -> None:
    [kernel] = check_source(TOKENS, "kernel.py", Options(without=frozenset({"smt"}))).kernels
    assert kernel.verdict.value == "conditional"
    assert "numel(out) >= H * rows" in kernel.conditions


def test_conditions_on_long_chunks_leave_launches_that_are_found() -> None:
    [kernel] = check_source(HALVES, "kernel.py", Options(without=frozenset({"smt"}))).kernels
    assert kernel.verdict.value == "conditional"
    assert {"grid[1] <= H", "BT >= 32"} <= set(kernel.conditions)


def test_blocks_along_an_axis_with_one_block_are_one() -> None:
    text = SEQUENCES.replace("first, end = ", "other = tl.program_id(1)\n    first, end = ", 1)
    assert races(text) != {"tables"}
    lone = text.replace(
        "# tilecheck: requires increasing",
        "# tilecheck: requires grid[1] == 1\n# tilecheck: requires increasing",
    )
    assert races(lone) == {"tables"}


def test_values_that_are_told_to_differ_are_not_equal() -> None:
    """Blocks meet where two looked-up numbers are equal: not where a premise says that they are not."""
    i, j = (sym(Symbol(name, Kind.SCALAR)) for name in ("i", "j"))
    one, two = read("work", i), read("work", j)

    def refuted(*known: Expr) -> bool:
        return _Search(((one, two),), ((i, j),)).refutes(Premises.of(known))

    assert refuted(ne(one, two))
    assert refuted(ne(two, one))
    assert not refuted(le(one, two))
    assert not refuted()
