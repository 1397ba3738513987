"""The text of a file and the places in it: bytes in, lines and columns out.

A span counts bytes of the file as it lies on disk, byte-order mark included; for a file in another encoding
than UTF-8, bytes of its text in UTF-8. Lines end at LF, CRLF or CR, as in Python's own lexer; columns are code
points, both counted from 1.
"""

from __future__ import annotations

import codecs
import re
import warnings
from bisect import bisect_right
from dataclasses import field
from typing import TYPE_CHECKING

from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError
from tilecheck.model import Span

if TYPE_CHECKING:
    import ast

_BOM = codecs.BOM_UTF8
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?$")
_NEWLINE = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Source:
    """One file: the path as given (POSIX) and its text.

    `text` has no byte-order mark and keeps every newline as it is. `data` is the text in UTF-8, with the mark
    if the file has one: the bytes that spans count. Build one with `decode`.
    """

    path: str
    data: bytes
    text: str
    line_starts: tuple[int, ...] = field(repr=False)

    @property
    def encoding(self) -> str:
        """The encoding of `data`, whatever that of the file is."""
        return "utf-8"

    @property
    def start(self) -> int:
        """The byte at which the text begins: after the byte-order mark, if there is one."""
        return len(_BOM) if self.data.startswith(_BOM) else 0

    def tree(self) -> ast.Module:
        """Python's own syntax tree of the text.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError: it is not Python, or nested too deeply.
        """
        import ast  # lazy: most texts are only counted in

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the user's string escapes: not ours to report
            return ast.parse(self.text)

    def position(self, offset: int) -> tuple[int, int]:
        """The line and column of a byte, from 1. An offset outside the file is moved to its nearer end."""
        offset = min(max(offset, self.start), len(self.data))
        line = bisect_right(self.line_starts, offset)
        before = self.data[self.line_starts[line - 1] : offset]
        return line, len(before.decode(errors="replace")) + 1

    def line(self, number: int) -> str:
        """The text of a line (from 1) without its newline."""
        number = min(max(number, 1), self.line_count)
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.data)
        return self.data[start:end].decode(errors="replace").rstrip("\r\n")

    def offset(self, line: int, column: int) -> int:
        """The byte of a line and column, the inverse of `position`; past the end of a line, its end."""
        start = self.line_starts[min(max(line, 1), self.line_count) - 1]
        return start + len(self.line(line)[: column - 1].encode(errors="replace"))

    def utf8_offset(self, line: int, column: int) -> int:
        """The byte of a line (from 1) and a count of UTF-8 bytes on it (from 0), as Python's `ast` gives."""
        return self.line_starts[min(max(line, 1), self.line_count) - 1] + column

    @property
    def line_count(self) -> int:
        return len(self.line_starts)

    def snippet(self, span: Span) -> str:
        """The text of a span."""
        return self.data[span.start : span.end].decode(errors="replace")


def decode(path: str, data: bytes) -> Source:
    """Decode by byte-order mark and PEP 263 cookie, as Python does.

    Raises:
        SourceError: the encoding is unknown, disagrees with the mark, or does not fit the bytes.
    """
    start = len(_BOM) if data.startswith(_BOM) else 0
    encoding = _encoding(data, start)
    try:
        text = data[start:].decode(encoding)
    except UnicodeDecodeError as error:
        good = data[start : start + error.start].decode(encoding)
        line, column = _end_of(good)
        shown = data[start + error.start]
        raise SourceError(f"byte 0x{shown:02x} is not {encoding} text", line, column) from None
    if "\0" in text:
        line, column = _end_of(text[: text.index("\0")])
        raise SourceError("the file holds a null byte: it is not Python source", line, column)
    if encoding != "utf-8":
        data = text.encode()
    return Source(path, data, text, _line_starts(data, start))


def encode(text: str) -> bytes:
    """The bytes of a file with this text, in the encoding that it declares. What has no bytes becomes `?`."""
    data = text.encode(errors="replace")
    try:
        encoding = _encoding(data, 0)
    except SourceError:
        return data
    return data if encoding == "utf-8" else text.encode(encoding, errors="replace")


def decode_leniently(path: str, data: bytes) -> Source:
    """For showing places in a file, also in one that `decode` refuses. Never fails.

    UTF-8 is tried before what the file declares: the bytes may be a `Source.data` already. What fits nothing
    is read as replacement characters.
    """
    start = len(_BOM) if data.startswith(_BOM) else 0
    try:
        return Source(path, data, data[start:].decode("utf-8"), _line_starts(data, start))
    except UnicodeDecodeError:
        pass
    try:
        return decode(path, data)
    except SourceError:
        text = data[start:].decode("utf-8", errors="replace")
        return Source(path, data, text, _line_starts(data, start))


def _encoding(data: bytes, start: int) -> str:
    # Only the first two lines count, and the second only if the first is blank or a comment (PEP 263).
    cookie = None
    for line in _NEWLINE.split(data[start : start + 4096], maxsplit=2)[:2]:
        cookie = _COOKIE.match(line)
        if cookie or not _BLANK.match(line):
            break
    name = cookie.group(1).decode() if cookie else "utf-8"
    try:
        codec = codecs.lookup(name)
        # Codecs that are no encodings of text (hex), or not of source (utf-16), fail here one way or another.
        is_for_source = codec.decode(b"a = 1\r\n")[0] == "a = 1\r\n" and codec.encode("a\n")[0] == b"a\n"
    except (LookupError, TypeError, ValueError):
        is_for_source = False
    if not is_for_source:
        raise SourceError(f"unknown encoding `{name}`")
    if start and codec.name != "utf-8":
        raise SourceError(f"the file begins with a UTF-8 mark but declares `{name}`")
    return codec.name


def _line_starts(data: bytes, start: int) -> tuple[int, ...]:
    return (start, *(match.end() for match in _NEWLINE.finditer(data, start)))


def _end_of(text: str) -> tuple[int, int]:
    data = text.encode("utf-8", errors="replace")
    starts = _line_starts(data, 0)
    return len(starts), len(data[starts[-1] :].decode("utf-8", errors="replace")) + 1
