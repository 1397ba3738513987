"""Expressions: every node kind of Python that a kernel may contain, one function each."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilecheck.reference.interpret.attributes import attribute_of, item_of
from tilecheck.reference.interpret.interpreter import Interpreter, unsupported
from tilecheck.reference.interpret.scopes import stored_names
from tilecheck.reference.machine import Reject
from tilecheck.reference.values.dtypes import DType
from tilecheck.reference.values.values import (
    Frame,
    Opaque,
    Operation,
    Record,
    Tile,
    describe,
    is_constant,
    static_items,
    truth,
)

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and", ast.BitOr: "or",
    ast.BitXor: "xor",
}  # fmt: skip
_ABSENT = object()
_DUNDER = {"add": "__add__", "sub": "__sub__", "mul": "__mul__", "truediv": "__truediv__"}


def evaluate(interpreter: Interpreter, node: ast.expr, frame: Frame) -> Any:
    """The value of an expression."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        interpreter.machine.place = _place_of(interpreter, node, frame)
        raise unsupported(node)
    return handler(interpreter, node, frame)


def _place_of(interpreter: Interpreter, node: ast.expr, frame: Frame) -> Any:
    with interpreter.at(frame.module, node):
        return interpreter.machine.place


def operate(interpreter: Interpreter, operator: ast.operator, x: Any, y: Any) -> Any:
    """A binary operator on any two values."""
    if isinstance(operator, ast.MatMult):
        return interpreter.language.product(interpreter.machine, x, y)
    name = _BINARY[type(operator)]
    if isinstance(x, Record) and name in _DUNDER:
        return interpreter.invoke(attribute_of(interpreter, x, _DUNDER[name]), (y,), {})
    if isinstance(x, str) and isinstance(y, str) and name == "add":
        return x + y
    if isinstance(x, (tuple, list)) and name == "add" and isinstance(y, (tuple, list)):
        return type(x)([*x, *y])
    if isinstance(x, (tuple, list)) and name == "mul" and isinstance(y, int):
        return x * y
    return interpreter.language.binary(interpreter.machine, name, x, y)


def _constant(interpreter: Interpreter, node: ast.Constant, frame: Frame) -> Any:
    if isinstance(node.value, (bytes, complex)):
        raise Reject(f"a {type(node.value).__name__} literal")
    return node.value


def lookup(interpreter: Interpreter, name: str, frame: Frame) -> Any:
    """The value of a name, as Python's scopes find it."""
    scope: Frame | None = frame
    while scope is not None:
        if name in scope.names:
            return scope.names[name]
        if name in scope.own:
            raise Reject(f"name `{name}`, used before it is assigned")
        scope = scope.parent
    found = interpreter.modules.lookup(frame.module, name, default=_ABSENT)
    if found is not _ABSENT:
        return found
    builtins = interpreter.language.builtins
    if name in builtins:
        return builtins[name]
    raise Reject(f"name `{name}`")


def _name(interpreter: Interpreter, node: ast.Name, frame: Frame) -> Any:
    name = node.id
    if name in frame.names:
        return frame.names[name]
    if frame.parent is None and name not in frame.own and name in frame.module.values:
        return frame.module.values[name]
    return interpreter.compute(frame.module, node, lookup, interpreter, name, frame)


def _attribute(interpreter: Interpreter, node: ast.Attribute, frame: Frame) -> Any:
    owner = interpreter.evaluate(node.value, frame)
    return interpreter.compute(frame.module, node, attribute_of, interpreter, owner, node.attr)


def _subscript(interpreter: Interpreter, node: ast.Subscript, frame: Frame) -> Any:
    owner = interpreter.evaluate(node.value, frame)
    if isinstance(owner, Opaque):
        return owner
    index = interpreter.evaluate(node.slice, frame)
    name = node.value.id if isinstance(node.value, ast.Name) else ""
    return interpreter.compute(frame.module, node, item_of, interpreter, owner, index, name)


def _slice(interpreter: Interpreter, node: ast.Slice, frame: Frame) -> slice:
    bounds = (
        None if part is None else interpreter.evaluate(part, frame)
        for part in (node.lower, node.upper, node.step)
    )
    return slice(*(int(bound.data) if isinstance(bound, Tile) else bound for bound in bounds))


