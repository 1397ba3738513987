from __future__ import annotations

import pytest

from tilecheck.lsp.positions import UTF8, UTF16, UTF32, Positions, agreed_encoding
from tilecheck.model import Span
from tilecheck.text import decode, decode_leniently, encode

WIDE = "a = 'é€\N{MUSICAL SYMBOL G CLEF}e\N{COMBINING ACUTE ACCENT}'\r\nb\rc\n\N{MUSICAL SYMBOL G CLEF}"


def positions(text: str, encoding: str = UTF16) -> Positions:
    return Positions(decode_leniently("k.py", text.encode()), encoding)


@pytest.mark.parametrize(
    ("encoding", "columns"),
    [(UTF8, [5, 7, 10, 14, 15, 17]), (UTF16, [5, 6, 7, 9, 10, 11]), (UTF32, range(5, 11))],
)
def test_columns_of_wide_characters(encoding: str, columns: list[int]) -> None:
    here = positions(WIDE, encoding)
    starts = [len(WIDE[:index].encode()) for index in range(5, 11)]
    assert [here.position(start)["character"] for start in starts] == list(columns)
    assert [here.offset(here.position(start)) for start in starts] == starts


@pytest.mark.parametrize("encoding", [UTF8, UTF16, UTF32])
def test_there_and_back_for_every_character(encoding: str) -> None:
    here = positions(WIDE, encoding)
    for index, character in enumerate(WIDE):
        offset = len(WIDE[:index].encode())
        if character not in "\r\n":
            assert here.offset(here.position(offset)) == offset
    assert here.offset(here.position(len(WIDE.encode()))) == len(WIDE.encode())


def test_a_position_inside_a_pair_of_surrogates_is_its_beginning() -> None:
    here = positions("\N{MUSICAL SYMBOL G CLEF}x")
    assert [here.offset({"line": 0, "character": n}) for n in range(5)] == [0, 0, 4, 5, 5]


def test_lines_end_as_the_protocol_says() -> None:
    here = positions("a\r\nb\rc\nd\fe\N{LINE SEPARATOR}f")
    assert here.position(len(b"a\r\nb\rc\nd\fe"))["line"] == 3
    assert here.position(1) == {"line": 0, "character": 1}
    assert here.position(2) == {"line": 0, "character": 1}  # between CR and LF
    assert here.offset({"line": 1, "character": 99}) == 4
    assert here.offset({"line": 99, "character": 0}) == len("a\r\nb\rc\nd\fe\N{LINE SEPARATOR}f".encode())


def test_ranges() -> None:
    here = positions("é = 1\n", UTF8)
    range_ = here.range(Span(0, 2))
    assert range_ == {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 2}}
    assert here.span(range_) == Span(0, 2)


def test_a_byte_order_mark_is_no_column() -> None:
    here = Positions(decode("k.py", b"\xef\xbb\xbfx = 1\n"))
    assert here.position(0) == {"line": 0, "character": 0}
    assert here.position(3) == {"line": 0, "character": 0}


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [(None, UTF16), ([], UTF16), (["utf-7"], UTF16), (["utf-7", "utf-8"], UTF8), (["utf-32", "utf-8"], UTF32)],
)
def test_the_first_encoding_of_the_client_that_is_known(offered: list[str] | None, agreed: str) -> None:
    assert agreed_encoding(offered) == agreed


@pytest.mark.parametrize(
    "text", ["x = 'é'\n", "# coding: latin-1\nx = 'é'\n", "# coding: nonsense\nx = 'é'\n", "\N{SNOWMAN}"]
)
def test_a_text_is_what_its_file_would_hold(text: str) -> None:
    data = encode(text)
    if "nonsense" not in text:
        assert decode("k.py", data).text == text
    assert data == text.encode("latin-1" if "latin" in text else "utf-8")


def test_what_has_no_bytes_becomes_a_question_mark() -> None:
    assert encode("x = '\ud83d'") == b"x = '?'"
    assert encode("# coding: latin-1\n\N{SNOWMAN}") == b"# coding: latin-1\n?"
