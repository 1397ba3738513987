"""Operators on host values: tensors, quotients, shapes, numbers of unknown type."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute import expressions
from tilecheck.frontend.host import calls
from tilecheck.frontend.host.sizes import powers_of_two, unknown_ranks
from tilecheck.frontend.host.tensors.elementwise import elementwise
from tilecheck.frontend.host.values import (
    BitLength,
    Device,
    Dims,
    HostShape,
    Members,
    Order,
    Ratio,
    Tensor,
    Unknown,
)
from tilecheck.frontend.values import arithmetic
from tilecheck.frontend.values.comparisons import compared
from tilecheck.frontend.values.values import Choice, Const, Num, Seq
from tilecheck.ir import expr as E
from tilecheck.ir.host import (
    exact_quotient,
    host_extent,
    host_rank,
    host_stride,
    host_test,
    is_whole,
    same_shape,
    same_strides,
    scalars,
)

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor


def operate(x: HostExecutor, op: str, a: Any, b: Any) -> Any:
    """A binary operator on host values."""
    match a, b:
        case Choice(), _:
            return x.split(a.cond, lambda: operate(x, op, a.first, b), lambda: operate(x, op, a.second, b))
        case _, Choice():
            return x.split(b.cond, lambda: operate(x, op, a, b.first), lambda: operate(x, op, a, b.second))
        case (Tensor(), _) | (_, Tensor()):
            return elementwise(x, a, b)
        case Num(), BitLength() if op == "<<" and a.elem is E.ONE:
            return calls.power_above(x, b.of)
        case Num(), BitLength() if op == "**" and a.elem is not None and a.elem.value == 2:
            return calls.power_above(x, b.of)
        case (HostShape() | Dims(), HostShape() | Dims() | Seq()) | (Seq(), HostShape() | Dims()) if op == "+":
            return _joined(x, a, b)
        case Order(last=False), Seq((Num(elem=axis),), True) if op == "+" and axis is a.axis:
            return replace(a, last=True)
        case Seq(), Num(elem=E.Expr() as times) if op == "*" and times.value is None and a.items:
            return unknown_ranks.repeated(x, a, times)
        case (Num() | Unknown() | Ratio(), Num() | Unknown()) if op == "/":
            return _ratio(x, a, b)
        case Num(), Num() if (found := powers_of_two.on_bits(x, op, a, b)) is not None:
            return found
        case _:
            return expressions.operate(x, op, a, b)


def _joined(x: HostExecutor, a: Any, b: Any) -> Any:
    """`x.shape[:-1] + (n,)`."""
    first, second = unknown_ranks.parts_of(x, a), unknown_ranks.parts_of(x, b)
    if first is None or second is None:
        raise UnsupportedConstruct("sum of these values")
    return unknown_ranks.shape_of_parts((*first, *second), is_list=not isinstance(a, HostShape) and a.is_list)


def _ratio(x: HostExecutor, a: Any, b: Any) -> Any:
    folded = expressions.fold_floats("/", a, b)
    if folded is not None and isinstance(folded.value, float) and not folded.value.is_integer():
        return folded
    if isinstance(a, Ratio):  # `x.numel() / m / n`, where nothing is left over and so nothing is rounded
        whole = exact_quotient(a.top, E.mul(a.bottom, x.scalar(b, "divisor")))
        if whole is None:
            raise UnsupportedConstruct("division")
        return Ratio(whole, E.ONE)
    top, bottom = x.number_of(a, "dividend"), x.number_of(b, "divisor")
    if top.elem is None or bottom.elem is None or "bool" in (top.kind, bottom.kind):
        raise UnsupportedConstruct("division")
    return Ratio(top.elem, bottom.elem)


# ---- comparisons ---------------------------------------------------------------------------------------------


def compare(x: HostExecutor, operator: cst.BaseCompOp, a: Any, b: Any) -> Any:
    """One comparison of host values."""
    if isinstance(a, Choice):
        return x.split(
            a.cond, lambda: compare(x, operator, a.first, b), lambda: compare(x, operator, a.second, b)
        )
    if isinstance(b, Choice):
        return x.split(
            b.cond, lambda: compare(x, operator, a, b.first), lambda: compare(x, operator, a, b.second)
        )
    if isinstance(operator, cst.Is | cst.IsNot) and isinstance(a, Device) and b == Const(None):
        return Num((), E.FALSE if isinstance(operator, cst.Is) else E.TRUE, "bool", None)
    if isinstance(operator, cst.Equal | cst.NotEqual):
        equal = _equal(x, a, b)
        if equal is not None:
            return Num((), equal if isinstance(operator, cst.Equal) else E.negate(equal), "bool", None)
    elif isinstance(operator, cst.In | cst.NotIn) and isinstance(b, Members | Seq):
        same = [x.truth(compare(x, cst.Equal(), a, item)) for item in b.items]
        is_one = E.any_of(*same)
        return Num((), is_one if isinstance(operator, cst.In) else E.negate(is_one), "bool", None)
    elif isinstance(operator, cst.In | cst.NotIn) and (isinstance(b, Unknown) or _kind(b) == "any"):
        found = Num((), x.unread_test(f"{_words(a)} in {_words(b)}"), "bool", None)
        return found if isinstance(operator, cst.In) else arithmetic.invert(found, x)
    elif _is_integer(a) and isinstance(b, Unknown):
        x.use_as_integer(x.number_of(b, "operand").elem or E.ZERO)
    elif _is_integer(b) and isinstance(a, Unknown):
        x.use_as_integer(x.number_of(a, "operand").elem or E.ZERO)
    return _if_whole(x, operator, a, b, expressions.compare(x, operator, a, b))


def _if_whole(x: HostExecutor, operator: cst.BaseCompOp, a: Any, b: Any, found: Any) -> Any:
    """The order of numbers of which the text does not say that they are integers: where they are, it is that of
    integers, and else what was `found`."""
    op = expressions.COMPARE.get(type(operator), "==")
    numeric = all(isinstance(v, Num | Unknown) for v in (a, b))
    if op in ("==", "!=") or not numeric or not isinstance(found, Num) or found.elem is None:
        return found
    u, v = (x.number_of(value, "operand") for value in (a, b))
    if u.elem is None or v.elem is None or "bool" in (u.kind, v.kind):
        return found
    names = [s.name for s in scalars(E.add(u.elem, v.elem)) if s.name not in x.integer_names]
    exact = compared(op, u.elem, v.elem)
    if not names or exact is found.elem:
        return found
    return replace(found, elem=E.either(E.all_of(*map(is_whole, names)), exact, found.elem))


def _words(value: Any) -> str:
    match value:
        case Num(elem=E.Expr() as number):
            return E.render(number)
        case Const():
            return repr(value.value)
        case _:
            return str(getattr(value, "name", "a value"))


def _kind(value: Any) -> str:
    return value.kind if isinstance(value, Num) else ""


def _is_integer(value: Any) -> bool:
    """Whether a value is an integer that a tensor's shape decides, not a literal."""
    return (
        isinstance(value, Num) and value.kind == "int" and value.elem is not None and value.elem.value is None
    )


