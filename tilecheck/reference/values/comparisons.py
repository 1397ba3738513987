"""Comparisons of any two values: identity, equality, order, membership."""

from __future__ import annotations

import ast
from typing import Any

from tilecheck.reference.machine import Machine, Reject
from tilecheck.reference.values.arithmetic import binary, logical_not
from tilecheck.reference.values.dtypes import DType
from tilecheck.reference.values.values import (
    EnumMember,
    Opaque,
    Tile,
    describe,
    is_constant,
    static_items,
    truth,
)

NAMES: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


def compare(machine: Machine, operator: ast.cmpop, x: Any, y: Any) -> Any:
    """One comparison of any two values."""
    if isinstance(operator, (ast.Is, ast.IsNot)):
        same = x is y if x is None or y is None else _equal(machine, x, y)
        return same if isinstance(operator, ast.Is) else _negate(same)
    if isinstance(operator, (ast.In, ast.NotIn)):
        found = _contained(machine, x, y)
        return found if isinstance(operator, ast.In) else _negate(found)
    name = NAMES[type(operator)]
    if isinstance(x, Tile) or isinstance(y, Tile) or (is_constant(x) and is_constant(y)):
        if x is None or y is None or isinstance(x, (str, DType)) or isinstance(y, (str, DType)):
            raise Reject(f"comparison of {describe(x)} and {describe(y)}")
        return binary(machine, name, x, y)
    if name in ("eq", "ne"):
        same = _equal(machine, x, y)
        return same if name == "eq" else _negate(same)
    raise Reject(f"comparison of {describe(x)} and {describe(y)}")


def _negate(value: Any) -> Any:
    return logical_not(value) if isinstance(value, Tile) else not value


def _equal(machine: Machine, x: Any, y: Any) -> Any:
    if isinstance(x, Opaque) or isinstance(y, Opaque):
        raise Reject(f"comparison of {describe(x)} and {describe(y)}")
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        if len(x) != len(y):
            return False
        parts = [_equal(machine, a, b) for a, b in zip(x, y, strict=True)]
        return all(truth(part)[0] for part in parts)
    if isinstance(x, Tile) or isinstance(y, Tile):
        if (isinstance(x, Tile) or is_constant(x)) and (isinstance(y, Tile) or is_constant(y)):
            return binary(machine, "eq", x, y)
        return False
    plain = (bool, int, float, str, DType, EnumMember, dict, type(None))
    if isinstance(x, plain) and isinstance(y, plain):
        return x == y
    return x is y


def _contained(machine: Machine, x: Any, items: Any) -> bool:
    if isinstance(items, str) and isinstance(x, str):
        return x in items
    return any(truth(_equal(machine, x, item))[0] for item in static_items(items))
