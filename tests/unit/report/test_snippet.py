"""Underlines stand under what they mark, whatever the line holds."""

from __future__ import annotations

import pytest

from tilecheck.model import Site, Span
from tilecheck.report.places import Places
from tilecheck.report.snippet import Mark, snippets
from tilecheck.report.style import plain


def _show(text: str, *marked: str, label: str = "here") -> list[str]:
    data = text.encode()
    marks = []
    for part in marked:
        start = data.index(part.encode())
        site = Site("a.py", Span(start, start + len(part.encode())))
        marks.append(Mark(site, label, "error", primary=not marks))
    return plain(snippets(marks, Places({"a.py": data}))).splitlines()


@pytest.mark.parametrize(
    ("text", "marked", "expected"),
    [
        ("x = load(p)", "load(p)", "  |     ^^^^^^^ here"),
        ("\tx = load(p)", "load(p)", "  | \t    ^^^^^^^ here"),
        ("日本 = load", "load", "  |        ^^^^ here"),
        ("s = '日'; y", "'日'", "  |     ^^^^ here"),
        ("e\u0301 = y", "y", "  |     ^ here"),
        ("a\tb", "a\tb", "  | ^\t^ here"),
    ],
)
def test_columns(text: str, marked: str, expected: str) -> None:
    assert _show(text, marked)[3] == expected


def test_an_empty_span_gets_one_mark() -> None:
    site = Site("a.py", Span(3, 3))
    shown = plain(snippets([Mark(site, "", "error", primary=True)], Places({"a.py": b"abc\n"})))
    assert shown.splitlines()[3] == "  |    ^"


def test_distant_lines_are_elided_and_a_single_line_between_is_not() -> None:
    text = "\n".join(f"line{n}" for n in range(1, 13))
    near = _show(text, "line1", "line3", label="")
    assert near[2:-1] == ["1 | line1", "  | ^^^^^", "2 | line2", "3 | line3", "  | -----"]
    shown = _show(text, "line2", "line9", label="")
    assert "..." in shown


def test_long_marks_show_their_ends() -> None:
    text = "\n".join(f"f{n}(" for n in range(1, 9))
    shown = _show(text, text)
    assert [row for row in shown if "(" in row] == ["1 | f1(", "2 | f2(", "8 | f8("]
    assert shown[-2] == "  | ^^^ here"
    assert sum("here" in row for row in shown) == 1


def test_a_file_that_was_never_read_has_only_its_name() -> None:
    mark = Mark(Site("gone.py", Span(0, 0)), "", "error", primary=True)
    assert plain(snippets([mark], Places({}))).splitlines() == [" --> gone.py:1:1", "  |"]
