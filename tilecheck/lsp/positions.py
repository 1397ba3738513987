"""Byte offsets to positions of the protocol and back: the one place where the server does it.

A position is a line and a count of code units before a place on it, both from 0. Which units is agreed on when
the connection is made: UTF-16 unless the client offers another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tilecheck.dataclass import dataclass
from tilecheck.model import Span
from tilecheck.text import Source

UTF8, UTF16, UTF32 = "utf-8", "utf-16", "utf-32"
Json = dict[str, Any]


def agreed_encoding(offered: Sequence[str] | None) -> str:
    """The first encoding of the client's list that is known here; without one, what the protocol says."""
    return next((e for e in offered or () if e in (UTF8, UTF16, UTF32)), UTF16)


@dataclass(frozen=True, slots=True)
class Positions:
    """The places of one text."""

    source: Source
    encoding: str = UTF16

    def position(self, offset: int) -> Json:
        """The position of a byte of the text; an offset outside it is moved to its nearer end."""
        source = self.source
        offset = min(max(offset, source.start), len(source.data))
        line = bisect_right(source.line_starts, offset) - 1
        before = source.data[source.line_starts[line] : offset].decode(errors="replace")
        # A byte inside the line's end counts as the end of what stands on the line.
        return {"line": line, "character": self._units(before.rstrip("\r\n"))}

    def range(self, span: Span) -> Json:
        return {"start": self.position(span.start), "end": self.position(max(span.end, span.start))}

    def offset(self, position: Json) -> int:
        """The byte at a position, or the nearest one that there is; inside a character, its beginning."""
        source, number = self.source, position["line"]
        if number >= source.line_count:
            return len(source.data)
        left, at = position["character"], source.line_starts[number]
        for character in source.line(number + 1):
            left -= self._units(character)
            if left < 0:
                break
            at += len(character.encode(errors="replace"))
        return at

    def span(self, range_: Json) -> Span:
        return Span(self.offset(range_["start"]), self.offset(range_["end"]))

    def _units(self, text: str) -> int:
        if self.encoding == UTF8:
            return len(text.encode(errors="replace"))
        if self.encoding == UTF16:
            return len(text) + sum(1 for character in text if ord(character) > 0xFFFF)
        return len(text)
