"""Finding a kernel by its name, and the names around it when it stands inside a function."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from typing import Any

from tilecheck.reference.interpret.interpreter import Interpreter
from tilecheck.reference.interpret.modules import Module
from tilecheck.reference.interpret.scopes import own_names, stored_names
from tilecheck.reference.interpret.source import KEPT, SourceFile
from tilecheck.reference.machine import Reject
from tilecheck.reference.values.values import Closure, Frame

_Path = tuple[ast.FunctionDef, ...]
_FOLDED = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.For, ast.While, ast.Import, ast.ImportFrom)


def find_kernel(interpreter: Interpreter, module: Module, name: str, arguments: Mapping[str, Any]) -> Closure:
    """The kernel called `name`: a `def`, also inside functions, or `name = ct.kernel(f)`, `triton.jit(f)`.

    `outer.inner` names one def among several of the same name.
    """
    wanted = [part for part in name.split(".") if part != "<locals>"]
    found: list[_Path] = [path for path in _all_definitions(module.source) if _matches(path, wanted)]
    decorated = [path for path in found if path[-1].decorator_list]
    top = [path for path in found if path[:-1] == ()]
    for candidates in ([path for path in top if path in decorated], decorated, top, found):
        if candidates:
            return _closure(interpreter, module, _only(candidates, name), arguments)
    return _wrapped(interpreter, module, name)


@functools.lru_cache(maxsize=KEPT)
def _all_definitions(source: SourceFile) -> tuple[_Path, ...]:
    return tuple(_definitions(source.tree.body, ()))


def _definitions(body: list[ast.stmt], around: _Path) -> Iterator[_Path]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield (*around, node)
            yield from _definitions(node.body, (*around, node))
        else:
            for field in ("body", "orelse", "finalbody"):
                yield from _definitions(getattr(node, field, []), around)
            for handler in getattr(node, "handlers", []):
                yield from _definitions(handler.body, around)


def _matches(path: _Path, wanted: list[str]) -> bool:
    names = [node.name for node in path]
    return names[-len(wanted) :] == wanted


def _only(candidates: list[_Path], name: str) -> _Path:
    """The last top-level def of a name is the one that counts; nested ones of one name are ambiguous."""
    if len(candidates) > 1 and len(candidates[-1]) > 1:
        raise Reject(f"kernel `{name}`, defined {len(candidates)} times")
    return candidates[-1]


def _closure(interpreter: Interpreter, module: Module, path: _Path, arguments: Mapping[str, Any]) -> Closure:
    scope: Frame | None = None
    for outer in path[:-1]:
        scope = _surroundings(interpreter, module, outer, scope, arguments)
    return interpreter.modules.closure(module, path[-1], scope)


def _surroundings(
    interpreter: Interpreter,
    module: Module,
    outer: ast.FunctionDef,
    scope: Frame | None,
    arguments: Mapping[str, Any],
) -> Frame:
    """The names of the function around a kernel: launch arguments, defaults, what its statements fold to.

    A statement that cannot be folded leaves its names unknown; using one is then not interpretable.
    """
    frame = Frame(module, scope, own_names(outer))
    frame.names.update(interpreter.modules.closure(module, outer, scope).defaults)
    given = {name: arguments[name] for name in frame.own if name in arguments}
    frame.names.update(given)
    for node in outer.body:
        if isinstance(node, (ast.FunctionDef, *_FOLDED)):
            try:
                interpreter.fold_statements([node], frame)
            except Reject:
                for name in stored_names([node]):
                    frame.names.pop(name, None)
            frame.names.update(given)
    return frame


def _wrapped(interpreter: Interpreter, module: Module, name: str) -> Closure:
    """`name = ct.kernel(f)`, `name = ct.kernel(num_ctas=2)(f)`, `name = factory(...)`, or another name."""
    function = interpreter.modules.lookup(module, name, default=None) if "." not in name else None
    if isinstance(function, Closure):
        return function
    raise Reject(f"no kernel `{name}`")
