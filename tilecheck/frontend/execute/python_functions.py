"""Python's own functions, as code of every language may call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.expressions import operate, static_items
from tilecheck.frontend.execute.state import Arguments, Executor
from tilecheck.frontend.execute.tiles import data
from tilecheck.frontend.values import arithmetic
from tilecheck.frontend.values.values import ArrayList, Const, Num, Param, Range, Seq, Shape, Token, integer
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol
from tilecheck.ir.kernel import LaunchWait

Handler = Callable[[Executor, Arguments], Any]


def nothing(x: Executor, args: Arguments) -> Const:
    return Const(None)


def wait_for_launches(x: Executor, args: Arguments) -> Const:
    """`gdc_wait()`, `grid_dependency_control_wait()`."""
    if not x.dry:
        x.launch_waits.append(LaunchWait(x.guard, x.number(), tuple(k for k, _ in x.nest)))
    return Const(None)


def range_of(x: Executor, args: Arguments) -> Range:
    values = [x.number_of(v, "range") for v in args.positional]
    if args.keywords or not 1 <= len(values) <= 3:
        raise UnsupportedConstruct("range with these arguments")
    if len(values) == 1:
        return Range(integer(0), values[0], integer(1))
    return Range(values[0], values[1], values[2] if len(values) == 3 else integer(1))


def absolute(x: Executor, args: Arguments) -> Num:
    num = x.number_of(args.bind(("x",), "abs")["x"], "operand")
    if num.elem is None or (num.kind == "any" and not x.is_integer_memory(num.elem) and x.is_loaded(num.elem)):
        return data(num.shape)
    value = arithmetic.as_int(num, x)
    kind = "any" if num.kind == "any" else "int"
    if num.bits == 32 and arithmetic.may_have_wrapped(value) and (kind == "int" or x.is_integer_memory(value)):
        value = x.fits(value, num.shape)
    turned = arithmetic.wrapped(E.neg(value), num.bits)
    unknown = any(n.op == "read" or (n.op == "sym" and n.args[0].kind is Kind.OPAQUE) for n in E.walk(value))
    if num.bits == 32 and unknown and (kind == "int" or x.is_integer_memory(value)):
        turned = E.ite(E.lt(-(2**31), value), turned, value)  # the least number has no opposite
    return Num(num.shape, E.maximum(value, turned), kind, num.bits)


def division(x: Executor, args: Arguments) -> Seq:
    given = args.bind(("x", "y"), "divmod")
    return Seq((operate(x, "//", given["x"], given["y"]), operate(x, "%", given["x"], given["y"])))


def _python_len(x: Executor, args: Arguments) -> Num:
    value = args.bind(("x",), "len")["x"]
    match value:
        case Seq():
            return integer(len(value.items))
        case Shape():
            rank = x.knows("ranks", value.array.name)
            if rank is None:
                raise UnsupportedConstruct("len of a shape of unknown rank")
            return integer(rank)
        case Param() | ArrayList():
            x.lists.add(value.name)
            x.used.add(value.name)
            return Num((), E.sym(Symbol(f"len({value.name})", Kind.EXTENT)), "int", None)
        case _:
            raise UnsupportedConstruct("len of this value")


def _python_extreme(x: Executor, args: Arguments, op: str) -> Any:
    values = args.positional
    if len(values) == 1:
        if isinstance(values[0], Num):
            return x.dialect.call(x, f"{x.dialect.namespace}.{op}", args)
        values = static_items(x, values[0], op)
    result = values[0]
    for value in values[1:]:
        result = operate(x, op, result, value)
    return result


def _python_int(x: Executor, args: Arguments) -> Any:
    num = x.number_of(args.at(0), "int")
    return Num(num.shape, arithmetic.as_int(num, x), "int" if num.kind != "any" else "any", num.bits)


def _python_bool(x: Executor, args: Arguments) -> Num:
    return Num((), x.truth(args.at(0)), "bool")


def _python_float(x: Executor, args: Arguments) -> Any:
    value = args.at(0)
    if not isinstance(value, Const):
        return data(())
    try:
        return Const(float(value.value))
    except (TypeError, ValueError):
        return Token(f"float {x.number()}")


def _python_sequence(x: Executor, args: Arguments, *, is_list: bool) -> Seq:
    if not args.positional:
        return Seq((), is_list)
    return Seq(static_items(x, args.at(0), "sequence"), is_list)


def _python_zip(x: Executor, args: Arguments) -> Seq:
    columns = [static_items(x, v, "zip") for v in args.positional]
    return Seq(tuple(Seq(row) for row in zip(*columns, strict=False)))


def _python_enumerate(x: Executor, args: Arguments) -> Seq:
    items = static_items(x, args.at(0), "enumerate")
    return Seq(tuple(Seq((integer(i), item)) for i, item in enumerate(items)))


def _python_reversed(x: Executor, args: Arguments) -> Seq:
    return Seq(tuple(reversed(static_items(x, args.at(0), "reversed"))))


def _python_sum(x: Executor, args: Arguments) -> Any:
    result: Any = integer(0)
    for item in static_items(x, args.at(0), "sum"):
        result = operate(x, "+", result, item)
    return result


def math_function(x: Executor, args: Arguments) -> Any:
    return data(())


PYTHON: Mapping[str, Handler] = {
    "range": range_of,
    "len": _python_len,
    "min": lambda x, a: _python_extreme(x, a, "min"),
    "max": lambda x, a: _python_extreme(x, a, "max"),
    "abs": absolute,
    "int": _python_int,
    "bool": _python_bool,
    "float": _python_float,
    "tuple": lambda x, a: _python_sequence(x, a, is_list=False),
    "list": lambda x, a: _python_sequence(x, a, is_list=True),
    "zip": _python_zip,
    "enumerate": _python_enumerate,
    "reversed": _python_reversed,
    "sum": _python_sum,
    "divmod": division,
    "print": nothing,
    "assert": nothing,
}