def _equal(x: HostExecutor, a: Any, b: Any) -> E.Expr | None:
    """`a == b` where it needs no types: an integer equals what is an integer and the same. A list equals no
    tuple; what is handed in as sizes may be either."""
    one, other = (_is_list(x, value) for value in (a, b))
    if one is None or other is None:
        return _equal_items(x, a, b)
    alike = E.any_of(E.all_of(one, other), E.all_of(E.negate(one), E.negate(other)))
    same = E.FALSE if alike is E.FALSE else _equal_items(x, a, b)
    return None if same is None else E.all_of(alike, same)


def _is_list(x: HostExecutor, value: Any) -> E.Expr | None:
    """Whether a sequence is a list, and no tuple; None for what is no sequence that is read."""
    match value:
        case Seq() | Dims():
            return E.TRUE if value.is_list else E.FALSE
        case HostShape() if value.of in x.sequence_names:
            return host_test(f"isinstance({value.of}, list)")
        case HostShape():
            return E.FALSE
        case _:
            return None


def _equal_items(x: HostExecutor, a: Any, b: Any) -> E.Expr | None:
    """The same of their items."""
    match a, b:
        case HostShape(strides=False), HostShape(strides=False) if x.shapes.keys().isdisjoint((a.of, b.of)):
            return same_shape(a.of, b.of)
        case HostShape(strides=True), HostShape(strides=True):
            own = a.of == b.of or all(map(x.is_given, (a.of, b.of)))
            return same_strides(a.of, b.of) if own else x.unread_test(f"strides of {a.of} and {b.of}")
        case (HostShape() | Dims(), HostShape() | Dims()):
            return _equal_parts(x, unknown_ranks.parts_of(x, a), unknown_ranks.parts_of(x, b))
        case (Dims(), Seq()) | (Seq(), Dims()):
            shape, items = (a, b) if isinstance(a, Dims) else (b, a)
            return unknown_ranks.equals_items(shape.parts, tuple(x.scalar(i, "extent") for i in items.items))
        case (HostShape(), Seq()) | (Seq(), HostShape()):
            shape, items = (a, b) if isinstance(a, HostShape) else (b, a)
            return _equals_items(x, shape, items)
        case Num() | Unknown(), Num() | Unknown():
            u, v = x.number_of(a, "operand"), x.number_of(b, "operand")
            if u.elem is not None and v.elem is not None and "bool" not in (u.kind, v.kind):
                return E.eq(u.elem, v.elem)
    return None


def _equal_parts(
    x: HostExecutor, a: unknown_ranks.Parts | None, b: unknown_ranks.Parts | None
) -> E.Expr | None:
    """Whether two shapes of unknown rank are equal: then they have as many axes, and elements."""
    if a is None or b is None:
        return None
    same = unknown_ranks.same_parts(a, b)
    if same is not None:
        return same
    counts = E.eq(unknown_ranks.product(a), unknown_ranks.product(b))
    return E.all_of(x.unread_test("equal shapes"), counts, E.eq(unknown_ranks.rank(a), unknown_ranks.rank(b)))


def _equals_items(x: HostExecutor, shape: HostShape, items: Seq) -> E.Expr | None:
    part = host_stride if shape.strides else host_extent
    tests = [E.eq(E.sym(host_rank(shape.of)), len(items.items))]
    for k, item in enumerate(items.items):
        num = x.number_of(item, "extent")
        if num.elem is None or num.kind == "bool":
            return None
        tests.append(E.eq(E.sym(part(shape.of, k)), num.elem))
    return E.all_of(*tests)
