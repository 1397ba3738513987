"""`# tilecheck:` comments: what they say and what they speak of."""

from __future__ import annotations

import pytest

from tilecheck.frontend.text.pragmas import Pragma, PragmaKind, read_pragmas
from tilecheck.text import Source, decode

KERNEL = '''# tilecheck: mut out, lse
# tilecheck: requires N % 128 == 0 -- the launcher pads
@ct.kernel
# tilecheck: shared x
@tuned(
    1)
def kernel(x,
           out):  # tilecheck: requires x.shape[0] > 0
    """# tilecheck: mut not_a_comment"""
    # tilecheck: unsafe -- the whole loop
    for i in range(3):  # tilecheck: ignore[TC203, write-write-overlap] -- the header
        ct.store(
            out,  # tilecheck: ignore[TC202] -- inside
            1)
        a = 1; b = 2  # noqa: E702  # tilecheck: unsafe -- both #1 # of them
    if x: y = 1  # tilecheck: unsafe -- one
    # tilecheck: unsafe -- all
    if x: z = 1
'''


def _read(text: str) -> tuple[Source, tuple[Pragma, ...]]:
    source = decode("a.py", text.encode())
    return source, read_pragmas(source)


def test_each_kind_and_what_it_speaks_of() -> None:
    source, pragmas = _read(KERNEL)
    function = source.text[source.text.index("@ct.kernel") :].rstrip()
    loop = source.text[source.text.index("for i") : source.text.index("b = 2") + 5]
    found = [(p.kind.value, p.arguments, p.reason, source.snippet(p.target), p.on_function) for p in pragmas]
    assert found == [
        ("mut", ("out", "lse"), None, function, True),
        ("requires", ("N % 128 == 0",), "the launcher pads", function, True),
        ("shared", ("x",), None, function, True),
        ("requires", ("x.shape[0] > 0",), None, function, True),
        ("unsafe", (), "the whole loop", loop, False),
        ("ignore", ("TC203", "write-write-overlap"), "the header", loop.splitlines(keepends=True)[0], False),
        ("ignore", ("TC202",), "inside", loop[loop.index("ct.store") : loop.index("1)") + 2], False),
        ("unsafe", (), "both #1", "a = 1; b = 2", False),
        ("unsafe", (), "one", "y = 1", False),
        ("unsafe", (), "all", "if x: z = 1", False),
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("head", ["", "\ufeff"])
def test_spans_hold_in_every_layout(newline: str, head: str) -> None:
    expected = [p.arguments for p in _read(KERNEL)[1]]
    source, pragmas = _read(head + KERNEL.replace("\n", newline))
    assert [p.arguments for p in pragmas] == expected
    for pragma in pragmas:
        assert source.snippet(pragma.span).startswith("# ")
        assert all(argument in source.snippet(pragma.argument) for argument in pragma.arguments)


KNOWN = "known are mut, shared, fills, requires, unsafe, ignore"


@pytest.mark.parametrize(
    ("comment", "problem"),
    [
        ("ignore -- blanket", "it must name the rules it silences: `ignore[TC201]`"),
        ("ignore[] -- none", "it names no rule"),
        ("ignore[TC20] -- short", "`TC20` is neither a rule's code nor its name"),
        ("ignroe[TC201] -- typo", "`ignroe` is not a kind of tilecheck comment; did you mean `ignore`?"),
        (
            "assume N > 0",
            f"`assume` is not a kind of tilecheck comment; {KNOWN}",
        ),
        ("requires N %% 2", "`N %% 2` is not a Python expression"),
        ("requires -- why", "it states no condition"),
        ("mut", "it names no parameter"),
        ("mut 1x", "`1x` is not the name of a parameter"),
        ("unsafe because", "`because` is not understood here; a reason follows ` -- `"),
        ("", f"it says nothing; {KNOWN}"),
    ],
)
def test_what_is_not_understood_says_why(comment: str, problem: str) -> None:
    _, (pragma,) = _read(f"# tilecheck: {comment}\nx = 1\n")
    assert pragma.kind is PragmaKind.MALFORMED
    assert pragma.problem == problem
    assert pragma.arguments == ()


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n# tilecheck: mut out\n",
        "def f():\n    pass\n    # tilecheck: unsafe -- the block ends here\ny = 1\n",
        "for i in x:\n    pass\n    # tilecheck: unsafe -- the block ends here\nelse:\n    pass\n",
        "if x:\n    pass\nelse:  # tilecheck: unsafe -- no statement\n    pass\n",
    ],
)
def test_a_comment_that_speaks_of_nothing_is_malformed(text: str) -> None:
    _, (pragma,) = _read(text)
    assert pragma.problem == "no statement follows it in its block"


def test_only_comments_count() -> None:
    assert _read("x = '# tilecheck: mut out'\n")[1] == ()
    assert _read("x = 1  # see tilecheck: nothing\n")[1] == ()


def test_a_further_comment_is_not_part_of_it() -> None:
    _, (pragma,) = _read("# tilecheck: mut out  # expect: TC101\nx = 1\n")
    assert (pragma.arguments, pragma.reason) == (("out",), None)


def test_a_reason_may_hold_anything() -> None:
    _, (pragma,) = _read("# tilecheck: requires a--b -- one -- two\nx = 1\n")
    assert (pragma.arguments, pragma.reason) == (("a--b",), "one -- two")
