"""Where comments are put: held against what reads them."""

from __future__ import annotations

import pytest

from tilecheck.frontend.text.pragmas import PragmaKind, read_pragmas
from tilecheck.lsp.edits import Edit, ignored, required, without_suppression
from tilecheck.lsp.outline import outline
from tilecheck.model import KernelReport, Site, Span, Verdict
from tilecheck.text import decode

MARK = "\N{WHITE DOWN POINTING BACKHAND INDEX}"
PLACES = {
    "a statement": "def k(x):\n    i = 0\n    " + MARK + "store(x)\n    i = 1\n",
    "inside a statement of several lines": "def k(x):\n    store(\n        x,\n        " + MARK + "y,\n    )\n",
    "behind a semicolon": "def k(x):\n    i = 0; " + MARK + "store(x)\n",
    "the body of an if on its line": "def k(x):\n    if x: " + MARK + "store(x)\n",
    "the header of an if": "def k(x):\n    if " + MARK + "load(x):\n        store(x)\n",
    "a header of two lines": "def k(x):\n    if (x and\n            " + MARK + "load(x)):\n        store(x)\n",
    "the header of an elif": "def k(x):\n    if x:\n        pass\n    elif "
    + MARK
    + "load(x):\n        store(x)\n",
    "the body of an else on its line": "def k(x):\n    if x:\n        pass\n    else: " + MARK + "store(x)\n",
    "a header that has a comment": "def k(x):\n    for i in "
    + MARK
    + "load(x):  # noqa: X\n        store(x)\n",
    "a decorator": "@" + MARK + "kernel\ndef k(x):\n    store(x)\n",
    "the name of a decorated function": "@kernel(\n    a=1,\n)\n@other\ndef " + MARK + "k(x):\n    store(x)\n",
    "a parameter": "def k(\n    x,\n    " + MARK + "y,\n):\n    store(x)\n",
    "a module's statement": MARK + "launch(x)\n",
    "no newline at the end": "def k(x):\n    " + MARK + "store(x)",
    "tabs": "def k(x):\n\tif x:\n\t\t" + MARK + "store(x)\n",
    "carriage returns": "def k(x):\r\n    i = 0\r\n    " + MARK + "store(x)\r\n",
    "wide characters": "def k(x):\n    s = 'é\N{MUSICAL SYMBOL G CLEF}'; " + MARK + "store(x)\n",
}


def applied(text: str, edit: Edit) -> str:
    data = text.encode()
    return (data[: edit.span.start] + edit.text.encode() + data[edit.span.end :]).decode()


@pytest.mark.parametrize("place", PLACES)
def test_a_suppression_is_read_and_speaks_of_the_place(place: str) -> None:
    text = PLACES[place].replace(MARK, "")
    offset = len(PLACES[place].partition(MARK)[0].encode())
    edit = ignored(outline(decode("k.py", text.encode())), offset, "TC201")
    after = applied(text, edit)
    [pragma] = read_pragmas(decode("k.py", after.encode()))
    assert (pragma.kind, pragma.arguments, bool(pragma.reason)) == (PragmaKind.IGNORE, ("TC201",), True)
    moved = offset + len(edit.text.encode()) * (edit.span.start <= offset)
    assert pragma.target.start <= moved < pragma.target.end
    assert "\r" not in edit.text.replace("\r\n", "")
    assert ("\r\n" in edit.text) == ("\r\n" in text)


@pytest.mark.parametrize(
    "place", ["the header of an if", "a header of two lines", "the name of a decorated function"]
)
def test_a_suppression_in_a_header_leaves_the_body_alone(place: str) -> None:
    text = PLACES[place].replace(MARK, "")
    offset = len(PLACES[place].partition(MARK)[0].encode())
    after = applied(text, ignored(outline(decode("k.py", text.encode())), offset, "TC201"))
    [pragma] = read_pragmas(decode("k.py", after.encode()))
    assert pragma.target.end <= after.encode().index(b"store")


def kernel(text: str, name: str = "k") -> KernelReport:
    at = text.index(f"def {name}") + len("def ")
    return KernelReport(name, "cutile", Site("k.py", Span(at, at + len(name))), Verdict.CONDITIONAL)


def test_contracts_are_stated_above_the_decorators() -> None:
    text = "if ready:\n    @a(\n        1,\n    )\n    @b\n    def k(x):\n        store(x)\n"
    edit = required(
        outline(decode("k.py", text.encode())), kernel(text), ("x.shape[0] % 4 == 0", "grid[0] <= 2")
    )
    after = applied(text, edit)
    found = read_pragmas(decode("k.py", after.encode()))
    assert [(p.kind, p.arguments, p.on_function) for p in found] == [
        (PragmaKind.REQUIRES, ("x.shape[0] % 4 == 0",), True),
        (PragmaKind.REQUIRES, ("grid[0] <= 2",), True),
    ]


def test_nothing_is_stated_where_nothing_is_missing() -> None:
    text = "def k(x):\n    store(x)\n"
    assert required(outline(decode("k.py", text.encode())), kernel(text), ()) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n# tilecheck: ignore[TC201] -- why\ny = 2\n", "x = 1\ny = 2\n"),
        ("x = 1  # tilecheck: ignore[TC201] -- why\ny = 2\n", "x = 1\ny = 2\n"),
        ("    # tilecheck: ignore[TC201] -- why", ""),
    ],
)
def test_a_suppression_is_taken_out(before: str, after: str) -> None:
    at = before.index("#")
    end = before.index("why") + 3
    source = decode("k.py", before.encode())
    assert applied(before, without_suppression(outline(source) or outline_of_nothing(), Span(at, end))) == after


def outline_of_nothing() -> None:
    pytest.fail("the text does not parse")


def test_a_suppression_of_several_rules_is_not_taken_out_whole() -> None:
    text = "# tilecheck: ignore[TC201, TC202] -- why\nx = 1\n"
    assert without_suppression(outline(decode("k.py", text.encode())), Span(0, 40)) is None