def _binary_operation(interpreter: Interpreter, node: ast.BinOp, frame: Frame) -> Any:
    x = interpreter.evaluate(node.left, frame)
    y = interpreter.evaluate(node.right, frame)
    return interpreter.compute(frame.module, node, operate, interpreter, node.op, x, y)


def _unary_operation(interpreter: Interpreter, node: ast.UnaryOp, frame: Frame) -> Any:
    value = interpreter.evaluate(node.operand, frame)
    with interpreter.computing(frame.module, node):
        if isinstance(node.op, ast.Not):
            return interpreter.language.negated(interpreter.machine, value)
        if isinstance(node.op, ast.USub):
            return interpreter.language.unary(interpreter.machine, "neg", value)
        if isinstance(node.op, ast.Invert):
            return interpreter.language.unary(interpreter.machine, "invert", value)
        return value


def _bool_operation(interpreter: Interpreter, node: ast.BoolOp, frame: Frame) -> Any:
    """`and`, `or`: the language says what they give and whether they stop early."""

    def operands() -> Iterator[Any]:
        for operand in node.values:
            yield interpreter.evaluate(operand, frame)

    with interpreter.computing(frame.module, node):
        return interpreter.language.boolean(interpreter, operands(), isinstance(node.op, ast.Or))


def _compare(interpreter: Interpreter, node: ast.Compare, frame: Frame) -> Any:
    left = interpreter.evaluate(node.left, frame)
    if len(node.ops) == 1:
        right = interpreter.evaluate(node.comparators[0], frame)
        compare = interpreter.language.compare
        return interpreter.compute(frame.module, node, compare, interpreter.machine, node.ops[0], left, right)

    def results(left: Any) -> Iterator[Any]:
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = interpreter.evaluate(comparator, frame)
            compare = interpreter.language.compare
            yield interpreter.compute(frame.module, node, compare, interpreter.machine, operator, left, right)
            left = right

    with interpreter.computing(frame.module, node):
        return interpreter.language.chain(interpreter, results(left))


def _choice(interpreter: Interpreter, node: ast.IfExp, frame: Frame) -> Any:
    condition = interpreter.evaluate(node.test, frame)
    with interpreter.computing(frame.module, node):
        holds, runtime = interpreter.language.truth(condition)
    value = interpreter.evaluate(node.body if holds else node.orelse, frame)
    return interpreter.language.chosen(value) if runtime else value


def _sequence(interpreter: Interpreter, node: ast.Tuple | ast.List, frame: Frame) -> Any:
    items = spread(interpreter, node.elts, frame)
    return tuple(items) if isinstance(node, ast.Tuple) else items


def spread(interpreter: Interpreter, nodes: Sequence[ast.expr], frame: Frame) -> list[Any]:
    """Evaluate expressions in order, unpacking starred ones."""
    values: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            values.extend(static_items(interpreter.evaluate(node.value, frame)))
        else:
            values.append(interpreter.evaluate(node, frame))
    return values


def _dictionary(interpreter: Interpreter, node: ast.Dict, frame: Frame) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            result.update(interpreter.evaluate(value, frame))
        else:
            result[interpreter.evaluate(key, frame)] = interpreter.evaluate(value, frame)
    return result


def _set(interpreter: Interpreter, node: ast.Set, frame: Frame) -> tuple[Any, ...]:
    return tuple(spread(interpreter, node.elts, frame))  # only membership is asked of it


def _text(interpreter: Interpreter, node: ast.JoinedStr, frame: Frame) -> str:
    parts = [
        str(part.value) if isinstance(part, ast.Constant) else _formatted(interpreter, part, frame)
        for part in node.values
    ]
    return "".join(parts)


def _formatted(interpreter: Interpreter, node: ast.expr, frame: Frame) -> str:
    value = interpreter.evaluate(node.value if isinstance(node, ast.FormattedValue) else node, frame)
    return str(value) if is_constant(value) or isinstance(value, (str, DType)) else describe(value)


def _walrus(interpreter: Interpreter, node: ast.NamedExpr, frame: Frame) -> Any:
    value = interpreter.evaluate(node.value, frame)
    if not interpreter.machine.host:
        value = interpreter.language.assigned(value)
    scope = frame
    while node.target.id not in scope.own and scope.parent is not None:  # out of comprehensions
        scope = scope.parent
    scope.names[node.target.id] = value
    return value


