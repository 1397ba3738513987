"""The sizes at which 32-bit arithmetic fits: each bound is one, whatever the launch."""

from __future__ import annotations

import itertools
import random
from functools import partial

from tilecheck.analysis.limits import int32_limits, is_bounded, promised_ranges, values_in_memory
from tilecheck.analysis.ranges import INT32_MAX
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol
from tilecheck.ir.kernel import Arithmetic, Contract, Kernel, block_symbol, extent_symbol, grid_symbol
from tilecheck.ir.parts import WHOLE
from tilecheck.model import Site, Span

SITE = Site("k.py", Span(0, 1))
GRID, BID = E.sym(grid_symbol(0)), E.sym(block_symbol(0))
N, T = E.sym(Symbol("n", Kind.SCALAR)), E.sym(Symbol("T", Kind.CONSTANT))
EXTENT = E.sym(extent_symbol("x", 0))
LANE = E.sym(Symbol("lane", Kind.LANE, 1, bound=T))
LOOP = E.sym(Symbol("i", Kind.LOOP, 1))


def limits(value):
    kernel = Kernel("k", "cutile", SITE, (), (0,), (), (), (Arithmetic(value, E.TRUE, SITE),), ())
    return [text.removesuffix(f" <= {INT32_MAX}") for text in int32_limits(kernel)]


def cdiv(a, b):
    return (a + b - 1) // b


def bounds(value, grid, n, tile, extent):
    class X:
        shape = (extent,)

    names = {"grid": (grid,), "n": n, "T": tile, "x": X, "cdiv": cdiv, "abs": abs, "max": max, "min": min}
    return [eval(text, names) for text in limits(value)]


def some_value(random_, depth):
    if depth == 0:
        return random_.choice([BID, LANE, N, T, EXTENT, GRID, E.const(random_.randrange(-5, 6))])
    a, b = some_value(random_, depth - 1), some_value(random_, random_.randrange(depth))
    divisor = random_.choice([T, E.const(3), E.add(T, 2)])  # positive, as TC301 proves of every divisor
    operations = {
        "add": lambda: E.add(a, b),
        "sub": lambda: E.sub(a, b),
        "mul": lambda: E.mul(a, b),
        "floordiv": lambda: E.floordiv(a, divisor),
        "mod": lambda: E.mod(a, divisor),
        "min": lambda: E.minimum(a, b),
        "max": lambda: E.maximum(a, b),
        "ite": lambda: E.ite(E.lt(a, b), a, b),
    }
    return operations[random_.choice(list(operations))]()


TABLE = E.read("t", BID)
UNKNOWN = E.sym(Symbol("value", Kind.OPAQUE, 7, origin="memory:t"))
RANGES = {"t": ((WHOLE, E.ZERO, EXTENT),)}


def promised(value):
    contract = Contract("within", "t", RANGES["t"][0][1:], "within(t, 0, x.shape[0])", None, SITE)
    arithmetic = (Arithmetic(value, E.TRUE, SITE),)
    kernel = Kernel("k", "cutile", SITE, (), (0,), (), (), arithmetic, (), contracts=(contract,))
    return [text.removesuffix(f" <= {INT32_MAX}") for text in int32_limits(kernel)]


def test_a_contract_bounds_what_memory_adds() -> None:
    limit = "(max(0, x.shape[0]) + (grid[0] - 1))"
    assert promised(E.add(TABLE, BID)) == [limit]
    assert promised(E.add(E.ite(E.lt(BID, EXTENT), TABLE, UNKNOWN), BID)) == [limit]
    assert limits(E.add(TABLE, BID)) == []
    assert limits(E.maximum(E.ZERO, E.minimum(E.mul(TABLE, 2), EXTENT))) == ["max(0, x.shape[0])"]


def test_a_value_that_a_contract_skips_is_bounded_too() -> None:
    """The limit is that of all values which the contract allows, and each of them is known to be bounded."""
    ends = (E.ZERO, EXTENT, N)
    skipped = Contract("within_or", "t", ends, "within(t, 0, x.shape[0], skip=n)", None, SITE)
    arithmetic = (Arithmetic(E.mul(TABLE, 3), E.TRUE, SITE),)
    kernel = Kernel("k", "cutile", SITE, (), (0,), (), (), arithmetic, (), contracts=(skipped,))
    (limit,) = (text.removesuffix(f" <= {INT32_MAX}") for text in int32_limits(kernel))
    bounded = is_bounded(TABLE, promised_ranges(kernel))
    for extent, n in itertools.product((0, 1, 5), (-100, -1, 0, 3, 5, 100)):
        names = {"n": n, "x": type("X", (), {"shape": (extent,)}), "abs": abs, "max": max, "min": min}
        for element in {*range(extent), n}:
            assert 3 * abs(element) <= eval(limit, names)
            values = {EXTENT.args[0]: extent, N.args[0]: n}
            assert E.evaluate(bounded, lambda s, v=values: v.get(s, 0), lambda *_, e=element: e)


