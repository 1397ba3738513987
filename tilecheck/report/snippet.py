"""Source lines with what is marked on them underlined."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from tilecheck.dataclass import dataclass
from tilecheck.model import Site
from tilecheck.report.places import Place, Places
from tilecheck.report.style import Line, Piece, line
from tilecheck.text import Source

_LONGEST_SHOWN = 4  # lines of one mark; of a longer one the first two and the last are shown


@dataclass(frozen=True, slots=True)
class Mark:
    """Something to point at; `primary` marks are underlined with `^`, the others with `-`."""

    site: Site
    label: str
    style: str
    primary: bool


def snippets(marks: Sequence[Mark], places: Places) -> Iterator[Line]:
    """The marked lines, file by file, the file of the first mark first."""
    files = list(dict.fromkeys(mark.site.file for mark in marks))
    widest = max((places.of(mark.site).end_line for mark in marks), default=1)
    gutter = len(str(widest))
    for file in files:
        here = [(mark, places.of(mark.site)) for mark in marks if mark.site.file == file]
        if file != files[0]:
            yield _margin(gutter)
        arrow = "-->" if file == files[0] else ":::"
        yield line((" " * gutter + arrow + " ", "gutter"), str(here[0][1]))
        source = places.source(file)
        if source.data:
            yield _margin(gutter)
            yield from _lines_of(source, here, gutter)
    yield _margin(gutter)


def detail(marks: Sequence[Mark], places: Places, title: str, text: str) -> Iterator[Line]:
    """An indented `= title: text` line below a snippet; further lines of the text are aligned."""
    gutter = len(str(max((places.of(mark.site).end_line for mark in marks), default=1)))
    head = f"{title}: "
    for number, part in enumerate(text.splitlines() or [""]):
        if number == 0:
            yield line((" " * gutter + " = ", "gutter"), (head, "strong"), part)
        else:
            yield line(" " * (gutter + 3 + len(head)), part)


def _margin(gutter: int) -> Line:
    return line((" " * gutter + " |", "gutter"))


def _lines_of(source: Source, marks: Sequence[tuple[Mark, Place]], gutter: int) -> Iterator[Line]:
    shown = sorted({number for _, place in marks for number in _shown(place)})
    previous = shown[0]
    for number in shown:
        if number > previous + 2:
            yield line(("...", "gutter"))
        elif number == previous + 2:
            yield _source_line(source, number - 1, gutter)
        previous = number
        yield _source_line(source, number, gutter)
        for mark, place in marks:
            if number in _shown(place):
                yield from _underline(source, number, mark, place, gutter)


def _shown(place: Place) -> Sequence[int]:
    last = max(place.end_line, place.line)
    # A span that ends before the first column of a line has nothing on that line.
    if last > place.line and place.end_column == 1:
        last -= 1
    if last - place.line < _LONGEST_SHOWN:
        return range(place.line, last + 1)
    return (place.line, place.line + 1, last)


def _source_line(source: Source, number: int, gutter: int) -> Line:
    text = source.line(number) if number <= source.line_count else ""
    return line((f"{number:>{gutter}} |", "gutter"), f" {text}" if text else "")


def _underline(source: Source, number: int, mark: Mark, place: Place, gutter: int) -> Iterator[Line]:
    text = source.line(number) if number <= source.line_count else ""
    start = place.column - 1 if number == place.line else len(text) - len(text.lstrip())
    last = _shown(place)[-1]
    end = place.end_column - 1 if number == place.end_line else len(text.rstrip())
    sign = "^" if mark.primary else "-"
    under = _columns(text[:start], " ") + (_columns(text[start:end], sign) or sign)
    label = [Piece(" " + mark.label, mark.style)] if mark.label and number == last else []
    yield (Piece(" " * gutter + " |", "gutter"), Piece(" " + under, mark.style), *label)


def _columns(text: str, sign: str) -> str:
    """`sign` for each terminal column that `text` takes. A tab stays a tab, so that both lines move alike."""
    return "".join("\t" if character == "\t" else sign * _width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
