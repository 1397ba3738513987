"""Reading and parsing source: the one place where libcst parses a file."""

from __future__ import annotations

import ast
import re
import stat
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError
from tilecheck.frontend.text.nesting import too_deep
from tilecheck.identifiers import is_misread_constant, normalised, words_of
from tilecheck.model import Span
from tilecheck.overlay import text_at
from tilecheck.text import Source, decode

if TYPE_CHECKING:
    import libcst as cst

    from tilecheck.frontend.text.syntax import Index

MAX_BYTES = 20_000_000
# Layout that libcst reads but does not keep, so that its byte counts fall behind the file's.
_DROPPED_LAYOUT = re.compile(r"\f|^[ \t]*\\\r?\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Where the nodes of a tree stand in its file. `raw` has their places in the text that libcst keeps, by the
    identity of nodes that live as long as the tree."""

    raw: Mapping[int, tuple[int, int]]
    offsets: _Offsets | None  # None: that text differs from the file by a shift alone
    shift: int
    size: int

    def find(self, node: cst.CSTNode) -> Span | None:
        """The bytes of a node; None for one of another tree."""
        found = self.raw.get(id(node))
        if found is None:
            return None
        start, end = found
        if self.offsets is not None:
            return self.offsets.span(start, end)
        return Span(start + self.shift, min(end + self.shift, self.size))

    def of(self, node: cst.CSTNode) -> Span:
        """The bytes of a node of this tree."""
        found = self.find(node)
        assert found is not None
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ParsedModule:
    """A file and its syntax tree, with names as Python reads them. `words` is the text with the identifiers of
    the tree: for a look at words, not for places. `index` serves the walks over the tree."""

    source: Source
    module: cst.Module
    spans: Spans
    words: str
    index: Index

    def span(self, node: cst.CSTNode) -> Span:
        """The bytes of a node of this tree, without the whitespace around it."""
        return self.spans.of(node)


def read(path: str) -> Source:
    """Read and decode one regular file.

    Raises:
        SourceError: it is missing, not a regular file, too large, unreadable, or not text.
    """
    return decode(path, read_bytes(path))


def read_bytes(path: str) -> bytes:
    """The bytes of one regular file (never a pipe or a device, which could block for ever)."""
    try:
        held = text_at(path)
        if held is not None:
            return held
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            raise SourceError("not a regular file")
        if status.st_size > MAX_BYTES:
            raise SourceError(
                f"the file has {status.st_size:,} bytes; files over {MAX_BYTES:,} bytes are not read"
            )
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise cannot_read(error) from None


def cannot_read(error: OSError | ValueError) -> SourceError:
    """Why the system refused a path, in one clause."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SourceError(f"{reason[:1].lower()}{reason[1:]}")


def load(path: str) -> ParsedModule:
    """Read and parse one file."""
    return parse(read(path))


def parse(source: Source) -> ParsedModule:
    """Parse a source into a libcst module with byte spans.

    Raises:
        SourceError: it is not valid Python for the running interpreter, or is nested too deeply to read.
    """
    check_syntax(source)
    import libcst as cst  # lazy: a run over files without kernels never loads it

    from tilecheck.frontend.text.byte_spans import byte_spans  # lazy: as above
    from tilecheck.frontend.text.syntax import Index  # lazy: as above

    try:
        module = cst.parse_module(source.text)
        raw = byte_spans(module)
    except cst.ParserSyntaxError as error:
        raise SourceError(_last_line(error.message), error.raw_line, error.raw_column + 1) from None
    except RecursionError:
        raise SourceError("the code is nested too deeply to read") from None
    index = Index(module)
    spans = Spans(raw, _file_offsets(source, module, raw[id(module)][1]), source.start, len(source.data))
    if source.text.isascii():
        return ParsedModule(source, module, spans, source.text, index)
    for node in index.nodes:
        if type(node) is cst.Name:
            _normalise(node, source, spans.of(node))
    return ParsedModule(source, module, spans, words_of(source.text), index)


def _normalise(name: cst.Name, source: Source, span: Span) -> None:
    """Give a name of a fresh tree the text that Python reads. Its span stays that of the text in the file."""
    if name.value.isascii():
        return
    if is_misread_constant(name.value):
        message = f"the variable `{name.value}` would be called `{normalised(name.value)}`"
        raise SourceError(message, *source.position(span.start))
    object.__setattr__(name, "value", normalised(name.value))


def parse_expression(text: str) -> cst.BaseExpression:
    """Parse an expression that does not stand in a file, such as a contract.

    Raises:
        SourceError: it is no expression, or is nested too deeply to read.
    """
    import libcst as cst  # lazy: as in `parse`

    try:
        deep = too_deep(ast.parse(text, mode="eval"), text)
        if deep is not None:
            raise SourceError(f"the expression is nested more than {deep[1]} levels deep")
        node = cst.parse_expression(text)
    except (SyntaxError, ValueError, cst.ParserSyntaxError):
        raise SourceError("this is no expression") from None
    except (RecursionError, MemoryError):
        raise SourceError("the expression is nested too deeply to read") from None
    stack: list[cst.CSTNode] = [] if text.isascii() else [node]
    while stack:
        below = stack.pop()
        if type(below) is cst.Name:
            object.__setattr__(below, "value", normalised(below.value))
        stack.extend(below.children)
    return node


def dump(node: cst.CSTNode) -> str:
    """The tree below a node, as text."""
    from libcst.display import dump as dump_node  # lazy: as in `parse`

    return dump_node(node)


def check_syntax(source: Source, *, nesting: bool = True) -> None:
    """Let Python's own parser judge the text first: it has the better messages and guards its stack.

    Raises:
        SourceError: the text is not valid Python, or is nested too deeply to read (where `nesting` counts).
    """
    try:
        tree = source.tree()
    except SyntaxError as error:
        raise _syntax_error(source, error) from None
    except (RecursionError, MemoryError):
        raise SourceError("the code is nested too deeply to read") from None
    except ValueError as error:
        raise SourceError(str(error)) from None
    deep = too_deep(tree, source.text) if nesting else None
    if deep is not None:
        line, limit = deep
        raise SourceError(f"the code is nested more than {limit} levels deep", line, 1)


def _syntax_error(source: Source, error: SyntaxError) -> SourceError:
    line = min(max(error.lineno or 1, 1), source.line_count)
    column = min(max(error.offset or 1, 1), len(source.line(line)) + 1)
    message = error.msg or "invalid syntax"
    if message[1:2].islower():
        message = message[0].lower() + message[1:]
    return SourceError(message, line, column)


def _last_line(message: str) -> str:
    lines = [line for line in message.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "invalid syntax"


@dataclass(slots=True)
class _Offsets:
    """Where each UTF-8 byte of the text as libcst keeps it begins and ends in the file. Filled once."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def span(self, start: int, end: int) -> Span:
        if start >= len(self.starts):
            return Span(self.ends[-1], self.ends[-1]) if self.ends else Span(0, 0)
        first = self.starts[start]
        return Span(first, self.ends[min(end, len(self.ends)) - 1] if end > start else first)


def _file_offsets(source: Source, module: cst.Module, length: int) -> _Offsets | None:
    """The map from libcst's byte counts to the file's; None where they differ by one fixed shift."""
    size = len(source.data) - source.start
    plain = not _DROPPED_LAYOUT.search(source.text)
    # Without a final newline libcst counts one that is not there.
    if plain and size <= length <= size + 2:
        return None
    offsets = _Offsets()
    at, position = 0, source.start
    for kept in module.code:
        # What libcst keeps is the text less some layout, so all other characters come in the same order.
        while at < len(source.text) and source.text[at] != kept:
            if source.text[at] not in " \t\f\\\r\n":
                raise SourceError("the layout of the file cannot be followed", *source.position(position))
            position += len(source.text[at].encode())
            at += 1
        width = len(kept.encode())
        offsets.starts += [position] * width
        position += width
        offsets.ends += [position] * width
        at += 1
    return offsets
