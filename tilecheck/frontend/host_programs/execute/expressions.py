"""Evaluates expressions of host code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial

import libcst as cst

from tilecheck.frontend.host_programs.calls.dispatch import call, method_of_unknown
from tilecheck.frontend.host_programs.calls.tensors import read_on_host
from tilecheck.frontend.host_programs.calls.torch import operator
from tilecheck.frontend.host_programs.execute import names
from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.execute.code_texts import literal, once
from tilecheck.frontend.host_programs.execute.merging import NeedsChoice, either, is_open, joins
from tilecheck.frontend.host_programs.loops.iteration import comprehension
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.items import item, lost, plain
from tilecheck.frontend.host_programs.values.kinds import as_number, key_of, resolved, truth
from tilecheck.frontend.host_programs.values.lifetimes import hand_out
from tilecheck.frontend.host_programs.values.numbers import binary, compare
from tilecheck.frontend.host_programs.values.undetermined import operand


def evaluate(m: Machine, node: cst.CSTNode) -> V.Value:
    """The value of an expression.

    Raises:
        Unread: it may touch streams, graphs or memory in a way that is not understood.
        PathEnds: it raises.
    """
    m.step(node)
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise m.unread(node, "this expression is not read")
    return resolved(m, handler(m, node))


def held(m: Machine, nodes: Sequence[cst.BaseExpression]) -> list[V.Value]:
    """The values of expressions, each held while those behind it are evaluated. None of them is what the
    statement assigns."""
    (target, m.target), mark = (m.target, ""), len(m.pending)
    found = []
    try:
        for node in nodes:
            found.append(evaluate(m, node))
            m.pending.append(found[-1])
    finally:
        m.target = target
        del m.pending[mark:]
    return found


def _name(m: Machine, node: cst.Name) -> V.Value:
    return V.Const(node.value == "True") if node.value in ("True", "False") else _named(m, node)


def _named(m: Machine, node: cst.Name) -> V.Value:
    return V.NONE if node.value == "None" else names.value_of(m, node.value, node)


def _integer(m: Machine, node: cst.Integer) -> V.Value:
    return V.number(node.evaluated_value)


def _constant(m: Machine, node: cst.SimpleString | cst.Float | cst.ConcatenatedString) -> V.Value:
    value = once(m, literal, node)
    return V.Const(value) if value is not None else plain(m, node)


def _formatted(m: Machine, node: cst.FormattedString) -> V.Value:
    for part in node.parts:
        if isinstance(part, cst.FormattedStringExpression):
            value = evaluate(m, part.expression)
            if isinstance(value, V.Tensor) and not value.perhaps:
                read_on_host(m, node, "format", value)
    return plain(m, node)


def _attribute(m: Machine, node: cst.Attribute) -> V.Value:
    owner = evaluate(m, node.value)
    found = names.attribute(m, owner, node.attr.value, node)
    if isinstance(owner, V.Tensor) and owner.perhaps and isinstance(found, V.Method):
        # Code that is not in view gave the owner: it may be an object, and this a tensor that it holds.
        return found if node.attr.value in names.PROPERTIES else owner.mixed(holes=True)
    return found


# ---- operators ---------------------------------------------------------------------------------------------


def _binary(m: Machine, node: cst.BinaryOperation) -> V.Value:
    left, right = held(m, [node.left, node.right])
    if isinstance(left, V.Const) and isinstance(left.value, str):
        return plain(m, node)
    operands = [operand(m, value, node) or value for value in (left, right)]
    if any(isinstance(value, V.Tensor) for value in operands):
        return operator(m, node, _operator_text(node.operator), operands)
    if isinstance(left, (V.Event, V.Stream)):
        return plain(m, node)
    return binary(m, node.operator, left, right)


_TEXTS = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "FloorDivide": "//",
    "Modulo": "%",
    "Power": "**",
    "MatrixMultiply": "@",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "LeftShift": "<<",
    "RightShift": ">>",
    "LessThan": "<",
    "LessThanEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanEqual": ">=",
    "Equal": "==",
    "NotEqual": "!=",
    "Minus": "-",
    "Plus": "+",
    "BitInvert": "~",
}


def _operator_text(node: cst.CSTNode) -> str:
    name = type(node).__name__
    return _TEXTS.get(name) or _TEXTS.get(name.removesuffix("Assign"), name)


def _unary(m: Machine, node: cst.UnaryOperation) -> V.Value:
    (value,) = held(m, [node.expression])
    if isinstance(node.operator, cst.Not):
        if m.knowledge.joins and is_open(m, value):
            return m.test(f"not {value.name}", lambda: not truth(m, value, node))
        return V.Const(not truth(m, value, node))
    tensor = operand(m, value, node)
    if tensor is not None:
        return operator(m, node, _operator_text(node.operator), [tensor])
    if isinstance(node.operator, cst.Minus) and (isinstance(value, V.Number)):
        return binary(m, cst.Subtract(), V.number(0), value)
    return plain(m, node)


def _boolean(m: Machine, node: cst.BooleanOperation) -> V.Value:
    left = evaluate(m, node.left)
    if is_open(m, left) and joins(m, node):
        with contextlib.suppress(NeedsChoice):
            return either(m, node, lambda: left, lambda: evaluate(m, node.right))
    if truth(m, left, node.left) == isinstance(node.operator, cst.And):
        return evaluate(m, node.right)
    return left


def _comparison(m: Machine, node: cst.Comparison) -> V.Value:
    values = held(m, [node.left, *(target.comparator for target in node.comparisons)])
    for target, left, right in zip(node.comparisons, values, values[1:], strict=False):
        is_test = isinstance(target.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn))
        tensors = isinstance(left, V.Tensor) or isinstance(right, V.Tensor)
        if tensors and not is_test and V.NONE not in (left, right):
            if len(node.comparisons) > 1:
                raise m.unread(node, "a chain of comparisons of tensors")
            return operator(m, node, _operator_text(target.operator), [left, right])
        first = names.shape_items(m, left, len(right.items)) if isinstance(right, V.Sequence) else None
        test = partial(compare, m, target.operator, first or left, right)
        if m.knowledge.joins and len(node.comparisons) == 1 and m.answer(test) is None:
            return m.test(m.unique(m.scope.table.text(node)), test)
        if not test():
            return V.Const(value=False)
    return V.Const(value=True)


def _conditional(m: Machine, node: cst.IfExp) -> V.Value:
    value = evaluate(m, node.test)
    if is_open(m, value) and joins(m, node):
        with contextlib.suppress(NeedsChoice):
            return either(m, node, lambda: evaluate(m, node.body), lambda: evaluate(m, node.orelse))
    return evaluate(m, node.body if truth(m, value, node.test) else node.orelse)


def _walrus(m: Machine, node: cst.NamedExpr) -> V.Value:
    value = evaluate(m, node.value)
    m.bind(m, node.target, value)
    return value


# ---- containers --------------------------------------------------------------------------------------------


def _items(m: Machine, node: cst.List | cst.Tuple | cst.Set) -> V.Value:
    found: list[V.Value] = []
    mark = len(m.pending)
    try:
        for element in node.elements:
            value = evaluate(m, element.value)
            m.pending.append(value)
            if isinstance(element, cst.StarredElement):
                if isinstance(value, V.Unknown | V.Tensor) and len(node.elements) == 1:
                    return value
                if not isinstance(value, V.Sequence):
                    return lost(m, V.Sequence([*found, value]), node, "what this list holds is not known")
                found += value.items
            else:
                found.append(value)
    finally:
        del m.pending[mark:]
    return V.Sequence(found, isinstance(node, cst.Tuple))


def _dictionary(m: Machine, node: cst.Dict) -> V.Value:
    found: dict[object, V.Value] = {}
    for element in node.elements:
        value = evaluate(m, element.value)
        if isinstance(element, cst.DictElement):
            found[key_of(evaluate(m, element.key))] = value
        elif isinstance(value, V.Mapping):
            found.update(value.items)
        else:
            held_by = V.Sequence([*found.values(), value])
            return lost(m, held_by, node, "what this dictionary holds is not known")
    return V.Mapping(found)


def _comprehension(m: Machine, node: cst.ListComp | cst.GeneratorExp | cst.SetComp | cst.DictComp) -> V.Value:
    return comprehension(m, node)


def _lambda(m: Machine, node: cst.Lambda) -> V.Value:
    return V.Function(node, m.scope.table, m.scope)


def _yield(m: Machine, node: cst.Yield) -> V.Value:
    """The caller takes what is yielded, uses it on its stream, and comes back."""
    if isinstance(node.value, cst.From):
        raise m.unread(node, "what another generator yields is not read")
    value = V.NONE if node.value is None else evaluate(m, node.value)
    if m.inside_yield and m.calls and m.calls[-1] is m.inside_yield[-1][0]:
        m.inside_yield[-1][1](value)
        return V.NONE
    hand_out(m, node, value)
    return V.Unknown(m.unique("sent"), given=False, plain=True)


def _starred(m: Machine, node: cst.StarredElement) -> V.Value:
    return evaluate(m, node.value)


# ---- subscripts --------------------------------------------------------------------------------------------


def indices_of(m: Machine, node: cst.Subscript) -> list[V.Value | V.Slice]:
    """The items of a subscript."""
    found: list[V.Value | V.Slice] = []
    for element in node.slice:
        part = element.slice
        if isinstance(part, cst.Slice):
            low, high = (None if b is None else evaluate(m, b) for b in (part.lower, part.upper))
            step = None if part.step is None else as_number(m, evaluate(m, part.step))
            found.append(V.Slice(low, high, holes=part.step is not None and step != V.number(1)))
        elif isinstance(part, cst.Index):
            value = evaluate(m, part.value)
            if isinstance(value, V.Sequence) and value.is_tuple and len(node.slice) == 1:
                found += value.items
            else:
                found.append(value)
    return found


def _subscript(m: Machine, node: cst.Subscript) -> V.Value:
    (value,) = held(m, [node.value])
    if isinstance(value, V.Imported):
        value = names.kernel_behind(m, value) or value
    if isinstance(value, (V.Kernel, V.Function, V.Gridded)):
        grid = held(m, [s.slice.value for s in node.slice if isinstance(s.slice, cst.Index)])
        return V.Gridded(value, grid[0] if len(grid) == 1 else V.Sequence(grid, is_tuple=True))
    m.pending.append(value)
    try:
        indices = indices_of(m, node)
    finally:
        m.pending.pop()
    return item(m, value, indices, node)


# ---- calls -------------------------------------------------------------------------------------------------


def arguments(m: Machine, node: cst.Call) -> Arguments:
    """The arguments of a call, each held while those behind it are evaluated."""
    mark = len(m.pending)
    positional: list[V.Value] = []
    keywords: dict[str, V.Value] = {}
    more: list[V.Value] = []
    try:
        for arg in node.args:
            value = evaluate(m, arg.value)
            m.pending.append(value)
            if arg.keyword is not None:
                keywords[arg.keyword.value] = value
            elif arg.star == "*" and isinstance(value, V.Sequence):
                positional += value.items
            elif (
                arg.star == "**"
                and isinstance(value, V.Mapping)
                and all(isinstance(k, str) for k in value.items)
            ):
                keywords.update({str(k): v for k, v in value.items.items()})
            elif arg.star:
                more.append(value)
            else:
                positional.append(value)
    finally:
        del m.pending[mark:]
    return Arguments(node, tuple(positional), keywords, tuple(more))


def _call(m: Machine, node: cst.Call) -> V.Value:
    (target, m.target), mark = (m.target, ""), len(m.pending)
    try:
        owner = evaluate(m, node.func.value) if isinstance(node.func, cst.Attribute) else None
        m.pending.append(owner)
        if isinstance(owner, V.Unknown) and isinstance(node.func, cst.Attribute):
            function = m.stored.get(f"{owner.name}.{node.func.attr.value}")
        elif isinstance(node.func, cst.Attribute):
            function = names.attribute(m, owner, node.func.attr.value, node.func)
        else:
            function = evaluate(m, node.func)
        m.pending.append(function)
        given = arguments(m, node)
        m.pending += given.every()
        m.target = target
        if function is None and isinstance(owner, V.Unknown) and isinstance(node.func, cst.Attribute):
            return method_of_unknown(m, owner, node.func.attr.value, given)
        return call(m, function, given)
    finally:
        m.target = target
        del m.pending[mark:]


_HANDLERS: dict[type, Callable[..., V.Value]] = {
    cst.Name: _name,
    cst.Integer: _integer,
    cst.SimpleString: _constant,
    cst.ConcatenatedString: plain,
    cst.Float: _constant,
    cst.FormattedString: _formatted,
    cst.Attribute: _attribute,
    cst.Subscript: _subscript,
    cst.Call: _call,
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _unary,
    cst.BooleanOperation: _boolean,
    cst.Comparison: _comparison,
    cst.IfExp: _conditional,
    cst.NamedExpr: _walrus,
    cst.Tuple: _items,
    cst.List: _items,
    cst.Set: _items,
    cst.Dict: _dictionary,
    cst.ListComp: _comprehension,
    cst.GeneratorExp: _comprehension,
    cst.SetComp: _comprehension,
    cst.DictComp: _comprehension,
    cst.Lambda: _lambda,
    cst.Yield: _yield,
    cst.Ellipsis: lambda m, node: V.Const(Ellipsis),
}
