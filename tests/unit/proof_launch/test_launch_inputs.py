"""Host inputs that are made without a solver."""

from __future__ import annotations

from tilecheck.ir.expr import (
    Expr,
    Kind,
    Symbol,
    add,
    all_of,
    any_of,
    bool_sym,
    eq,
    evaluate,
    floordiv,
    ite,
    le,
    lt,
    mul,
    negate,
    sym,
)
from tilecheck.ir.host import DEFINED, TEST, host_extent, host_numel, host_rank, host_stride
from tilecheck.proof.launches.inputs.inputs import Inputs
from tilecheck.proof.solver.work import Work

ROWS, COLUMNS = (sym(host_extent("x", k)) for k in range(2))
STEP = sym(host_stride("x", 0))
HALF = sym(Symbol("half", Kind.HOST, origin=DEFINED))
MISSING = bool_sym(Symbol("bias is None", Kind.HOST, origin=TEST))


def meets(
    goal: tuple[Expr, ...], premises: tuple[Expr, ...] = (), usual: dict[Expr, Expr] | None = None
) -> bool:
    asked = (*premises, *goal)
    found = Inputs(premises, usual or {}, Work()).find(asked)
    assert found is None or all(evaluate(a, found.value) for a in asked)
    return found is not None


def test_what_the_text_defines_follows_the_sizes() -> None:
    """No size is given the value that `half` has on its own: it has that of its definition."""
    premises = (eq(HALF, floordiv(add(COLUMNS, 1), 2)),)
    assert meets((lt(HALF, COLUMNS),), premises)
    assert not meets((lt(COLUMNS, HALF),), premises)


def test_a_change_is_seen_by_what_it_defines() -> None:
    """A number of columns that breaks a bound on `half` is no input, though the bound does not name columns."""
    premises = (eq(HALF, floordiv(add(COLUMNS, 1), 2)), le(HALF, 40))
    assert meets((lt(60, COLUMNS),), premises)
    assert not meets((lt(80, COLUMNS),), premises)


def test_definitions_may_name_each_other() -> None:
    """`a == b + 1` and `b == a - 1` define one of the two; nothing is computed from itself."""
    other = sym(Symbol("other", Kind.HOST, origin=DEFINED))
    assert meets((le(1, HALF),), (eq(HALF, add(other, 1)), eq(other, add(HALF, -1))))
    assert not meets((le(1, HALF),), (eq(HALF, add(HALF, 1)),))


def test_strides_are_those_of_contiguous_tensors_until_one_is_changed() -> None:
    usual = {STEP: COLUMNS}
    assert meets((eq(STEP, COLUMNS), le(2, COLUMNS)), usual=usual)
    assert meets((lt(STEP, COLUMNS),), usual=usual)
    packed = any_of(eq(ROWS, 1), eq(mul(ROWS, STEP), mul(ROWS, COLUMNS)))
    assert meets((packed, lt(STEP, COLUMNS), le(1, ROWS)), usual=usual)  # with one row
    assert not meets((packed, lt(STEP, COLUMNS), le(2, ROWS)), usual=usual)


def test_no_argument_is_none_unless_the_text_says_so() -> None:
    assert meets((negate(MISSING),))
    assert meets((le(1, ROWS),), (MISSING,))


def test_what_cannot_be_met_is_not() -> None:
    assert not meets((lt(ROWS, COLUMNS), lt(COLUMNS, ROWS)))
    assert not meets((eq(floordiv(ROWS, 0), 0),))  # no value at all


def test_tensors_need_not_be_contiguous_where_the_text_does_not_say_so() -> None:
    """Memory is shorter than the elements are many: an expanded tensor, which no contiguous one is like."""
    count, span = (sym(Symbol(name, Kind.HOST)) for name in ("x.numel()", "x.span()"))
    contiguous = bool_sym(Symbol("x.is_contiguous()", Kind.HOST))
    said = (any_of(negate(contiguous), eq(span, count)),)
    assert meets((lt(span, count),), said, {span: count})
    assert not meets((lt(span, count),), (*said, contiguous), {span: count})


def test_a_definition_that_ends_in_itself_is_followed_as_far_as_it_goes() -> None:
    """`1 if n < 2 else 2 if n < 3 else power`, as powers of two are defined: the last case defines nothing."""
    power = ite(lt(COLUMNS, 2), 1, ite(lt(COLUMNS, 100), 64, HALF))
    premises = (eq(HALF, power), lt(64, COLUMNS))
    assert meets((lt(HALF, COLUMNS),), premises)
    assert not meets((lt(COLUMNS, HALF), lt(COLUMNS, 100)), premises)


def test_what_a_branch_asks_for_is_met_before_questions_are() -> None:
    """Below `if x.shape[1] > 300 and x.shape[0] < 7`, no inputs of one size are near to what is asked."""
    premises = (lt(300, COLUMNS), lt(ROWS, 7), lt(STEP, 5), le(1, ROWS))
    assert meets((lt(ROWS, 4),), premises)
    assert not meets((lt(ROWS, 0),), premises)


def test_a_tensor_that_is_passed_has_the_rank_that_is_asked_of_it() -> None:
    """After `assert bias is None or bias.ndim == 2 and bias.stride(-1) == 1`."""
    rank, last = sym(host_rank("bias")), sym(host_stride("bias", -1))
    premises = (any_of(MISSING, all_of(eq(rank, 2), eq(last, 1))),)
    assert meets((negate(MISSING), lt(COLUMNS, 3)), premises)
    assert not meets((negate(MISSING), lt(last, 1)), premises)


def test_rows_may_be_apart_or_share_memory() -> None:
    """Of many rows, as a host takes them: `x.numel() // x.shape[1]`, at least 32768 of them."""
    count, last = sym(host_numel("x")), sym(host_stride("x", 1))
    many = floordiv(count, COLUMNS)
    reached = add(mul(add(many, -1), STEP), mul(add(COLUMNS, -1), last), 1)
    premises = (le(0, STEP), le(0, last), le(32768, many))
    assert meets((lt(reached, mul(many, COLUMNS)), lt(STEP, COLUMNS)), premises, {STEP: COLUMNS})
    dense = (*premises, eq(reached, mul(many, COLUMNS)))
    assert meets((lt(COLUMNS, STEP),), dense, {STEP: COLUMNS})
    assert not meets((lt(mul(many, COLUMNS), STEP),), dense, {STEP: COLUMNS})


def test_one_of_two_tensors_may_be_apart() -> None:
    other, last = sym(host_stride("y", 0)), sym(host_stride("y", 1))
    usual = {STEP: COLUMNS, other: COLUMNS}
    dense = eq(add(mul(add(ROWS, -1), other), mul(add(COLUMNS, -1), last), 1), mul(ROWS, COLUMNS))
    assert meets((lt(STEP, other),), (dense, eq(STEP, COLUMNS), le(2, ROWS)), usual)
    assert not meets((lt(other, STEP),), (eq(other, STEP),), usual)
