"""Evaluates expressions: one function for each kind of syntax node."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.constants.folding import folded
from tilecheck.frontend.constants.strings import NotConstant
from tilecheck.frontend.constants.unread import asked_of_unread, unread_constant
from tilecheck.frontend.execute.overflow_dependencies import resting, rests_of
from tilecheck.frontend.execute.state import Arguments, Executor
from tilecheck.frontend.modules.bindings import Binding, Element, Import, dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.modules.submodules import may_hold_submodule
from tilecheck.frontend.text.syntax import has_kind, walk
from tilecheck.frontend.values import arithmetic
from tilecheck.frontend.values.values import (
    START,
    Array,
    ArrayList,
    Choice,
    Const,
    Frame,
    Function,
    Method,
    ModuleRef,
    Named,
    Num,
    Param,
    Pointer,
    Poison,
    Range,
    Record,
    RecordType,
    Seq,
    Token,
    integer,
    used,
)
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol


def evaluate(x: Executor, node: cst.BaseExpression, frame: Frame) -> Any:
    """The value of an expression in `frame`.

    Raises:
        UnsupportedConstruct: the expression uses something that is not modelled.
    """
    x.step()
    handler = _HANDLERS.get(type(node))
    other = x.expression(node, frame)
    try:
        if other is not None:
            return other()
        return (handler or _unread)(x, node, frame)
    except UnsupportedConstruct as problem:
        if problem.span is None:
            located = UnsupportedConstruct(problem.construct, frame.table.span(node), frame.table.file)
            return x.recover(located, node, frame)
        return x.recover(problem, node, frame)


def _unread(x: Executor, node: cst.BaseExpression, frame: Frame) -> Any:
    raise UnsupportedConstruct(_words(node))


def _words(node: cst.CSTNode) -> str:
    # FormattedString -> formatted string
    name = type(node).__name__
    return "".join(f" {c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


# ---- names -------------------------------------------------------------------------------------------------

_PYTHON_NAMES = frozenset(
    "range len min max abs int float bool tuple list dict sum zip enumerate reversed divmod print isinstance "
    "hasattr getattr all any round str slice sorted frozenset ValueError TypeError AssertionError "
    "NotImplementedError RuntimeError".split()
)


MODULE = "<module>"  # the function of a frame for code that runs when its module is imported


def _name(x: Executor, node: cst.Name, frame: Frame) -> Any:
    found = frame.find(node.value)
    if found is not None:
        return found
    if sees_earlier(x, node.value, frame):
        return Poison(f"name `{node.value}` bound more than once")
    return module_name(x, frame.table, node.value)


def sees_earlier(x: Executor, name: str, frame: Frame) -> bool:
    """Whether code that ran when its module was imported, a function that it called included, may have seen
    another value of a module-level name than the one that the module ends with."""
    return (frame.function == MODULE or x.importing > 0) and name in frame.table.rebound


def module_name(x: Executor, table: ModuleTable, name: str) -> Any:
    """The value of a module-level or built-in name."""
    found = _module_name(x, table, name)
    binding = table.bindings.get(name)
    if isinstance(binding, Import) or isinstance(found, Named) == (binding is None):
        x.globals[table.file, name] = found  # a program can assign to it later: the launch guard looks again
    return found


def _module_name(x: Executor, table: ModuleTable, name: str) -> Any:
    match name:
        case "True":
            return Num((), E.TRUE, "bool", None)
        case "False":
            return Num((), E.FALSE, "bool", None)
        case "None":
            return Const(None)
    if name in table.ambiguous:
        return _one_of(x, table, name)
    if may_hold_submodule(table, name):
        return Poison(f"name `{name}`, which may be the submodule of that name")
    binding = table.bindings.get(name)
    if binding is None:
        if name in _PYTHON_NAMES:
            return Named(name)
        raise UnsupportedConstruct(f"unknown name `{name}`")
    return _bound(x, binding, table, name)


def _one_of(x: Executor, table: ModuleTable, name: str) -> Any:
    """What a name is that is bound in several ways: each of them, under conditions of which nothing is known
    but that they are the same for the whole launch. What a kernel touches must not depend on them (`lower`)."""
    changed = "that other code changes" if name in table.changed else "bound more than once"
    lost = Poison(f"name `{name}` {changed}")
    ways = table.choices(name) if x.reads_every_way else ()
    values = [_bound(x, binding, table, name) for binding in ways]
    if not values or len(values) > _MOST_WAYS or any(isinstance(value, Poison) for value in values):
        return lost
    result = values[-1]
    for number, value in reversed(list(enumerate(values[:-1]))):
        which = Symbol(f"`{name}` of {table.file} is bound the way {number + 1}", Kind.CONSTANT)
        x.ways[which] = f"name `{name}` bound more than once"
        result = x.merge(E.bool_sym(which), value, result)
    return result


_MOST_WAYS = 4
_FIXED = Num | Const | Named | Function | ModuleRef | RecordType | Poison


def _bound(x: Executor, binding: Binding, table: ModuleTable, name: str) -> Any:
    """The value that a module binds to a name."""
    if isinstance(binding, cst.FunctionDef):
        return Function(binding, table, None)
    if isinstance(binding, cst.ClassDef):
        from tilecheck.frontend.execute.classes import read_class  # the two modules need each other

        return read_class(x, binding, table)
    if isinstance(binding, Import):
        found = table.project.find(Import(binding.module, None, binding.level), table.file)
        if binding.member is not None and found is not None and table.changes_imported(name, binding, found):
            return Poison(f"name `{name}` that other code changes")
        return imported(x, binding, table)
    if x.depth > 30:
        raise UnsupportedConstruct(f"name `{name}` defined through itself")
    frame = Frame({}, None, table, MODULE, [], 0)
    x.depth += 1
    x.importing += 1
    try:
        if isinstance(binding, Element):
            whole = evaluate(x, binding.value, frame)
            return whole.items[binding.index] if isinstance(whole, Seq) else Poison(f"name `{name}`")
        if isinstance(binding, cst.Call | cst.FormattedString | cst.BinaryOperation):
            found = _folded(x, binding, table)
            if found is not None:
                return found
        return _evaluated(x, binding, table, name, frame)
    except UnsupportedConstruct as problem:
        why = f"name `{name}` ({problem.construct})"
        return unread_constant(x, binding, table, name, why) or Poison(why)
    finally:
        x.depth -= 1
        x.importing -= 1


def _evaluated(x: Executor, binding: cst.BaseExpression, table: ModuleTable, name: str, frame: Frame) -> Any:
    value = evaluate(x, binding, frame)
    # Another name of what another module of the project binds, changed through this one.
    aliased = isinstance(binding, cst.Name | cst.Attribute) and not isinstance(value, _FIXED)
    changed = aliased and table.changes.is_changed(name, flat=False)
    return Poison(f"name `{name}` that other code changes") if changed else value


def _folded(x: Executor, binding: cst.BaseExpression, table: ModuleTable) -> Any:
    """What plain Python computes for a name from constants; None if it is more than that."""

    def meaning(where: ModuleTable, name: str) -> Any:
        # Which binding module code saw of a name that has several is not known.
        return None if name in where.rebound else module_name(x, where, name)

    try:
        return folded(binding, table, meaning)
    except NotConstant:
        return None


def imported(x: Executor, binding: Import, table: ModuleTable) -> Any:
    """What an import binds: a name of the DSL or of a library, or a value of a project file."""
    if binding.member is None:
        found = table.project.find(binding, table.file)
        return ModuleRef(found) if found is not None else Named(binding.module)
    as_module = Import(f"{binding.module}.{binding.member}".strip("."), None, binding.level)
    found = table.project.find(Import(binding.module, None, binding.level), table.file)
    if found is not None and binding.member in found.bindings and not _is_submodule(found, binding.member):
        x.files[found.file] = None
        return module_name(x, found, binding.member)
    found = table.project.find(as_module, table.file)
    return ModuleRef(found) if found is not None else Named(as_module.module)


def _is_submodule(package: ModuleTable, name: str) -> bool:
    """Whether a package imports a name from itself: only a module of its own folder can be meant."""
    bound = package.bindings[name]
    if not isinstance(bound, Import) or bound.member != name:
        return False
    return package.project.find(Import(bound.module, None, bound.level), package.file) is package


# ---- literals ----------------------------------------------------------------------------------------------


def _integer(x: Executor, node: cst.Integer, frame: Frame) -> Any:
    return integer(int(node.value, 0))


def _float(x: Executor, node: cst.Float | cst.Imaginary, frame: Frame) -> Any:
    value = ast.literal_eval(node.value)
    return Const(value)


def _string(x: Executor, node: cst.SimpleString | cst.ConcatenatedString, frame: Frame) -> Any:
    return Const(node.evaluated_value)


def formatted(x: Executor, node: cst.FormattedString, frame: Frame) -> Any:
    if has_kind(node, cst.NamedExpr):
        raise UnsupportedConstruct("assignment in a formatted string")
    return Token(f"text {x.number()}")


def _sequence(x: Executor, node: cst.Tuple | cst.List, frame: Frame) -> Any:
    items: list[Any] = []
    for element in node.elements:
        value = evaluate(x, element.value, frame)
        if isinstance(element, cst.StarredElement):
            items.extend(static_items(x, value, "starred element"))
        else:
            items.append(value)
    return Seq(tuple(items), isinstance(node, cst.List))


def _ellipsis(x: Executor, node: cst.Ellipsis, frame: Frame) -> Any:
    return Const(...)


def _lambda(x: Executor, node: cst.Lambda, frame: Frame) -> Any:
    named = (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)
    defaults = tuple((p.name.value, evaluate(x, p.default, frame)) for p in named if p.default is not None)
    return Function(node, frame.table, frame, defaults)


def _named_expression(x: Executor, node: cst.NamedExpr, frame: Frame) -> Any:
    value = x.dialect.assigned(evaluate(x, node.value, frame))
    frame.names[dotted(node.target)] = value
    return value


def binds_nothing(*nodes: cst.CSTNode) -> None:
    """Refuse `:=` in what may not be evaluated: whether the name is bound then depends on that.

    Raises:
        UnsupportedConstruct: one of the nodes has an assignment inside.
    """
    if any(isinstance(inner, cst.NamedExpr) for node in nodes for inner in walk(node)):
        raise UnsupportedConstruct("assignment inside a condition")


# ---- operators ---------------------------------------------------------------------------------------------

BINARY = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.Power: "**",
    cst.LeftShift: "<<",
    cst.RightShift: ">>",
    cst.BitAnd: "&",
    cst.BitOr: "|",
    cst.BitXor: "^",
}
COMPARE = {
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
    cst.Equal: "==",
    cst.NotEqual: "!=",
}


def _binary(x: Executor, node: cst.BinaryOperation, frame: Frame) -> Any:
    a, b = evaluate(x, node.left, frame), evaluate(x, node.right, frame)
    if isinstance(node.operator, cst.MatrixMultiply):
        return x.dialect.call(x, "cuda.tile.matmul", Arguments((a, b), (), node, frame.table))
    with x.at(frame.table, node):
        return operate(x, BINARY[type(node.operator)], a, b)


def operate(x: Executor, op: str, a: Any, b: Any) -> Any:
    """A binary operator on any two values."""
    first = len(x.overflow.checks)
    return x.depends(_operate(x, op, a, b), first, a, b)


def _operate(x: Executor, op: str, a: Any, b: Any) -> Any:
    a, b = used(a), used(b)
    if isinstance(a, Choice):
        return x.split(a.cond, lambda: operate(x, op, a.first, b), lambda: operate(x, op, a.second, b))
    if isinstance(b, Choice):
        return x.split(b.cond, lambda: operate(x, op, a, b.first), lambda: operate(x, op, a, b.second))
    if isinstance(a, Seq) and op in ("+", "*"):
        return _sequence_operator(x, op, a, b)
    if isinstance(a, Pointer) or isinstance(b, Pointer):
        return x.dialect.offset(x, op, a, b)
    if x.dialect.has_pointers and (_is_none(a) or _is_none(b)):  # does not compile: any value is right here
        a, b = (Num(v.shape, None, "data", v.bits) if isinstance(v, Num) else Const(0.0) for v in (a, b))
    folded = fold_floats(op, a, b)
    if folded is not None:
        return folded
    return arithmetic.binary(op, x.number_of(a, "value"), x.number_of(b, "value"), x)


def _is_none(value: Any) -> bool:
    return isinstance(value, Const) and value.value is None


def _sequence_operator(x: Executor, op: str, a: Seq, b: Any) -> Any:
    if op == "+":
        return joined(a, static_items(x, b, "sequence"))
    times = x.number_of(b, "repeat count").elem
    if times is None or times.value is None or not 0 <= times.value <= 64:
        raise UnsupportedConstruct("sequence repeated a symbolic number of times")
    if len(a.items) * times.value > _LONGEST:
        raise UnsupportedConstruct("sequence of this length")
    return Seq(a.items * times.value, a.is_list)


_LONGEST = 4096  # items: a list that is doubled again and again would fill the memory


def joined(a: Seq, items: Sequence[Any]) -> Seq:
    """A sequence with more items at its end.

    Raises:
        UnsupportedConstruct: it is longer than any that a kernel is launched with.
    """
    if len(a.items) + len(items) > _LONGEST:
        raise UnsupportedConstruct("sequence of this length")
    return Seq((*a.items, *items), a.is_list)


def fold_floats(op: str, a: Any, b: Any) -> Const | None:
    def literal(value: Any) -> float | int | None:
        if isinstance(value, Const) and isinstance(value.value, float):
            return value.value
        if isinstance(value, Num) and value.kind == "int" and value.elem is not None:
            return value.elem.value
        return None

    u, v = literal(a), literal(b)
    if u is None or v is None or not (isinstance(u, float) or isinstance(v, float) or op == "/"):
        return None
    try:
        match op:
            case "+":
                return Const(float(u + v))
            case "-":
                return Const(float(u - v))
            case "*":
                return Const(float(u * v))
            case "/":
                return Const(float(u / v))
            case _:
                return None
    except (ZeroDivisionError, OverflowError):
        return None


def _unary(x: Executor, node: cst.UnaryOperation, frame: Frame) -> Any:
    value = evaluate(x, node.expression, frame)
    first = len(x.overflow.checks)
    return x.depends(_unary_of(x, node, value, frame), first, value)


def _unary_of(x: Executor, node: cst.UnaryOperation, value: Any, frame: Frame) -> Any:
    with x.at(frame.table, node):
        if isinstance(node.operator, cst.Not):
            truth = x.truth(value)
            if isinstance(value, Num) and value.shape:
                return arithmetic.invert(value, x)
            return Num((), E.negate(truth), "bool", None)
        if isinstance(value, Const) and isinstance(value.value, float):
            return Const(-value.value if isinstance(node.operator, cst.Minus) else value.value)
        num = x.number_of(value, "operand")
        match node.operator:
            case cst.Plus():
                return num
            case cst.Minus():
                if arithmetic.counts_down(num):
                    x.turns_back()
                return arithmetic.negative(num)
            case _ if num.kind == "bool" and x.dialect.has_pointers and arithmetic.is_compile_time(num):
                assert num.elem is not None
                return Num((), E.ite(num.elem, -2, -1), "int", None)  # as Python inverts True and False
            case _ if num.kind == "bool" and x.dialect.has_pointers and _may_be_compiled(num, node.expression):
                assert num.elem is not None
                return Num((), E.ite(_either(x), E.ite(num.elem, -2, -1), E.ite(num.elem, 0, 1)), "int", 32)
            case _ if num.kind == "bool":
                return arithmetic.invert(num, x)
            case _:  # ~a is -a - 1 in two's complement
                return arithmetic.binary("-", arithmetic.negative(num), integer(1), x)


def _boolean(x: Executor, node: cst.BooleanOperation, frame: Frame) -> Any:
    op = "and" if isinstance(node.operator, cst.And) else "or"
    a = evaluate(x, node.left, frame)
    truth = x.truth(a)
    stop = E.FALSE if op == "and" else E.TRUE
    binds_nothing(node.right)
    compiled = is_compiled(x, a)
    if truth is stop and (compiled or not x.dialect.has_pointers):
        return a if x.dialect.has_pointers else _flag(stop is E.TRUE)
    # The right side runs only where the left one did not decide; its obligations get that guard. Of Triton's
    # machine numbers both sides always run.
    before, waits = x.guard, len(x.launch_waits)
    if compiled or not x.dialect.has_pointers:
        x.guard = E.all_of(before, truth if op == "and" else E.negate(truth))
    try:
        b = evaluate(x, node.right, frame)
        other = x.truth(b)
    finally:
        x.guard = before
    for k in range(waits, len(x.launch_waits)):  # where part of the left side is a constant, they may not run
        x.launch_waits[k] = replace(x.launch_waits[k], guard=E.all_of(x.launch_waits[k].guard, _either(x)))
    compiled_too = is_compiled(x, b)
    if x.dialect.has_pointers and (_is_tile(a) or _is_tile(b)):
        if not _are_machine_truths(a, b):
            raise UnsupportedConstruct(f"`{op}` of a tile and what may be a constant")
        return arithmetic.logical(op, a, b, x)  # lane by lane
    combined = E.all_of(truth, other) if op == "and" else E.any_of(truth, other)
    machine = Num((), combined, "bool", None if compiled and compiled_too else 32)
    if not x.dialect.has_pointers or (_is_truth(a) and _is_truth(b)):
        return machine
    if compiled or compiled_too:
        found = _operand(op, (a, truth), (b, other), combined, first=compiled)
        # Where `a` is 1, it may be a constant too.
        return Choice(_either(x), b, found, combined) if not compiled and _is_of_launch(a) else found
    if _is_of_launch(a) or _is_of_launch(b):
        return Choice(_either(x), a, Choice(_either(x), b, machine), combined)
    return machine


def _either(x: Executor) -> Expr:
    """Which of two readings Triton takes, where the text does not say."""
    return x.fresh("data", per_lane=False, boolean=True)


def _operand(op: str, a: tuple[Any, Expr], b: tuple[Any, Expr], combined: Expr, *, first: bool) -> Any:
    """`a and b`, `a or b` in Triton where one side is known when the kernel is compiled: it is the result where
    it decides, and else it is dropped. With two such sides the `first` decides, as in Python."""
    (known, truth), (left, _) = (a, b) if first else (b, a)
    stops = E.negate(truth) if op == "and" else truth
    if stops is E.TRUE:
        return known
    return left if stops is E.FALSE else Choice(stops, known, left, combined)


def _is_of_launch(value: Any) -> bool:
    """Whether a value is made of numbers of the launch alone: where these are 1, Triton has constants."""
    if isinstance(value, Param):
        return True
    return isinstance(value, Num) and not value.shape and _no_others(value.elem)


def _no_others(elem: Expr | None) -> bool:
    if elem is None or any(node.op == "read" for node in E.walk(elem)):
        return False
    kinds = {s.kind for s in E.symbols(elem)}
    return kinds <= {Kind.SCALAR, Kind.CONSTANT} and Kind.SCALAR in kinds


def _may_be_compiled(truth: Num, node: cst.BaseExpression) -> bool:
    """Whether Triton may have a constant for a truth: where numbers of the launch are 1, and for what `and` and
    `or` make of a constant and a machine number."""
    joined = isinstance(node, cst.BooleanOperation | cst.UnaryOperation)
    return not truth.shape and (joined or _no_others(truth.elem))


def _is_tile(value: Any) -> bool:
    if isinstance(value, Choice):
        return _is_tile(value.first) or _is_tile(value.second)
    return isinstance(value, Num) and bool(value.shape)


def _are_machine_truths(a: Any, b: Any) -> bool:
    """Whether both are tiles, which are never constants, or truths that are none: what they give is a tile.
    Beside a number of the launch, which is a constant where it is 1, it may be that number."""
    return all(
        isinstance(v, Num) and (bool(v.shape) or (_is_truth(v) and not _is_of_launch(v))) for v in (a, b)
    )


def _is_truth(value: Any) -> bool:
    return isinstance(value, Num) and value.kind == "bool"


def is_compiled(x: Executor, value: Any) -> bool:
    """Whether a value is there when the kernel is compiled: what is none is a machine number."""
    match value:
        case Num():
            return arithmetic.is_compile_time(value)
        case Param():
            return value.name in x.constants and not value.assigned
        case Choice():
            own = all(s.kind is Kind.CONSTANT for s in E.symbols(value.cond))
            return own and is_compiled(x, value.first) and is_compiled(x, value.second)
        case _:
            return True


def _comparison(x: Executor, node: cst.Comparison, frame: Frame) -> Any:
    left = evaluate(x, node.left, frame)
    result: Any = None
    for target in node.comparisons:
        right = evaluate(x, target.comparator, frame)
        with x.at(frame.table, node):
            one = compare(x, target.operator, left, right)
        result = one if result is None else arithmetic.logical("and", result, one, x)
        left = right
    return result


def _flag(value: bool) -> Num:
    return Num((), E.TRUE if value else E.FALSE, "bool", None)


def compare(x: Executor, operator: cst.BaseCompOp, a: Any, b: Any) -> Any:
    """One comparison of any two values."""
    first = len(x.overflow.checks)
    return x.depends(_compare(x, operator, a, b), first, a, b)


def _compare(x: Executor, operator: cst.BaseCompOp, a: Any, b: Any) -> Any:
    if isinstance(operator, cst.LessThan | cst.LessThanEqual | cst.GreaterThan | cst.GreaterThanEqual):
        a, b = used(a), used(b)
    if isinstance(a, Choice):
        return x.split(
            a.cond, lambda: compare(x, operator, a.first, b), lambda: compare(x, operator, a.second, b)
        )
    if isinstance(b, Choice):
        return x.split(
            b.cond, lambda: compare(x, operator, a, b.first), lambda: compare(x, operator, a, b.second)
        )
    if isinstance(operator, cst.Is | cst.IsNot):
        same = asked_of_unread(x, _identity, a, b)
        return arithmetic.invert(same, x) if isinstance(operator, cst.IsNot) else same
    if isinstance(operator, cst.In | cst.NotIn):
        found = _contains(x, a, b)
        return arithmetic.invert(found, x) if isinstance(operator, cst.NotIn) else found
    op = COMPARE[type(operator)]
    if op in ("==", "!=") and not (_numeric(a) and _numeric(b)):
        same = asked_of_unread(x, equal, a, b)
        return arithmetic.invert(same, x) if op == "!=" else same
    if isinstance(a, Const) and isinstance(b, Const):
        return _flag(_compare_literals(op, a.value, b.value))
    return arithmetic.compare(op, x.number_of(a, "operand"), x.number_of(b, "operand"), x)


def _compare_literals(op: str, a: Any, b: Any) -> bool:
    try:
        match op:
            case "<":
                return bool(a < b)
            case "<=":
                return bool(a <= b)
            case ">":
                return bool(a > b)
            case ">=":
                return bool(a >= b)
            case "==":
                return bool(a == b)
            case _:
                return bool(a != b)
    except TypeError as problem:
        raise UnsupportedConstruct("comparison of unlike literals") from problem


def _numeric(value: Any) -> bool:
    return isinstance(value, Num | Param) or (isinstance(value, Const) and isinstance(value.value, float))


_TYPE = re.compile(
    r"(?:triton\.language\.(?:core\.)?|cuda\.tile\.|torch\.|numpy\.)((?:u?int|float|bfloat|float8)\w*)"
)


def _different(a: Named, b: Named) -> Num:
    """Whether two names mean one thing: types of one library do where their last parts are the same. What else
    two names of libraries mean is not known."""
    first, second = _TYPE.fullmatch(a.name), _TYPE.fullmatch(b.name)
    if first and second:
        same = first[1] == second[1] and a.name.partition(".")[0] == b.name.partition(".")[0]
        return Num((), E.TRUE if same else E.FALSE, "bool", None)
    return Num((), E.bool_sym(Symbol(f"{a.name} == {b.name}", Kind.CONSTANT)), "bool", None)


def equal(x: Executor, a: Any, b: Any) -> Num:
    """`a == b` where at least one side is not a number."""
    match a, b:
        case Const(), Const():
            return _flag(bool(a.value == b.value))
        case Named(), Named() if a.name == b.name:
            return _flag(True)
        case Named(), Named():
            return _different(a, b)
        case Seq(), Seq():
            if len(a.items) != len(b.items):
                return _flag(False)
            result = _flag(True)
            for u, v in zip(a.items, b.items, strict=True):
                result = arithmetic.logical("and", result, compare(x, cst.Equal(), u, v), x)
            return result
    if isinstance(a, Token | Named | Param | Const) and isinstance(b, Token | Named | Param | Const):
        return Num((), E.bool_sym(Symbol(f"{_words_of(a)} == {_words_of(b)}", Kind.CONSTANT)), "bool", None)
    if isinstance(b, Num):
        a, b = b, a
    if isinstance(a, Num) and isinstance(b, Token | Named):
        return _equals_opaque(x, a, b)
    if isinstance(a, Num) and isinstance(b, Const):
        return _flag(False)
    raise UnsupportedConstruct("comparison of these values")


def _equals_opaque(x: Executor, number: Num, other: Token | Named) -> Num:
    """A number against a compile-time value that may be one: a float parameter, `math.inf`."""
    if isinstance(other, Named) and other.name.startswith("cuda.tile."):
        return _flag(False)  # a dtype or a function
    if isinstance(other, Token) and number.elem is not None and number.elem.value is not None:
        name = f"{other.name} == {number.elem.value}"
        return Num((), E.bool_sym(Symbol(name, Kind.CONSTANT)), "bool", None)
    truth = x.fresh(arithmetic.origin(number.elem), per_lane=bool(number.shape), boolean=True)
    return Num(number.shape, truth, "bool")


def _words_of(value: Any) -> str:
    match value:
        case Const():
            return repr(value.value)
        case _:
            return str(value.name)


# Functions, types and members of enumerations, which are something. A variable of a module may be None
# (`torch.version.hip`), and of other modules nothing is known.
_SOMETHING = re.compile(r"(builtins|torch)\.\w+|(cuda\.tile|triton\.language)\..*")


def _identity(x: Executor, a: Any, b: Any) -> Num:
    if isinstance(b, Const) and b.value is None:
        match a:
            case Const():
                return _flag(a.value is None)
            case Param() | Token():
                return Num((), E.bool_sym(Symbol(f"{a.name} is None", Kind.CONSTANT)), "bool", None)
            case Array() if not a.views and a.member is None:
                return Num((), E.bool_sym(Symbol(f"{a.name} is None", Kind.CONSTANT)), "bool", None)
            case Pointer() if a.offset == START:
                return Num((), E.bool_sym(Symbol(f"{a.array} is None", Kind.CONSTANT)), "bool", None)
            case Poison():
                raise UnsupportedConstruct(a.why)
            case Method():
                raise UnsupportedConstruct("whether an attribute that is not read is None")
            case Named(name=name) if not _SOMETHING.fullmatch(name):
                raise UnsupportedConstruct(f"whether `{name}` is None")
            case _:
                return _flag(False)
    return equal(x, a, b)


def _contains(x: Executor, a: Any, b: Any) -> Num:
    result = _flag(False)
    for item in static_items(x, b, "`in`"):
        result = arithmetic.logical("or", result, compare(x, cst.Equal(), a, item), x)
    return result


def _conditional(x: Executor, node: cst.IfExp, frame: Frame) -> Any:
    binds_nothing(node.body, node.orelse)
    test = evaluate(x, node.test, frame)
    cond = x.truth(test)
    x.branch_on(cond)
    found = x.split(cond, lambda: evaluate(x, node.body, frame), lambda: evaluate(x, node.orelse, frame))
    return found if is_compiled(x, test) else x.dialect.assigned(found)


# ---- attributes, subscripts, calls -------------------------------------------------------------------------


def _attribute(x: Executor, node: cst.Attribute, frame: Frame) -> Any:
    value = evaluate(x, node.value, frame)
    if isinstance(value, ModuleRef) and frame.table.changes_member(node, value.table):
        return Poison(f"name `{dotted(node)}` that other code changes")
    with x.at(frame.table, node):
        return attribute(x, value, node.attr.value)


def attribute(x: Executor, value: Any, name: str) -> Any:
    value = used(value)
    match value:
        case Named():
            return Named(f"{value.name}.{name}")
        case ModuleRef():
            x.files[value.table.file] = None
            return module_name(x, value.table, name)
        case RecordType():
            for field, default in value.fields:
                if field == name:
                    return Poison(f"field `{name}`") if default is None else default
            raise UnsupportedConstruct(f"attribute `{name}`")
        case Record():
            if name in value.fields:
                return value.fields[name]
            raise UnsupportedConstruct(f"attribute `{name}`")
        case Choice(first=Const(value=None)):  # None has no attributes: who goes on has the other
            return attribute(x, value.second, name)
        case Choice(second=Const(value=None)):
            return attribute(x, value.first, name)
        case Choice():
            return x.split(
                value.cond,
                lambda: attribute(x, value.first, name),
                lambda: attribute(x, value.second, name),
            )
        case Poison():
            if x.dialect.has_pointers:
                return value  # a function of data is known by its name when it is called
            raise UnsupportedConstruct(value.why)
        case _:
            return x.dialect.attribute(x, value, name)


def _subscript(x: Executor, node: cst.Subscript, frame: Frame) -> Any:
    value = evaluate(x, node.value, frame)
    index = index_of(x, node, frame)
    with x.at(frame.table, node):
        return subscript(x, value, index)


def index_of(x: Executor, node: cst.Subscript, frame: Frame) -> Any:
    """The index as a value; `a:b` becomes `Named("slice")` parts, which only sequences accept."""
    items: list[Any] = []
    for element in node.slice:
        part = element.slice
        if isinstance(part, cst.Index):
            items.append(evaluate(x, part.value, frame))
        elif isinstance(part, cst.Slice):
            ends = [
                Const(None) if e is None else evaluate(x, e, frame) for e in (part.lower, part.upper, part.step)
            ]
            items.append(Seq((Named("slice"), *ends)))
    only = node.slice[0]
    if len(items) == 1 and not isinstance(only.comma, cst.Comma):
        return items[0]
    return Seq(tuple(items))


def subscript(x: Executor, value: Any, index: Any) -> Any:
    value = used(value)
    match value:
        case Seq():
            return _item(x, value, index)
        case Choice():
            return x.split(
                value.cond,
                lambda: subscript(x, value.first, index),
                lambda: subscript(x, value.second, index),
            )
        case Poison():
            raise UnsupportedConstruct(value.why)
        case Named():
            return Token(value.name)  # a subscripted type: `ct.Constant[int]`, `Annotated[...]`
        case _:
            first = len(x.overflow.checks)
            return x.depends(x.dialect.subscript(x, value, index), first, value)


def _item(x: Executor, value: Seq, index: Any) -> Any:
    if isinstance(index, Seq) and index.items and index.items[0] == Named("slice"):
        ends = [None if isinstance(e, Const) else x.scalar(e, "slice") for e in index.items[1:]]
        if any(e is not None and e.value is None for e in ends):
            raise UnsupportedConstruct("slice of a sequence with a computed end")
        return Seq(value.items[slice(*(None if e is None else e.value for e in ends))], value.is_list)
    position = x.scalar(index, "index")
    if position.value is None:
        return _symbolic_item(x, value, position)
    if not -len(value.items) <= position.value < len(value.items):
        raise UnsupportedConstruct("sequence index out of range")
    return value.items[position.value]


def _symbolic_item(x: Executor, value: Seq, position: E.Expr) -> Any:
    # A compile-time index that we do not know: any item, each under its own condition.
    if not value.items or any(s.varies for s in E.symbols(position)):
        raise UnsupportedConstruct("sequence indexed by a run-time value")
    result = value.items[-1]
    for i in range(len(value.items) - 2, -1, -1):
        result = x.merge(E.eq(position, i), value.items[i], result)
    return result


def _call(x: Executor, node: cst.Call, frame: Frame) -> Any:
    function = evaluate(x, node.func, frame)
    positional: list[Any] = []
    keywords: list[tuple[str, Any]] = []
    for arg in node.args:
        value = evaluate(x, arg.value, frame)
        if arg.star == "*":
            positional.extend(static_items(x, value, "starred argument"))
        elif arg.star == "**":
            raise UnsupportedConstruct("`**` argument")
        elif arg.keyword is not None:
            keywords.append((arg.keyword.value, value))
        else:
            positional.append(value)
    call_args = Arguments(tuple(positional), tuple(keywords), node, frame.table)
    with x.at(frame.table, node):
        return call(x, function, call_args)


_NO_OPTIONS = frozenset({"where", "maximum", "minimum", "dot"})  # functions whose arguments may not be None


def call(x: Executor, function: Any, args: Arguments) -> Any:
    """Call any value."""
    if isinstance(function, Named) and function.name.startswith(x.dialect.namespace) and args.positional:
        every = function.name.rpartition(".")[2] in _NO_OPTIONS
        operands = [used(v) if every or not i else v for i, v in enumerate(args.positional)]
        args = replace(args, positional=tuple(operands))  # the first may not be left out
    for i, value in enumerate(args.positional):
        if isinstance(value, Choice):
            return _split_positional(x, function, args, i, value)
    for i, (_, value) in enumerate(args.keywords):
        if isinstance(value, Choice):
            return _split_keyword(x, function, args, i, value)
    function = used(function)
    first = len(x.overflow.checks)
    match function:
        case Function() if function.table.replaces_functions:
            raise UnsupportedConstruct("function of a module that replaces code or defaults of functions")
        case Function():
            from tilecheck.frontend.execute.statements import call_function  # the two modules need each other

            return call_function(x, function, args)
        case Named():
            found = x.dialect.call(x, function.name, args)
            return _depending(x, found, first, function.name, args)
        case Method():
            found = x.dialect.method(x, function.value, function.name, args)
            return _depending(x, found, first, function.name, args, function.value)
        case RecordType():
            return _instantiate(function, args)
        case Choice():
            return x.split(
                function.cond, lambda: call(x, function.first, args), lambda: call(x, function.second, args)
            )
        case Poison():
            return _depending(x, x.dialect.lost(x, function, args), first, "", args)
        case _:
            raise UnsupportedConstruct("call of this value")


def _depending(x: Executor, result: Any, first: int, name: str, args: Arguments, *operands: Any) -> Any:
    """The result of an operation of the language, which rests on the checks of its arguments. An access says
    itself what its result rests on: what memory holds is a new value."""
    if x.carries_no_rests or x.dialect.is_access(name):
        return result
    return x.depends(result, first, *operands, *args.positional, *(value for _, value in args.keywords))


def _split_positional(x: Executor, function: Any, args: Arguments, i: int, value: Choice) -> Any:
    def using(chosen: Any) -> Any:
        positional = (*args.positional[:i], chosen, *args.positional[i + 1 :])
        return call(x, function, Arguments(positional, args.keywords, args.node, args.table))

    return x.split(value.cond, lambda: using(value.first), lambda: using(value.second))


def _split_keyword(x: Executor, function: Any, args: Arguments, i: int, value: Choice) -> Any:
    def using(chosen: Any) -> Any:
        keywords = (*args.keywords[:i], (args.keywords[i][0], chosen), *args.keywords[i + 1 :])
        return call(x, function, Arguments(args.positional, keywords, args.node, args.table))

    return x.split(value.cond, lambda: using(value.first), lambda: using(value.second))


def _instantiate(kind: RecordType, args: Arguments) -> Record:
    names = tuple(name if default is None else f"{name}?" for name, default in kind.fields)
    given = args.bind(names, f"`{kind.name}`")
    return Record({name: given.get(name, default) for name, default in kind.fields})


def static_items(x: Executor, value: Any, what: str) -> tuple[Any, ...]:
    """The items of a sequence whose length is known."""
    match value:
        case Seq():
            return value.items
        case Range():
            return tuple(resting(item, rests_of(value)) for item in _range_items(value, what))
        case Array() | ArrayList() | Param():
            raise UnsupportedConstruct(f"{what} over a parameter")
        case Poison():
            raise UnsupportedConstruct(value.why)
        case _:
            raise UnsupportedConstruct(f"{what} over this value")


MAX_UNROLL = 128


def _range_items(value: Range, what: str) -> list[Num]:
    ends = [n.elem.value if n.elem is not None else None for n in (value.start, value.stop, value.step)]
    start, stop, step = ends
    if start is None or stop is None or not step:
        raise UnsupportedConstruct(f"{what} over a range of unknown length")
    items = range(start, stop, step)
    if len(items) > MAX_UNROLL:
        raise UnsupportedConstruct(f"{what} over more than {MAX_UNROLL} items")
    return [integer(i) for i in items]


def _comprehension(x: Executor, node: cst.ListComp | cst.GeneratorExp, frame: Frame) -> Any:
    loop = node.for_in
    if loop.inner_for_in is not None or loop.asynchronous is not None:
        raise UnsupportedConstruct("nested comprehension")
    if has_kind(node, cst.NamedExpr):
        raise UnsupportedConstruct("assignment in a comprehension")
    inner = Frame(dict(frame.names), frame.parent, frame.table, frame.function, frame.returns, frame.depth)
    items = []
    from tilecheck.frontend.execute.statements import assign  # as above

    for item in static_items(x, evaluate(x, loop.iter, frame), "comprehension"):
        assign(x, loop.target, item, inner)
        keep = [x.truth(evaluate(x, test.test, inner)) for test in loop.ifs]
        if any(k is not E.TRUE and k is not E.FALSE for k in keep):
            raise UnsupportedConstruct("comprehension with a symbolic condition")
        if all(k is E.TRUE for k in keep):
            items.append(evaluate(x, node.elt, inner))
    return Seq(tuple(items), isinstance(node, cst.ListComp))


_HANDLERS: Mapping[type, Callable[[Executor, Any, Frame], Any]] = {
    cst.Name: _name,
    cst.Integer: _integer,
    cst.Float: _float,
    cst.SimpleString: _string,
    cst.ConcatenatedString: _string,
    cst.FormattedString: formatted,
    cst.Tuple: _sequence,
    cst.List: _sequence,
    cst.Ellipsis: _ellipsis,
    cst.Lambda: _lambda,
    cst.NamedExpr: _named_expression,
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _unary,
    cst.BooleanOperation: _boolean,
    cst.Comparison: _comparison,
    cst.IfExp: _conditional,
    cst.Attribute: _attribute,
    cst.Subscript: _subscript,
    cst.Call: _call,
    cst.ListComp: _comprehension,
    cst.GeneratorExp: _comprehension,
}
