"""Which launch conditions each pattern of kernel gets."""

from __future__ import annotations

from tilecheck.ir.expr import add, all_of, cdiv, const, floordiv, le, lt, maximum, mod, mul, read, sym
from tilecheck.ir.kernel import Effect, grid_symbol
from tilecheck.proof.obligation import Holds, Obligation

READ, WRITE = Effect.READ, Effect.WRITE
GRID = [sym(grid_symbol(k)) for k in range(3)]


def test_vector_add_gets_one_bound_for_each_array(build, solved):
    k = build()
    tile = k.tile("T")
    for name, effect in (("a", READ), ("b", READ), ("out", WRITE)):
        k.tiles_access(name, effect, (k.bid(0),), (tile,))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == [
        "grid[0] <= cdiv(a.shape[0], T)",
        "grid[0] <= cdiv(b.shape[0], T)",
        "grid[0] <= cdiv(out.shape[0], T)",
    ]


def test_constant_tile_index_bounds_the_extent_from_below(build, solved):
    k = build()
    tile = k.tile("T")
    k.tiles_access("out", WRITE, (k.bid(0), 3), (1, tile))
    k.tiles_access("bias", READ, (0,), (tile,))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == ["grid[0] <= out.shape[0]", "out.shape[1] >= 3 * T + 1", "bias.shape[0] >= 1"]


def test_matmul_needs_that_both_inputs_agree(build, solved):
    k = build()
    tm, tn, tk = k.tile("TM"), k.tile("TN"), k.tile("TK")
    m, n, i = k.bid(0), k.bid(1), k.loop()
    guard = all_of(le(0, i), lt(i, cdiv(k.extent("a", 1), tk)))
    k.tiles_access("a", READ, (m, i), (tm, tk), guard)
    k.tiles_access("b", READ, (i, n), (tk, tn), guard)
    k.tiles_access("out", WRITE, (m, n), (tm, tn))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == [
        "grid[0] <= cdiv(a.shape[0], TM)",
        "grid[0] <= cdiv(out.shape[0], TM)",
        "grid[1] <= cdiv(b.shape[1], TN)",
        "grid[1] <= cdiv(out.shape[1], TN)",
        "cdiv(b.shape[0], TK) >= cdiv(a.shape[1], TK)",
    ]


def test_grouped_matmul(build, solved):
    k = build()
    tm, tn, tk, group = k.tile("TM"), k.tile("TN"), k.tile("TK"), k.constant("GROUP")
    rows, columns = cdiv(k.extent("a", 0), tm), cdiv(k.extent("b", 1), tn)
    m, n = k.grouped(k.bid(0), rows, columns, group)
    i = k.loop()
    guard = all_of(le(0, i), lt(i, cdiv(k.extent("a", 1), tk)))
    k.tiles_access("a", READ, (m, i), (tm, tk), guard)
    k.tiles_access("b", READ, (i, n), (tk, tn), guard)
    k.tiles_access("out", WRITE, (m, n), (tm, tn))
    found = solved(k.standard())
    assert found.missed == []
    assert [text.replace("(cdiv(b.shape[1], TN))", "cdiv(b.shape[1], TN)") for text in found.texts] == [
        "grid[0] <= cdiv(a.shape[0], TM) * cdiv(b.shape[1], TN)",
        "cdiv(b.shape[0], TK) >= cdiv(a.shape[1], TK)",
        "cdiv(out.shape[0], TM) >= cdiv(a.shape[0], TM)",
        "cdiv(out.shape[1], TN) >= cdiv(b.shape[1], TN)",
        "GROUP >= 1",
    ]


def test_dropped_block_index_is_not_rescued(build, solved):
    k = build()
    tile = k.tile("T")
    k.bid(0)
    k.tiles_access("out", WRITE, (0,), (tile,))
    assert solved(k.standard()).missed == ["TC201"]


def test_halved_block_index_is_not_rescued(build, solved):
    k = build()
    tile = k.tile("T")
    k.tiles_access("out", WRITE, (floordiv(k.bid(0), 2),), (tile,))
    found = solved(k.standard())
    assert found.missed == ["TC201"]
    assert found.texts == ["grid[0] <= 2 * cdiv(out.shape[0], T)"]


