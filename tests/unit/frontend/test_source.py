"""Reading and parsing: spans are the file's bytes, and nothing that a file holds gets past as a crash."""

from __future__ import annotations

import os
from pathlib import Path

import libcst as cst
import pytest

from tilecheck.errors import SourceError
from tilecheck.frontend.text import source as reading
from tilecheck.frontend.text.source import ParsedModule, load, parse, read_bytes
from tilecheck.text import decode


class _Names(cst.CSTVisitor):
    def __init__(self, parsed: ParsedModule) -> None:
        self.parsed = parsed
        self.seen: list[tuple[str, str]] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.seen.append((node.value, self.parsed.source.snippet(self.parsed.span(node))))


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\r\ny = x\r\n",
        b"x = 1\ry = x\r",
        "\ufeffx = 'é'; y = x\n".encode(),
        "é = 'ß'; y = é".encode(),
        "# coding: latin-1\né = 'ß'; y = é\n".encode("latin-1"),
        "# coding: shift_jis\nx = '日本'; y = x\n".encode("shift_jis"),
        b"\x0cx = 1\n\x0c\ndef f():\n    y = x\n\x0c    z = y",
        b"\\\nx = 1\n\\\ny = x\n",
        b"x = (1 +\\\n  y)\n",
        b"def f():\n\tif x:\n\t\ty = 1\n",
        b"x=1",
    ],
)
def test_spans_are_bytes_of_the_file(data: bytes) -> None:
    parsed = parse(decode("a.py", data))
    names = _Names(parsed)
    parsed.module.visit(names)
    assert names.seen
    assert all(name == text for name, text in names.seen)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("x = 1\ndef f(:\n", "invalid syntax", (2, 7)),
        ("x = 1\nprint x\n", "missing parentheses in call to 'print'. Did you mean print(...)?", (2, 1)),
        ("é = (1,\n", "'(' was never closed", (1, 5)),
        ("if x:\ny = 1\n", "expected an indented block after 'if' statement on line 1", (2, 1)),
    ],
)
def test_syntax_errors_have_a_place(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(SourceError) as caught:
        parse(decode("a.py", text.encode()))
    assert (caught.value.message, (caught.value.line, caught.value.column)) == (message, place)


@pytest.mark.parametrize("depth", [250, 3_000, 20_000])
@pytest.mark.parametrize(
    ("before", "inside", "after"),
    [
        ("(", "1", ")"),
        ("f(", "1", ")"),
        ("[", "1", "]"),
        ("-", "1", ""),
        ("not ", "1", ""),
        ("1+", "1", ""),
        ("a.", "b", ""),
    ],
)
def test_deep_nesting_is_refused_and_does_not_crash(depth: int, before: str, inside: str, after: str) -> None:
    text = f"x = {before * depth}{inside}{after * depth}\n"
    with pytest.raises(SourceError, match=r"nested|too many"):
        parse(decode("a.py", text.encode()))


def test_long_chains_of_elif_are_refused_and_do_not_crash() -> None:
    text = "if a: pass\n" + "elif b: pass\n" * 2_000
    with pytest.raises(SourceError, match="nested"):
        parse(decode("a.py", text.encode()))


def test_bad_string_escapes_are_not_our_business() -> None:
    assert parse(decode("a.py", b'x = "\\d"\n')).module.body


def test_missing_and_odd_files_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    for path, message in (
        (tmp_path / "none.py", "no such file or directory"),
        (tmp_path, "not a regular file"),
        (pipe, "not a regular file"),
    ):
        with pytest.raises(SourceError, match=message):
            read_bytes(str(path))
    with pytest.raises(SourceError, match="null"):
        read_bytes("a\0b")


def test_huge_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "huge.py"
    file.write_bytes(b"x = 1\n" * 10)
    monkeypatch.setattr(reading, "MAX_BYTES", 59)
    with pytest.raises(SourceError, match="the file has 60 bytes; files over 59 bytes are not read"):
        load(str(file))


def test_ten_thousand_lines_are_read(tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    file.write_text("".join(f"x{number} = {number}\n" for number in range(10_000)))
    parsed = load(str(file))
    assert len(parsed.module.body) == 10_000
    span = parsed.span(parsed.module.body[-1])
    assert parsed.source.position(span.start) == (10_000, 1)
