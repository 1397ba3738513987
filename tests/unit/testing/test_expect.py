"""Annotations are read exactly, and reports are compared with them both ways."""

from __future__ import annotations

import pytest

from tilecheck.model import (
    Diagnostic,
    KernelReport,
    Related,
    Report,
    Severity,
    Site,
    Span,
    Suppression,
    Verdict,
)
from tilecheck.testing import AnnotationError, compare, read_expectations
from tilecheck.text import decode

TEXT = """\
@kernel
def copy(x, out):  # verdict: violated
    tile = load(x)  # site: read
    store(out, tile)  # expect: TC202 with=read
"""


def test_annotations_of_one_line_and_of_the_next() -> None:
    found = read_expectations(
        '# verdict: unknown(budget)\n# expect: TC201\n\nx = 1  # expect: TC302 @5 "wholly", TC303; ok: TC201\n'
        "y = '# expect: TC101'  # tilecheck: ignore[TC1] -- why  # suppressed: TC102 line=-1\n"
    )
    assert [(v.line, v.word) for v in found.verdicts] == [(4, "unknown(budget)")]
    assert [(f.key, f.code, f.line, f.column, f.text) for f in found.findings] == [
        ("expect", "TC201", 4, None, None),
        ("expect", "TC302", 4, 5, "wholly"),
        ("expect", "TC303", 4, None, None),
        ("ok", "TC201", 4, None, None),
        ("suppressed", "TC102", 4, None, None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # verdict: fine\n",
        "x = 1  # verdict: proved(because)\n",
        "x = 1  # expect: TC2\n",
        "x = 1  # expect: TC201 here\n",
        "x = 1  # expect: TC201 with=w\n",
        "x = 1  # expect: TC201; expected: TC202\n",
        "x = 1  # todo-verdict: unknown\n",
        "x = 1\n# expect: TC201\n",
        "x = (1\n",
    ],
)
def test_annotations_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(AnnotationError):
        read_expectations(text)


def site(text: str, piece: str) -> Site:
    start = text.index(piece)
    return Site("k.py", Span(start, start + len(piece)))


def finding(
    text: str, code: str, at: str, related: str | None = None, *, suppressed: bool = False
) -> Diagnostic:
    others = () if related is None else (Related(site(text, related), "the other access"),)
    why = Suppression("inSource", "reviewed") if suppressed else None
    return Diagnostic(
        code, "name", Severity.ERROR, "a message", site(text, at), related=others, suppression=why
    )


def messages(
    text: str, verdict: Verdict | None, *diagnostics: Diagnostic, reason: str | None = None
) -> list[str]:
    kernels = () if verdict is None else (KernelReport("copy", "cutile", site(text, "copy"), verdict, reason),)
    report = Report(kernels, diagnostics, files=1)
    return [f"{p.line}: {p.message}" for p in compare(decode("k.py", text.encode()), report)]


@pytest.mark.parametrize(("first", "second"), [("store(", "load("), ("load(", "store(")])
def test_either_end_of_a_race_may_come_first(first: str, second: str) -> None:
    assert not messages(TEXT, Verdict.VIOLATED, finding(TEXT, "TC202", first, second))


def test_differences_are_found_both_ways() -> None:
    race = finding(TEXT, "TC202", "store(", "load(")
    assert messages(TEXT, Verdict.PROVED) == [
        "2: `copy` is proved, not violated",
        "4: TC202 is not found here",
    ]
    assert messages(TEXT, Verdict.VIOLATED, race, finding(TEXT, "TC201", "store(")) == [
        "4: unexpected TC201: a message"
    ]
    assert messages(TEXT, Verdict.VIOLATED, finding(TEXT, "TC202", "store("))[0] == "4: TC202 is not found here"
    assert messages(TEXT, None, race) == ["2: `copy` was not found to be a kernel"]
    assert messages(TEXT.replace("  # verdict: violated", ""), Verdict.VIOLATED, race) == [
        "2: kernel `copy` has no verdict annotation"
    ]


def test_suppressed_findings_are_expected_apart() -> None:
    silenced = finding(TEXT, "TC202", "store(", "load(", suppressed=True)
    assert messages(TEXT, Verdict.VIOLATED, silenced) == [
        "4: TC202 is not found here",
        "4: unexpected suppressed TC202: a message",
    ]
    text = TEXT.replace("expect: TC202 with=read", "suppressed: TC202")
    assert not messages(text, Verdict.VIOLATED, finding(text, "TC202", "store(", suppressed=True))


@pytest.mark.parametrize(
    ("word", "matches"), [("unknown", True), ("unknown(unsupported)", True), ("unknown(budget)", False)]
)
def test_a_reason_may_be_left_out_or_cut_at_its_colon(word: str, *, matches: bool) -> None:
    text = f"@kernel\ndef copy(x):  # verdict: {word}\n    pass\n"
    found = messages(text, Verdict.UNKNOWN, reason="unsupported:match statement")
    assert found == ([] if matches else [f"2: `copy` is unknown(unsupported:match statement), not {word}"])


def test_known_gaps_fail_as_soon_as_they_close() -> None:
    text = "@kernel\ndef copy(x):  # verdict: proved; todo-verdict: violated\n    store(x)  # todo-ok: TC201\n"
    assert not messages(text, Verdict.VIOLATED, finding(text, "TC201", "store("))
    assert messages(text, Verdict.PROVED) == [
        "2: `copy` is proved at last: drop the todo-verdict",
        "3: TC201 is not found here any more: drop the todo-ok",
    ]
    text = (
        "@kernel\ndef copy(x):  # verdict: violated; todo-verdict: proved\n    store(x)  # todo-expect: TC201\n"
    )
    assert not messages(text, Verdict.PROVED)
    assert "3: TC201 is found here at last: make the todo-expect an expect" in messages(
        text, Verdict.PROVED, finding(text, "TC201", "store(")
    )
