"""Styled lines: what the emitters produce, and how it is written with and without colour.

Text goes out exactly as it is: nothing wraps it, expands its tabs, or reads it as markup. Only characters
that would act on the terminal are shown instead of sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TextIO

from tilecheck.dataclass import dataclass

# Controls other than tab, and the marks that reorder text on screen without being visible.
_UNPRINTABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_COLOURS = {
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
    "proved": "green",
    "conditional": "green",
    "trusted": "yellow",
    "violated": "bold red",
    "unknown": "bold yellow",
    "strong": "bold",
    "gutter": "blue",
    "related": "cyan",
    "faint": "dim",
}
_ASCII = str.maketrans(
    {"\N{MIDDLE DOT}": "-", "\N{EM DASH}": "-", "\N{REPLACEMENT CHARACTER}": "?"}
    | dict(zip("─│├└", "-||`", strict=True))
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text in one style: a key of `_COLOURS`, or plain."""

    text: str
    style: str = ""


Line = tuple[Piece, ...]


def line(*parts: str | tuple[str, str]) -> Line:
    """A line from plain strings and (text, style) pairs."""
    return tuple(Piece(part) if isinstance(part, str) else Piece(*part) for part in parts)


def safe(text: str) -> str:
    """The text with what would act on the terminal replaced."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def plain(lines: Iterable[Line]) -> str:
    """The lines as text, each with its newline and without trailing blanks."""
    return "".join("".join(safe(piece.text) for piece in pieces).rstrip() + "\n" for pieces in lines)


def write(lines: Iterable[Line], stream: TextIO, *, colour: bool) -> None:
    """Write lines, in ASCII alone if the stream can carry no more."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if not colour:
        stream.write(fit(plain(lines), encoding))
        return
    from rich.console import Console  # lazy: only colour needs it
    from rich.segment import Segment, Segments
    from rich.style import Style

    console = Console(file=stream, force_terminal=True, no_color=False, highlight=False, markup=False)
    for pieces in lines:
        segments = [
            Segment(fit(safe(p.text), encoding), Style.parse(_COLOURS.get(p.style, "none"))) for p in pieces
        ]
        # Segments are printed as they are; a `Text` would have its tabs expanded.
        console.print(Segments([*segments, Segment.line()]), soft_wrap=True, end="")


def fit(text: str, encoding: str) -> str:
    """The text with what the encoding cannot carry replaced: signs by ASCII ones, the rest by escapes."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII)
        return text.encode(encoding, errors="backslashreplace").decode(encoding)
    return text
