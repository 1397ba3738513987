"""The value of a condition as a user reads it, for one launch: Python's own syntax, and nothing is executed.

Written apart from the prover: it knows `x.shape[k]`, `x.stride(k)`, `grid[k]`, `len(xs)`, `numel(x)`, `cdiv`,
`min`, `max`, elements `t[i]`, and the named contracts over values in memory.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.Pow: operator.pow,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


class Unreadable(Exception):
    """A condition that is not in the language."""


@cache  # few texts, each read for many launches; nothing changes a tree
def parsed(text: str) -> ast.expr:
    """The syntax of a condition; `xs[*]`, which speaks of every array of a list, becomes `every(xs)`."""
    return ast.parse(re.sub(r"(\w+)\[\*\]", r"every(\1)", text), mode="eval").body


@dataclass(frozen=True)
class _Every:
    """The arrays of a list taken together: what holds of the shortest extent holds of all."""

    shape: tuple[int, ...]


@dataclass(frozen=True)
class Reading:
    """The launch that conditions are read against."""

    grid: Sequence[int]
    arguments: Mapping[str, Any]

    def holds(self, text: str) -> bool:
        """Whether a condition is true; one that divides by zero is not."""
        try:
            return bool(self._of(parsed(text)))
        except (ZeroDivisionError, IndexError):
            return False

    def number(self, node: ast.expr) -> int | None:
        try:
            return int(self._of(node))
        except (ZeroDivisionError, IndexError, TypeError):
            return None

    def _of(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name(id="grid"):
                return self.grid
            case ast.Name() if node.id in self.arguments:
                return self.arguments[node.id]
            case ast.BoolOp():
                values = map(self._of, node.values)
                return all(values) if isinstance(node.op, ast.And) else any(values)
            case ast.UnaryOp(op=ast.Not()):
                return not self._of(node.operand)
            case ast.UnaryOp(op=ast.USub()):
                return -self._of(node.operand)
            case ast.BinOp() if type(node.op) in _BINARY:
                return _BINARY[type(node.op)](self._of(node.left), self._of(node.right))
            case ast.Compare():
                sides = [self._of(n) for n in (node.left, *node.comparators)]
                pairs = zip(node.ops, sides, sides[1:], strict=False)
                return all(_COMPARE[type(op)](a, b) for op, a, b in pairs)
            case ast.IfExp():
                return self._of(node.body if self._of(node.test) else node.orelse)
            case ast.Attribute(attr="shape"):
                return self._of(node.value).shape
            case ast.Attribute(attr="ndim"):
                return self._of(node.value).ndim
            case ast.Slice(upper=None):
                ends = [None if end is None else self._of(end) for end in (node.lower, node.step)]
                return slice(ends[0], None, ends[1])
            case ast.Subscript():
                return self._item(self._of(node.value), node.slice)
            case ast.Call():
                return self._call(node)
            case _:
                raise Unreadable(ast.unparse(node))

    def _item(self, value: Any, index: ast.expr) -> Any:
        at = tuple(map(self._of, index.elts)) if isinstance(index, ast.Tuple) else self._of(index)
        if any(i < 0 for i in (at if isinstance(at, tuple) else (at,)) if not isinstance(i, slice)):
            raise IndexError(at)
        return value[at]

    def _call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "stride":
            array = self._of(node.func.value)
            return array.strides[self._of(node.args[0])] // array.itemsize
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        given = [self._of(a) for a in node.args]
        keywords = {k.arg: self._of(k.value) for k in node.keywords}
        match name:
            case "cdiv":
                return (given[0] + given[1] - 1) // given[1]
            case "min" | "max":
                return (min if name == "min" else max)(given)
            case "len":
                return len(given[0])
            case "numel":
                array = given[0]
                steps = [s // array.itemsize for s in array.strides]
                last = sum((n - 1) * s for n, s in zip(array.shape, steps, strict=True))
                return 1 + last if array.size else 0
            case "every":
                return _Every(tuple(map(min, zip(*(part.shape for part in given[0]), strict=True))))
            case "within":
                return bool(np.all((given[1] <= given[0]) & (given[0] < given[2])))
            case "increasing":
                return bool((np.diff(given[0]) >= 0).all())
            case "distinct_pairs":
                table = given[0] if given[0].ndim == 2 else given[0][: len(given[0]) // 2 * 2].reshape(-1, 2)
                rows = table.tolist()
                return table.shape[1] == 2 and len({tuple(row) for row in rows}) == len(rows)
            case "chunks":
                table, starts = given[0], given[1] if len(given) > 1 else keywords["of"]
                size = given[2] if len(given) > 2 else keywords["size"]
                rows = [tuple(table[i : i + 2].tolist()) for i in range(0, len(table) - 1, 2)]
                return len(set(rows)) == len(rows) and all(
                    0 <= n < len(starts) - 1 and k >= 0 and k * size < starts[n + 1] - starts[n]
                    for n, k in rows
                )
            case "chunk_sums":
                sums, starts = given[0].tolist(), (given[1] if len(given) > 1 else keywords["of"]).tolist()
                size = given[2] if len(given) > 2 else keywords["size"]
                numbers = [-(-(b - a) // size) for a, b in itertools.pairwise(starts)]
                steps = zip(itertools.pairwise(sums), numbers, strict=False)
                counted = sums[:1] in ([], [0]) and all(b - a == k for (a, b), k in steps)
                return counted and starts == sorted(starts)
            case "prefix_sum":
                items = given[1] if len(given) > 1 else keywords["of"]
                return given[0].tolist() == [0, *np.cumsum(items).tolist()] and bool((items >= 0).all())
            case "disjoint":
                parts = [p for g in given for p in (g if isinstance(g, list) else [g])]
                return not any(np.shares_memory(a, b) for a, b in combinations(parts, 2))
            case "filled":
                return bool((given[0] == given[1]).all())
            case "permutation":
                return sorted(given[0].tolist()) == list(range(len(given[0])))
            case "distinct":
                skip = given[1] if len(given) > 1 else keywords.get("skip")
                kept = [v for v in given[0].reshape(-1).tolist() if v != skip]
                return len(set(kept)) == len(kept)
            case _:
                raise Unreadable(ast.unparse(node))