def test_values_in_memory_are_found_where_they_add_up() -> None:
    inside = E.lt(TABLE, EXTENT)
    assert values_in_memory(E.add(E.mul(TABLE, T), UNKNOWN)) == (TABLE, UNKNOWN)
    assert values_in_memory(E.read("u", E.add(UNKNOWN, 1))) == (E.read("u", E.add(UNKNOWN, 1)),)
    assert values_in_memory(E.ite(inside, BID, N)) == ()
    assert values_in_memory(E.maximum(E.read("xs.shape[0]", BID), 0)) == ()


def test_what_bounds_a_value_in_memory() -> None:
    between = E.all_of(E.le(0, TABLE), E.lt(TABLE, EXTENT))
    assert is_bounded(E.add(BID, LANE), {}) is E.TRUE
    assert is_bounded(E.mod(E.add(UNKNOWN, 1), 8), {}) is E.TRUE
    assert is_bounded(E.mod(8, UNKNOWN), {}) is E.FALSE
    assert is_bounded(E.add(TABLE, BID), {}) is E.FALSE
    assert is_bounded(E.add(TABLE, BID), RANGES) is between
    assert is_bounded(E.add(TABLE, UNKNOWN), RANGES) is E.FALSE
    halves = {"t": ((((0, 2),), E.ZERO, E.const(9)), (((1, 2),), E.ZERO, E.const(5)))}
    odd = E.read("t", E.add(E.mul(2, BID), 1))
    assert is_bounded(odd, halves) is E.all_of(E.le(0, odd), E.lt(odd, 5))
    assert is_bounded(odd, {"t": halves["t"][:1]}) is E.FALSE
    assert is_bounded(E.floordiv(TABLE, UNKNOWN), RANGES) is E.FALSE
    inside = E.lt(BID, N)
    assert is_bounded(E.ite(inside, TABLE, UNKNOWN), RANGES) is E.all_of(inside, between)
    assert is_bounded(E.maximum(E.ZERO, E.minimum(UNKNOWN, N)), {}) is E.TRUE
    assert is_bounded(E.maximum(UNKNOWN, E.minimum(UNKNOWN, N)), {}) is E.FALSE
    assert is_bounded(E.minimum(UNKNOWN, N), {}) is E.FALSE


def test_no_value_is_above_its_bound():
    random_ = random.Random(5)
    tight = 0
    for _ in range(300):
        value = some_value(random_, random_.randrange(1, 4))
        for grid, n, tile, extent in itertools.product((1, 3), (-4, 0, 3), (1, 2, 4), (0, 5)):
            found = [
                abs(E.evaluate(value, partial(at, grid, n, tile, extent, block, lane)))
                for block in range(grid)
                for lane in range(tile)
            ]
            for bound in bounds(value, grid, n, tile, extent):
                assert max(found) <= bound, (value, limits(value))
                tight += max(found) == bound
    assert tight > 500


def at(grid, n, tile, extent, block, lane, symbol):
    values = {"n": n, "T": tile, "x.shape[0]": extent, "grid[0]": grid, "lane": lane, "ct.bid(0)": block}
    return values[symbol.name]


def test_a_quotient_of_a_negative_number_is_rounded_down():
    assert bounds(E.floordiv(E.neg(BID), E.const(3)), 6, 0, 1, 0) == [2]  # -5 // 3


def test_what_has_no_bound_leaves_the_rest_bounded():
    assert limits(E.add(E.mul(BID, T), LOOP)) == ["(grid[0] - 1) * abs(T)"]
    assert limits(E.add(E.mul(BID, T), E.floordiv(N, E.read("t", 0)))) == ["(grid[0] - 1) * abs(T)"]


def test_numbers_without_a_block_id_are_limited_too():
    assert limits(E.mul(LANE, N)) == ["(abs(T) - 1) * abs(n)"]
    assert limits(E.mul(EXTENT, N)) == ["x.shape[0] * abs(n)"]


def test_compile_time_numbers_do_not_wrap():
    assert limits(E.mul(T, E.add(T, 1))) == []
    assert limits(BID) == []


def test_a_choice_is_clamped_where_each_branch_is():
    """`min((max(0, r) if 0 <= n else r), x.shape[0]) * T` is bounded where 0 <= n: the limit is that of this
    branch, and TC305 asks that the other one is not taken."""
    rounded = E.sym(Symbol("value", Kind.OPAQUE, 9, origin="rounded"))
    natural = E.le(0, N)
    clamped = E.minimum(E.ite(natural, E.maximum(0, rounded), rounded), EXTENT)
    assert is_bounded(E.mul(clamped, T), {}) is natural
    assert limits(E.mul(clamped, T)) == ["max(x.shape[0], 0) * abs(T)"]
