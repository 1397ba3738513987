"""Suppressions: what they silence, what they never silence, and what is said of them."""

from __future__ import annotations

import pytest

from tilecheck.frontend.text.pragmas import read_pragmas
from tilecheck.model import Diagnostic, Severity, Site, Span, Suppression
from tilecheck.text import decode
from tilecheck.verify.suppressions import apply_suppressions

TEXT = """@ct.kernel
def k(out):
    # tilecheck: ignore[{rules}] {reason}
    ct.store(out, index=(0,), tile=t)
    ct.store(out, index=(1,), tile=t)
"""


def _finding(text: str, at: str, code: str = "TC201", name: str = "write-write-overlap") -> Diagnostic:
    start = text.index(at)
    return Diagnostic(code, name, Severity.ERROR, "message", Site("a.py", Span(start, start + len(at))), "k")


def _apply(text: str, *findings: Diagnostic, partial: bool = False) -> list[tuple[str, bool]]:
    pragmas = {"a.py": read_pragmas(decode("a.py", text.encode()))}
    result = apply_suppressions(findings, pragmas, partial=frozenset({"a.py"} if partial else ()))
    return [(finding.code, finding.suppressed) for finding in result]


@pytest.mark.parametrize("rules", ["TC201", "write-write-overlap", "TC203, TC201"])
def test_a_finding_is_marked_and_kept(rules: str) -> None:
    text = TEXT.format(rules=rules, reason="-- known")
    found = _apply(text, _finding(text, "ct.store(out, index=(0,)"))
    assert found[0] == ("TC201", True)
    assert found[1:] == ([("TC902", False)] if "TC203" in rules else [])


def test_a_finding_carries_why_it_is_silenced() -> None:
    text = TEXT.format(rules="TC201", reason="-- the launcher uses one block")
    pragmas = {"a.py": read_pragmas(decode("a.py", text.encode()))}
    (found,) = apply_suppressions([_finding(text, "ct.store(out, index=(0,)")], pragmas)
    assert found.suppression == Suppression("inSource", "the launcher uses one block")


def test_another_statement_and_another_rule_are_not_silenced() -> None:
    text = TEXT.format(rules="TC201", reason="-- known")
    assert _apply(text, _finding(text, "ct.store(out, index=(1,)")) == [("TC201", False), ("TC902", False)]
    other = _finding(text, "ct.store(out, index=(0,)", "TC302", "tile-outside-array")
    assert _apply(text, other) == [("TC302", False), ("TC902", False)]


def test_without_a_reason_it_has_no_effect() -> None:
    text = TEXT.format(rules="TC201", reason="")
    assert _apply(text, _finding(text, "ct.store(out, index=(0,)")) == [("TC201", False), ("TC903", False)]


def test_above_a_function_it_covers_the_function() -> None:
    text = "# tilecheck: ignore[TC201] -- known\n@ct.kernel\ndef k(out):\n    ct.store(out)\n"
    assert _apply(text, _finding(text, "ct.store(out)")) == [("TC201", True)]


@pytest.mark.parametrize("place", ["@ct.kernel(occupancy=2){}\n@other\n", "@other\n@ct.kernel(\n    2,{}\n)\n"])
def test_on_a_decorator_it_covers_the_function(place: str) -> None:
    text = place.format("  # tilecheck: ignore[TC201] -- known") + "def k(out):\n    ct.store(out)\n"
    assert _apply(text, _finding(text, "ct.store(out)")) == [("TC201", True)]


def test_on_the_def_it_covers_the_header_only() -> None:
    text = "@ct.kernel\ndef k(out):  # tilecheck: ignore[TC201] -- known\n    ct.store(out)\n"
    assert _apply(text, _finding(text, "ct.store(out)")) == [("TC201", False), ("TC902", False)]


def test_a_rule_that_does_not_exist_is_a_mistake() -> None:
    text = TEXT.format(rules="write-write-overlp, TC999, tc201", reason="-- known")
    pragmas = {"a.py": read_pragmas(decode("a.py", text.encode()))}
    finding = _finding(text, "ct.store(out, index=(0,)")
    race, *mistakes = apply_suppressions([finding], pragmas, partial=frozenset({"a.py"}))
    assert race.suppressed  # a code in lower case is one
    assert [(d.code, d.message.partition(": ")[2]) for d in mistakes] == [
        ("TC904", "no rule has the code or name `write-write-overlp`; did you mean `write-write-overlap`?"),
        ("TC904", "no rule has the code or name `TC999`; `tilecheck rules` lists the rules"),
    ]


def test_on_a_header_it_covers_the_header_only() -> None:
    text = "for i in range(n):  # tilecheck: ignore[TC201] -- known\n    ct.store(out)\n"
    assert _apply(text, _finding(text, "ct.store(out)")) == [("TC201", False), ("TC902", False)]
    assert _apply(text, _finding(text, "range(n)")) == [("TC201", True)]


def test_unused_is_not_said_where_kernels_are_undecided() -> None:
    text = TEXT.format(rules="TC201", reason="-- known")
    assert _apply(text) == [("TC902", False)]
    assert _apply(text, partial=True) == []


def test_hygiene_is_never_silenced() -> None:
    text = TEXT.format(rules="TC902", reason="-- no")
    unused = _finding(text, "ct.store(out, index=(0,)", "TC902", "unused-suppression")
    assert _apply(text, unused) == [("TC902", False), ("TC902", False)]


def test_malformed_comments_are_findings() -> None:
    assert _apply("# tilecheck: ignore\nx = 1\n") == [("TC904", False)]


def test_findings_of_another_file_are_not_silenced() -> None:
    text = TEXT.format(rules="TC201", reason="-- known")
    finding = _finding(text, "ct.store(out, index=(0,)")
    moved = Diagnostic(finding.code, finding.name, finding.severity, "", Site("b.py", finding.site.span))
    assert _apply(text, moved) == [("TC201", False), ("TC902", False)]
