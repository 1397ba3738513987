"""Reading and parsing source: the one place where libcst parses a file."""

from __future__ import annotations

import ast
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tilecheck.errors import SourceError
from tilecheck.frontend.nesting import too_deep
from tilecheck.identifiers import is_misread_constant, normalised, words_of
from tilecheck.model import Span
from tilecheck.overlay import text_at
from tilecheck.text import Source, decode

if TYPE_CHECKING:
    import libcst as cst
    from libcst.metadata.span_provider import CodeSpan

MAX_BYTES = 20_000_000
# Layout that libcst reads but does not keep, so that its byte counts fall behind the file's.
_DROPPED_LAYOUT = re.compile(r"\f|^[ \t]*\\\r?\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class ParsedModule:
    """A file and its syntax tree, with names as Python reads them. `spans` maps every node to its bytes in
    the file. `words` is the text with the identifiers of the tree: for a look at words, not for places."""

    source: Source
    module: cst.Module
    spans: Mapping[cst.CSTNode, Span]
    words: str

    def span(self, node: cst.CSTNode) -> Span:
        """The bytes of a node of this tree, without the whitespace around it."""
        return self.spans[node]


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

    try:
        module = cst.parse_module(source.text)
        raw = _byte_spans(module)
    except cst.ParserSyntaxError as error:
        raise SourceError(_last_line(error.message), error.raw_line, error.raw_column + 1) from None
    except RecursionError:
        raise SourceError("the code is nested too deeply to read") from None
    offsets = _file_offsets(source, module, raw[module].length)
    spans = _to_spans(source, raw, offsets)
    if source.text.isascii():
        return ParsedModule(source, module, spans, source.text)
    for node in raw:
        if type(node) is cst.Name:
            _normalise(node, source, spans)
    return ParsedModule(source, module, spans, words_of(source.text))


def _normalise(name: cst.Name, source: Source, spans: Mapping[cst.CSTNode, Span]) -> None:
    """Give a name of a fresh tree the text that Python reads. Its span stays that of the text in the file."""
    if name.value.isascii():
        return
    if is_misread_constant(name.value):
        message = f"the variable `{name.value}` would be called `{normalised(name.value)}`"
        raise SourceError(message, *source.position(spans[name].start))
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


def _byte_spans(module: cst.Module) -> Mapping[cst.CSTNode, CodeSpan]:
    """What libcst's provider of byte spans gives, without the wrapper around it.

    The wrapper copies the tree, to guard against shared nodes, and visits all of it for providers that work in
    batches, of which this is none. The parser makes a fresh object for each node, so no copy is needed;
    `_to_spans` would show a shared node as a span that does not fit.
    """
    from libcst.metadata import ByteSpanPositionProvider  # lazy: as in `parse`

    provider = ByteSpanPositionProvider()
    provider._gen_impl(module)  # noqa: SLF001 - what every provider of libcst implements
    return cast("Mapping[cst.CSTNode, CodeSpan]", provider._computed)  # noqa: SLF001 - as above


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


def _to_spans(
    source: Source, raw: Mapping[cst.CSTNode, CodeSpan], offsets: _Offsets | None
) -> dict[cst.CSTNode, Span]:
    spans: dict[cst.CSTNode, Span] = {}
    shift, size = source.start, len(source.data)
    for node, code in raw.items():
        end = code.start + code.length
        if offsets is not None:
            spans[node] = offsets.span(code.start, end)
        else:
            spans[node] = Span(code.start + shift, min(end + shift, size))
    return spans
