"""Calling function values: operations of the DSL, user functions, types, methods, context managers."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from typing import Any

from tilecheck.reference.interpret.interpreter import OPERATION_ERRORS, Interpreter
from tilecheck.reference.interpret.scopes import own_names, parameter_names
from tilecheck.reference.machine import Reject
from tilecheck.reference.values.dtypes import DType
from tilecheck.reference.values.values import (
    Closure,
    ContextManager,
    Frame,
    Method,
    Opaque,
    Operation,
    Record,
    TypeMark,
    UserClass,
    describe,
)

_MAX_DEPTH = 40


def invoke(interpreter: Interpreter, function: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Call a value."""
    interpreter.machine.step()
    if isinstance(function, Operation):
        return _run(interpreter, function.function, function.name, arguments, keywords)
    if isinstance(function, Method):
        return _method(interpreter, function, arguments, keywords)
    if isinstance(function, Closure):
        return _user_function(interpreter, function, arguments, keywords)
    if isinstance(function, DType) and not keywords and len(arguments) <= 1:
        return interpreter.language.convert(arguments[0] if arguments else 0, function)
    if isinstance(function, UserClass):
        return _instance(interpreter, function, arguments, keywords)
    if isinstance(function, TypeMark):
        return TypeMark(
            function.name, tuple(arguments), tuple(sorted(keywords.items(), key=lambda item: item[0]))
        )
    raise Reject(f"a call of {describe(function)}")


def _run(
    interpreter: Interpreter, function: Any, name: str, arguments: Sequence[Any], keywords: dict[str, Any]
) -> Any:
    """Run an operation; what NumPy or Python refuse (shapes, wrong arguments) the compiler refuses too."""
    try:
        return function(interpreter.machine, *arguments, **keywords)
    except OPERATION_ERRORS as error:
        message = f"`{name}`: {error}"
        raise Reject(message) from error


def _method(
    interpreter: Interpreter, method: Method, arguments: Sequence[Any], keywords: dict[str, Any]
) -> Any:
    if isinstance(method.function, Closure):
        return _user_function(interpreter, method.function, (method.owner, *arguments), keywords)
    function = method.function.function if isinstance(method.function, Operation) else method.function
    return _run(interpreter, function, method.name, (method.owner, *arguments), keywords)


def _user_function(
    interpreter: Interpreter, function: Closure, arguments: Sequence[Any], keywords: dict[str, Any]
) -> Any:
    decorators = [_decorator_name(node) for node in getattr(function.node, "decorator_list", [])]
    if "contextmanager" in decorators:
        return ContextManager(function, tuple(arguments), tuple(keywords.items()))
    for decorator in decorators:
        if decorator not in interpreter.language.transparent:
            raise Reject(f"a call of `{function.name}`, decorated by `{decorator}`")
    if not interpreter.language.compile_time.isdisjoint(decorators):
        with interpreter.on_host():
            return run_function(interpreter, function, arguments, keywords)
    return run_function(interpreter, function, arguments, keywords)


@functools.lru_cache(maxsize=1024)
def _decorator_name(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(target).rpartition(".")[2]


def run_function(
    interpreter: Interpreter, function: Closure, arguments: Sequence[Any], keywords: dict[str, Any]
) -> Any:
    """Run a user function's body."""
    frame = frame_of(interpreter, function, arguments, keywords)
    interpreter.depth += 1
    if interpreter.depth > _MAX_DEPTH:
        raise Reject(f"recursion through `{function.name}`")
    if isinstance(function.node, ast.Lambda):
        value = interpreter.evaluate(function.node.body, frame)
        interpreter.depth -= 1
        return value
    signal = interpreter.execute(function.node.body, frame)
    interpreter.depth -= 1
    value = signal.value if signal is not None and signal.kind == "return" else None
    return interpreter.language.chosen(value) if frame.branched else value


def frame_of(
    interpreter: Interpreter, function: Closure, arguments: Sequence[Any], keywords: dict[str, Any]
) -> Frame:
    """A new frame with the parameters bound."""
    frame = Frame(function.module, function.scope, own_names(function.node))
    frame.names.update(_bind(function, arguments, dict(keywords)))
    return frame


def _bind(function: Closure, arguments: Sequence[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    spec = function.node.args
    positional = [argument.arg for argument in (*spec.posonlyargs, *spec.args)]
    bound: dict[str, Any] = dict(zip(positional, arguments, strict=False))
    extra = tuple(arguments[len(positional) :])
    if extra and not spec.vararg:
        raise Reject(f"a call of `{function.name}` with {len(arguments)} arguments")
    if spec.vararg:
        bound[spec.vararg.arg] = extra
    named = {*[argument.arg for argument in (*spec.args, *spec.kwonlyargs)]}
    rest: dict[str, Any] = {}
    for name, value in keywords.items():
        if name in bound or (name not in named and not spec.kwarg):
            raise Reject(f"argument `{name}` of `{function.name}`")
        (bound if name in named else rest)[name] = value
    if spec.kwarg:
        bound[spec.kwarg.arg] = rest
    for name in parameter_names(spec):
        if name not in bound:
            if name not in function.defaults:
                raise Reject(f"a call of `{function.name}` without `{name}`")
            bound[name] = function.defaults[name]
    return bound


def _instance(
    interpreter: Interpreter, cls: UserClass, arguments: Sequence[Any], keywords: dict[str, Any]
) -> Record:
    """An instance of a dataclass whose constructor is the generated one."""
    decorators = [_decorator_name(node) for node in cls.node.decorator_list]
    if decorators != ["dataclass"] or cls.node.bases:
        raise Reject(f"an instance of class `{cls.node.name}`")
    fields: dict[str, Any] = {}
    defaults: dict[str, ast.expr] = {}
    names: list[str] = []
    for node in cls.node.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
            if node.value is not None:
                defaults[node.target.id] = node.value
        elif isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__post_init__", "__new__"):
            raise Reject(f"class `{cls.node.name}` with its own `{node.name}`")
    if len(arguments) > len(names) or any(name not in names for name in keywords):
        raise Reject(f"an instance of class `{cls.node.name}` with other arguments than its fields")
    fields.update(zip(names, arguments, strict=False))
    fields.update(keywords)
    for name in names:
        if name not in fields:
            if name not in defaults:
                raise Reject(f"an instance of class `{cls.node.name}` without `{name}`")
            fields[name] = interpreter.fold(defaults[name], cls.module.frame())
    return Record(cls, fields)


def context_manager(interpreter: Interpreter, node: ast.expr, frame: Frame) -> ContextManager:
    """What a `with` item enters. `tilecheck.unsafe` and managers of unknown origin by that name run nothing."""
    target = node.func if isinstance(node, ast.Call) else node
    function = interpreter.evaluate(target, frame)
    if isinstance(function, Opaque) and ast.unparse(target).rpartition(".")[2] == "unsafe":
        return ContextManager()
    value = interpreter.evaluate(node, frame)
    if not isinstance(value, ContextManager):
        raise Reject(f"{describe(value)} used as a context manager")
    return value
