"""What follows from premises without a solver."""

from __future__ import annotations

from time import process_time

from tilecheck.ir.expr import (
    Kind,
    Symbol,
    add,
    eq,
    floordiv,
    ite,
    le,
    lt,
    maximum,
    minimum,
    mod,
    mul,
    negate,
    sub,
    sym,
)
from tilecheck.proof.premises.premises import Premises
from tilecheck.proof.rungs.entail import entailed

M, N, S, T = (sym(Symbol(name, Kind.SCALAR)) for name in "mnst")
ROW, COLUMN = (sym(Symbol(name, Kind.LOOP)) for name in "ij")


def test_bounds_that_drive_each_other_up_are_forgotten() -> None:
    """n > m and m >= n, and products of both: every round would square the bounds."""
    start = process_time()
    premises = Premises.of([le(2, M), lt(M, N), le(mul(N, N), M), le(mul(M, N), N)])
    for k in range(40):
        premises.learn(premises.form(sub(mul(M, N), add(N, k))))
    assert process_time() - start < 5


def test_quotients_of_dividends_that_are_apart() -> None:
    premises = Premises.of([le(1, S), le(add(ROW, S), COLUMN)])
    assert entailed(lt(floordiv(ROW, S), floordiv(COLUMN, S)), premises.copy())
    assert not entailed(lt(add(floordiv(ROW, S), 1), floordiv(COLUMN, S)), premises.copy())


def test_quotients_keep_the_order_of_what_is_divided() -> None:
    """Also where that follows from several premises; not by a divisor that may be negative."""
    given = [le(ROW, M), le(add(M, N), COLUMN), le(0, N)]
    launch = floordiv(mul(N, 3), S)
    assert entailed(le(floordiv(ROW, S), launch), Premises.of([le(1, S), le(ROW, M), le(M, N), le(0, N)]))
    assert not entailed(le(floordiv(ROW, S), launch), Premises.of([le(ROW, M), le(M, N), le(0, N)]))
    assert not entailed(le(launch, floordiv(ROW, S)), Premises.of([le(1, S), *given]))


def test_the_columns_of_a_grouped_order_of_blocks() -> None:
    """Blocks of m*n tiles go through groups of 8 rows, the last of which may have fewer: a quotient by the rows
    of the group stays below the columns, both in whole groups and in the last."""
    group = floordiv(floordiv(ROW, N), 8)
    rows = minimum(sub(M, mul(group, 8)), 8)
    column = floordiv(sub(ROW, mul(group, 8, N)), rows)
    given = [le(1, N), le(0, ROW), lt(ROW, mul(M, N)), le(1, rows)]
    assert entailed(lt(column, N), Premises.of(given))
    assert not entailed(lt(add(column, 1), N), Premises.of(given))
    assert not entailed(lt(column, N), Premises.of([*given[:2], given[3]]))


def test_a_conditional_is_the_branch_that_premises_choose() -> None:
    value = ite(le(0, sub(add(ROW, N), M)), mul(S, T), N)
    assert entailed(eq(value, mul(S, T)), Premises.of([le(0, ROW), le(M, N)]))
    assert not entailed(eq(value, mul(S, T)), Premises.of([le(0, ROW)]))


def test_a_factor_that_is_not_negative_is_divided_out() -> None:
    premises = Premises.of([le(0, S), lt(mul(S, ROW), mul(S, COLUMN))])
    assert entailed(lt(ROW, COLUMN), premises)
    assert not entailed(lt(ROW, COLUMN), Premises.of([lt(mul(S, ROW), mul(S, COLUMN))]))


def test_factors_of_a_row_are_left_alone() -> None:
    """(i*m + j) * n + k is below t*m*n where i < t, j < m and k < n, whatever else is known of m and n."""
    k = sym(Symbol("k", Kind.LOOP, uid=7))
    row = add(mul(add(mul(ROW, M), COLUMN), N), k)
    known = [le(0, ROW), lt(ROW, T), le(0, COLUMN), lt(COLUMN, M), le(0, k), lt(k, N)]
    others = [le(mul(M, N), sym(Symbol(f"x{n}", Kind.EXTENT))) for n in range(6)]
    assert entailed(lt(row, mul(T, M, N)), Premises.of([*known, *others]))
    assert not entailed(lt(row, sub(mul(T, M, N), 1)), Premises.of([*known, *others]))


def test_segments_of_whole_blocks() -> None:
    """A sequence of m elements has cdiv(m, n) segments of n elements, each of n // s blocks of s elements."""
    blocks, segments = (floordiv(add(M, size, -1), size) for size in (S, N))
    segment = floordiv(ROW, floordiv(N, S))
    given = [le(1, S), le(1, N), le(1, floordiv(N, S)), le(0, M), le(0, ROW), lt(ROW, blocks)]
    whole = eq(mod(N, S), 0)
    assert entailed(lt(segment, segments), Premises.of([*given, whole]))
    assert not entailed(lt(add(segment, 1), segments), Premises.of([*given, whole]))
    assert not entailed(lt(segment, segments), Premises.of(given))
    assert not entailed(lt(segment, segments), Premises.of([*given[1:], whole]))


