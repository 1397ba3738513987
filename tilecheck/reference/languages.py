"""Which language a kernel is written in: its decorators say so, or else what its module imports."""

from __future__ import annotations

import ast

from tilecheck.reference.cutile.language import CUTILE
from tilecheck.reference.cutile.operations import OPERATIONS
from tilecheck.reference.interpret.interpreter import Interpreter
from tilecheck.reference.language import Language
from tilecheck.reference.machine import Reject
from tilecheck.reference.triton.language import TRITON
from tilecheck.reference.triton.namespaces import DECORATORS
from tilecheck.reference.values.values import Closure


def language_of(interpreter: Interpreter, kernel: Closure) -> Language:
    """The language of a kernel."""
    for decorator in getattr(kernel.node, "decorator_list", []):
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        try:
            found = interpreter.fold(target, kernel.module.frame())
        except Reject:
            continue
        if found in DECORATORS:
            return TRITON
        if found == OPERATIONS["kernel"]:
            return CUTILE
    roots = set(_imported(kernel.module.source.tree))
    return TRITON if "triton" in roots and "cuda" not in roots else CUTILE


def _imported(tree: ast.Module) -> list[str]:
    """The outermost packages that a module imports anywhere."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return [name.partition(".")[0] for name in names]
