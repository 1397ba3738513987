"""Values of modules as Python has them, and its operators on them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import libcst as cst

from tilecheck.frontend.constants.strings import NotConstant
from tilecheck.frontend.text.syntax import walk, walk_kind
from tilecheck.frontend.values.values import Const, Num, Seq, integer
from tilecheck.ir import expr as E

ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.AddAssign: operator.add,
    cst.Subtract: operator.sub,
    cst.SubtractAssign: operator.sub,
    cst.Multiply: operator.mul,
    cst.MultiplyAssign: operator.mul,
    cst.FloorDivide: operator.floordiv,
    cst.FloorDivideAssign: operator.floordiv,
    cst.Modulo: operator.mod,
    cst.ModuloAssign: operator.mod,
}
COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.In: lambda a, b: a in b,
    cst.NotIn: lambda a, b: a not in b,
}


def as_value(value: Any) -> Any:
    """A value that Python has and code cannot change, as kernels have it."""
    match value:
        case bool():
            return Num((), E.TRUE if value else E.FALSE, "bool", None)
        case int():
            return integer(value)
        case str() | None:
            return Const(value)
        case tuple():
            return Seq(tuple(map(as_value, value)))
        case _:
            raise NotConstant


def plain(value: Any) -> Any:
    """A value of a module as Python has it; lists may have changed since they were made."""
    match value:
        case Num(shape=(), elem=E.TRUE | E.FALSE):
            return value.elem is E.TRUE
        case Num(shape=(), elem=E.Expr() as number) if number.value is not None:
            return number.value
        case Const(value=str() | None):
            return value.value
        case Seq(is_list=False):
            return tuple(map(plain, value.items))
        case _:
            raise NotConstant


def assigned(function: cst.FunctionDef) -> frozenset[str]:
    """The names that are assigned in a function, which has no `yield` and no functions of its own."""
    inside = (cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.Yield, cst.Global, cst.Nonlocal, cst.NamedExpr)
    found = set()
    for node in walk(function.body):
        match node:
            case cst.AssignTarget() | cst.AnnAssign() | cst.AugAssign() | cst.For():
                found |= {n.value for n in walk_kind(node.target, cst.Name)}
            case _ if isinstance(node, inside):
                raise NotConstant
    return frozenset(found)
