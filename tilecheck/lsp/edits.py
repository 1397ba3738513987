"""Comments that code actions write into a text, as spans and what replaces them.

Where a comment must stand to be read is said in `frontend/text/pragmas.py`: on a line of its own it speaks of
the next statement, behind code of the statement it stands in, and there `ignore` speaks of a header alone.
"""

from __future__ import annotations

import ast
import re

from tilecheck.dataclass import dataclass
from tilecheck.lsp.outline import Outline, logical_lines
from tilecheck.model import KernelReport, Span

REASON = "TODO: say why"
_BLANK = re.compile(r"[ \t]*")
_IGNORE = re.compile(r"#\s*tilecheck\s*:\s*ignore\s*\[([^\]]*)\]")


@dataclass(frozen=True, slots=True)
class Edit:
    """The text that replaces a span."""

    span: Span
    text: str


def ignored(outline: Outline, offset: int, code: str, reason: str = REASON) -> Edit | None:
    """A comment that silences a finding whose first byte is `offset`, and as little else as one comment can."""
    statement = outline.statement_at(offset)
    if statement is None:
        return None
    comment = f"# tilecheck: ignore[{code}] -- {reason}"
    source = outline.source
    logical = list(logical_lines(source))
    # The header of a function begins with its decorators, and a comment behind any of its lines speaks of all.
    is_definition = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    line = statement.lineno if is_definition else source.position(offset)[0]
    first, last = next(((a, b) for a, b in logical if a <= line <= b), (statement.lineno, line))
    if not hasattr(statement, "body"):
        return _above(outline, first, comment)
    if any(outline.source.position(outline.span(s).start)[0] <= last for s in statement.body):
        return _above(outline, outline.first_line(statement), comment)  # `if x: y` in one line
    return _behind(outline, last, comment)


def required(outline: Outline, kernel: KernelReport, conditions: tuple[str, ...]) -> Edit | None:
    """Comments above a kernel that state conditions of its launches."""
    function = outline.function(kernel)
    if function is None or not conditions:
        return None
    comments = [f"# tilecheck: requires {condition} -- {REASON}" for condition in conditions]
    return _above(outline, outline.first_line(function), *comments)


def without_suppression(outline: Outline, span: Span) -> Edit | None:
    """The text without a suppression that names one rule, its line included if nothing else stands there."""
    source = outline.source
    found = _IGNORE.search(source.snippet(span))
    if found is None or "," in found[1]:
        return None
    line, _ = source.position(span.start)
    start = source.line_starts[line - 1]
    before = source.data[start : span.start].decode(errors="replace")
    if before.strip():
        return Edit(Span(start + len(before.rstrip().encode()), span.end), "")
    end = source.line_starts[line] if line < source.line_count else len(source.data)
    return Edit(Span(start, end), "")


def _above(outline: Outline, line: int, *comments: str) -> Edit:
    source = outline.source
    text = source.line(line)
    indent = _BLANK.match(text)[0]  # type: ignore[index]  # it matches everything
    start = source.line_starts[line - 1]
    newline = _newline(outline, line)
    return Edit(Span(start, start), "".join(f"{indent}{comment}{newline}" for comment in comments))


def _behind(outline: Outline, line: int, comment: str) -> Edit:
    source = outline.source
    end = source.offset(line, len(source.line(line).rstrip()) + 1)
    return Edit(Span(end, end), f"  {comment}")


def _newline(outline: Outline, line: int) -> str:
    """How the lines of the text end."""
    source = outline.source
    end = source.line_starts[line] if line < source.line_count else len(source.data)
    ending = source.data[source.line_starts[line - 1] : end]
    return "\r\n" if ending.endswith(b"\r\n") else "\r" if ending.endswith(b"\r") else "\n"