def _lambda(interpreter: Interpreter, node: ast.Lambda, frame: Frame) -> Any:
    return interpreter.modules.closure(frame.module, node, frame)


def _comprehension(
    interpreter: Interpreter, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp, frame: Frame
) -> Any:
    """A comprehension over values known at compile time."""
    targets = stored_names([generator.target for generator in node.generators])
    inner = Frame(frame.module, frame, targets)
    rows = _rows(interpreter, node.generators, inner)
    if isinstance(node, ast.DictComp):
        return {interpreter.evaluate(node.key, inner): interpreter.evaluate(node.value, inner) for _ in rows}
    items = [interpreter.evaluate(node.elt, inner) for _ in rows]
    return items if isinstance(node, ast.ListComp) else tuple(items)


def _rows(interpreter: Interpreter, generators: Sequence[ast.comprehension], frame: Frame) -> Iterator[None]:
    first, rest = generators[0], generators[1:]
    for item in static_items(interpreter.evaluate(first.iter, frame)):
        interpreter.machine.step()
        assign(interpreter, first.target, item, frame)
        if all(truth(interpreter.evaluate(test, frame))[0] for test in first.ifs):
            if rest:
                yield from _rows(interpreter, rest, frame)
            else:
                yield None


def assign(interpreter: Interpreter, target: ast.expr, value: Any, frame: Frame) -> None:
    """Bind a value to an assignment target."""
    if isinstance(target, ast.Name):
        frame.names[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(interpreter, target.elts, value, frame)
    elif isinstance(target, ast.Subscript):
        owner = interpreter.evaluate(target.value, frame)
        index = interpreter.evaluate(target.slice, frame)
        if not isinstance(owner, (list, dict)):
            raise Reject(f"assignment to an item of {describe(owner)}")
        owner[int(index.data) if isinstance(index, Tile) else index] = value
    else:
        raise unsupported(target)


def _unpack(interpreter: Interpreter, targets: Sequence[ast.expr], value: Any, frame: Frame) -> None:
    items = static_items(value)
    starred = [position for position, target in enumerate(targets) if isinstance(target, ast.Starred)]
    if not starred and len(items) != len(targets):
        raise Reject(f"{len(items)} values unpacked into {len(targets)} names")
    if starred:
        first, after = starred[0], len(targets) - starred[0] - 1
        middle = items[first : len(items) - after]
        items = [*items[:first], tuple(middle), *items[len(items) - after :]]
    for target, item in zip(targets, items, strict=True):
        assign(interpreter, target.value if isinstance(target, ast.Starred) else target, item, frame)


def _call(interpreter: Interpreter, node: ast.Call, frame: Frame) -> Any:
    function = interpreter.evaluate(node.func, frame)
    if isinstance(function, Operation) and function.name in interpreter.language.static_names and node.args:
        interpreter.static += 1
        arguments = [interpreter.evaluate(node.args[0], frame)]  # a message is for failures only
        interpreter.static -= 1
        keywords: dict[str, Any] = {}
    elif isinstance(function, Opaque):
        return _opaque_call(interpreter, node, function)
    else:
        arguments = spread(interpreter, node.args, frame)
        keywords = {}
        for keyword in node.keywords:
            value = interpreter.evaluate(keyword.value, frame)
            keywords.update(value if keyword.arg is None else {keyword.arg: value})
    with interpreter.at(frame.module, node):
        return interpreter.invoke(function, arguments, keywords)


def _opaque_call(interpreter: Interpreter, node: ast.Call, function: Opaque) -> Any:
    """Outside a block an unknown call gives an unknown value; inside, nothing is known of its effect."""
    if interpreter.machine.host:
        return Opaque(f"a call of {function.what}")
    raise Reject(f"a call of {function.what}")


_HANDLERS: dict[type[ast.expr], Callable[[Interpreter, Any, Frame], Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.BinOp: _binary_operation,
    ast.UnaryOp: _unary_operation,
    ast.BoolOp: _bool_operation,
    ast.Compare: _compare,
    ast.IfExp: _choice,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Dict: _dictionary,
    ast.Set: _set,
    ast.JoinedStr: _text,
    ast.NamedExpr: _walrus,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Call: _call,
}
