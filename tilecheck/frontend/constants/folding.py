"""Module-level values that plain Python functions of the project compute from constants, such as the text of
inline assembly: the functions are interpreted from their text, never imported or run.

Read are numbers, texts, tuples, lists and ranges, and of their functions and methods those listed here, which
have no effect beyond the call. Everything else ends the attempt, and so does a count of steps that also bounds
what texts and lists may grow to. A value that is found is the one that Python computes: the functions are bound
once, so is what they name, and lists of modules, which other code may change, are not read.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.constants import strings as texts
from tilecheck.frontend.constants.python_values import ARITHMETIC, COMPARISONS, as_value, assigned, plain
from tilecheck.frontend.constants.strings import LONGEST, NotConstant
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.values.values import Function, Named

MOST_STEPS = 20_000
MOST_BITS = 62
MOST_CALLS = 8  # functions that call functions

Meaning = Callable[[ModuleTable, str], Any]


@dataclass(slots=True)
class _Scope:
    """The names of one call. Mutable: statements assign into `names`."""

    table: ModuleTable
    names: dict[str, Any] = field(default_factory=dict)
    local: frozenset[str] = frozenset()  # names that are no module's, assigned yet or not
    outer: _Scope | None = None  # of a comprehension


@dataclass(frozen=True, slots=True)
class _Return:
    value: Any


_BREAK, _CONTINUE = object(), object()

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "range": range,
    "len": len,
    "bool": bool,
    "enumerate": enumerate,
    "zip": zip,
    "reversed": reversed,
    "min": min,
    "max": max,
}
_WHOLE = {"tuple": tuple, "list": list}  # these go over all items
# What Python's own operators and functions raise for operands that they do not take.
_RAISED = (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError, OverflowError, RecursionError)


def folded(node: cst.BaseExpression, table: ModuleTable, meaning: Meaning) -> Any:
    """The value of a module-level expression; `meaning` gives what a name of a module is.

    Raises:
        NotConstant: it is more than this reads.
    """
    try:
        return as_value(_Fold(meaning).value(node, _Scope(table)))
    except (UnsupportedConstruct, *_RAISED) as problem:
        raise NotConstant from problem


@dataclass(slots=True)
class _Fold:
    """One attempt. Mutable: it counts what it did."""

    meaning: Meaning
    steps: int = 0
    calls: int = 0

    def made(self, value: Any) -> Any:
        """Count a value that was made."""
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise NotConstant
        size = len(value) if isinstance(value, str | tuple | list | range) else 0
        self.steps += 1 + size // 64
        if self.steps > MOST_STEPS or size > LONGEST:
            raise NotConstant
        return value

    # ---- statements ------------------------------------------------------------------------------------

    def block(self, body: Sequence[cst.CSTNode], scope: _Scope) -> Any:
        """None, or how the block ends before its end."""
        for statement in body:
            ended = self.statement(statement, scope)
            if ended is not None:
                return ended
        return None

    def statement(self, node: cst.CSTNode, scope: _Scope) -> Any:
        self.made(None)
        match node:
            case cst.SimpleStatementLine() | cst.SimpleStatementSuite() | cst.IndentedBlock() | cst.Else():
                return self.block(node.body.body if isinstance(node, cst.Else) else node.body, scope)
            case cst.If():
                if self.value(node.test, scope):
                    return self.statement(node.body, scope)
                return None if node.orelse is None else self.statement(node.orelse, scope)
            case cst.For(orelse=None, asynchronous=None):
                return self.rounds(node, scope)
            case cst.Assign():
                value = self.value(node.value, scope)
                for target in node.targets:
                    self.assign(target.target, value, scope)
            case cst.AnnAssign(target=cst.Name(), value=cst.BaseExpression() as given):
                self.assign(node.target, self.value(given, scope), scope)
            case cst.AugAssign(target=cst.Name()):
                before, more = self.value(node.target, scope), self.value(node.value, scope)
                if isinstance(before, list):  # which is changed, not replaced
                    raise NotConstant
                self.assign(node.target, self.binary(type(node.operator), before, more), scope)
            case cst.Expr():
                self.value(node.value, scope)
            case cst.Return():
                return _Return(None if node.value is None else self.value(node.value, scope))
            case cst.Break():
                return _BREAK
            case cst.Continue():
                return _CONTINUE
            case cst.Pass():
                pass
            case cst.Assert():
                if not self.value(node.test, scope):
                    raise NotConstant
            case _:
                raise NotConstant
        return None

    def rounds(self, node: cst.For, scope: _Scope) -> Any:
        for item in self.items(self.value(node.iter, scope)):
            self.assign(node.target, item, scope)
            ended = self.statement(node.body, scope)
            if ended is _BREAK:
                break
            if isinstance(ended, _Return):
                return ended
        return None

    def items(self, value: Any) -> Iterator[Any]:
        """What a loop goes over, as Python goes over it: one after the other, each a step."""
        if not isinstance(value, str | tuple | list | range | Iterator):
            raise NotConstant
        for item in value:
            yield self.made(item)

    def assign(self, target: cst.BaseExpression, value: Any, scope: _Scope) -> None:
        match target:
            case cst.Name():
                scope.names[target.value] = value
            case cst.Tuple():
                if any(isinstance(element, cst.StarredElement) for element in target.elements):
                    raise NotConstant
                items = tuple(self.items(value))
                for element, item in zip(target.elements, items, strict=True):
                    self.assign(element.value, item, scope)
            case _:
                raise NotConstant

    # ---- expressions -----------------------------------------------------------------------------------

    def value(self, node: cst.CSTNode, scope: _Scope) -> Any:
        match node:
            case cst.Name():
                found = self.name(node.value, scope)
            case cst.Integer():
                found = ast.literal_eval(node.value)
            case cst.SimpleString():
                found = node.evaluated_value
                if not isinstance(found, str):
                    raise NotConstant
            case cst.ConcatenatedString():
                found = self.value(node.left, scope) + self.value(node.right, scope)
            case cst.FormattedString():
                found = self.formatted(node, scope)
            case cst.Tuple() | cst.List():
                if any(isinstance(element, cst.StarredElement) for element in node.elements):
                    raise NotConstant
                values = [self.value(element.value, scope) for element in node.elements]
                found = values if isinstance(node, cst.List) else tuple(values)
            case cst.BinaryOperation():
                left, right = self.value(node.left, scope), self.value(node.right, scope)
                found = self.binary(type(node.operator), left, right)
            case cst.UnaryOperation(operator=cst.Minus()):
                found = -self.value(node.expression, scope)
            case cst.UnaryOperation(operator=cst.Not()):
                found = not self.value(node.expression, scope)
            case cst.BooleanOperation():
                left = self.value(node.left, scope)
                decided = bool(left) is isinstance(node.operator, cst.Or)
                found = left if decided else self.value(node.right, scope)
            case cst.Comparison():
                found = self.comparison(node, scope)
            case cst.IfExp():
                found = self.value(node.body if self.value(node.test, scope) else node.orelse, scope)
            case cst.Subscript():
                found = self.item(node, scope)
            case cst.ListComp():
                found = list(self.comprehension(node, scope))
            case cst.GeneratorExp():
                found = self.comprehension(node, scope)
            case cst.Call():
                found = self.call(node, scope)
            case _:
                raise NotConstant
        return self.made(found)

    def name(self, name: str, scope: _Scope) -> Any:
        inner: _Scope | None = scope
        while inner is not None:
            if name in inner.names:
                return inner.names[name]
            if name in inner.local:
                raise NotConstant
            inner = inner.outer
        return plain(self.meaning(scope.table, name))

    def binary(self, op: type, left: Any, right: Any) -> Any:
        function = ARITHMETIC.get(op)
        # `%` of a text formats it; a text or list may be repeated too often.
        numbers = isinstance(left, int) and isinstance(right, int)
        if function is None or not (numbers or function in (operator.add, operator.mul)):
            raise NotConstant
        if function is operator.mul and not numbers:
            times, items = (left, right) if isinstance(left, int) else (right, left)
            if times * len(items) > LONGEST:
                raise NotConstant
        return self.made(function(left, right))

    def comparison(self, node: cst.Comparison, scope: _Scope) -> bool:
        left = self.value(node.left, scope)
        for target in node.comparisons:
            right = self.value(target.comparator, scope)
            if type(target.operator) not in COMPARISONS:
                raise NotConstant
            if not isinstance(right, int | str | tuple | list | None):
                raise NotConstant
            if not COMPARISONS[type(target.operator)](left, right):
                return False
            left = right
        return True

    def item(self, node: cst.Subscript, scope: _Scope) -> Any:
        whole, only = self.value(node.value, scope), node.slice[0].slice
        if len(node.slice) != 1 or isinstance(node.slice[0].comma, cst.Comma):
            raise NotConstant
        if isinstance(only, cst.Index):
            return whole[self.value(only.value, scope)]
        if not isinstance(only, cst.Slice):
            raise NotConstant
        ends = (only.lower, only.upper, only.step)
        return whole[slice(*(None if end is None else self.value(end, scope) for end in ends))]

    def comprehension(self, node: cst.ListComp | cst.GeneratorExp, scope: _Scope) -> Iterator[Any]:
        loop = node.for_in
        if loop.inner_for_in is not None or loop.asynchronous is not None:
            raise NotConstant
        items = self.items(self.value(loop.iter, scope))  # Python too evaluates this at once, the rest later
        inner = _Scope(scope.table, outer=scope)

        def each() -> Iterator[Any]:
            for item in items:
                self.assign(loop.target, item, inner)
                if all(self.value(test.test, inner) for test in loop.ifs):
                    yield self.value(node.elt, inner)

        return each()

    def formatted(self, node: cst.FormattedString, scope: _Scope) -> Any:
        found = [
            texts.literal(node, part)
            if isinstance(part, cst.FormattedStringText)
            else texts.field(self.value(part.expression, scope), texts.specification(part))
            for part in node.parts
            if isinstance(part, cst.FormattedStringText | cst.FormattedStringExpression)
        ]
        return texts.method("", "join", [found], {})

    # ---- calls -----------------------------------------------------------------------------------------

    def call(self, node: cst.Call, scope: _Scope) -> Any:
        if any(arg.star for arg in node.args):
            raise NotConstant
        head = self.function(node.func, scope)
        value = None if head is not None else self.value(node.func.value, scope)  # type: ignore[attr-defined]
        given = [self.value(arg.value, scope) for arg in node.args if arg.keyword is None]
        named = {a.keyword.value: self.value(a.value, scope) for a in node.args if a.keyword is not None}
        match head:
            case None:
                return self.method(value, node.func.attr.value, given, named)  # type: ignore[attr-defined]
            case Function():
                return self.inline(head, given, named)
        if head.name.startswith("triton.") and head.name.endswith(".constexpr") and len(given) == 1:
            return given[0]  # the compile-time value that Triton wraps
        if named:
            raise NotConstant
        if head.name in ("str", "int") and len(given) == 1 and isinstance(given[0], str | int):
            return str(given[0]) if head.name == "str" else int(given[0])
        if head.name in _WHOLE:
            return _WHOLE[head.name](*map(self.items, given))
        if head.name in ("min", "max") and len(given) == 1:
            given = [tuple(self.items(given[0]))]
        if head.name not in _FUNCTIONS:
            raise NotConstant
        return _FUNCTIONS[head.name](*given)

    def function(self, node: cst.BaseExpression, scope: _Scope) -> Named | Function | None:
        """The function that is called; None for a method of a value."""
        path = dotted(node)
        head, _, rest = path.partition(".")
        inner: _Scope | None = scope
        while inner is not None:
            if head in inner.names or head in inner.local:
                path = ""
            inner = inner.outer
        found = self.meaning(scope.table, head) if path else None
        if isinstance(found, Named) and rest:
            return Named(f"{found.name}.{rest}")
        if isinstance(found, Named | Function) and not rest:
            return found
        if isinstance(node, cst.Attribute):
            return None
        raise NotConstant

    def method(self, value: Any, name: str, given: list[Any], named: dict[str, Any]) -> Any:
        if isinstance(value, list) and name == "append" and not named:
            value.append(*given)
            return None
        if not isinstance(value, str):
            raise NotConstant
        if name == "join":
            given = [tuple(self.items(items)) for items in given]
        return texts.method(value, name, given, named)

    def inline(self, function: Function, given: list[Any], named: dict[str, Any]) -> Any:
        """What a function of a module returns, which has no decorators and whose names are all its own."""
        node = function.node
        if (
            not isinstance(node, cst.FunctionDef)
            or node.decorators
            or node.asynchronous is not None
            or function.closure is not None
            or self.calls >= MOST_CALLS
            or function.table.replaces_functions
        ):
            raise NotConstant
        params = node.params
        positional = (*params.posonly_params, *params.params)
        if not isinstance(params.star_arg, cst.MaybeSentinel | cst.ParamStar) or params.star_kwarg is not None:
            raise NotConstant
        if len(given) > len(positional):
            raise NotConstant
        names = {p.name.value: value for p, value in zip(positional, given, strict=False)}
        every = (*positional, *params.kwonly_params)
        if names.keys() & named.keys() or not named.keys() <= {p.name.value for p in every}:
            raise NotConstant
        names |= named
        for p in every:
            if p.name.value not in names:
                if p.default is None:
                    raise NotConstant
                names[p.name.value] = self.value(p.default, _Scope(function.table))
                as_value(names[p.name.value])  # nothing that one call changes for the next
        self.calls += 1
        ended = self.block(node.body.body, _Scope(function.table, names, assigned(node)))
        self.calls -= 1
        return ended.value if isinstance(ended, _Return) else None
