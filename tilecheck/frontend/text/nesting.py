"""How deeply a text is nested for libcst, which recurses also where Python's syntax tree is flat.

libcst makes nested nodes of `a and b and c`, of adjacent strings, of the clauses of a comprehension and of
dotted names. A few thousand levels overflow the C stack, which no handler can catch, so such texts are refused
before they are parsed.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize

MAX_NESTING = 200  # of Python's own tree
MAX_CHAIN = 1000  # levels of libcst's tree, where what is flat in Python's counts as many as it has parts
_ADJACENT = re.compile(r"""["']\s*(?:(?:#[^\n]*|\\)\n\s*)*[a-zA-Z]{0,2}["']""")
_LAYOUT = frozenset({tokenize.NL, tokenize.COMMENT})


def too_deep(tree: ast.AST, text: str) -> tuple[int, int] | None:
    """The line of the first node that is nested too deeply, and the limit that it exceeds."""
    level, chained = [tree], 0
    for _ in range(MAX_NESTING):
        chained += sum(_chain(node) for node in level)
        level = [child for node in level for child in _below(node)]
        if not level:
            break
    if level:
        return next((node.lineno for node in level if isinstance(node, ast.expr | ast.stmt)), 1), MAX_NESTING
    line = _long_chain(tree) if chained + MAX_NESTING > MAX_CHAIN else None
    line = _many_strings(text) if line is None else line
    return None if line is None else (line, MAX_CHAIN)


def _chain(node: ast.AST) -> int:
    """How many levels libcst makes of a node beyond the one that Python makes."""
    match node:
        case ast.BoolOp(values=parts):
            return len(parts)
        case (
            ast.ListComp(generators=clauses)
            | ast.SetComp(generators=clauses)
            | ast.DictComp(generators=clauses)
        ):
            return len(clauses)
        case ast.GeneratorExp(generators=clauses):
            return len(clauses)
        case ast.Import(names=names):
            return max(name.name.count(".") for name in names)
        case ast.ImportFrom(module=str(module)):
            return module.count(".")
    return 0


def _below(node: ast.AST) -> list[ast.AST]:
    """The child nodes. `ast.iter_child_nodes` takes several times as long."""
    found: list[ast.AST] = []
    for value in vars(node).values():
        if type(value) is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def _long_chain(tree: ast.AST) -> int | None:
    """The line of a node below more than `MAX_CHAIN` of libcst's levels."""
    stack = [(tree, 0, 1)]
    while stack:
        node, depth, line = stack.pop()
        depth += 1 + _chain(node)
        line = getattr(node, "lineno", line)
        if depth > MAX_CHAIN:
            return line
        stack += [(child, depth, line) for child in _below(node)]
    return None


def _many_strings(text: str) -> int | None:
    """The line of a string literal that is written in more than `MAX_CHAIN` pieces."""
    if len(text) < 3 * MAX_CHAIN or sum(1 for _ in _ADJACENT.finditer(text)) < MAX_CHAIN:
        return None
    pieces = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            pieces = (
                pieces + 1 if token.type == tokenize.STRING or "STRING" in tokenize.tok_name[token.type] else 0
            )
        if pieces > MAX_CHAIN:
            return token.start[0]
    return None
