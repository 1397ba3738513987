"""What lines say: every form is read as it is meant, and what is wrong is named."""

from __future__ import annotations

import json

import pytest

from tilecheck.gate.protocol import BadLine, Item, answer, read_line


def _line(**said: object) -> bytes:
    return json.dumps(said).encode()


def test_the_least_and_the_most_of_a_line() -> None:
    assert read_line(_line(id="a", source="x = 1")) == Item("a", "x = 1")
    assert read_line(_line(id="", source="", contracts=None, launch=None)) == Item("", "")
    item = read_line(_line(id="b", source="s", contracts=["n > 0", "m > 0"], launch="run()"))
    assert item == Item("b", "s", contracts=("n > 0", "m > 0"), launch="run()")
    item = read_line(_line(id="c", source="s", contracts={"k": ["n > 0"], "l": []}))
    assert item == Item("c", "s", contracts_of={"k": ("n > 0",), "l": ()})


def test_white_space_around_a_line_is_json() -> None:
    assert read_line(b' {"id": "a", "source": ""} \r').name == "a"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "the line is empty"),
        (b" \t\r", "the line is empty"),
        (b"{", "no JSON: expecting property name"),
        (b'{"id": "a", "source": ""} {}', "no JSON: extra data"),
        (b"\xef\xbb\xbf{}", "no JSON: unexpected UTF-8 BOM"),
        (b'{"id": "\xff"}', "byte 0xff at 9 is not UTF-8"),
        ("{}".encode("utf-16"), "is not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[1]", "must be a JSON object, not a list"),
        (b"null", "must be a JSON object, not null"),
        (b"3", "must be a JSON object, not a number"),
        (b'"text"', "must be a JSON object, not a text"),
        (b"{}", "`id` is missing"),
        (b'{"id": 3.5, "source": ""}', "`id` must be a text or a whole number, not a fraction"),
        (b'{"id": null, "source": ""}', "`id` must be a text or a whole number, not null"),
        (b'{"id": true, "source": ""}', "`id` must be a text or a whole number, not a truth value"),
        (b'{"id": ["a"], "source": ""}', "`id` must be a text or a whole number, not a list"),
        (_line(id="a" * 1001, source=""), "`id` has 1,001 characters"),
        (b'{"id": "a", "id": "b", "source": ""}', "the key `id` is given twice"),
        (b'{"id": ' + b"9" * 5000 + b"}", ""),
    ],
)
def test_lines_without_an_id(line: bytes, problem: str) -> None:
    with pytest.raises(BadLine) as bad:
        read_line(line)
    assert problem in bad.value.problem
    assert bad.value.name is None


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({}, "`source` is missing"),
        ({"source": None}, "`source` must be a text, not null"),
        ({"source": ["x"]}, "`source` must be a text, not a list"),
        ({"sources": ""}, "no key `sources`: did you mean `source`?"),
        ({"source": "", "q": 1}, "no key `q`: known are `id`, `source`, `contracts`, `launch`"),
        ({"source": "", "launch": 1}, "`launch` must be a text, not a number"),
        ({"source": "", "contracts": "n > 0"}, "`contracts` must be a list of texts"),
        ({"source": "", "contracts": [1]}, "`contracts` must be a list of texts"),
        ({"source": "", "contracts": {"k": "n > 0"}}, "`contracts` must be a list of texts"),
        ({"source": "", "contracts": ["n > 0\nm > 0"]}, "line break"),
        ({"source": "", "contracts": ["n > \ud800"]}, "surrogate"),
        ({"source": "x = '\ud800'"}, "`source` holds a lone surrogate, U+D800, at character 6"),
        ({"source": "", "launch": "\udfff"}, "`launch` holds a lone surrogate, U+DFFF, at character 1"),
    ],
)
def test_lines_with_an_id(said: dict[str, object], problem: str) -> None:
    with pytest.raises(BadLine) as bad:
        read_line(json.dumps({"id": "a"} | said).encode())
    assert problem in bad.value.problem
    assert bad.value.name == "a"


def test_an_answer_is_one_line_of_ascii() -> None:
    said = answer("é\n\ud800", [{"name": "k\u2028"}], [], None)
    assert said.count(b"\n") == 1
    assert said.endswith(b"\n")
    assert said.isascii()
    assert json.loads(said) == {
        "id": "é\n\ud800",
        "kernels": [{"name": "k\u2028"}],
        "diagnostics": [],
        "error": None,
    }
    assert list(json.loads(said)) == ["id", "kernels", "diagnostics", "error"]
