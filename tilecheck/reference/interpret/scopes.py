"""Which names a piece of code assigns, read from its syntax tree."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator

_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def stored_names(body: Iterable[ast.AST]) -> frozenset[str]:
    """The names that running `body` may assign in its own scope."""
    return frozenset(name for node in body for name in _stored(node))


@functools.lru_cache(maxsize=1024)
def branch_names(node: ast.If | ast.For | ast.While) -> frozenset[str]:
    """The names that a branch or a loop may assign (not the target of a `for`)."""
    head = [node.test] if isinstance(node, ast.While) else []
    return stored_names([*head, *node.body, *node.orelse])


def _stored(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield node.id
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
    if isinstance(node, _OWN_SCOPE):
        return
    if isinstance(node, _COMPREHENSIONS):  # its targets are its own; a walrus inside it is not
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name):
                yield inner.target.id
        return
    for child in ast.iter_child_nodes(node):
        yield from _stored(child)


def parameter_names(arguments: ast.arguments) -> list[str]:
    """All parameters of a function, in order."""
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if arguments.vararg:
        names.append(arguments.vararg.arg)
    names.extend(argument.arg for argument in arguments.kwonlyargs)
    if arguments.kwarg:
        names.append(arguments.kwarg.arg)
    return names


@functools.lru_cache(maxsize=1024)
def own_names(node: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
    """Every name local to a function."""
    body: list[ast.AST] = list(node.body) if isinstance(node, ast.FunctionDef) else [node.body]
    return stored_names(body) | frozenset(parameter_names(node.args))


def falls_through(body: list[ast.stmt]) -> bool:
    """Whether the end of `body` can be reached."""
    for statement in body:
        if isinstance(statement, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return False
        if isinstance(statement, ast.If) and statement.orelse:
            if not falls_through(statement.body) and not falls_through(statement.orelse):
                return False
        elif isinstance(statement, ast.With) and not falls_through(statement.body):
            return False
    return True


def contains_return(body: Iterable[ast.stmt]) -> bool:
    """Whether a `return` of this function stands in `body`."""
    return any(_has_return(statement) for statement in body)


@functools.lru_cache(maxsize=1024)  # asked at each execution of a branch
def _has_return(node: ast.AST) -> bool:
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, _OWN_SCOPE):
        return False
    return any(_has_return(child) for child in ast.iter_child_nodes(node))
