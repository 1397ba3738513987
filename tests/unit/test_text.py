"""Bytes to lines and columns, for every encoding and newline that Python reads."""

from __future__ import annotations

import pytest

from tilecheck.errors import SourceError
from tilecheck.text import decode, decode_leniently


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_positions_are_code_points(newline: str, encoding: str) -> None:
    cookie = "# coding: latin-1" if encoding == "latin-1" else "#"
    text = newline.join([cookie, "\té = x", "", "last"])
    source = decode("a.py", text.encode(encoding))
    for needle, expected in (("#", (1, 1)), ("é", (2, 2)), ("=", (2, 4)), ("x", (2, 6)), ("last", (4, 1))):
        offset = source.data.index(needle.encode())
        assert source.position(offset) == expected
        assert source.offset(*expected) == offset
    assert [source.line(number) for number in range(1, 5)] == [cookie, "\té = x", "", "last"]


def test_wide_and_astral_characters_are_one_column() -> None:
    source = decode("a.py", "日本 😀x".encode())
    assert source.position(source.data.index(b"x")) == (1, 5)


def test_offsets_outside_the_file_are_moved_into_it() -> None:
    source = decode("a.py", b"\xef\xbb\xbfab")
    assert source.position(-5) == (1, 1)
    assert source.position(0) == (1, 1)
    assert source.position(99) == (1, 3)
    assert source.offset(99, 99) == 5


def test_other_line_separators_do_not_end_a_line() -> None:
    source = decode("a.py", "a\x0cb\u2028c\x85d\n".encode())
    assert source.line_count == 2
    assert source.position(source.data.index(b"d")) == (1, 7)


def test_spans_count_utf8_in_any_encoding() -> None:
    for data in ("é = x".encode(), "# coding: latin-1\né = x".encode("latin-1")):
        source = decode("a.py", data)
        assert source.data[source.utf8_offset(source.line_count, len("é = ".encode()))] == ord("x")


@pytest.mark.parametrize(
    ("data", "message", "place"),
    [
        (b"x = 1\ny = '\xe9'\n", "byte 0xe9 is not utf-8 text", (2, 6)),
        (b"# coding: nosuch\n", "unknown encoding `nosuch`", (1, 1)),
        (
            b"\xef\xbb\xbf# coding: latin-1\n",
            "the file begins with a UTF-8 mark but declares `latin-1`",
            (1, 1),
        ),
        (b"# coding: utf-16\n", "unknown encoding `utf-16`", (1, 1)),
        (b"# coding: rot13\n", "unknown encoding `rot13`", (1, 1)),
        (b"# coding: hex\n", "unknown encoding `hex`", (1, 1)),
        (b"x = 1\nab\0c", "the file holds a null byte: it is not Python source", (2, 3)),
        (b"\x7fELF\x01\0\0", "the file holds a null byte: it is not Python source", (1, 6)),
    ],
)
def test_what_is_not_text_is_refused(data: bytes, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(SourceError) as caught:
        decode("a.py", data)
    assert caught.value.message == message
    assert (caught.value.line, caught.value.column) == place


def test_a_cookie_counts_only_in_the_first_two_lines() -> None:
    assert decode("a.py", b"#\n# coding: latin-1\n# \xe9").text.endswith("é")
    for head in (b"#\n#\n", b"x = 1\n"):
        with pytest.raises(SourceError, match="is not utf-8 text"):
            decode("a.py", head + b"# coding: latin-1\n# \xe9")


def test_lenient_decoding_never_fails() -> None:
    source = decode_leniently("a.py", b"x\n\xff\xfe = '\0'\n")
    assert source.position(4) == (2, 3)
    assert decode_leniently("a.py", b"").position(0) == (1, 1)


def test_places_are_the_same_before_and_after_decoding() -> None:
    raw = "# coding: latin-1\né = x\n".encode("latin-1")
    once = decode_leniently("a.py", raw)
    twice = decode_leniently("a.py", once.data)
    assert once.line(2) == twice.line(2) == "é = x"