def test_blocks_of_whole_passes() -> None:
    """Of m elements in n passes there are cdiv(m // n, s) blocks of s elements a pass."""
    blocks = floordiv(add(M, S, -1), S)
    own = floordiv(add(floordiv(M, N), S, -1), S)
    given = [le(1, S), le(1, N), le(0, M), le(0, ROW), lt(ROW, blocks)]
    whole = eq(mod(M, N), 0)
    assert entailed(lt(floordiv(ROW, N), own), Premises.of([*given, whole]))
    assert not entailed(lt(add(floordiv(ROW, N), 1), own), Premises.of([*given, whole]))
    assert not entailed(lt(floordiv(ROW, N), own), Premises.of(given))


def test_an_index_of_tiles_is_below_their_number() -> None:
    """i*s + l < m gives i < cdiv(m, s), also times a stride; i*s <= m does not, nor does an l below 0."""
    lane = sym(Symbol("l", Kind.LOOP, uid=8))
    tiles = floordiv(add(M, S, -1), S)
    given = [le(1, S), le(0, ROW), le(0, lane), lt(add(mul(ROW, S), lane), M)]
    assert entailed(lt(ROW, tiles), Premises.of(given))
    assert entailed(lt(mul(ROW, T), N), Premises.of([*given, le(1, T), le(mul(tiles, T), N)]))
    assert not entailed(lt(add(ROW, 1), tiles), Premises.of(given))
    assert not entailed(lt(ROW, tiles), Premises.of([*given[:3], le(mul(ROW, S), M)]))
    assert not entailed(lt(ROW, tiles), Premises.of([*given[:2], given[3]]))
    assert not entailed(lt(ROW, tiles), Premises.of(given[1:]))


def test_what_is_below_a_minimum_is_below_each_branch() -> None:
    """Also where the branch is what cancels: i + j stays below m for j < min(s, m - i)."""
    bound = minimum(S, sub(M, ROW))
    assert entailed(lt(mul(add(ROW, COLUMN), T), mul(M, T)), Premises.of([le(1, T), lt(COLUMN, bound)]))
    assert entailed(le(N, COLUMN), Premises.of([le(maximum(N, S), COLUMN)]))
    assert not entailed(lt(add(ROW, COLUMN), M), Premises.of([lt(COLUMN, maximum(S, sub(M, ROW)))]))
    assert not entailed(le(N, COLUMN), Premises.of([le(minimum(N, S), COLUMN)]))


def test_steps_back_to_a_multiple_do_not_go_below_it() -> None:
    """From i*big down in steps of `step` to more than -step: that is 0 at least, where step divides big."""
    big, step = (sym(Symbol(name, Kind.CONSTANT)) for name in ("BT", "BS"))
    place = sub(mul(ROW, big), mul(add(COLUMN, 1), step))
    given = [le(1, step), le(1, big), le(0, ROW), le(0, COLUMN), lt(mul(-1, step), place)]
    whole = eq(mod(big, step), 0)
    assert entailed(le(0, place), Premises.of([*given, whole]))
    assert entailed(le(0, mul(place, M)), Premises.of([*given, whole, le(0, M)]))
    assert not entailed(le(1, place), Premises.of([*given, whole]))
    assert not entailed(le(0, place), Premises.of(given))
    assert not entailed(le(0, place), Premises.of([*given[1:], whole]))
    assert not entailed(le(0, place), Premises.of([*given[:4], le(mul(-1, step), place), whole]))


def test_multiples_of_each_other_are_written_once() -> None:
    """BT % BS == 0 along with BS % BT == 0, and chains of three."""
    a, b, c = (sym(Symbol(name, Kind.CONSTANT)) for name in "abc")
    sizes = [le(1, a), le(1, b), le(1, c)]
    both = Premises.of([*sizes, eq(mod(a, b), 0), eq(mod(b, a), 0)])
    assert entailed(le(b, a), both)
    assert not entailed(le(add(b, 1), a), both)
    chain = Premises.of([*sizes, eq(mod(a, b), 0), eq(mod(b, c), 0)])
    assert entailed(le(b, a), chain)
    assert not entailed(le(a, b), chain)


