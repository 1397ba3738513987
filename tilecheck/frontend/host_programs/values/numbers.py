"""Arithmetic and comparisons of host numbers, with how they grow in the rounds of loops."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import reduce

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host_programs.loops.round_conditions import holds, origin_of
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.kinds import as_number, is_none, key_of, resolved
from tilecheck.frontend.host_programs.values.undetermined import learn_number
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr

_LONGEST_RING = 9  # of buffers or streams: with one round more it is as long as a loop that is read

Operation = Callable[[Expr, Expr], Expr]


def binary(m: Machine, operator: cst.CSTNode, left: V.Value, right: V.Value) -> V.Value:
    """`left <operator> right` of values that are no tensors. What is not followed is the same for the same
    operands."""
    joined = _of_sequences(operator, left, right)
    if joined is not None:
        return joined
    a, b = as_number(m, left), as_number(m, right)
    found = None
    if a is not None and b is not None:
        with contextlib.suppress(UnsupportedConstruct):
            found = _number(m, operator, a, b)
    if found is not None:
        return found
    name = f"({_label(left)} {type(operator).__name__.removesuffix('Assign')} {_label(right)})"
    return V.Unknown(name if len(name) < _LONGEST_NAME else m.unique("value"), given=False, plain=True)


_LONGEST_NAME = 200  # characters


def _label(value: V.Value) -> str:
    return value.name if isinstance(value, V.Unknown) else str(key_of(value))


def _of_sequences(operator: cst.CSTNode, left: V.Value, right: V.Value) -> V.Value | None:
    match operator, left, right:
        case cst.Add() | cst.AddAssign(), V.Sequence(), V.Sequence():
            return V.Sequence([*left.items, *right.items], left.is_tuple)
        case cst.Multiply(), V.Sequence(), V.Number(expr=expr) if expr.value is not None:
            return V.Sequence(left.items * expr.value, left.is_tuple)
    return None


def _number(m: Machine, operator: cst.CSTNode, a: V.Number, b: V.Number) -> V.Number | None:
    match operator:
        case cst.Add() | cst.AddAssign():
            return add(a, b)
        case cst.Subtract() | cst.SubtractAssign():
            return subtract(a, b)
        case cst.Multiply() | cst.MultiplyAssign():
            return _product(a, b)
        case cst.FloorDivide() | cst.FloorDivideAssign() if b.value != 0:
            return _curved(E.floordiv(a.expr, b.expr), a, b, "//")
        case cst.Modulo() | cst.ModuloAssign() if b.value != 0:
            return _remainder(m, a, b)
        case cst.BitAnd() if b.value in (1, 3, 7):  # the last bits of a counter
            return _remainder(m, a, V.number(b.value + 1))
        case cst.BitXor() | cst.BitXorAssign() if a.value is not None and b.value is not None:
            return _curved(E.const(a.value ^ b.value), a, b, "^")
        case cst.Power() if a.value is not None and b.value is not None and 0 <= b.value < 64:
            return _curved(E.const(a.value**b.value), a, b, "**")
        case _:
            return None


def add(a: V.Number, b: V.Number, sign: int = 1) -> V.Number:
    """`a + b`, or `a - b` where the sign is -1."""
    slopes = dict(a.slopes)
    for loop, slope in b.slopes:
        slopes[loop] = E.add(slopes.get(loop, E.ZERO), E.mul(sign, slope))
    left = tuple((loop, slope) for loop, slope in slopes.items() if slope is not E.ZERO)
    return V.Number(E.add(a.expr, E.mul(sign, b.expr)), left, a.curved or b.curved)


def subtract(a: V.Number, b: V.Number) -> V.Number:
    return add(a, b, -1)


def _product(a: V.Number, b: V.Number) -> V.Number:
    if a.slopes and b.slopes:
        return V.Number(E.mul(a.expr, b.expr), (), curved=True)
    grown, factor = (a, b) if a.slopes else (b, a)
    slopes = tuple((loop, E.mul(slope, factor.expr)) for loop, slope in grown.slopes)
    return V.Number(E.mul(a.expr, b.expr), slopes, a.curved or b.curved)


def _curved(expr: Expr, a: V.Number, b: V.Number, operator: str) -> V.Number:
    if not (a.slopes or b.slopes or a.curved or b.curved):
        return V.Number(expr)
    one, other = origin_of(a), origin_of(b)
    origin = f"({one} {operator} {other})" if one and other else ""
    return V.Number(expr, (), curved=True, origin=origin)


def _remainder(m: Machine, a: V.Number, b: V.Number) -> V.Number:
    """`a % b`. A counter taken modulo a literal picks from a ring: the loop must go round it once more."""
    length = m.settle(b.expr).value
    if a.slopes and not a.curved and not b.slopes and length is not None and 0 < length <= _LONGEST_RING:
        for loop in m.loops:
            if any(name == loop.name and slope.value is not None for name, slope in a.slopes):
                m.knowledge.learn_period(loop.site, length)
        # The remainders recur with the period that the loop is read for: no round has another one.
        return V.Number(E.mod(m.settle(a.expr), E.const(length)))
    return _curved(E.mod(a.expr, b.expr), a, b, "%")


_COMPARED: dict[type, Operation] = {
    cst.LessThan: E.lt,
    cst.LessThanEqual: E.le,
    cst.GreaterThan: E.gt,
    cst.GreaterThanEqual: E.ge,
    cst.Equal: E.eq,
    cst.NotEqual: E.ne,
}


def compare(m: Machine, operator: cst.CSTNode, left: V.Value, right: V.Value) -> bool:
    """A comparison of values that are no tensors; what is open is chosen."""
    left, right = resolved(m, left), resolved(m, right)
    negative = isinstance(operator, (cst.IsNot, cst.NotEqual, cst.NotIn))
    if isinstance(operator, (cst.Is, cst.IsNot)) and V.NONE in (left, right):
        other = right if left == V.NONE else left
        return is_none(m, other) != negative
    numbers = _numbers(m, left, right)
    if numbers is not None and type(operator) in _COMPARED:
        a, b = numbers
        one, other = origin_of(a), origin_of(b)
        origin = f"{one} {type(operator).__name__} {other}" if one and other else ""
        return holds(m, _COMPARED[type(operator)](a.expr, b.expr), subtract(a, b), origin)
    if isinstance(operator, (cst.In, cst.NotIn)):
        return _contains(m, right, left) != negative
    if not isinstance(operator, (cst.Is, cst.IsNot, cst.Equal, cst.NotEqual)):
        return m.choose((type(operator).__name__, key_of(left), key_of(right)), 2) == 0
    if isinstance(left, V.Sequence) and isinstance(right, V.Sequence):
        pairs = zip(left.items, right.items, strict=False)
        same = len(left.items) == len(right.items) and all(compare(m, cst.Equal(), *pair) for pair in pairs)
        return same != negative
    known = _equal(left, right)
    same = m.choose(("equal", key_of(left), key_of(right)), 2) == 0 if known is None else known
    return same != negative


def _numbers(m: Machine, left: V.Value, right: V.Value) -> tuple[V.Number, V.Number] | None:
    if not isinstance(left, V.Number) and not isinstance(right, V.Number):
        return None
    for value in (left, right):
        learn_number(m, value)
    a, b = as_number(m, left), as_number(m, right)
    return None if a is None or b is None else (a, b)


def _equal(left: V.Value, right: V.Value) -> bool | None:
    """Whether two values are one; None where that is open."""
    if isinstance(left, V.Unknown) or isinstance(right, V.Unknown):
        return True if left == right else None
    if isinstance(left, (V.Stream, V.Event, V.Graph, V.Const)):
        return type(left) is type(right) and bool(left == right)
    if isinstance(left, V.Number) and isinstance(right, V.Number):
        return True if left.expr is right.expr else None
    return True if left is right else None


def _contains(m: Machine, whole: V.Value, item: V.Value) -> bool:
    if isinstance(whole, V.Mapping):
        key = key_of(item)
        if key in whole.items or not whole.items:
            return key in whole.items
        fixed = [key, *whole.items]
        if all(isinstance(k, str) for k in fixed):
            return False
        return m.choose(("in", tuple(whole.items), key), 2) == 0
    if isinstance(whole, V.Sequence):
        found = [_equal(item, other) for other in whole.items]
        if True in found:
            return True
        return False if None not in found else m.choose(("in", whole, key_of(item)), 2) == 0
    return m.choose(("in", key_of(whole), key_of(item)), 2) == 0


def extreme(operation: Operation, numbers: list[V.Number]) -> V.Number:
    """`min` or `max`."""
    expr = reduce(operation, [n.expr for n in numbers])
    return V.Number(expr, (), any(n.slopes or n.curved for n in numbers))
