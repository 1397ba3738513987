"""Expressions that host code evaluates another way than kernels: calls, names, tensors in arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend import expressions, numbers
from tilecheck.frontend.executor import Arguments
from tilecheck.frontend.expressions import evaluate, module_name
from tilecheck.frontend.host import HostExecutor, text_of
from tilecheck.frontend.host_methods import literal
from tilecheck.frontend.host_operators import compare, elementwise, operate
from tilecheck.frontend.host_statements import MUTATORS, UNKNOWN_KEYWORDS, forget_lists, of_form
from tilecheck.frontend.host_values import HostShape, Table, Tensor, Unknown
from tilecheck.frontend.lower import is_kernel_decorator
from tilecheck.frontend.modules import Import, ModuleTable, dotted
from tilecheck.frontend.statements import call_function
from tilecheck.frontend.syntax import walk
from tilecheck.frontend.values import (
    Choice,
    Const,
    Frame,
    Function,
    Method,
    ModuleRef,
    Named,
    Num,
    Poison,
    Record,
    RecordType,
    Seq,
    integer,
)
from tilecheck.ir import expr as E

MAX_HOST_DEPTH = 8
_CHECKS = re.compile(
    r"_*(check|validate|verify|ensure|require|assert)"
)  # functions that raise if not satisfied
# Decorators that leave the function's values and its effects as they are.
_PLAIN_DECORATORS = frozenset(
    "functools.lru_cache functools.cache functools.wraps staticmethod torch.no_grad torch.inference_mode "
    "torch.compiler.disable typing.no_type_check".split()
)


# ---- names and attributes ----------------------------------------------------------------------------------


def _name(x: HostExecutor, node: cst.Name, frame: Frame) -> Any:
    found = frame.find(node.value)
    if isinstance(found, Poison):  # lost by a loop or a branch: from here on one unknown value
        found = frame.names[node.value] = x.unread(node.value)
    return found if found is not None else module_value(x, frame.table, node.value)


def module_value(x: HostExecutor, table: ModuleTable, name: str) -> Any:
    """The value of a module-level name, computed once in a run."""
    key = (table.file, name)
    if key not in x.module_values:
        guard, allocation = x.guard, x.allocation
        x.allocation = name
        try:
            value = x.unread(name) if name in _rebound(x, table) else module_name(x, table, name)
        except UnsupportedConstruct:
            value = x.unread(name)
        finally:
            x.guard, x.allocation = guard, allocation
        x.module_values[key] = x.unread(name) if isinstance(value, Poison) else value
    return x.module_values[key]


def _rebound(x: HostExecutor, table: ModuleTable) -> frozenset[str]:
    """The names that some function of the module declares `global`, and containers that some code changes."""
    known = x.known.changed.get(table.file)
    if known is not None:
        return known
    found: set[str] = set()
    for node in walk(table.parsed.module):
        match node:
            case cst.Global():
                found.update(item.name.value for item in node.names)
            case cst.AssignTarget(target=cst.Subscript(value=cst.Name(name))):
                found.add(name)
            case cst.AugAssign(target=cst.Subscript(value=cst.Name(name))):
                found.add(name)
            case cst.Call(func=cst.Attribute(value=cst.Name(name), attr=cst.Name(method))) if (
                method in MUTATORS
            ):
                found.add(name)
    fixed = {n for n, b in table.bindings.items() if isinstance(b, Import | cst.FunctionDef | cst.ClassDef)}
    x.known.changed[table.file] = frozenset(found - fixed)
    return x.known.changed[table.file]


def _subscript(x: HostExecutor, node: cst.Subscript, frame: Frame) -> Any:
    """A module-level container gives what the module stores in it, if all of that has one form."""
    index = expressions.index_of(x, node, frame)
    if isinstance(node.value, cst.Name) and frame.find(node.value.value) is None:
        key = (frame.table.file, node.value.value)
        if key in x.forms:
            return of_form(x, x.forms[key], x.unread(text_of(node, frame.table)).name)
    return expressions.subscript(x, evaluate(x, node.value, frame), index)


def _attribute(x: HostExecutor, node: cst.Attribute, frame: Frame) -> Any:
    assigned = frame.find(dotted(node)) if dotted(node) else None
    if assigned is not None:
        return assigned
    return attribute(x, evaluate(x, node.value, frame), node.attr.value)


def attribute(x: HostExecutor, value: Any, name: str) -> Any:
    if isinstance(value, ModuleRef):
        return module_value(x, value.table, name)
    if isinstance(value, Function) and name == "_pyfunc":
        return value  # the function that a kernel was made of
    return expressions.attribute(x, value, name)


# ---- operators ---------------------------------------------------------------------------------------------


def _binary(x: HostExecutor, node: cst.BinaryOperation, frame: Frame) -> Any:
    a, b = evaluate(x, node.left, frame), evaluate(x, node.right, frame)
    op = expressions.BINARY.get(type(node.operator))
    if op is None:
        raise UnsupportedConstruct("operator")
    return operate(x, op, a, b)


def _unary(x: HostExecutor, node: cst.UnaryOperation, frame: Frame) -> Any:
    value = evaluate(x, node.expression, frame)
    if isinstance(node.operator, cst.Not):
        return Num((), E.negate(x.truth(value)), "bool", None)
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
    less = numbers.negative(num)
    return less if isinstance(node.operator, cst.Minus) else numbers.binary("-", less, integer(1), x)


def _boolean(x: HostExecutor, node: cst.BooleanOperation, frame: Frame) -> Any:
    """`a and b`, `a or b`: one of the two values."""
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
    return x.merge(truth, b, a) if is_and else x.merge(truth, a, b)


def _is_test(value: Any) -> bool:
    return isinstance(value, Num) and value.kind == "bool"


def _comparison(x: HostExecutor, node: cst.Comparison, frame: Frame) -> Any:
    left = evaluate(x, node.left, frame)
    result: Any = None
    for target in node.comparisons:
        right = evaluate(x, target.comparator, frame)
        one = compare(x, target.operator, left, right)
        result = one if result is None else numbers.logical("and", result, one, x)
        left = right
    return result


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
    if len(elements) == 1 and isinstance(elements[0], cst.StarredElement):
        value = evaluate(x, elements[0].value, frame)
        if isinstance(value, HostShape):
            return value  # (*x.shape,)
    items: list[Any] = []
    names, x.allocation = x.allocation.split(","), ""
    for k, element in enumerate(elements):
        x.allocation = names[k] if len(names) == len(elements) > 1 else ""
        value = evaluate(x, element.value, frame)
        x.allocation = ""
        if isinstance(element, cst.StarredElement):
            items.extend(expressions.static_items(x, value, "starred element"))
        else:
            items.append(value)
    return Seq(tuple(items), isinstance(node, cst.List))


# ---- calls -------------------------------------------------------------------------------------------------


def _call(x: HostExecutor, node: cst.Call, frame: Frame) -> Any:
    function = _callee(x, node.func, frame)
    allocation, x.allocation = x.allocation, ""
    try:
        args = _arguments(x, node, frame)
    finally:
        x.allocation = allocation
    if args is None:
        return unread_call(x, node, Arguments((), (), node, frame.table), frame)
    with x.at(frame.table, node):
        return invoke(x, function, args, frame)


def _callee(x: HostExecutor, node: cst.BaseExpression, frame: Frame) -> Any:
    """What is called; a method stays with its object."""
    if not isinstance(node, cst.Attribute):
        return evaluate(x, node, frame)
    assigned = frame.find(dotted(node)) if dotted(node) else None
    if assigned is not None:
        return assigned
    value = evaluate(x, node.value, frame)
    if isinstance(value, Named | ModuleRef | RecordType | Record):
        return attribute(x, value, node.attr.value)
    return _method_of(x, value, node.attr.value)


def _method_of(x: HostExecutor, value: Any, name: str) -> Any:
    if isinstance(value, Choice):
        first, second = _method_of(x, value.first, name), _method_of(x, value.second, name)
        return Choice(value.cond, first, second)
    return Method(value, name)


def _arguments(x: HostExecutor, node: cst.Call, frame: Frame) -> Arguments | None:
    """The evaluated arguments; None when a starred one has an unknown length."""
    positional: list[Any] = []
    keywords: list[tuple[str, Any]] = []
    whole = True
    for arg in node.args:
        value = evaluate(x, arg.value, frame)
        if arg.keyword is not None:
            keywords.append((arg.keyword.value, value))
        elif arg.star == "**" and isinstance(value, Table) and all(isinstance(k, str) for k in value.items):
            keywords.extend((str(k), v) for k, v in value.items.items())
        elif arg.star == "**":
            keywords.append((UNKNOWN_KEYWORDS, value))
        elif arg.star == "*" and isinstance(value, HostShape) and len(node.args) == 1:
            positional.append(value)
        elif arg.star == "*" and isinstance(value, Seq):
            positional.extend(value.items)
        elif arg.star == "*":
            whole = False
        else:
            positional.append(value)
    return Arguments(tuple(positional), tuple(keywords), node, frame.table) if whole else None


def invoke(x: HostExecutor, function: Any, args: Arguments, frame: Frame) -> Any:
    """Call a value: what is read is executed, anything else gives an unknown."""
    match function:
        case Function():
            return _inline(x, function, args, frame)
        case Choice():
            return x.split(
                function.cond,
                lambda: invoke(x, function.first, args, frame),
                lambda: invoke(x, function.second, args, frame),
            )
        case Named() if function.name in ("cuda.tile.kernel", "cuda.tile._execution.kernel"):
            return _kernel_of(x, args)
        case Named() if function.name == "cuda.tile.launch":
            x.dialect.call(x, function.name, args)
            return Const(None)
        case Method(value=Function()) if function.name == "replace_hints":
            return function.value  # the same kernel with other compiler hints
        case Named() | Method() | RecordType() if UNKNOWN_KEYWORDS not in dict(args.keywords):
            try:
                return expressions.call(x, function, args)
            except UnsupportedConstruct:
                return unread_call(x, args.node, args, frame)
        case _:
            return unread_call(x, args.node, args, frame)


def _kernel_of(x: HostExecutor, args: Arguments) -> Any:
    """`ct.kernel(f)` and `ct.kernel(k._pyfunc, occupancy=2)`: a kernel with the body of its argument."""
    if args.positional and isinstance(args.positional[0], Function):
        return args.positional[0]
    raise UnsupportedConstruct("kernel made of a value that is not a function of the project")


def _inline(x: HostExecutor, function: Function, args: Arguments, frame: Frame) -> Any:
    """Execute a function of the project; one that is not plain code gives an unknown."""
    node = function.node
    if len(x.running) >= MAX_HOST_DEPTH or node in x.running or not _is_plain(function):
        return unread_call(x, args.node, args, frame)
    x.running.append(node)
    before = x.guard
    try:
        return call_function(x, function, args)
    except UnsupportedConstruct:
        x.guard = before
        return unread_call(x, args.node, args, frame)
    finally:
        x.running.pop()


def _is_plain(function: Function) -> bool:
    node = function.node
    if isinstance(node, cst.Lambda):
        return True
    if node.asynchronous is not None or any(_is_generator(n) for n in walk(node.body, is_own)):
        return False
    return all(_plain_decorator(function.table, d.decorator) for d in node.decorators)


def _is_generator(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Yield)


def is_own(node: cst.CSTNode) -> bool:
    """Whether the inside of a node belongs to the function around it."""
    return not isinstance(node, cst.FunctionDef | cst.Lambda | cst.ClassDef)


def _plain_decorator(table: ModuleTable, node: cst.BaseExpression) -> bool:
    if is_kernel_decorator(table, node):
        return False
    text = dotted(node.func if isinstance(node, cst.Call) else node)
    head, _, rest = text.partition(".")
    binding = table.bindings.get(head)
    if isinstance(binding, Import):
        module = f"{binding.module}.{binding.member}" if binding.member else binding.module
        text = f"{module}.{rest}".rstrip(".")
    return text in _PLAIN_DECORATORS


def unread_call(x: HostExecutor, node: cst.CSTNode, args: Arguments, frame: Frame) -> Unknown:
    """A call of code that is not read: it may call what it is given, and change the lists it is given."""
    for value in (*args.positional, *(v for _, v in args.keywords)):
        if isinstance(value, Function) and launches_inside(value):
            _call_back(x, value, args, frame)
    forget_lists(x, node, frame)
    text = text_of(node, args.table)
    if isinstance(node, cst.Call) and _CHECKS.match(_last_name(node.func)):
        x.assume(x.unread_test(text))  # it raises, or something holds that we do not know
    return x.unread(text)


def _last_name(node: cst.BaseExpression) -> str:
    match node:
        case cst.Name():
            return node.value
        case cst.Attribute():
            return node.attr.value
        case _:
            return ""


def launches_inside(function: Function) -> bool:
    """Whether the text of a function contains a call of something named `launch`."""
    return any(
        isinstance(n, cst.Call) and dotted(n.func).rpartition(".")[2] == "launch"
        for n in walk(function.node.body)
    )


def _call_back(x: HostExecutor, function: Function, args: Arguments, frame: Frame) -> None:
    params = function.node.params.params
    unknowns = tuple(x.unread(p.name.value) for p in params if p.default is None)
    _inline(x, function, Arguments(unknowns, (), args.node, args.table), frame)


def _opaque(x: HostExecutor, node: cst.BaseExpression, frame: Frame) -> Any:
    raise UnsupportedConstruct("expression that is not read")


HANDLERS: Mapping[type, Callable[[HostExecutor, Any, Frame], Any]] = {
    cst.Name: _name,
    cst.Attribute: _attribute,
    cst.BinaryOperation: _binary,
    cst.BooleanOperation: _boolean,
    cst.UnaryOperation: _unary,
    cst.Comparison: _comparison,
    cst.Dict: _dict,
    cst.Tuple: _sequence,
    cst.List: _sequence,
    cst.Call: _call,
    cst.Subscript: _subscript,
    cst.Await: _opaque,
    cst.Yield: _opaque,
}