def test_a_multiple_of_two_is_written_as_one_of_what_it_is_divided_by() -> None:
    """i * a steps of b back from i * a, where b divides a: whatever else does, that is 0."""
    a, b, c = (sym(Symbol(name, Kind.CONSTANT)) for name in "abc")
    sizes = [le(1, a), le(1, b), le(1, c), le(0, ROW)]
    steps = mul(floordiv(mul(ROW, a), b), b)
    asked = le(mul(ROW, a), steps)
    for first, second in ((b, c), (c, b)):
        given = [*sizes, eq(mod(a, first), 0), eq(mod(a, second), 0), le(0, floordiv(mul(ROW, a), b))]
        assert entailed(asked, Premises.of(given))
        assert not entailed(le(add(mul(ROW, a), 1), steps), Premises.of(given))
    assert not entailed(asked, Premises.of([*sizes, eq(mod(a, c), 0), le(0, floordiv(mul(ROW, a), b))]))


def test_a_launch_value_may_be_a_multiple() -> None:
    """Whole tiles of n elements have no more than n; not of tiles that may be empty, of others, or of those of
    which something is left."""
    b, c = (sym(Symbol(name, Kind.CONSTANT)) for name in "bc")
    tiles = mul(floordiv(add(N, b, -1), b), b)
    sizes, whole = [le(1, b), le(1, c), le(0, N)], eq(mod(N, b), 0)
    assert entailed(le(tiles, N), Premises.of([*sizes, whole]))
    assert not entailed(le(tiles, sub(N, 1)), Premises.of([*sizes, whole]))
    assert not entailed(le(tiles, N), Premises.of([*sizes[1:], whole]))
    assert not entailed(le(tiles, N), Premises.of([*sizes, eq(mod(N, c), 0)]))
    assert not entailed(le(tiles, N), Premises.of([*sizes, eq(mod(N, b), 1)]))


def test_rows_of_a_part_are_no_more_than_the_part_has() -> None:
    """Of (m - i) * s elements, element j is in row i + j // s of m; not where s may be negative, nor by another
    length."""
    row, given = add(ROW, floordiv(COLUMN, S)), lt(COLUMN, mul(sub(M, ROW), S))
    assert entailed(lt(row, M), Premises.of([le(1, S), given]))
    assert not entailed(lt(add(row, 1), M), Premises.of([le(1, S), given]))
    assert not entailed(lt(row, M), Premises.of([given]))
    assert not entailed(lt(row, M), Premises.of([le(1, S), lt(COLUMN, mul(sub(M, ROW), T))]))
    assert not entailed(lt(row, M), Premises.of([le(1, S), le(COLUMN, mul(sub(M, ROW), S))]))


def test_what_a_conditional_keeps_below_an_end() -> None:
    """`i if i < n else 0` times a stride is in n strides; not where n may be 0, nor by a condition on another
    value, or of the other side."""
    value = ite(lt(ROW, N), ROW, 0)
    within = le(mul(add(value, 1), S), mul(N, S))
    assert entailed(within, Premises.of([le(0, S), le(1, N)]))
    assert entailed(le(ite(le(ROW, N), ROW, 0), N), Premises.of([le(0, N)]))
    most = maximum(sub(N, 1), 0)
    assert entailed(le(mul(value, S), mul(most, S)), Premises.of([le(0, S)]))
    assert not entailed(le(mul(value, S), mul(most, S)), Premises.of([]))
    assert not entailed(le(value, maximum(sub(N, 2), 0)), Premises.of([]))
    assert not entailed(within, Premises.of([le(0, S), le(0, N)]))
    assert not entailed(lt(ite(lt(ROW, N), ROW, M), N), Premises.of([le(1, N), le(M, N)]))
    assert not entailed(lt(ite(lt(COLUMN, N), ROW, 0), N), Premises.of([le(1, N)]))
    assert not entailed(lt(ite(lt(ROW, N), 0, ROW), N), Premises.of([le(1, N)]))
    assert not entailed(lt(ite(le(ROW, N), ROW, 0), N), Premises.of([le(1, N)]))


def test_half_of_what_is_positive_is_less() -> None:
    """The middle row of `min(m - i, s)` rows is one of them, also as Triton divides; not of none, nor by 1."""
    rows = minimum(sub(M, ROW), S)
    half = floordiv(rows, 2)
    as_triton = ite(le(0, rows), half, mul(-1, floordiv(mul(-1, rows), 2)))
    given = [le(1, S), lt(ROW, M)]
    for middle in (half, as_triton):
        assert entailed(lt(add(ROW, middle), M), Premises.of(given))
        assert entailed(lt(middle, S), Premises.of(given))
        assert entailed(le(mul(add(ROW, middle, 1), N), mul(M, N)), Premises.of([*given, le(0, N)]))
        assert not entailed(lt(add(ROW, middle, 1), M), Premises.of(given))
        assert not entailed(lt(add(ROW, middle), M), Premises.of([le(1, S), le(ROW, M)]))
        assert not entailed(lt(middle, S), Premises.of([lt(ROW, M), le(0, S)]))
    assert not entailed(lt(floordiv(add(rows, 1), 2), rows), Premises.of(given))
    assert not entailed(lt(add(ROW, floordiv(rows, 1)), M), Premises.of(given))