def test_quotient_and_remainder_of_a_block_index(build, solved):
    k = build()
    heads, tile = k.scalar("H"), k.tile("T")
    b = k.bid(0)
    k.defined(heads)
    k.tiles_access("out", WRITE, (floordiv(b, heads), mod(b, heads), 0), (1, 1, tile))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == [
        "grid[0] <= H * out.shape[0]",
        "out.shape[1] >= H",
        "out.shape[2] >= 1",
    ]


def test_persistent_loop_with_the_step_as_a_parameter(build, solved):
    k = build()
    tile, step = k.tile("T"), k.constant("NUM_SMS")
    i = k.loop()
    t = add(k.bid(0), mul(i, step))
    k.tiles_access("out", WRITE, (t,), (tile,), lt(t, cdiv(k.extent("out", 0), tile)))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == ["grid[0] <= NUM_SMS"]


def test_persistent_loop_stepped_by_the_grid_needs_nothing(build, solved):
    k = build()
    tile = k.tile("T")
    t = add(k.bid(0), mul(k.loop(), GRID[0]))
    k.tiles_access("out", WRITE, (t,), (tile,), lt(t, cdiv(k.extent("out", 0), tile)))
    found = solved(k.standard())
    assert (found.open_, found.texts) == ((), [])


def test_lowest_digit_of_a_flat_index_is_a_grid_axis(build, solved):
    k = build()
    n = k.scalar("n")
    k.elements_access("out", WRITE, (add(mul(k.bid(0), n), k.bid(1)),))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == ["grid[1] <= n"]


def test_tiles_of_a_flat_row_end_before_the_next_row(build, solved):
    k = build()
    n, tile = k.scalar("n"), k.tile("T")
    lane = k.lane(tile)
    k.elements_access("lse", WRITE, (add(mul(k.bid(0), n), mul(k.bid(1), tile), lane),), (lane,))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == ["grid[1] <= n // T"]


def test_masked_row_needs_a_long_enough_pitch(build, solved):
    k = build()
    pitch, n, tile = k.scalar("pitch"), k.scalar("n"), k.tile("T")
    lane = k.lane(tile)
    k.elements_access("out", WRITE, (add(mul(k.bid(0), pitch), lane),), (lane,), mask=lt(lane, n))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts in (["pitch >= T"], ["pitch >= n"])


def test_unchecked_tile_lies_wholly_inside(build, solved):
    k = build()
    tile = k.tile("T")
    k.tiles_access("x", READ, (k.bid(0),), (tile,), checked=False)
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == ["grid[0] <= x.shape[0] // T"]


def test_unchecked_gather(build, solved):
    k = build()
    tile = k.tile("T")
    lane = k.lane(tile)
    k.elements_access("x", READ, (add(mul(k.bid(0), tile), lane),), (lane,), checked=False)
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == ["grid[0] <= x.shape[0] // T"]


def test_scalar_tile_index(build, solved):
    k = build()
    head, tile = k.scalar("head"), k.tile("T")
    k.tiles_access("out", WRITE, (head, k.bid(0)), (1, tile))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == ["grid[0] <= cdiv(out.shape[1], T)", "out.shape[0] >= head + 1", "head >= 0"]


def test_reversed_blocks(build, solved):
    k = build()
    tile, n = k.tile("T"), k.scalar("n")
    k.tiles_access("out", WRITE, (add(n, -1, mul(-1, k.bid(0))),), (tile,))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == ["grid[0] <= n", "cdiv(out.shape[0], T) >= n"]


def test_two_tiles_for_each_block(build, solved):
    k = build()
    tile = k.tile("T")
    for half in range(2):
        k.tiles_access("out", WRITE, (add(mul(2, k.bid(0)), half),), (tile,))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == ["grid[0] <= cdiv(out.shape[0], T) // 2"]


def test_halves_a_launch_value_apart(build, solved):
    k = build()
    n = k.scalar("n")
    k.elements_access("out", WRITE, (k.bid(0),))
    k.elements_access("out", WRITE, (add(k.bid(0), n),))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == ["grid[0] <= n"]


