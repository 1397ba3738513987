"""Statements: assignments, branches, loops, `with`, and how they hand control on."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tilecheck.reference.interpret.calls import context_manager, frame_of
from tilecheck.reference.interpret.expressions import assign, lookup, operate
from tilecheck.reference.interpret.interpreter import Interpreter, Signal, unsupported
from tilecheck.reference.interpret.scopes import branch_names, contains_return, falls_through
from tilecheck.reference.machine import Reject
from tilecheck.reference.values.values import (
    Closure,
    ContextManager,
    Frame,
    Range,
    scalar,
    static_items,
)

_BREAK = Signal("break")
_CONTINUE = Signal("continue")


def execute(interpreter: Interpreter, body: Sequence[ast.stmt], frame: Frame) -> Signal | None:
    """Run statements until one jumps."""
    machine, place = interpreter.machine, frame.module.source.place
    for statement in body:
        handler = _HANDLERS.get(type(statement))
        previous, machine.place = machine.place, place(statement)  # as `at` has it
        machine.step()
        if handler is None:
            raise unsupported(statement)
        signal = handler(interpreter, statement, frame)
        machine.place = previous
        if signal is not None:
            return signal
    return None


def _expression(interpreter: Interpreter, node: ast.Expr, frame: Frame) -> None:
    interpreter.evaluate(node.value, frame)


def _assign(interpreter: Interpreter, node: ast.Assign, frame: Frame) -> None:
    value = _stored(interpreter, interpreter.evaluate(node.value, frame))
    for target in node.targets:
        assign(interpreter, target, value, frame)


def _stored(interpreter: Interpreter, value: Any) -> Any:
    """What an assignment stores; host code is Python's own."""
    return value if interpreter.machine.host else interpreter.language.assigned(value)


def _annotated(interpreter: Interpreter, node: ast.AnnAssign, frame: Frame) -> None:
    if node.value is None:
        return
    value = interpreter.evaluate(node.value, frame)
    constant = ast.unparse(node.annotation).strip("'\"").rpartition(".")[2] == "constexpr"
    assign(interpreter, node.target, value if constant else _stored(interpreter, value), frame)


def _augmented(interpreter: Interpreter, node: ast.AugAssign, frame: Frame) -> None:
    if isinstance(node.target, ast.Name):
        old = lookup(interpreter, node.target.id, frame)
    elif isinstance(node.target, ast.Subscript):
        old = interpreter.evaluate(_loaded(node.target), frame)
    else:
        raise unsupported(node.target)
    value = interpreter.evaluate(node.value, frame)
    with interpreter.computing(frame.module, node):
        new = operate(interpreter, node.op, old, value)
    assign(interpreter, node.target, _stored(interpreter, new), frame)


@functools.lru_cache(maxsize=1024)
def _loaded(target: ast.Subscript) -> ast.Subscript:
    """The target of `x[i] += 1`, as an expression."""
    return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)


def _branch(interpreter: Interpreter, node: ast.If, frame: Frame) -> Signal | None:
    """A branch. Where two paths of a runtime branch meet, constants become runtime values."""
    holds, runtime = interpreter.language.truth(interpreter.evaluate(node.test, frame))
    if runtime and contains_return([node]):
        frame.branched = True
    signal = interpreter.execute(node.body if holds else node.orelse, frame)
    if runtime and signal is None and falls_through(node.body) and falls_through(node.orelse):
        _merge(interpreter, frame, branch_names(node))
    return signal


def _merge(interpreter: Interpreter, frame: Frame, names: Iterable[str]) -> None:
    for name in names:
        if name in frame.names:
            frame.names[name] = interpreter.language.merged(frame.names[name])


def _for(interpreter: Interpreter, node: ast.For, frame: Frame) -> Signal | None:
    if node.orelse:
        raise Reject("`else` of a `for` loop")
    iterable = interpreter.evaluate(node.iter, frame)
    stored: frozenset[str] = frozenset()
    items: Iterable[Any]
    if isinstance(iterable, Range) and not interpreter.machine.host:
        items = (scalar(value, iterable.dtype) for value in iterable.values)
        stored = branch_names(node)
    else:
        items = static_items(iterable)  # unrolled at compile time
    for item in items:
        interpreter.machine.step()
        _merge(interpreter, frame, stored)
        assign(interpreter, node.target, item, frame)
        signal = interpreter.execute(node.body, frame)
        if signal is not None and signal.kind == "return":
            return signal
        if signal is _BREAK:
            break
    _merge(interpreter, frame, stored)
    return None