def test_a_remainder_is_no_more_than_what_is_divided() -> None:
    """So where it is not 0, neither is what is divided; not of what may be negative."""
    given = [le(1, S), lt(0, mod(mul(ROW, N), S)), le(1, N)]
    assert entailed(le(1, ROW), Premises.of([*given, le(0, ROW)]))
    assert not entailed(le(1, ROW), Premises.of(given))
    assert not entailed(le(2, ROW), Premises.of([*given, le(0, ROW)]))
    assert not entailed(le(1, ROW), Premises.of([le(1, S), le(0, mod(ROW, S)), le(0, ROW)]))


def test_a_sum_that_is_positive_times_a_stride() -> None:
    """i + n - 1 is not negative where i + n is not 0 and neither is negative, and so is that times a stride."""
    given = [le(0, ROW), le(0, M), negate(eq(add(ROW, M), 0))]
    place = mul(sub(add(ROW, M), 1), S)
    assert entailed(le(0, place), Premises.of([*given, le(0, S)]))
    assert entailed(le(0, add(place, mul(COLUMN, T))), Premises.of([*given, le(0, S), le(0, COLUMN), le(0, T)]))
    assert not entailed(le(0, place), Premises.of(given))
    assert not entailed(le(0, place), Premises.of([*given[:2], le(0, S)]))
    assert not entailed(le(0, sub(place, S)), Premises.of([*given, le(0, S)]))


def test_blocks_of_a_part_of_whole_blocks() -> None:
    """Part i has S elements of n, S // B blocks of B: block j of it is block i * (S // B) + j of the n, where B
    divides S. Without that, the first block of a part is not the one after the last block before it."""
    size, block = (sym(Symbol(name, Kind.CONSTANT)) for name in ("S", "B"))
    first = floordiv(sub(add(mul(ROW, size), block), 1), block)
    own = floordiv(sub(add(minimum(size, sub(N, mul(ROW, size))), block), 1), block)
    count = floordiv(sub(add(N, block), 1), block)
    whole = eq(mod(size, block), 0)
    given = [le(1, block), le(1, size), le(0, ROW), lt(mul(ROW, size), N), le(0, COLUMN), lt(COLUMN, own)]
    assert entailed(eq(first, mul(ROW, floordiv(size, block))), Premises.of([*given, whole]))
    assert entailed(lt(add(first, COLUMN), count), Premises.of([*given, whole]))
    assert entailed(lt(COLUMN, floordiv(size, block)), Premises.of([*given, whole]))
    assert not entailed(lt(add(first, COLUMN, 1), count), Premises.of([*given, whole]))
    assert not entailed(lt(add(first, COLUMN), count), Premises.of(given))
    assert not entailed(eq(first, mul(ROW, floordiv(size, block))), Premises.of(given))
    assert not entailed(lt(add(first, COLUMN), count), Premises.of([*given[1:], whole]))


def test_a_quotient_is_known_where_the_rest_is_less_than_the_divisor() -> None:
    given = [le(1, S), le(0, COLUMN), lt(COLUMN, S)]
    assert entailed(eq(floordiv(add(mul(ROW, S), COLUMN), S), ROW), Premises.of(given))
    assert entailed(eq(floordiv(sub(mul(ROW, S), 1), S), sub(ROW, 1)), Premises.of([le(1, S)]))
    assert not entailed(eq(floordiv(add(mul(ROW, S), COLUMN), S), ROW), Premises.of(given[:2]))
    assert not entailed(eq(floordiv(add(mul(ROW, S), COLUMN), S), ROW), Premises.of([given[0], given[2]]))
    assert not entailed(eq(floordiv(add(mul(ROW, S), COLUMN), T), ROW), Premises.of([*given, le(1, T)]))


def test_where_a_loop_ends_is_compared_with_launch_values() -> None:
    """Parts of s before block i of B elements: (i * B) // s, and no more than before the last block."""
    block, last = mul(ROW, T), floordiv(mul(sub(M, 1), T), S)
    given = [le(1, S), le(0, T), lt(mul(COLUMN, S), mul(floordiv(block, S), S))]
    assert entailed(lt(COLUMN, last), Premises.of([*given, lt(ROW, M)]))
    assert entailed(le(mul(add(COLUMN, 1), N), mul(last, N)), Premises.of([*given, lt(ROW, M), le(0, N)]))
    assert not entailed(lt(add(COLUMN, 1), last), Premises.of([*given, lt(ROW, M)]))
    assert not entailed(lt(COLUMN, last), Premises.of([*given, le(ROW, M)]))
    assert not entailed(lt(COLUMN, last), Premises.of([given[0], given[2], lt(ROW, M)]))