def test_ungrouped_swizzle_needs_a_divisor(build, solved):
    k = build()
    tm, tn, group = k.tile("TM"), k.tile("TN"), k.constant("G")
    rows = cdiv(k.extent("out", 0), tm)
    b = k.bid(0)
    k.defined(group)
    k.tiles_access("out", WRITE, (mod(b, rows), floordiv(b, rows)), (tm, tn))
    k.defined(rows)
    found = solved(k.standard())
    assert found.missed == []
    assert [t.replace("(cdiv(out.shape[1], TN))", "cdiv(out.shape[1], TN)") for t in found.texts] == [
        "grid[0] <= cdiv(out.shape[0], TM) * cdiv(out.shape[1], TN)",
        "G >= 1",
    ]


def test_remapped_block_index_needs_a_whole_number_of_groups(build, solved):
    k = build()
    b, share = k.bid(0), floordiv(GRID[0], 8)
    k.elements_access("out", WRITE, (add(mul(mod(b, 8), share), floordiv(b, 8)),))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == ["grid[0] % 8 == 0"]


def test_digit_that_is_not_stored_by_is_not_rescued(build, solved):
    k = build()
    heads = k.scalar("H")
    b = k.bid(0)
    k.defined(heads)
    k.elements_access("src", READ, (floordiv(b, heads), mod(b, heads)))
    k.elements_access("dst", WRITE, (mod(b, heads),))
    assert solved(k.standard()).missed == ["TC201"]


def test_heads_permuted_without_the_source_head_are_not_rescued(build, solved):
    k = build()
    heads, tm, td = k.scalar("H"), k.tile("BM"), k.tile("BD")
    b, h1, h2, m = floordiv(k.bid(0), heads), mod(k.bid(0), heads), k.bid(1), k.loop("m")
    guard = all_of(le(0, m), lt(m, cdiv(k.extent("src", 2), tm)))
    k.defined(heads)
    k.tiles_access("src", READ, (b, h1, m, 0), (1, 1, tm, td), guard)
    k.tiles_access("dst", WRITE, (b, m, h2, 0), (1, 1, tm, td), guard)
    assert solved(k.standard()).missed == ["TC201"]


def test_neighbour_written_by_another_block_is_not_rescued(build, solved):
    k = build()
    tile = k.tile("T")
    k.tiles_access("x", READ, (add(k.bid(0), 1),), (tile,))
    k.tiles_access("x", WRITE, (k.bid(0),), (tile,))
    found = solved(k.standard())
    assert found.missed == ["TC201"]


def test_divisors_ask_for_positive_launch_values(build, solved):
    k = build()
    k.bid(0)
    k.defined(k.extent("x", 1))
    k.defined(cdiv(k.extent("x", 0), k.tile("T")))
    k.defined(k.scalar("n"))
    found = solved(k)
    assert found.missed == []
    assert found.texts == ["x.shape[0] >= 1", "x.shape[1] >= 1", "n >= 1"]


def test_batched_grouped_order(build, solved):
    k = build()
    tm, tn, group = k.tile("TM"), k.tile("TN"), const(8)
    rows, columns = cdiv(k.extent("out", 1), tm), cdiv(k.extent("out", 2), tn)
    b = k.bid(0)
    per_batch = mul(rows, columns)
    k.defined(per_batch)
    m, n = k.grouped(mod(b, per_batch), rows, columns, group)
    k.tiles_access("out", WRITE, (floordiv(b, per_batch), m, n), (1, tm, tn))
    found = solved(k.standard())
    assert found.missed == []
    assert found.texts == ["grid[0] <= cdiv(out.shape[1], TM) * cdiv(out.shape[2], TN) * out.shape[0]"]


def test_same_answer_twice(build, solved):
    def texts():
        k = build()
        tile = k.tile("T")
        for name, effect in (("a", READ), ("out", WRITE)):
            k.tiles_access(name, effect, (k.bid(0),), (tile,))
        return solved(k.standard()).texts

    assert texts() == texts()


def test_extent_of_every_member_of_a_list(build, solved):
    # The extent of member i is max(its own, the least of all members), the least being one launch value.
    k = build()
    tile, i = k.tile("T"), k.loop()
    least = k.extent("parts[*]", 0)
    own = maximum(read("parts.shape[0]", i), least)
    goal = Holds(lt(mul(k.bid(0), tile), own), all_of(le(0, i), lt(i, 2)))
    k.obligations.append(Obligation("TC302", goal, (k.site(),), "a tile may lie outside", 1, "bounds"))
    found = solved(k)
    assert found.missed == []
    assert found.texts == ["grid[0] <= cdiv(parts[*].shape[0], T)"]
