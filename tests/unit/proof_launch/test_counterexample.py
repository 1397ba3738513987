"""Counterexamples of kernels in their own text: each is replayed before it is believed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilecheck.ir.expr import Kind, Symbol, cdiv, le, sym
from tilecheck.ir.kernel import Effect, extent_symbol, grid_symbol
from tilecheck.proof.goals.context import Context
from tilecheck.proof.obligation import Between, Ordered
from tilecheck.proof.refute.counterexample import Limits, find, is_claimable
from tilecheck.proof.solver.session import Session


@pytest.fixture
def witness(read):
    def of(text, rule, conditions=(), which=0, limits=None):
        found = read(text)
        obligation = found.all_of(rule)[which]
        context = Context(found.kernel, tuple(conditions))
        return find(obligation, context, found.path, Session(), limits)

    return of


def test_halved_block_index(witness):
    found = witness(
        "def k(out, T: ct.Constant[int]):\n"
        "    ct.store(out, (ct.bid(0) // 2,), ct.zeros((T,), dtype=ct.float32))\n",
        "TC201",
    )
    assert (found.kind, found.array, found.grid, found.blocks) == ("overlap", "out", (2,), ((0,), (1,)))
    assert found.element == (0,)
    assert found.values == {"out.shape[0]": 1, "T": 1}
    assert found.replayed


def test_conditions_of_other_obligations_hold_in_the_witness(witness):
    out, tile = sym(extent_symbol("out", 0)), sym(Symbol("T", Kind.CONSTANT))
    found = witness(
        "def k(out, T: ct.Constant[int]):\n"
        "    ct.store(out, (ct.bid(0) // 2,), ct.zeros((T,), dtype=ct.float32))\n",
        "TC201",
        [le(sym(grid_symbol(0)), cdiv(out, tile))],
    )
    assert found.grid[0] <= -(-found.values["out.shape[0]"] // found.values["T"])


def test_contradicting_conditions_have_no_witness(witness):
    found = witness(
        "def k(out, T: ct.Constant[int]):\n"
        "    ct.store(out, (ct.bid(0) // 2,), ct.zeros((T,), dtype=ct.float32))\n",
        "TC201",
        [le(sym(grid_symbol(0)), 1)],
    )
    assert found is None


def test_safe_kernel_has_no_witness(witness):
    found = witness(
        "def k(out, T: ct.Constant[int]):\n    ct.store(out, (ct.bid(0),), ct.zeros((T,), dtype=ct.float32))\n",
        "TC201",
    )
    assert found is None


def test_constant_tile_size(witness):
    found = witness(
        "def k(out):\n    i = ct.bid(0) * 127 + ct.arange(128, dtype=ct.int32)\n    ct.scatter(out, i, 1.0)\n",
        "TC201",
    )
    assert found.grid == (2,)
    assert found.values["out.shape[0]"] >= 128
    assert found.element == (127,)
    assert sorted(found.lanes) == [(0,), (127,)]


def test_read_of_a_neighbour(witness):
    found = witness(
        "def k(x, T: ct.Constant[int]):\n"
        "    t = ct.load(x, (ct.bid(0) + 1,), shape=(T,))\n"
        "    ct.store(x, (ct.bid(0),), t)\n",
        "TC202",
    )
    assert sorted(found.blocks) == [(0,), (1,)]
    assert found.element == (1,)


def test_iterations_are_told(witness):
    found = witness(
        "def k(out, n: int):\n"
        "    for i in range(n):\n"
        "        ct.store(out, (ct.bid(0) + i,), ct.zeros((1,), dtype=ct.float32))\n",
        "TC201",
    )
    assert len(found.blocks) == len(found.iterations) == 2
    assert [b[0] + i[0] for b, i in zip(found.blocks, found.iterations, strict=True)] == [found.element[0]] * 2


def test_contents_of_a_table(witness):
    found = witness(
        "def k(table, out):\n    ct.scatter(out, ct.gather(table, ct.bid(0)), 1.0)\n",
        "TC201",
    )
    first, second = (found.values["table"][b[0]] for b in found.blocks)
    assert first == second == found.element[0]


def test_values_that_are_not_modelled_are_left_to_the_replay(witness):
    found = witness(
        "def k(x, out):\n"
        "    v = ct.astype(ct.load(x, (ct.bid(0),), shape=(1,)) * 0.5, ct.int32)\n"
        "    ct.scatter(out, v, 1.0)\n",
        "TC201",
    )
    assert found is None or found.replayed


def test_two_lanes_of_one_scatter(witness):
    found = witness(
        "def k(out):\n    ct.scatter(out, ct.arange(8, dtype=ct.int32) // 2 + ct.bid(0) * 4, 1.0)\n",
        "TC203",
    )
    assert len(found.blocks) == 1
    assert len(set(found.lanes)) == 2


def test_tile_outside_along_the_axis_in_question(witness):
    text = (
        "def k(out, T: ct.Constant[int]):\n"
        "    ct.store(out, (ct.bid(0), 1), ct.zeros((1, T), dtype=ct.float32))\n"
    )
    rows = witness(text, "TC302", which=0)
    columns = witness(text, "TC302", which=1)
    assert rows.element[0] >= rows.values["out.shape[0]"]
    assert columns.element[1] >= columns.values["out.shape[1]"]


def test_unchecked_access(witness):
    found = witness(
        "def k(x, out, T: ct.Constant[int]):\n"
        "    t = ct.load(x, (ct.bid(0),), shape=(T,), check_bounds=False)\n"
        "    ct.store(out, (ct.bid(0),), t)\n",
        "TC303",
    )
    assert found.kind == "bounds"
    assert found.element[0] >= found.values["x.shape[0]"]


def test_divisor_of_zero(witness):
    found = witness(
        "def k(out, n: int):\n    ct.scatter(out, ct.bid(0) // n, 1.0)\n",
        "TC301",
    )
    assert found.kind == "undefined"
    assert found.values["n"] <= 0


def test_budget_of_replays_is_kept(witness):
    text = (
        "def k(out, T: ct.Constant[int]):\n"
        "    ct.store(out, (ct.bid(0) // 2,), ct.zeros((T,), dtype=ct.float32))\n"
    )
    assert witness(text, "TC201", limits=Limits(models=0, replays=0)) is None
    assert witness(text, "TC201", limits=Limits(models=0)).replayed  # found by enumeration


def test_what_atomics_order_is_claimed_of_two_blocks_alone_and_an_order_never(read):
    """The log of a run tells what atomics order between blocks, and nothing inside one block."""
    found = read(
        "def k(out, T: ct.Constant[int]):\n"
        "    ct.store(out, (ct.bid(0) // 2,), ct.zeros((T,), dtype=ct.float32))\n"
    )
    (race,) = found.all_of("TC201")
    context = Context(found.kernel)
    assert is_claimable(race, context)
    waiting = replace(race.goal.first, synchronised=True)
    assert is_claimable(replace(race, goal=replace(race.goal, second=waiting)), context)
    inside = replace(race.goal, second=waiting, between=Between.PROGRAM)
    assert not is_claimable(replace(race, goal=inside), context)
    volatile = replace(race.goal.first, effect=Effect.READ, order="ACQUIRE")
    by_loads = Context(replace(found.kernel, language="triton", accesses=(*found.kernel.accesses, volatile)))
    assert not is_claimable(replace(race, goal=replace(race.goal, second=waiting)), by_loads)
    assert not is_claimable(replace(race, goal=Ordered(race.goal.first, race.goal.second, "out")), context)


def test_iterations_of_one_block(witness):
    found = witness(
        "def k(out, T: ct.Constant[int]):\n"
        "    if out.shape[0] >= 8 * T:\n"
        "        for i in range(4):\n"
        "            window = out.slice(axis=0, start=(4 - i) * T, stop=(8 - i) * T)\n"
        "            ct.store(window, index=(i,), tile=ct.full((T,), i * 1.0, dtype=ct.float32))\n",
        "TC204",
    )
    assert len(found.blocks) == 1
    assert found.element == (4 * found.values["T"],)
    assert len(set(found.iterations)) == 2


def test_write_of_an_array_declared_shared(witness):
    found = witness(
        "def k(x, T: ct.Constant[int]):\n"
        "    # tilecheck: shared x\n"
        "    ct.store(x, (ct.bid(0),), ct.zeros((T,), dtype=ct.float32))\n",
        "TC101",
    )
    assert (found.kind, found.array, found.element) == ("ownership", "x", (0,))


def test_witness_is_the_same_in_every_run(witness):
    text = (
        "def k(src, dst, H: int, BM: ct.Constant[int], BD: ct.Constant[int]):\n"
        "    b, h1, h2 = ct.bid(0) // H, ct.bid(0) % H, ct.bid(1)\n"
        "    for m in range(ct.num_tiles(src, axis=2, shape=(1, 1, BM, BD))):\n"
        "        t = ct.load(src, (b, h1, m, 0), shape=(1, 1, BM, BD))\n"
        "        ct.store(dst, (b, h2, m, 0), t)\n"
    )
    first, second = witness(text, "TC201"), witness(text, "TC201")
    assert first == second
    assert first.blocks[0][0] != first.blocks[1][0]
    assert first.blocks[0][1] == first.blocks[1][1]
