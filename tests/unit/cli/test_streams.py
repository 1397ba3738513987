"""Writing: encodings that carry little, and readers that go away."""

from __future__ import annotations

import io

import pytest

from tilecheck.cli.streams import Streams, wants_colour
from tilecheck.report.style import fit, line, plain, write


class _Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_went_away_is_no_error() -> None:
    streams = Streams(_Closed(), _Closed())
    streams.out("text")
    assert streams.closed
    streams.out_lines([line("more")], colour=False)
    streams.log("message")


def test_narrow_encodings_get_ascii() -> None:
    assert fit("a \N{MIDDLE DOT} b", "ascii") == "a - b"
    assert fit("a \N{MIDDLE DOT} b", "utf-8") == "a \N{MIDDLE DOT} b"
    assert fit("é 日", "ascii") == "\\xe9 \\u65e5"
    assert fit("\udcff", "utf-8") == "\\udcff"


@pytest.mark.parametrize("colour", [True, False])
def test_text_goes_out_as_it_is(colour: bool) -> None:
    text = "acc[i] = load(p + o[bold red])\t[/]" + "x" * 300 + " :smile: https://a.b 0xff 'q'"
    stream = io.StringIO()
    write([line(text)], stream, colour=colour)
    assert stream.getvalue() == text + "\n"


def test_controls_are_shown_not_sent() -> None:
    assert plain([line("a\x1b[31m\u202eb\x07\r")]) == "a\ufffd[31m\ufffdb\ufffd\ufffd\n"


@pytest.mark.parametrize(
    ("choice", "environment", "expected"),
    [
        ("auto", {}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"FORCE_COLOR": "1"}, False),
        ("auto", {"FORCE_COLOR": "1"}, True),
        ("auto", {"FORCE_COLOR": "0"}, False),
        ("auto", {"CLICOLOR_FORCE": "1"}, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_when_to_colour(choice: str, environment: dict[str, str], expected: bool) -> None:
    assert wants_colour(choice, io.StringIO(), environment) is expected
