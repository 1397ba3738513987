"""Texts without layout, and places in them."""

from __future__ import annotations

import re

import pytest

from tilecheck.cache.tokens import layout_of
from tilecheck.cache.views import Views
from tilecheck.model import Span
from tilecheck.text import Source, decode

TEXT = '''import a


def f(x, y):
    """Words
    and more."""
    # tilecheck: requires x > 0 -- so
    if x:  # why
        return (x + y,
                "\u00e9\u4e2d")
    return g(x)[0]


z = f(1, 2)
'''


def source(text: str | bytes) -> Source:
    return decode("k.py", text.encode() if isinstance(text, str) else text)


def digest(text: str | bytes) -> str:
    return layout_of(source(text)).digest


@pytest.mark.parametrize(
    "other",
    [
        "# first\n\n" + TEXT,
        TEXT.replace("  # why", ""),
        TEXT.replace("# why", "# other"),
        TEXT.replace("import a\n", "import a  # trailing\n\n\n# own line\n"),
        TEXT.replace("(x + y,\n                ", "(x + y, "),
        TEXT.rstrip("\n"),
        TEXT.replace("z =", "z  ="),
        b"\xef\xbb\xbf" + TEXT.encode(),
        ("# coding: utf-8\n" + TEXT).encode(),
    ],
)
def test_layout_does_not_count(other: str | bytes) -> None:
    assert digest(other) == digest(TEXT) != ""


@pytest.mark.parametrize(
    "other",
    [
        TEXT.replace("x + y", "x - y"),
        TEXT.replace("x + y", "x+y"),  # a report may quote it
        TEXT.replace("x + y,", "x + y,  # inside"),
        TEXT.replace("    return g", "        return g"),
        TEXT.replace("x > 0", "x > 1"),
        TEXT.replace("    # tilecheck", "# tilecheck"),
        TEXT.replace(
            "    # tilecheck: requires x > 0 -- so\n    if x:  # why",
            "    if x:  # tilecheck: requires x > 0 -- so",
        ),
        TEXT.replace("Words", "words"),
        TEXT.replace("Words\n", "Words\n\n"),
        TEXT.replace("z = f(1, 2)", "z = f(\n1, 2)"),
    ],
)
def test_what_the_analysis_sees_counts(other: str) -> None:
    assert other != TEXT
    assert digest(other) != digest(TEXT)


@pytest.mark.parametrize("text", ["x = 1\n\f\ny = 2\n", "\\\nx = 1\n", "x = (\n", 'x = """\n'])
def test_a_text_that_is_bound_to_its_layout(text: str) -> None:
    assert digest(text) == ""


def test_every_place_is_found_in_the_other_text() -> None:
    other = "\ufeff# \u00fc\n" + TEXT.replace("# why", "# \u4e2d\u4e2d because").replace(
        "\ndef", "\n# new\n\ndef"
    )
    one, two = source(TEXT), source(other.replace("\n", "\r\n").replace("Words\r\n", "Words\n"))
    assert layout_of(one).digest == layout_of(source(other)).digest
    two = source(other)
    places = [m.span() for m in re.finditer(rb"[\w\"+()\[\]]+(?: [\w+,\"]+)*", one.data)]
    found = 0
    for start, end in places:
        place = layout_of(one).place(Span(start, end))
        if place is None:
            assert b"why" in one.data[start:end]
            continue
        there = layout_of(two).span(place)
        assert two.snippet(there) == one.snippet(Span(start, end))
        found += 1
    assert found > 15


def test_no_place_stays_no_place() -> None:
    layout = layout_of(source(TEXT))
    nowhere = layout.place(Span(0, 0))
    assert nowhere is not None
    assert layout_of(source("# more\n" + TEXT)).span(nowhere) == Span(0, 0)
    begin = layout.place(Span(0, 6))
    assert begin is not None
    assert layout_of(source("# more\n" + TEXT)).span(begin) == Span(7, 13)
    with pytest.raises(ValueError, match="no such token"):
        layout.span((10_000, 0, 10_001, 0))


KERNELS = """import t

SIZE = 4
TABLE = [other]


@t.jit
def one(x):
    y = helper(x)


@t.jit
def two(x):
    z = x


@t.jit
def other(x):
    w = x


def helper(x):
    return TABLE


def host(x):
    one[1](x)
    two[1](x)
"""
NAMES = [("one",), ("two",), ("other",)]


def view(text: str, name: str) -> str:
    text_ = source(text)
    return Views(text_, layout_of(text_).bare(), NAMES).of((name,)).digest


@pytest.mark.parametrize(
    ("old", "new", "seen_by"),
    [
        ("z = x", "z = x + 1", {"two"}),
        ("w = x", "w = x + 1", {"one", "other"}),  # `one` reaches it through `helper` and `TABLE`
        ("y = helper(x)", "y = helper(x + 1)", {"one"}),
        ("SIZE = 4", "SIZE = 5", {"one", "two", "other"}),
        ("two[1](x)", "two[2](x)", {"one", "two", "other"}),
        ("def two(x)", "def two(x, y)", {"one", "two", "other"}),
        ("z = x", "def one(x): pass", {"one", "two", "other"}),
        ("z = x", "z  =  x", set()),
    ],
)
def test_a_view_leaves_out_kernels_that_cannot_be_reached(old: str, new: str, seen_by: set[str]) -> None:
    edited = KERNELS.replace(old, new)
    assert {name for (name,) in NAMES if view(edited, name) != view(KERNELS, name)} == seen_by
