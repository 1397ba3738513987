"""Concrete launches: which are admitted, what memory holds, and how they get smaller."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilecheck.ir.expr import Kind, Symbol, add, const, floordiv, le, sym
from tilecheck.ir.kernel import Contract, Effect, extent_symbol, grid_symbol, stride_symbol
from tilecheck.model import Site, Span
from tilecheck.proof.goals.context import Context
from tilecheck.proof.refute.concrete import (
    Concrete,
    arguments,
    contiguous,
    is_admitted,
    launch_symbols,
    overlaps_itself,
)
from tilecheck.proof.refute.minimise import minimise
from tilecheck.proof.refute.small_launches import small_launches
from tilecheck.proof.refute.table_contents import (
    Promise,
    fill_chunk_sums,
    fill_chunks,
    fill_in,
    fill_sums,
    promises,
)

GRID, OUT, T = grid_symbol(0), extent_symbol("out", 0), Symbol("T", Kind.CONSTANT)


@pytest.fixture
def context(build):
    k = build()
    k.tiles_access("out", Effect.WRITE, (k.bid(0),), (k.tile("T"),))
    return Context(k.kernel())


def test_facts_conditions_and_tile_sizes_are_checked(context):
    launch = Concrete({GRID: 2, OUT: 8, T: 4})
    assert is_admitted(launch, context)
    assert not is_admitted(launch.changed(T, 3), context)
    assert not is_admitted(launch.changed(T, 0), context)
    assert not is_admitted(launch.changed(GRID, 0), context)
    assert not is_admitted(launch.changed(OUT, -1), context)
    assert not is_admitted(launch, context.under(le(sym(GRID), 1)))


def test_arguments_have_the_shapes_of_the_model(context):
    given = arguments(Concrete({GRID: 2, OUT: 8, T: 4}), context.kernel)
    assert given["out"].shape == (8,)
    assert given["T"] == 4


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("2 ** n", 3, 8),
        ("2 ** n", 0, 1),
        ("2 ** (n - 1)", 3, 4),
        ("2 ** (n + 2)", 3, 32),
        ("next_power_of_2(n)", 3, 4),
        ("next_power_of_2(n)", 4, 4),
        ("next_power_of_2(n)", 0, 0),
        ("next_power_of_2(n + 1)", 4, 8),
    ],
)
def test_a_power_is_what_its_number_makes_it(name: str, number: int, expected: int) -> None:
    """Whatever a model says that it is."""
    n, power = Symbol("n", Kind.CONSTANT, origin="untyped"), Symbol(name, Kind.CONSTANT)
    launch = Concrete({n: number, power: 5})
    assert launch.value(power) == expected
    assert launch.changed(power, 1).value(power) == expected


def test_a_power_of_a_negative_or_large_number_is_no_launch_value() -> None:
    n, power = Symbol("n", Kind.CONSTANT, origin="untyped"), Symbol("2 ** n", Kind.CONSTANT)
    assert Concrete({n: -1}).value(power) == 0
    assert Concrete({n: 1000}).value(power) > 2**31


def test_axes_that_are_not_read_have_one_block(context):
    assert Concrete({GRID: 3, grid_symbol(1): 5}).grid(context.kernel) == (3, 1, 1)


def test_written_arrays_do_not_overlap_themselves(build):
    k = build()
    k.tiles_access("out", Effect.WRITE, (k.bid(0), 0), (1, 1))
    context = Context(k.kernel())
    launch = Concrete({extent_symbol("out", 0): 4, extent_symbol("out", 1): 4, stride_symbol("out", 0): 2})
    assert arguments(launch, context.kernel) is None
    assert arguments(launch.changed(stride_symbol("out", 0), 4), context.kernel) is not None


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((4, 4), (4, 1), False),
        ((4, 4), (1, 4), False),
        ((4, 4), (3, 1), True),
        ((1, 4), (0, 1), False),
        ((2,), (0,), True),
    ],
)
def test_layouts_that_overlap(shape, strides, expected):
    assert overlaps_itself(shape, strides) is expected
    assert not overlaps_itself(shape, contiguous(shape))


def test_large_arrays_are_refused_unless_only_their_addresses_matter(context):
    launch = Concrete({GRID: 2, OUT: 1 << 33, T: 4})
    assert not is_admitted(launch, context)
    virtual = Concrete(launch.values, virtual=True)
    assert is_admitted(virtual, context)
    assert arguments(virtual, context.kernel)["out"].shape == (1 << 33,)


def test_arrays_that_no_address_reaches_are_refused(build):
    k = build()
    k.tiles_access("out", Effect.WRITE, (k.bid(0), 0), (1, 1))
    kernel = k.kernel()
    wide = {extent_symbol("out", 0): 1 << 39, extent_symbol("out", 1): 1 << 39}
    assert arguments(Concrete(wide, virtual=True), kernel) is None
    assert arguments(Concrete({**wide, extent_symbol("out", 1): 8}, virtual=True), kernel) is not None


# ---- contracts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "promised", "holds"),
    [
        ({(1,): 5}, [Promise("increasing", ())], True),
        ({(1,): 5, (3,): 2}, [Promise("increasing", ())], False),
        ({(2,): 0}, [Promise("distinct", ())], True),
        ({(0,): 3, (1,): 3}, [Promise("distinct", ())], False),
        ({(0,): -1, (1,): -1}, [Promise("distinct", (-1,))], True),
        ({(0,): 4}, [Promise("distinct", ()), Promise("within", (0, 5))], True),
        ({}, [Promise("within", (2, 3))], True),
        ({}, [Promise("filled", (7,))], True),
        ({(1,): 6}, [Promise("filled", (7,))], False),
        ({(0,): 9}, [Promise("within", (0, 5))], False),
        ({}, [Promise("within", (3, 3))], False),
        ({(0,): 2, (4,): 6}, [Promise("increasing", ()), Promise("distinct", ())], True),
        ({}, [Promise("prime", ())], False),
        ({}, [Promise("within", (2, 3), ((0, 2),)), Promise("within", (5, 6), ((1, 2),))], True),
        ({(1,): 4}, [Promise("within", (0, 3), ((0, 2),))], True),
        ({(2,): 4}, [Promise("within", (0, 3), ((0, 2),))], False),
        ({(1,): 9, (4,): 2}, [Promise("increasing", (), ((0, 2),)), Promise("distinct", (), ((0, 2),))], True),
        ({(4,): 7}, [Promise("within", (7, 8), ((4, 0),))], True),
        ({}, [Promise("within", (7, 8), ((9, 2),))], True),
        ({}, [Promise("increasing", ()), Promise("within", (30, 31), ((-1, 0),))], True),
        ({(4,): 6}, [Promise("within", (7, 8), ((-1, 0),))], False),
        ({(3,): 6}, [Promise("within", (7, 8), ((-1, 0),))], True),
        ({}, [Promise("within", (7, 8), ((-9, 0),))], True),
        ({}, [Promise("within", (0, 8), ((0, 1), (0, 0)))], False),
    ],
)
def test_contents_keep_contracts_or_are_refused(cells, promised, holds):
    data = np.zeros(5, np.int32)
    assert fill_in(data, cells, promised) is holds
    assert all(data[at] == v for at, v in cells.items())


@pytest.mark.parametrize("value", [1 << 31, -(1 << 31) - 1])
def test_values_that_the_elements_cannot_hold_are_refused(value):
    assert not fill_in(np.zeros(5, np.int32), {(1,): value}, [])


@pytest.mark.parametrize("sizes", [(0, 4), (4, 1 << 40)])
def test_contracts_that_no_launch_keeps_are_refused(build, sizes):
    """By a division by a size that is 0, or with values that no element holds."""
    k = build()
    k.tiles_access("t", Effect.READ, (k.bid(0),), (1,))
    k.tiles_access("out", Effect.WRITE, (k.bid(0),), (1,))
    (size, low) = (sym(Symbol(name, Kind.SCALAR)) for name in ("n", "m"))
    site = Site("k.py", Span(0, 1))
    contract = Contract(
        "within", "t", (low, add(low, floordiv(64, size))), "within(t, m, m + 64 // n)", None, site
    )
    kernel = replace(k.kernel(), contracts=(contract,))
    values = {
        GRID: 2,
        OUT: 4,
        extent_symbol("t", 0): 4,
        **dict(zip((size.args[0], low.args[0]), sizes, strict=True)),
    }
    assert arguments(Concrete(values), kernel) is None


@pytest.mark.parametrize(
    ("cells", "promised", "holds"),
    [
        ({}, [], True),
        ({(1, 0): 2, (1, 1): 2}, [], True),
        ({(0, 0): 1, (0, 1): 1, (2, 0): 1, (2, 1): 1}, [], False),
        ({(0, 0): 0, (1, 0): 0, (2, 0): 0, (3, 0): 0}, [Promise("within", (0, 4))], True),
        ({(0, 0): 0, (1, 0): 0, (2, 0): 0, (3, 0): 0}, [Promise("within", (0, 3))], False),
        ({(0, 1): 7}, [Promise("within", (0, 5))], False),
        ({}, [Promise("within", (3, 5))], True),
        ({}, [Promise("within", (3, 5), ((0, 1), (0, 0))), Promise("within", (0, 2), ((0, 1), (1, 0)))], True),
        ({}, [Promise("within", (3, 4), ((0, 1), (0, 0))), Promise("within", (0, 3), ((0, 1), (1, 0)))], False),
    ],
)
def test_rows_are_distinct_or_refused(cells, promised, holds):
    data = np.zeros((4, 2), np.int32)
    assert fill_in(data, cells, [Promise("distinct_pairs", ()), *promised]) is holds
    assert all(data[at] == v for at, v in cells.items())
    assert (len({tuple(row) for row in data.tolist()}) == 4) >= holds


@pytest.mark.parametrize(
    ("starts", "cells", "holds"),
    [
        ((0, 4, 4, 6), {}, True),  # chunks of two rows: (0, 0), (0, 1), (2, 0)
        ((0, 4, 4, 6), {(2,): 2}, True),
        ((0, 4, 4, 6), {(2,): 1}, False),
        ((0, 4, 4, 6), {(1,): 0, (3,): 0}, True),
        ((0, 4, 4, 6), {(0,): 2, (2,): 2}, False),
        ((0, 4), {}, False),
    ],
)
def test_chunks_lie_in_their_sequences(starts, cells, holds):
    table = np.zeros(6, np.int32)
    assert fill_chunks(table, np.array(starts), cells, 2, [Promise("distinct_pairs", ())]) is holds
    if holds:
        assert sorted(map(tuple, table.reshape(-1, 2).tolist())) == [(0, 0), (0, 1), (2, 0)]
        assert all(table[at] == v for at, v in cells.items())


@pytest.mark.parametrize(
    ("sums", "items", "promised", "holds"),
    [
        ({}, {}, [], True),
        ({(2,): 7}, {}, [], True),
        ({(3,): 10}, {(2,): 4}, [], True),
        ({(1,): 5}, {(0,): 5}, [], True),
        ({(1,): 5}, {(0,): 4}, [], False),
        ({(0,): 1}, {}, [], False),
        ({(1,): 5, (2,): 4}, {}, [], False),
        ({}, {(1,): -1}, [], False),
        ({(3,): 4}, {}, [Promise("within", (0, 4))], False),
        ({}, {}, [Promise("within", (0, 2))], True),
        ({}, {}, [Promise("within", (1, 9))], False),
    ],
)
def test_sums_are_those_of_the_items_or_refused(sums, items, promised, holds):
    starts, lengths = np.zeros(4, np.int32), np.zeros(3, np.int32)
    assert fill_sums(starts, lengths, (sums, items), (promised, [])) is holds
    if holds:
        assert starts.tolist() == [0, *np.cumsum(lengths).tolist()]
        assert all(starts[at] == v for at, v in sums.items())
        assert all(lengths[at] == v >= 0 for at, v in items.items())


def test_sums_have_one_element_more_than_items():
    assert not fill_sums(np.zeros(3, np.int32), np.zeros(3, np.int32), ({}, {}), ([], []))


def test_contract_bounds_are_launch_values():
    site = Site("k.py", Span(0, 1))
    contract = Contract("within", "t", (const(0), sym(OUT)), "within(t, 0, out.shape[0])", None, site)
    assert promises([contract], "t", lambda e: 7 if e is sym(OUT) else 0) == (Promise("within", (0, 7)),)
    assert promises([contract], "u", lambda e: 0) == ()


def test_counterexample_respects_a_contract(read):
    from tilecheck.proof.refute.counterexample import find
    from tilecheck.proof.solver.session import Session

    text = (
        "def k(table, out):\n"
        "    # tilecheck: requires distinct(table) -- one source for each row\n"
        "    b = ct.bid(0)\n"
        "    if b < table.shape[0]:\n"
        "        ct.scatter(out, ct.gather(table, b) // 2, 1.0)\n"
    )
    found = read(text)
    (race,) = found.all_of("TC201")
    witness = find(race, Context(found.kernel), found.path, Session())
    assert len(set(witness.values["table"])) == len(witness.values["table"])
    whole = read(text.replace(" // 2", ""))
    (safe,) = whole.all_of("TC201")
    assert find(safe, Context(whole.kernel), whole.path, Session()) is None


# ---- smaller launches -----------------------------------------------------------------------------------


def test_minimise_keeps_the_claim_and_the_budget():
    replays = []

    def replay(trial):
        replays.append(trial)
        return "seen" if trial.value(GRID) >= 2 and trial.value(OUT) >= 3 else None

    start = Concrete({GRID: 16, OUT: 40, T: 8})
    smallest, sighting = minimise(start, "seen", (OUT, GRID, T), replay, lambda: len(replays) < 40)
    assert (smallest.value(GRID), smallest.value(OUT), smallest.value(T)) == (2, 3, 1)
    assert sighting == "seen"
    replays.clear()
    unchanged, _ = minimise(start, "seen", (OUT, GRID, T), replay, lambda: False)
    assert (unchanged, replays) == (start, [])


def test_enumeration_is_admitted_deterministic_and_without_repeats(context):
    first, second = list(small_launches(context)), list(small_launches(context))
    assert [c.values for c in first] == [c.values for c in second]
    assert all(is_admitted(c, context) for c in first)
    launch = launch_symbols(context)
    assert len({tuple(c.value(s) for s in launch) for c in first}) == len(first) > 20


@pytest.mark.parametrize(
    ("starts", "cells", "holds"),
    [
        ((0, 3, 3, 7), {}, True),
        ((0, 3, 3, 7), {(3,): 4}, True),
        ((0, 3, 3, 7), {(3,): 3}, False),
        ((0, 3, 2, 7), {}, False),
    ],
)
def test_numbers_of_chunks_are_added_up(starts, cells, holds):
    sums = np.zeros(4, dtype=np.int64)
    assert fill_chunk_sums(sums, np.array(starts), cells, 2, []) is holds
    if holds:
        assert sums.tolist() == [0, 2, 2, 4]
