"""A Python file as the reference backend reads it: its syntax tree and the byte range of every node."""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import dataclass
from pathlib import Path

from tilecheck.jit.reference.log import NotInterpretable

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One parsed file. `line_starts` are utf-8 byte offsets into the file as it stands, BOM included."""

    path: str
    tree: ast.Module
    line_starts: tuple[int, ...]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """The byte range of a node, end exclusive."""
        end_line = node.end_lineno or node.lineno
        end_column = node.col_offset if node.end_col_offset is None else node.end_col_offset
        return self._offset(node.lineno, node.col_offset), self._offset(end_line, end_column)

    def _offset(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + column


def read_source(path: str) -> SourceFile:
    """Parse the file at `path`; a file that cannot be read or parsed is not interpretable."""
    try:
        raw = Path(path).read_bytes()
        tree = ast.parse(raw, filename=path)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        utf8 = raw if encoding in ("utf-8", "utf-8-sig") else raw.decode(encoding).encode()
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}"
        raise NotInterpretable(message) from error
    except (SyntaxError, ValueError, RecursionError) as error:
        message = f"{path}: cannot be parsed: {error}"
        raise NotInterpretable(message) from error
    return SourceFile(path, tree, _line_starts(utf8))


def _line_starts(utf8: bytes) -> tuple[int, ...]:
    """Where each line starts. Columns of the first line do not count a BOM, so it starts after it."""
    starts = [len(_BOM) if utf8.startswith(_BOM) else 0]
    position = 0
    while position < len(utf8):
        byte = utf8[position]
        position += 1
        if byte == 0x0D:  # the tokenizer takes CR, CRLF and LF as line ends, and nothing else
            position += utf8[position : position + 1] == b"\n"
            starts.append(position)
        elif byte == 0x0A:
            starts.append(position)
    return tuple(starts)
