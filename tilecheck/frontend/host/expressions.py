"""Expressions that host code evaluates another way than kernels: calls, names, tensors in arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute import expressions
from tilecheck.frontend.execute.expressions import binds_nothing, evaluate
from tilecheck.frontend.execute.statements import assign
from tilecheck.frontend.host.arguments import iterable, literal
from tilecheck.frontend.host.functions import call
from tilecheck.frontend.host.iterators import is_used_at_once
from tilecheck.frontend.host.memory import sharing
from tilecheck.frontend.host.memory.rejections import doubt, parts
from tilecheck.frontend.host.memory.unread_effects import forget_effects
from tilecheck.frontend.host.names import attribute_node, name, subscript
from tilecheck.frontend.host.run import HostExecutor, facts_of, is_nameless
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.sizes.operators import compare, operate
from tilecheck.frontend.host.targets import forget_named
from tilecheck.frontend.host.tensors.elementwise import elementwise
from tilecheck.frontend.host.tensors.library import matmul
from tilecheck.frontend.host.values import Dims, HostShape, Members, Order, Table, Tensor, Unknown, named_in
from tilecheck.frontend.text.syntax import walk_kind
from tilecheck.frontend.values import arithmetic
from tilecheck.frontend.values.values import (
    Choice,
    Const,
    Frame,
    Num,
    Range,
    Seq,
    integer,
)
from tilecheck.ir import expr as E

# ---- operators ---------------------------------------------------------------------------------------------


def _binary(x: HostExecutor, node: cst.BinaryOperation, frame: Frame) -> Any:
    a, b = evaluate(x, node.left, frame), evaluate(x, node.right, frame)
    op = expressions.BINARY.get(type(node.operator))
    if isinstance(node.operator, cst.MatrixMultiply) and all(isinstance(v, Tensor | Unknown) for v in (a, b)):
        return x.with_layout(matmul(x, x.tensor(a), x.tensor(b)), "product")
    if op is None:
        raise UnsupportedConstruct("operator")
    return operate(x, op, a, b)


def _unary(x: HostExecutor, node: cst.UnaryOperation, frame: Frame) -> Any:
    value = evaluate(x, node.expression, frame)
    if isinstance(node.operator, cst.Not):
        return Num((), E.negate(x.truth(value)), "bool", None)
    if isinstance(value, Tensor | Unknown) and isinstance(node.operator, cst.Plus):
        return value  # no copy
    if isinstance(value, Tensor):
        return elementwise(x, value, value)
    if (
        isinstance(value, Const)
        and isinstance(value.value, float)
        and not isinstance(node.operator, cst.BitInvert)
    ):
        return Const(-value.value if isinstance(node.operator, cst.Minus) else value.value)
    num = x.number_of(value, "operand")
    if num.kind == "bool":
        raise UnsupportedConstruct("arithmetic on a truth")
    if isinstance(node.operator, cst.Plus):
        return num
    less = arithmetic.negative(num)
    return less if isinstance(node.operator, cst.Minus) else arithmetic.binary("-", less, integer(1), x)


def _boolean(x: HostExecutor, node: cst.BooleanOperation, frame: Frame) -> Any:
    """`a and b`, `a or b`: one of the two values."""
    binds_nothing(node.right)
    is_and = isinstance(node.operator, cst.And)
    a = evaluate(x, node.left, frame)
    truth = x.truth(a)
    before = x.guard
    x.guard = E.all_of(before, truth if is_and else E.negate(truth))
    if x.guard is E.FALSE:
        x.guard = before
        return a
    try:
        b = evaluate(x, node.right, frame)
        if _is_test(a) and _is_test(b):
            other = x.truth(b)
            return Num((), E.all_of(truth, other) if is_and else E.any_of(truth, other), "bool", None)
    finally:
        x.guard = before
    first, second = (b, a) if is_and else (a, b)
    if _is_test(a) or _is_test(b):
        return Choice(truth, first, second)  # a test and something else: both keep what they mean as tests
    return x.merge(truth, first, second)


def _is_test(value: Any) -> bool:
    return isinstance(value, Num) and value.kind == "bool"


def _comparison(x: HostExecutor, node: cst.Comparison, frame: Frame) -> Any:
    binds_nothing(*(c.comparator for c in node.comparisons[1:]))
    left = evaluate(x, node.left, frame)
    result: Any = None
    for target in node.comparisons:
        if isinstance(target.comparator, cst.Set) and isinstance(target.operator, cst.In | cst.NotIn):
            right: Any = Members(tuple(evaluate(x, e.value, frame) for e in target.comparator.elements))
        else:
            right = evaluate(x, target.comparator, frame)
        one = _compared(x, target.operator, left, right, frame.table.text(node))
        result = one if result is None else arithmetic.logical("and", result, one, x)
        left = right
    return result


def _compared(x: HostExecutor, operator: cst.BaseCompOp, a: Any, b: Any, text: str) -> Any:
    """One comparison: of values that are not followed some truth. Tensors alone may refuse to be compared."""
    try:
        found = compare(x, operator, a, b)
    except UnsupportedConstruct:
        if isinstance(a, Tensor) or isinstance(b, Tensor) or not isinstance(operator, _OF_ANY_VALUES):
            raise
        return Num((), x.unread_test(text), "bool", None)
    truth = found.elem if isinstance(found, Num) else None
    if truth is not None and truth.op == "bsym" and is_nameless(truth.args[0]):
        return Num((), x.unread_test(text), "bool", None)
    return found


_OF_ANY_VALUES = (cst.Equal, cst.NotEqual, cst.In, cst.NotIn)


# ---- displays ----------------------------------------------------------------------------------------------


def _dict(x: HostExecutor, node: cst.Dict, frame: Frame) -> Any:
    items: dict[str | int, Any] = {}
    for element in node.elements:
        value = evaluate(x, element.value, frame)
        if isinstance(element, cst.StarredDictElement):
            if not isinstance(value, Table):
                raise UnsupportedConstruct("`**` of this value")
            items.update(value.items)
            continue
        key = literal(evaluate(x, element.key, frame)) if isinstance(element, cst.DictElement) else None
        if key is None:
            raise UnsupportedConstruct("dictionary with a computed key")
        items[key] = value
    return Table(items)


def _sequence(x: HostExecutor, node: cst.Tuple | cst.List, frame: Frame) -> Any:
    elements = node.elements
    items: list[Any] = []
    shape = False
    names, x.allocation = x.allocation.split(","), ""
    for k, element in enumerate(elements):
        x.allocation = names[k] if len(names) == len(elements) > 1 else ""
        value = evaluate(x, element.value, frame)
        x.allocation = ""
        if isinstance(element, cst.StarredElement) and isinstance(value, HostShape | Dims):
            items.append(value)
            shape = True
        elif isinstance(element, cst.StarredElement):
            items.extend(expressions.static_items(x, value, "starred element"))
        else:
            items.append(value)
    is_list = isinstance(node, cst.List)
    return _shape_display(x, items, is_list=is_list) if shape else Seq(tuple(items), is_list)


def _shape_display(x: HostExecutor, items: list[Any], *, is_list: bool) -> Any:
    """`(*x.shape[:-1], n)`."""
    parts: list[Any] = []
    for item in items:
        found = unknown_ranks.parts_of(x, item) if isinstance(item, HostShape | Dims) else None
        if isinstance(item, HostShape) and item.strides:
            raise UnsupportedConstruct("starred strides")
        parts += (x.scalar(item, "size"),) if found is None else found
    return unknown_ranks.shape_of_parts(tuple(parts), is_list=is_list)


def _comprehension(x: HostExecutor, node: cst.ListComp | cst.GeneratorExp, frame: Frame) -> Any:
    if isinstance(node, cst.GeneratorExp) and not is_used_at_once(node, frame.table, in_loop=False):
        raise UnsupportedConstruct("generator that is used later")
    x.events.callers.append(frame)  # the comprehension has names of its own
    try:
        found = _over(x, node, evaluate(x, node.for_in.iter, frame), frame)
    finally:
        x.events.callers.pop()
    forget_named(x, node, frame)  # those are names of the function, not of the comprehension
    return found


def _over(x: HostExecutor, node: cst.ListComp | cst.GeneratorExp, source: Any, frame: Frame) -> Any:
    if isinstance(source, Choice):
        return x.split(
            source.cond,
            lambda: _over(x, node, source.first, frame),
            lambda: _over(x, node, source.second, frame),
        )
    if _is_of_any_length(source) and node.for_in.inner_for_in is None:
        order = _order(x, node, source, frame) if isinstance(node, cst.ListComp) else None
        if order is not None:
            return order
        return _of_any_items(x, node, source, frame)
    return Seq(tuple(_comprehended(x, node.elt, node.for_in, source, frame)), isinstance(node, cst.ListComp))


def _is_of_any_length(source: Any) -> bool:
    match source:
        case Unknown() | Dims() | HostShape(strides=False):
            return True
        case Range():
            return any(n.elem is None or n.elem.value is None for n in (source.start, source.stop, source.step))
        case _:
            return False


def _order(x: HostExecutor, node: cst.ListComp, source: Any, frame: Frame) -> Order | None:
    """`[i for i in range(x.ndim) if i not in (d,)]`: all axes but one, in their order."""
    tests = [test.test for test in node.for_in.ifs]
    match node.for_in.target, node.elt, source, tests:
        case cst.Name(i), cst.Name(elt), Range(start, stop, step), [cst.Comparison(cst.Name(left), [asked])]:
            whole = start.elem is E.ZERO and step.elem is E.ONE and stop.elem is not None
        case _:
            return None
    if not whole or {elt, left} != {i} or any(n.value == i for n in walk_kind(asked, cst.Name)):
        return None
    axis = evaluate(x, asked.comparator, frame)
    if isinstance(asked.operator, cst.NotIn):
        among = iterable(x, axis, E.le(stop.elem or E.ZERO, 0))
        if not isinstance(among, Seq) or len(among.items) != 1:
            return None
        axis = among.items[0]
    elif not isinstance(asked.operator, cst.NotEqual):
        return None
    number = x.scalar(axis, "axis") if isinstance(axis, Num | Unknown) else None
    return None if number is None else Order(stop.elem or E.ZERO, number)


def _of_any_items(x: HostExecutor, node: cst.ListComp | cst.GeneratorExp, source: Any, frame: Frame) -> Unknown:
    """Some numbers, `[d % x.ndim for d in dims]`: what one item establishes holds if there is an item."""
    inner = Frame(dict(frame.names), frame.parent, frame.table, frame.function, frame.returns, frame.depth)
    before = x.guard
    try:
        assign(
            x, node.for_in.target, x.unread("item") if isinstance(source, Unknown) else x.natural("item"), inner
        )
        tests = [x.truth(evaluate(x, test.test, inner)) for test in node.for_in.ifs]
        x.guard = E.all_of(x.guard, *tests)
        taken = set(facts_of(x.guard))
        value = evaluate(x, node.elt, inner)
        said = [fact for fact in facts_of(x.guard) if fact not in taken]
    finally:
        x.guard = before
    if not isinstance(value, Num):
        raise UnsupportedConstruct("comprehension over a parameter")
    none = E.negate(x.test_of_machine(f"any of {frame.table.text(node)}"))
    x.assume(E.any_of(none, E.all_of(*said)))
    found = sharing.unread_of(x, frame.table.text(node), *named_in(node, frame))
    x.made_of[found.name] = frozenset[str]().union(*map(_sized_as, named_in(node, frame))) - {""}
    if isinstance(source, Unknown) and not node.for_in.ifs:

        def item(key: int) -> Any:
            assign(x, node.for_in.target, x.dialect.subscript(x, source, integer(key)), inner)
            return evaluate(x, node.elt, inner)

        x.mapped[found.name] = (x.events.now, item)
    return found


def _sized_as(value: Any) -> set[str]:
    """The names of what decides the numbers in a value: of a tensor whose shape it has."""
    match value:
        case Tensor():
            return {value.shape_of}
        case Choice():
            return _sized_as(value.first) | _sized_as(value.second)
        case _:
            return parts(value)


def _dict_comprehension(x: HostExecutor, node: cst.DictComp, frame: Frame) -> Any:
    """`{k: f(v) for k, v in sizes.items()}` with keys that are literals."""
    found: dict[str | int, Any] = {}
    x.events.callers.append(frame)
    try:
        for inner in _rounds(x, node.for_in, evaluate(x, node.for_in.iter, frame), frame):
            key = literal(evaluate(x, node.key, inner))
            if key is None:
                raise UnsupportedConstruct("dictionary with a computed key")
            found[key] = evaluate(x, node.value, inner)
    finally:
        x.events.callers.pop()
    forget_named(x, node, frame)
    return Table(found)


def _comprehended(
    x: HostExecutor, elt: cst.BaseExpression, loop: cst.CompFor, source: Any, frame: Frame
) -> Iterator[Any]:
    """The items that one loop of a comprehension gives, and the loops inside it."""
    return (evaluate(x, elt, inner) for inner in _rounds(x, loop, source, frame))


def _rounds(x: HostExecutor, loop: cst.CompFor, source: Any, frame: Frame) -> Iterator[Frame]:
    """The names of each round of a comprehension."""
    inner = Frame(dict(frame.names), frame.parent, frame.table, frame.function, frame.returns, frame.depth)
    for item in expressions.static_items(x, source, "comprehension"):
        assign(x, loop.target, item, inner)
        keep = E.all_of(*(x.truth(evaluate(x, test.test, inner)) for test in loop.ifs))
        if keep is not E.TRUE and keep is not E.FALSE:
            raise UnsupportedConstruct("comprehension with a symbolic condition")
        if keep is E.TRUE and loop.inner_for_in is not None:
            further = loop.inner_for_in
            yield from _rounds(x, further, evaluate(x, further.iter, inner), inner)
        elif keep is E.TRUE:
            yield inner


def _formatted(x: HostExecutor, node: cst.FormattedString, frame: Frame) -> Any:
    """A text, which says nothing; its parts may call what changes objects."""
    forget_effects(x, node, frame)
    doubt(x, node, frame)
    return expressions.formatted(x, node, frame)


def _opaque(x: HostExecutor, node: cst.BaseExpression, frame: Frame) -> Any:
    raise UnsupportedConstruct("expression that is not read")


HANDLERS: Mapping[type, Callable[[HostExecutor, Any, Frame], Any]] = {
    cst.Name: name,
    cst.Attribute: attribute_node,
    cst.BinaryOperation: _binary,
    cst.BooleanOperation: _boolean,
    cst.UnaryOperation: _unary,
    cst.Comparison: _comparison,
    cst.Dict: _dict,
    cst.Tuple: _sequence,
    cst.List: _sequence,
    cst.Call: call,
    cst.Subscript: subscript,
    cst.ListComp: _comprehension,
    cst.GeneratorExp: _comprehension,
    cst.DictComp: _dict_comprehension,
    cst.FormattedString: _formatted,
    cst.Await: _opaque,
    cst.Yield: _opaque,
}
