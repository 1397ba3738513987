"""The text of a program without layout."""

from __future__ import annotations

import pytest

from tilecheck.normal import digest, tokens
from tilecheck.text import decode

CODE = "def f(a):\n    b = a + 1\n    return b\n"


def _texts(text: str) -> list[str] | None:
    found = tokens(decode("a.py", text.encode()))
    return None if found is None else [token.text for token in found]


@pytest.mark.parametrize(
    "same",
    [
        "\n\ndef f(a):  # why\n    b = a + 1\n    return b",
        "def f(a):\r\n  b = a +  1\r\n\r\n  return b\r\n",
        "# -*- coding: utf-8 -*-\ndef f(\n    a):\n    b = a \\\n        + 1\n    # done\n    return b\n",
        "\ufeff" + CODE,
    ],
)
def test_layout_and_comments_are_left_out(same: str) -> None:
    assert _texts(same) == _texts(CODE)


@pytest.mark.parametrize(
    "other",
    [
        CODE.replace("1", "2"),
        CODE.replace("    return b", "return b"),
        CODE.replace("(a)", "(a):  # tilecheck: mut a\n#").replace("#:", "#"),
        "# tilecheck: mut a\n" + CODE,
        CODE.replace("a + 1", "a+1j"),
        CODE.replace("return b", "return 'b'"),
    ],
)
def test_what_is_read_counts(other: str) -> None:
    assert _texts(other) not in (None, _texts(CODE))


def test_where_a_comment_stands_counts() -> None:
    above = "    # tilecheck: ignore[TC201] -- known\n    return b"
    behind = "    return b  # tilecheck: ignore[TC201] -- known"
    outside = "    return b\n# tilecheck: ignore[TC201] -- known"
    texts = [_texts(CODE.replace("    return b", form)) for form in (above, behind, outside)]
    assert None not in texts
    assert len({tuple(text or ()) for text in texts}) == 3


@pytest.mark.parametrize("text", ["x = (\n", "if x:\n  a\n b\n", "x = '''\n"])
def test_what_is_no_python_has_no_tokens(text: str) -> None:
    assert _texts(text) is None


def test_a_token_says_where_it_begins() -> None:
    text = "é = 'ü'  # x\n\nnext = é\n"
    found = tokens(decode("a.py", text.encode())) or ()
    data = text.encode()
    assert [data[t.start :].startswith(t.text.encode()) for t in found] == [True] * len(found)


def test_a_digest_keeps_texts_apart() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"]) != digest(["abc"])
    assert digest(["a", "b"]) == digest(["a", "b"])
