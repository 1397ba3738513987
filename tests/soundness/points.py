"""The value of an expression at many points at once, where some of its symbols are not known.

Three-valued: a result is known or not. An unknown (data that the IR does not model, memory outside its
array, a division by zero) makes a result unknown only where it matters: `false and ?` is false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilecheck.ir.expr import Expr, Symbol, children

Rows = np.ndarray[Any, Any]
_HUGE = 1 << 61  # beyond this, 64-bit arithmetic on values could wrap


@dataclass(frozen=True, slots=True)
class Value:
    """Integers or booleans, and where they are known; the two broadcast against each other."""

    data: Rows
    known: Rows

    @property
    def maybe(self) -> Rows:
        """Where a condition is not known to be false."""
        return self.data.astype(bool) | ~self.known

    @property
    def surely(self) -> Rows:
        """Where a condition is known to be true."""
        return self.data.astype(bool) & self.known


_YES = np.array(True)
_NO = np.array(False)
UNKNOWN = Value(np.array(0), _NO)


def exactly(data: Any) -> Value:
    return Value(np.asarray(data), _YES)


class Points:
    """Evaluates expressions where `values` gives the symbols; a symbol without a value is unknown.

    Mutable: results are kept, so that expressions that share parts are evaluated once.
    """

    def __init__(self, values: Mapping[Symbol, Any], contents: Mapping[str, Any]) -> None:
        self.values = values
        self.contents = contents
        self.memo: dict[Expr, Value] = {}

    def of(self, root: Expr) -> Value:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in self.memo:
                stack.pop()
                continue
            parts = children(node)
            todo = [p for p in parts if p not in self.memo]
            if todo:
                stack.extend(todo)
                continue
            stack.pop()
            self.memo[node] = self._apply(node, [self.memo[p] for p in parts])
        return self.memo[root]

    def _apply(self, node: Expr, v: Sequence[Value]) -> Value:
        match node.op:
            case "const":
                literal = node.args[0]
                return exactly(literal) if abs(literal) < _HUGE else UNKNOWN
            case "sym" | "bsym":
                return exactly(self.values[node.args[0]]) if node.args[0] in self.values else UNKNOWN
            case "true" | "false":
                return exactly(node.op == "true")
            case "add":
                return _fold(np.add, v)
            case "mul":
                zero = [x.known & (x.data == 0) for x in v]
                product = _fold(np.multiply, v)
                nought = _fold_rows(np.logical_or, zero)
                return Value(np.where(nought, 0, product.data), product.known | nought)
            case "floordiv" | "mod":
                top, by = v
                known = top.known & by.known & (by.data != 0)
                safe = np.where(by.data == 0, 1, by.data)
                return Value(top.data // safe if node.op == "floordiv" else top.data % safe, known)
            case "min" | "max":
                return _fold(np.minimum if node.op == "min" else np.maximum, v)
            case "ite":
                return _choose(*v)
            case "read":
                return self._read(node.args[0], v)
            case "bit":
                operation = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[node.args[0]]
                return _fold(operation, v)
            case "lt":
                return _compare(np.less, v)
            case "le":
                return _compare(np.less_equal, v)
            case "eq":
                return _compare(np.equal, v)
            case "not":
                return Value(~v[0].data.astype(bool), v[0].known)
            case "all":
                false = _fold_rows(np.logical_or, [x.known & ~x.data.astype(bool) for x in v])
                known = false | _fold_rows(np.logical_and, [x.known for x in v])
                return Value(~false, known)
            case "any":
                true = _fold_rows(np.logical_or, [x.surely for x in v])
                known = true | _fold_rows(np.logical_and, [x.known for x in v])
                return Value(true, known)
            case _:
                raise ValueError(node.op)

    def _read(self, name: str, at: Sequence[Value]) -> Value:
        """What memory held at the launch: an element, or the extent of a list's member."""
        known = _fold_rows(np.logical_and, [a.known for a in at]) if at else _YES
        base, _, axis = name.removesuffix(":int").partition(".shape[")
        held = self.contents.get(base)
        if held is None:
            return UNKNOWN
        if axis:
            k = int(axis.rstrip("]"))
            return _lookup(np.array([part.shape[k] for part in held]), at, known)
        if isinstance(held, list):
            return _members(held, at, known)
        return _lookup(held, at, known)


def _members(held: Sequence[Rows], at: Sequence[Value], known: Rows) -> Value:
    result = Value(np.array(0), _NO)
    for number, part in enumerate(held):
        here = at[0].data == number
        own = _lookup(part, at[1:], known)
        result = Value(np.where(here, own.data, result.data), np.where(here, own.known, result.known))
    return result


def _lookup(held: Rows, at: Sequence[Value], known: Rows) -> Value:
    if len(at) != held.ndim or not held.size:
        return UNKNOWN
    for index, extent in zip(at, held.shape, strict=True):
        known = known & (index.data >= 0) & (index.data < extent)
    places = tuple(np.clip(i.data, 0, n - 1) for i, n in zip(at, held.shape, strict=True))
    return Value(np.trunc(held[places]).astype(np.int64), known)


def _fold(operation: Callable[[Any, Any], Any], v: Sequence[Value]) -> Value:
    data = v[0].data
    for x in v[1:]:
        data = operation(data, x.data)
    return Value(np.asarray(data), _fold_rows(np.logical_and, [x.known for x in v]))


def _fold_rows(operation: Callable[[Any, Any], Any], rows: Sequence[Rows]) -> Rows:
    result = rows[0]
    for row in rows[1:]:
        result = operation(result, row)
    return np.asarray(result)


def _choose(cond: Value, a: Value, b: Value) -> Value:
    test = cond.data.astype(bool)
    same = a.known & b.known & (a.data == b.data)
    known = np.where(cond.known, np.where(test, a.known, b.known), same)
    return Value(np.where(test, a.data, b.data), known)


def _compare(operation: Callable[[Any, Any], Any], v: Sequence[Value]) -> Value:
    return Value(np.asarray(operation(v[0].data, v[1].data)), v[0].known & v[1].known)
