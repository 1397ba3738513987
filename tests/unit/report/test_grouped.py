"""Findings kernel by kernel."""

from __future__ import annotations

from dataclasses import replace

from tilecheck.model import Related, Severity, Suppression, Verdict
from tilecheck.report.formats import text_of


def test_findings_stand_below_the_verdict_of_their_kernel(made) -> None:
    kernels = [made.kernel("second", Verdict.PROVED), made.kernel("first", Verdict.VIOLATED)]
    text = text_of("grouped", made.run(*kernels, made.finding()))
    assert text.startswith(
        "violated  k.py:2  first\n    4:5: error[TC201] a message\n\nproved  k.py:10  second\n"
    )


def test_check_lists_only_what_something_is_said_of(made) -> None:
    kernels = [made.kernel("second", Verdict.PROVED), made.kernel("first", Verdict.VIOLATED)]
    for more in ({"lists_verdicts": False}, {"quiet": True}):
        text = text_of("grouped", made.run(*kernels, made.finding(), **more))
        assert "first" in text
        assert "second" not in text
    unknown = made.kernel("first", Verdict.UNKNOWN, reason="budget")
    assert "because budget" in text_of("grouped", made.run(unknown, quiet=True))


def test_a_finding_in_another_file_names_it(make) -> None:
    made = make(more={"host.py": b"launch()\n"})
    kernel = made.kernel("first", Verdict.VIOLATED)
    elsewhere = make(source="launch()\n", file="host.py").finding(
        "launch()", related=(Related(kernel.site, ""),)
    )
    text = text_of("grouped", made.run(kernel, elsewhere))
    assert "violated  k.py:2  first\n    host.py:1:1: error[TC201] a message\n" in text


def test_a_finding_goes_to_the_kernel_of_its_own_file(make) -> None:
    one, other = make(file="a.py"), make(file="b.py")
    kernels = [one.kernel("first", Verdict.PROVED), other.kernel("first", Verdict.VIOLATED)]
    run = replace(one.run(*kernels, other.finding()), lists_verdicts=True)
    text = text_of("grouped", run)
    assert "proved  a.py:" in text.partition("\n\n")[0]
    assert "TC201" not in text.partition("\n\n")[0]


def test_what_belongs_to_no_kernel_comes_last_and_what_is_suppressed_not_at_all(made) -> None:
    comment = made.finding(kernel=None, code="TC904", message="a comment", severity=Severity.WARNING)
    silenced = made.finding(message="silenced", suppression=Suppression("inSource", "why"))
    text = text_of("grouped", made.run(made.kernel("first", Verdict.PROVED), comment, silenced))
    assert "proved  k.py:2  first\n\nk.py\n    4:5: warning[TC904] a comment\n" in text
    assert "silenced" not in text
