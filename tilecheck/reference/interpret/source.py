"""A Python file as the reference backend reads it: its syntax tree and the byte range of every node."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from dataclasses import dataclass, field

from tilecheck.overlay import read
from tilecheck.reference.log import NotInterpretable
from tilecheck.reference.machine import Place

_BOM = b"\xef\xbb\xbf"
KEPT = 64  # parsed files: one kernel is launched many times, and each launch reads the same few


@dataclass(frozen=True, slots=True, eq=False)
class SourceFile:
    """One parsed file. `line_starts` are utf-8 byte offsets into the file as it stands, BOM included."""

    path: str
    tree: ast.Module
    line_starts: tuple[int, ...]
    _places: dict[ast.expr | ast.stmt, Place] = field(default_factory=dict)

    def place(self, node: ast.expr | ast.stmt) -> Place:
        """Where a node of the tree stands."""
        try:
            return self._places[node]
        except KeyError:
            found = self._places[node] = Place(self.path, *self.span(node), node.lineno)
            return found

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
        return _parsed(path, read(path))
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}"
        raise NotInterpretable(message) from error
    except (SyntaxError, ValueError, RecursionError) as error:
        message = f"{path}: cannot be parsed: {error}"
        raise NotInterpretable(message) from error


@functools.lru_cache(maxsize=KEPT)
def _parsed(path: str, raw: bytes) -> SourceFile:
    """Launches share the tree: nothing writes to it."""
    tree = ast.parse(raw, filename=path)
    encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    utf8 = raw if encoding in ("utf-8", "utf-8-sig") else raw.decode(encoding).encode()
    return SourceFile(path, tree, _line_starts(utf8))


def _line_starts(utf8: bytes) -> tuple[int, ...]:
    """Where each line starts. Columns of the first line do not count a BOM, so it starts after it."""
    starts = [len(_BOM) if utf8.startswith(_BOM) else 0]
    # The tokenizer takes CR, CRLF and LF as line ends, and nothing else.
    starts += [end.end() for end in re.finditer(rb"\r\n?|\n", utf8)]
    return tuple(starts)
