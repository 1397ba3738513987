"""The sizes at which 32-bit arithmetic fits: each bound is one, whatever the launch."""

from __future__ import annotations

import itertools
import random
from functools import partial

from tilecheck.analysis.limits import int32_limits
from tilecheck.analysis.ranges import INT32_MAX
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol
from tilecheck.ir.kernel import Arithmetic, Kernel, block_symbol, extent_symbol, grid_symbol
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
