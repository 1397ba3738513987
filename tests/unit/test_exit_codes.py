"""The table of exit codes, row by row."""

from __future__ import annotations

import pytest

from tilecheck.exit_codes import ExitCode, exit_code_of
from tilecheck.model import Diagnostic, KernelReport, Report, Severity, Site, Span, Suppression, Verdict
from tilecheck.options import Options

SITE = Site("a.py", Span(0, 1))
VERIFY = Options()
CHECK = Options(undecided_fails=False, needs_kernels=False)


def _kernel(verdict: Verdict, **more: str) -> KernelReport:
    return KernelReport("k", "cutile", SITE, verdict, **more)  # type: ignore[arg-type]


def _finding(
    severity: Severity = Severity.ERROR, code: str = "TC201", *, suppressed: bool = False
) -> Diagnostic:
    return Diagnostic(
        code, "name", severity, "message", SITE, "k", suppression=REVIEWED if suppressed else None
    )


REVIEWED = Suppression("inSource", "reviewed")
PROVED = _kernel(Verdict.PROVED)
VIOLATED = _kernel(Verdict.VIOLATED)
UNKNOWN = _kernel(Verdict.UNKNOWN, reason="budget")
CRASHED = _kernel(Verdict.UNKNOWN, reason="internal", internal_error="Traceback")
UNREADABLE = _finding(code="TC901")


@pytest.mark.parametrize("verdict", [Verdict.PROVED, Verdict.CONDITIONAL, Verdict.TRUSTED])
def test_decided_kernels_pass(verdict: Verdict) -> None:
    assert exit_code_of(Report((_kernel(verdict),), (), 1), VERIFY) is ExitCode.OK


@pytest.mark.parametrize(
    ("severity", "fail_on", "expected"),
    [
        (Severity.ERROR, Severity.ERROR, ExitCode.FINDINGS),
        (Severity.WARNING, Severity.ERROR, ExitCode.OK),
        (Severity.WARNING, Severity.WARNING, ExitCode.FINDINGS),
        (Severity.INFO, Severity.WARNING, ExitCode.OK),
        (Severity.INFO, Severity.INFO, ExitCode.FINDINGS),
    ],
)
def test_fail_on(severity: Severity, fail_on: Severity, expected: ExitCode) -> None:
    report = Report((PROVED,), (_finding(severity),), 1)
    assert exit_code_of(report, Options(fail_on=fail_on)) is expected


def test_order_of_strength() -> None:
    finding, unread = _finding(), ("b.py",)
    four = Report((VIOLATED, UNKNOWN, CRASHED), (finding, UNREADABLE), 2, unread)
    one = Report((VIOLATED, UNKNOWN), (finding, UNREADABLE), 2, unread)
    three = Report((PROVED, UNKNOWN), (), 2)
    assert [exit_code_of(report, VERIFY) for report in (four, one, three)] == [4, 1, 3]


def test_undecided_kernels_fail_only_the_gate() -> None:
    report = Report((UNKNOWN,), (), 1)
    assert exit_code_of(report, VERIFY) is ExitCode.UNDECIDED
    assert exit_code_of(report, CHECK) is ExitCode.OK


@pytest.mark.parametrize("options", [VERIFY, CHECK])
def test_files_that_do_not_parse(options: Options) -> None:
    alone = Report((), (UNREADABLE,), 1, ("a.py",), sources={"a.py": b"("})
    beside = Report((PROVED,), (UNREADABLE,), 2, ("b.py",), sources={"b.py": b"("})
    assert exit_code_of(alone, options) is ExitCode.UNDECIDED
    assert exit_code_of(beside, options) is ExitCode.UNDECIDED


def test_no_kernels() -> None:
    assert exit_code_of(Report((), (), 3), VERIFY) is ExitCode.USAGE
    assert exit_code_of(Report((), (), 3), CHECK) is ExitCode.OK
    missing = Report((), (UNREADABLE,), 1, ("gone.py",))
    assert exit_code_of(missing, VERIFY) is ExitCode.USAGE
    assert exit_code_of(missing, CHECK) is ExitCode.UNDECIDED


def test_suppressed_findings_leave_the_exit_code_and_keep_the_verdict() -> None:
    report = Report((VIOLATED,), (_finding(suppressed=True),), 1)
    assert exit_code_of(report, VERIFY) is ExitCode.OK
    assert report.count(Verdict.VIOLATED) == 1


def test_a_violated_kernel_without_a_finding_does_not_pass() -> None:
    assert exit_code_of(Report((VIOLATED,), (), 1), VERIFY) is ExitCode.FINDINGS


def test_an_undecided_kernel_that_the_baseline_has_does_not_fail() -> None:
    accepted = _kernel(Verdict.UNKNOWN, reason="budget", accepted=True)  # type: ignore[arg-type]
    assert exit_code_of(Report((accepted,), (), 1), VERIFY) is ExitCode.OK
    assert exit_code_of(Report((accepted, UNKNOWN), (), 1), VERIFY) is ExitCode.UNDECIDED


def test_kernels_that_are_left_out_are_kernels() -> None:
    assert exit_code_of(Report((), (), 1, unchanged=(("a.py", "k"),)), VERIFY) is ExitCode.OK
    assert exit_code_of(Report((), (), 1), VERIFY) is ExitCode.USAGE
