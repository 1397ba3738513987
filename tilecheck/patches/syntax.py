"""Fast looks at the syntax of a file: what may act on a module, and what stands below it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tilecheck.patches.places import text_of

SCOPES = frozenset((ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef))  # which `define` reads
ACTING = SCOPES | {
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.NamedExpr,
    ast.AugAssign,
    ast.For,
    ast.AsyncFor,
    ast.comprehension,
    ast.withitem,
    ast.Match,
    ast.Delete,
    ast.Return,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.Call,
    ast.Tuple,
    ast.List,
    ast.Set,
    ast.Dict,
}


def nodes_below(node: ast.AST) -> Iterable[ast.AST]:
    """The nodes below; the display of a loop or of an assignment to a display is followed already."""
    if type(node) not in (ast.For, ast.AsyncFor, ast.comprehension, ast.Assign):
        found: list[ast.AST] = []
        for value in vars(node).values():  # `ast.iter_child_nodes` takes several times as long
            if type(value) is list:
                found += [item for item in value if isinstance(item, _CODE)]
            elif isinstance(value, _CODE):
                found.append(value)
        return found
    return _undisplayed(node)


# Names and literals do nothing by themselves, and have nothing below.
_CODE = (ast.stmt, ast.expr, ast.comprehension, ast.withitem, ast.excepthandler, ast.match_case, ast.keyword)


def _undisplayed(node: ast.AST) -> Iterable[ast.AST]:
    loop = isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension))
    paired = isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List))
    for child in ast.iter_child_nodes(node):
        whole = (loop and child is node.iter) or (paired and child is node.value)  # type: ignore[attr-defined]
        if whole and isinstance(child, (ast.Tuple, ast.List, ast.Set)):
            yield from child.elts
        else:
            yield child


def parameter(function: ast.FunctionDef | ast.AsyncFunctionDef, to: int | str) -> str:
    """The parameter that an argument becomes; empty if that is not told."""
    arguments = function.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    if isinstance(to, int):
        return positional[to] if to < len(positional) else ""
    names = {*positional, *(a.arg for a in arguments.kwonlyargs)}
    return to if to in names else ""


def keys(call: ast.Call) -> list[str]:
    """The keys that `update` is given; an empty one stands for any."""
    found = [keyword.arg or "" for keyword in call.keywords]
    for argument in call.args:
        found += [text_of(key) for key in argument.keys] if isinstance(argument, ast.Dict) else [""]
    return found
