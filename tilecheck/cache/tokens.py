"""The text of a file without its layout, and places in it that outlive edits of the layout.

The analysis sees the tokens of a file and how deep lines are indented; of comments it sees those that speak to
tilecheck, and of blanks only whether there are any between two tokens of one logical line, because the text of
an expression may be quoted in a report. So two texts with the same *digest* give the same result, and a place
in one is the same place in the other: it is kept as a token and a distance from its beginning or its end.

A text whose layout itself decides something (form feeds, lines continued before they begin) has no digest.
"""

from __future__ import annotations

import hashlib
import io
import re
import tokenize
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from tilecheck.model import Span
from tilecheck.text import Source

Place = tuple[int, int, int, int]  # token and distance of the start; token and distance (back) of the end
_NOWHERE: Place = (-1, 0, -1, 0)  # `Span(0, 0)`, which stands for no place at all

_MENTION = re.compile(r"tilecheck", re.IGNORECASE)
_ODD = re.compile(r"\f|^[ \t]*\\\r?\n", re.MULTILINE)
_BLANK = re.compile(rb"(?:\s|\\\r?\n)+")
# Begin and end in the file, what counts of it, and whether it is layout all the same. A mark has no width.
_Item = tuple[int, int, bytes, bool]


class Layout:
    """The tokens of a text. `digest` is empty where the text is bound to its layout."""

    def __init__(self, items: Sequence[_Item]) -> None:
        self._items = items
        self._starts = [item[0] for item in items if item[1] > item[0]]
        self._ends = [item[1] for item in items if item[1] > item[0]]
        whole = hashlib.sha256()
        for _, _, item, _ in items:
            whole.update(b"%d:%s" % (len(item), item))
        self.digest = whole.hexdigest() if items else ""

    def without(self, holes: Sequence[Span]) -> Layout:
        """The layout without the tokens that begin in `holes`, which are in order and apart."""
        kept: list[_Item] = []
        begins = [hole.start for hole in holes]
        for item in self._items:
            number = bisect_right(begins, item[0]) - 1
            if number < 0 or item[0] >= holes[number].end:
                kept.append(item)
        return Layout(kept)

    def bare(self) -> Layout:
        """The layout without blanks and comments inside of logical lines, which matter to nothing but a report
        that quotes them."""
        return Layout([item for item in self._items if not item[3]])

    def place(self, span: Span) -> Place | None:
        """Where a span is among the tokens; None if it begins or ends in what is not kept."""
        if span == Span(0, 0):
            return _NOWHERE
        first = bisect_right(self._starts, span.start) - 1
        last = first if span.start == span.end else bisect_left(self._ends, span.end)
        if first < 0 or last >= len(self._ends):
            return None
        if span.start > self._ends[first] or span.end < self._starts[last]:
            return None
        return first, span.start - self._starts[first], last, self._ends[last] - span.end

    def span(self, place: Place) -> Span:
        """The span at a place of a text with the same digest.

        Raises:
            ValueError: there is no such place.
        """
        if place == _NOWHERE:
            return Span(0, 0)
        first, after, last, before = place
        if not (0 <= first < len(self._starts) and 0 <= last < len(self._ends)):
            raise ValueError("no such token")
        return Span(self._starts[first] + after, self._ends[last] - before)


def layout_of(source: Source) -> Layout:
    """The tokens of a text, pure layout left out."""
    if _ODD.search(source.text):
        return Layout(())
    lines = [source.line(number) for number in range(1, source.line_count + 1)]
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline))
        return Layout(list(_items(source, lines, tokens)))
    except (tokenize.TokenError, SyntaxError):
        return Layout(())  # such a text is only ever compared byte by byte


_MARKS = {tokenize.INDENT: b"indent", tokenize.DEDENT: b"dedent"}


def _items(source: Source, lines: Sequence[str], tokens: Sequence[tokenize.TokenInfo]) -> Iterator[_Item]:
    offsets = _Offsets(source, lines)
    last: int | None = None  # where the last token of this logical line ended
    for number, token in enumerate(tokens):
        kind = token.type
        if kind in (tokenize.NL, tokenize.ENDMARKER):
            continue
        start = offsets.of(token.start)
        if kind in _MARKS:
            yield start, start, _MARKS[kind], False
            continue
        told = True
        if kind == tokenize.COMMENT:
            told = bool(_MENTION.search(token.string))
            if not told and (last is None or tokens[number + 1].type == tokenize.NEWLINE):
                continue
            yield start, start, _standing(tokens, number).encode() if told else b"inside", not told
        if last is not None and kind != tokenize.NEWLINE:
            gap = source.data[last:start]
            is_blank = not gap or bool(_BLANK.fullmatch(gap))
            yield start, start, b" " if gap and is_blank else b"gap" + gap, is_blank
        if kind == tokenize.NEWLINE:
            yield start, offsets.after(token.start[0]), b"newline", False
            last = None
        else:
            last = offsets.of(token.end)
            yield start, last, b"=" + source.data[start:last], not told


def _standing(tokens: Sequence[tokenize.TokenInfo], number: int) -> str:
    """What decides which statement a comment speaks of: whether it has a line of its own, and how far it and
    the next statement are indented."""
    comment = tokens[number]
    if comment.line[: comment.start[1]].strip():
        return "trailing"
    skipped = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)
    following = next((t for t in tokens[number + 1 :] if t.type not in skipped), comment)
    return f"above {comment.start[1]} {following.start[1]}"


class _Offsets:
    """From lines and columns of the tokenizer to bytes of the file."""

    def __init__(self, source: Source, lines: Sequence[str]) -> None:
        self._starts = source.line_starts
        self._size = len(source.data)
        self._lines = lines
        self._plain = [line.isascii() for line in lines]

    def of(self, position: tuple[int, int]) -> int:
        row, column = position
        if row > len(self._lines):
            return self._size
        line = self._lines[row - 1]
        wide = column if self._plain[row - 1] else len(line[:column].encode(errors="replace"))
        return min(self._starts[row - 1] + wide, self._size)

    def after(self, row: int) -> int:
        """Where the line after this one begins."""
        return self._starts[row] if row < len(self._starts) else self._size
