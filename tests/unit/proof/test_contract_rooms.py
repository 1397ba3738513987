"""How far the places reach that tables hand out: true of every small memory that keeps both contracts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tilecheck import check_source
from tilecheck.ir.expr import Expr, Kind, Symbol, add, any_of, const, evaluate, floordiv, le, read, sym
from tilecheck.ir.kernel import Contract, extent_symbol
from tilecheck.model import Site, Span
from tilecheck.options import Options
from tilecheck.proof.goals.chunk_bounds import rooms
from tilecheck.proof.goals.contracts import _inside, instances

SITE = Site("k.py", Span(0, 1))
PLACE, X, D = (sym(Symbol(name, Kind.SCALAR)) for name in ("i", "x", "d"))
ROOM = floordiv(X, D)
SUMS = Contract("chunk_sums", "t", (const(2),), "chunk_sums", None, SITE, ("c",))
WITHIN = Contract("within", "t", (const(0), add(ROOM, 1)), "within", None, SITE, ())


def stated(within: Contract = WITHIN) -> list[Expr]:
    return list(rooms([SUMS, within], {"t": [read("t", PLACE)], "c": []}, _inside))


def memories() -> Iterator[dict[str, tuple[int, ...]]]:
    """Starts of sequences, and how many chunks of two rows are before each."""
    for rows in itertools.product(range(4), repeat=2):
        starts = (0, rows[0], rows[0] + rows[1])
        counts = [-(-n // 2) for n in rows]
        yield {"c": starts, "t": (0, counts[0], counts[0] + counts[1])}
        yield {"c": starts, "t": (0, counts[0])}


def holds(e: Expr, memory: dict[str, tuple[int, ...]], values: dict[str, int], outside: int) -> bool:
    def value(symbol: Symbol) -> int:
        for name, cells in memory.items():
            if symbol == extent_symbol(name, 0):
                return len(cells)
        return values[symbol.name]

    def cell(array: str, at: tuple[int, ...]) -> int:
        cells = memory[array]
        return cells[at[0]] if 0 <= at[0] < len(cells) else outside

    return bool(evaluate(e, value, cell))


def is_false_somewhere(e: Expr) -> bool:
    for memory in memories():
        for i, x, d, outside in itertools.product(range(-1, 4), range(7), range(-1, 4), (-3, 0, 9)):
            if d == 0 or not all(0 <= v < x // d + 1 for v in memory["t"]):
                continue
            if not holds(e, memory, {"i": i, "x": x, "d": d}, outside):
                return True
    return False


def test_the_instance_is_true_of_all_that_keep_both_contracts() -> None:
    (found,) = stated()
    assert not is_false_somewhere(found)


def test_a_place_more_or_a_guard_less_is_noticed() -> None:
    (found,) = stated()
    *guards, claim = found.args
    assert is_false_somewhere(any_of(*guards, le(add(claim.args[0], 1), claim.args[1])))
    assert is_false_somewhere(claim)


def test_it_is_said_where_a_quotient_bounds_the_table_of_sums_alone() -> None:
    assert stated(replace(WITHIN, bounds=(const(0), X))) == []
    assert stated(replace(WITHIN, array="c")) == []
    assert list(rooms([WITHIN], {"t": [read("t", PLACE)]}, _inside)) == []


def test_instances_have_it() -> None:
    (found,) = stated()
    assert found in instances([SUMS, WITHIN], [read("t", PLACE)])


SEGMENTS = """
import triton
import triton.language as tl


# tilecheck: requires chunk_sums(before, of=start, size=BS)
# tilecheck: requires numel(before) == numel(start)
# tilecheck: requires increasing(start)
# tilecheck: requires within(before, 0, numel(out) // N + 1)
# tilecheck: requires within(start, 0, rows + 1)
# tilecheck: requires BS % BT == 0
# tilecheck: requires grid[0] < numel(start)
@triton.jit
def kernel(out, start, before, rows, N: tl.constexpr, BS: tl.constexpr, BT: tl.constexpr):
    sequence = tl.program_id(0)
    first, end = tl.load(start + sequence).to(tl.int64), tl.load(start + sequence + 1).to(tl.int64)
    states = tl.load(before + sequence).to(tl.int64)
    columns = tl.arange(0, N)
    for k in range(tl.cdiv(end - first, BT)):
        if k % (BS // BT) == 0:
            tl.store(out + (states + k // (BS // BT)) * N + columns, columns)
"""


def verdict(source: str) -> str:
    [kernel] = check_source(source, "kernel.py", Options()).kernels
    return kernel.verdict.value


def test_segments_of_sequences_are_apart() -> None:
    assert verdict(SEGMENTS) in ("proved", "conditional")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("requires BS % BT == 0", "requires BS == 3 and BT == 2"),  # segments of parts of chunks
        ("size=BS)", "size=2 * BS)"),  # room for half of the states
        ("states + k // (BS // BT)", "states + k // (BS // BT) + 1"),  # a state more
        ("cdiv(end - first, BT)", "cdiv(end - first + BS, BT)"),  # a segment more
        ("states + k // (BS // BT)", "states + k"),  # the place of a chunk, not of its segment
    ],
)
def test_near_misses_are_not_called_safe(right: str, wrong: str) -> None:
    assert right in SEGMENTS
    assert verdict(SEGMENTS.replace(right, wrong)) not in ("proved", "conditional")