def _while(interpreter: Interpreter, node: ast.While, frame: Frame) -> Signal | None:
    if node.orelse:
        raise Reject("`else` of a `while` loop")
    stored = frozenset() if interpreter.machine.host else branch_names(node)
    while True:
        interpreter.machine.step()
        _merge(interpreter, frame, stored)
        if not interpreter.language.truth(interpreter.evaluate(node.test, frame))[0]:
            return None
        signal = interpreter.execute(node.body, frame)
        if signal is not None and signal.kind == "return":
            return signal
        if signal is _BREAK:
            _merge(interpreter, frame, stored)
            return None


def _return(interpreter: Interpreter, node: ast.Return, frame: Frame) -> Signal:
    return Signal("return", None if node.value is None else interpreter.evaluate(node.value, frame))


def _function(interpreter: Interpreter, node: ast.FunctionDef, frame: Frame) -> None:
    frame.names[node.name] = interpreter.modules.closure(frame.module, node, frame)


def _with(interpreter: Interpreter, node: ast.With, frame: Frame) -> Signal | None:
    return _enter(interpreter, node.items, node.body, frame)


def _enter(
    interpreter: Interpreter, items: Sequence[ast.withitem], body: Sequence[ast.stmt], frame: Frame
) -> Signal | None:
    """Enter the managers from the left; each runs what stands before its `yield`, and after it at the end."""
    if not items:
        return interpreter.execute(body, frame)
    manager = context_manager(interpreter, items[0].context_expr, frame)
    value, after = _start(interpreter, manager)
    if items[0].optional_vars is not None:
        assign(interpreter, items[0].optional_vars, value, frame)
    signal = _enter(interpreter, items[1:], body, frame)
    after()
    return signal


def _start(interpreter: Interpreter, manager: ContextManager) -> tuple[Any, Callable[[], Any]]:
    if manager.generator is None:
        return None, lambda: None
    generator = manager.generator
    inner = frame_of(interpreter, generator, manager.arguments, dict(manager.keywords))
    before, yielded, rest = _split(generator)
    interpreter.execute(before, inner)
    value = None if yielded.value is None else interpreter.evaluate(yielded.value, inner)
    return value, lambda: interpreter.execute(rest, inner)


def _split(generator: Closure) -> tuple[list[ast.stmt], ast.Yield, list[ast.stmt]]:
    body = list(generator.node.body) if isinstance(generator.node, ast.FunctionDef) else []
    for position, statement in enumerate(body):
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield):
            return body[:position], statement.value, body[position + 1 :]
        if isinstance(statement, ast.Try) and not statement.handlers and len(statement.body) == 1:
            only = statement.body[0]
            if isinstance(only, ast.Expr) and isinstance(only.value, ast.Yield):
                return body[:position], only.value, [*statement.finalbody, *body[position + 1 :]]
    raise Reject(f"context manager `{generator.name}` without a plain `yield`")


def _raise(interpreter: Interpreter, node: ast.Raise, frame: Frame) -> None:
    raise Reject("a `raise` that is reached")


def _import(interpreter: Interpreter, node: ast.Import | ast.ImportFrom, frame: Frame) -> None:
    """An import inside a function of the host; kernels have none."""
    if not interpreter.machine.host:
        raise unsupported(node)
    frame.names.update(interpreter.modules.imported(frame.module, node))


def _assert(interpreter: Interpreter, node: ast.Assert, frame: Frame) -> None:
    """An assertion of the device: its operands are evaluated, and it does not stop the block."""
    if interpreter.machine.host or not interpreter.language.asserts:
        raise unsupported(node)
    interpreter.evaluate(node.test, frame)


def _nothing(interpreter: Interpreter, node: ast.stmt, frame: Frame) -> None:
    """`pass`."""


def _jump(signal: Signal) -> Callable[[Interpreter, Any, Frame], Signal]:
    return lambda interpreter, node, frame: signal


_HANDLERS: dict[type[ast.stmt], Callable[[Interpreter, Any, Frame], Signal | None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _branch,
    ast.For: _for,
    ast.While: _while,
    ast.Return: _return,
    ast.FunctionDef: _function,
    ast.With: _with,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Pass: _nothing,
    ast.Break: _jump(_BREAK),
    ast.Continue: _jump(_CONTINUE),
}
