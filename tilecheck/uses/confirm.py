"""A closer look at a place that a text was only searched for."""

from __future__ import annotations

import ast

from tilecheck.errors import SourceError
from tilecheck.model import Span
from tilecheck.patches.places import imported
from tilecheck.text import decode
from tilecheck.uses.scopes import names_of


def is_of_module(data: bytes, span: Span) -> bool:
    """Whether a name stands at a place, and is one of the module or of an import, not of a function."""
    try:
        source = decode("", data)
        todo: list[tuple[ast.AST, frozenset[str]]] = [(source.tree(), frozenset())]
    except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    while todo:
        node, own = todo.pop()
        if isinstance(node, ast.Name) and source.utf8_offset(node.lineno, node.col_offset) == span.start:
            return node.id not in own
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            own |= names_of(node)
            for below in ast.walk(node):
                if isinstance(below, (ast.Import, ast.ImportFrom)):
                    own -= {name for name, _ in imported(below)}
        todo += [(below, own) for below in ast.iter_child_nodes(node)]
    return False
