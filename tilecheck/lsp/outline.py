"""Where functions, parameters, statements and comments stand in a text, by Python's own parser."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

from tilecheck.dataclass import dataclass
from tilecheck.model import KernelReport, Span
from tilecheck.text import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Outline:
    """A text that parses."""

    source: Source
    tree: ast.Module

    def span(self, node: ast.expr | ast.stmt | ast.arg) -> Span:
        start = self.source.utf8_offset(node.lineno, node.col_offset)
        return Span(start, self.source.utf8_offset(node.end_lineno or 0, node.end_col_offset or 0))

    def function(self, kernel: KernelReport) -> Function | None:
        """The `def` of a kernel."""
        line, _ = self.source.position(kernel.site.span.start)
        named = (n for n in ast.walk(self.tree) if isinstance(n, Function) and n.name == kernel.name)
        return next((n for n in named if n.lineno == line), None)

    def name_at(self, offset: int) -> tuple[str, Span] | None:
        """The name that stands at a byte: of a variable, a parameter, or a function that is defined there."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and _holds(self.span(node), offset):
                return node.id, self.span(node)
            if isinstance(node, ast.arg):
                span = self.name_of(node)
                if _holds(span, offset):
                    return node.arg, span
            if isinstance(node, Function):
                head = self.source.utf8_offset(node.lineno, node.col_offset)
                at = self.source.data.find(node.name.encode(), head + len("def "))
                span = Span(at, at + len(node.name.encode()))
                if _holds(span, offset):
                    return node.name, span
        return None

    def name_of(self, parameter: ast.arg) -> Span:
        """A parameter's name, without its annotation."""
        start = self.span(parameter).start
        return Span(start, start + len(parameter.arg.encode()))

    def statement_at(self, offset: int) -> ast.stmt | None:
        """The innermost statement around a byte, its decorators included."""
        around = [
            node
            for node in ast.walk(self.tree)  # breadth first: what comes last is innermost
            if isinstance(node, ast.stmt) and self.first(node) <= offset <= self.span(node).end
        ]
        inside = [node for node in around if offset < self.span(node).end]
        return next(reversed(inside or around), None)

    def first(self, node: ast.stmt) -> int:
        """The byte at which a statement, or the first of its decorators, begins."""
        return min([self.span(node).start, *(self.span(d).start - 1 for d in decorators(node))])

    def first_line(self, node: ast.stmt) -> int:
        """The line on which a statement, or the first of its decorators, begins."""
        return min([node.lineno, *(d.lineno for d in decorators(node))])


def outline(source: Source) -> Outline | None:
    """The outline of a text; None for one that is not Python."""
    try:
        return Outline(source, source.tree())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parameters(function: Function) -> list[ast.arg]:
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def decorators(node: ast.stmt) -> list[ast.expr]:
    return list(getattr(node, "decorator_list", []))


def logical_lines(source: Source) -> Iterator[tuple[int, int]]:
    """The first and the last line of every logical line, from 1."""
    lines = [source.line(number) for number in range(1, source.line_count + 1)]
    begin = None
    layout = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER)
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            if token.type == tokenize.NEWLINE:
                yield begin or token.start[0], token.start[0]
                begin = None
            elif token.type not in layout and begin is None:
                begin = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        return


def _holds(span: Span, offset: int) -> bool:
    return span.start <= offset <= span.end
