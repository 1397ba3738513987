"""The part of a file that can decide what becomes of one of its kernels.

Proofs read the IR of a kernel, but a replay of a counterexample reads its text, and looks up names as Python
does. So a view leaves out the bodies of other kernels only, and of these only such that the replay cannot
reach: their names are mentioned neither in the kernel nor in anything that it can mention, and they define
nothing inside.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import field

from tilecheck.cache.tokens import Layout
from tilecheck.dataclass import dataclass
from tilecheck.model import Span
from tilecheck.text import Source

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Views:
    """The views of one file. Mutable cache.

    Args:
        source: its text.
        layout: the same as tokens.
        kernels: the names of its kernels, each with the names of the functions around it.
    """

    source: Source
    layout: Layout
    kernels: Sequence[tuple[str, ...]]
    _named: dict[str, list[ast.stmt]] = field(default_factory=dict)
    _plain: list[tuple[ast.stmt, frozenset[str]]] = field(default_factory=list)
    _bodies: list[tuple[str, Span]] = field(default_factory=list)
    _mentions: dict[ast.stmt, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tree = self.source.tree()
        for node in tree.body:
            if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                self._plain.append((node, self._mentioned(node)))
        kernels = {names[-1] for names in self.kernels}
        for inner in ast.walk(tree):
            if isinstance(inner, (*_FUNCTIONS, ast.ClassDef)):
                self._named.setdefault(inner.name, []).append(inner)
            if isinstance(inner, _FUNCTIONS) and inner.name in kernels and _is_flat(inner):
                self._bodies.append((inner.name, self._body(inner)))

    def _mentioned(self, node: ast.stmt) -> frozenset[str]:
        if node not in self._mentions:
            self._mentions[node] = frozenset(_names(node))
        return self._mentions[node]

    def _body(self, node: _Function) -> Span:
        first, last = node.body[0], node.body[-1]
        start = self.source.utf8_offset(first.lineno, first.col_offset)
        return Span(start, self.source.utf8_offset(last.end_lineno or 0, last.end_col_offset or 0))

    def of(self, kernel: tuple[str, ...]) -> Layout:
        """The view for one kernel, named as in `kernels`."""
        reached = self._reached(kernel)
        holes = sorted((span for name, span in self._bodies if name not in reached), key=lambda s: s.start)
        return self.layout.without(holes) if holes else self.layout

    def _reached(self, kernel: Iterable[str]) -> set[str]:
        """Every name that the kernel mentions, or something that it mentions does."""
        reached: set[str] = set()
        new = set(kernel)
        while new:
            reached |= new
            found: set[str] = set()
            for name in new:
                for node in self._named.get(name, ()):
                    found |= self._mentioned(node)
            for _, mentioned in self._plain:
                if mentioned & reached:
                    found |= mentioned
            new = found - reached
        return reached


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_INNER = (*_FUNCTIONS, ast.ClassDef, ast.Lambda, ast.Import, ast.ImportFrom, ast.Global)


def _is_flat(node: _Function) -> bool:
    """Whether nothing is defined or imported inside."""
    return not any(isinstance(n, _INNER) for statement in node.body for n in ast.walk(statement))


def _names(node: ast.AST) -> Iterable[str]:
    """Every name in a piece of code, and every text that could be one."""
    for n in ast.walk(node):
        match n:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias():
                yield from (n.asname or n.name).split(".")
                yield from n.name.split(".")
            case ast.Constant(value=str() as text) if text.isidentifier():
                yield text
