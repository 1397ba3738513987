"""What each level of `--require` asks of a kernel, and what is said of one that falls short."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilecheck.demand import has_decided_launches, held_to, shortfall
from tilecheck.exit_codes import ExitCode, exit_code_of
from tilecheck.hygiene import BELOW_DEMAND
from tilecheck.model import (
    ConditionAt,
    Diagnostic,
    KernelReport,
    LaunchReport,
    Premise,
    Report,
    Severity,
    Site,
    Span,
    Suppression,
    Verdict,
)
from tilecheck.options import DEMANDS, Options

SITE = Site("a.py", Span(0, 1))


def _launch(*statuses: str, problem: str = "") -> LaunchReport:
    judged = tuple(ConditionAt(f"c{number}", status) for number, status in enumerate(statuses))
    return LaunchReport(SITE, judged, "unread" if problem else "read", problem)


def _kernel(
    verdict: Verdict = Verdict.CONDITIONAL,
    launches: tuple[LaunchReport, ...] = (_launch("holds", "caller"),),
    *premises: str,
) -> KernelReport:
    stated = tuple(Premise(f"p{number}", None, "source", status) for number, status in enumerate(premises))
    return KernelReport("k", "cutile", SITE, verdict, launches=launches, premises=stated)


GOOD = _kernel()
UNKNOWN = replace(_kernel(Verdict.UNKNOWN), reason="budget")


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (GOOD, ""),
        (_kernel(Verdict.PROVED, (_launch(),)), ""),
        (_kernel(Verdict.TRUSTED), ""),
        (_kernel(Verdict.CONDITIONAL, (_launch("holds"),), "holds", "guarded"), ""),
        (_kernel(Verdict.PROVED, ()), "no launch of it is in view"),
        (_kernel(Verdict.CONDITIONAL, (_launch("holds"), _launch(problem="a loop"))), "unread: a loop"),
        (_kernel(Verdict.CONDITIONAL, (_launch("holds", "unmet"),)), "leaves it unmet: c1"),
        (_kernel(Verdict.CONDITIONAL, (_launch("unknown"),)), "leaves it unknown: c0"),
        (_kernel(Verdict.CONDITIONAL, (_launch("broken"),)), "leaves it broken: c0"),
        (_kernel(Verdict.CONDITIONAL, (_launch("holds"),), "holds", "promised"), "rests on a promise: p1"),
        (UNKNOWN, "it is unknown (budget)"),
        (_kernel(Verdict.VIOLATED), "it is violated"),
    ],
)
def test_launches_asks_for_launches_that_are_decided_and_for_no_promise(kernel: KernelReport, why: str) -> None:
    found = shortfall(kernel, "launches")
    assert (why in found) if why else found == ""


@pytest.mark.parametrize("verdict", list(Verdict))
def test_proved_asks_for_the_verdict_alone(verdict: Verdict) -> None:
    assert (shortfall(_kernel(verdict, ()), "proved") == "") == (verdict is Verdict.PROVED)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_conditional_asks_for_nothing_more(verdict: Verdict) -> None:
    assert shortfall(_kernel(verdict, (), "promised"), "conditional") == ""


@pytest.mark.parametrize(
    ("launches", "decided"),
    [
        ((), False),
        ((_launch(),), True),
        ((_launch("holds", "caller"), _launch("holds")), True),
        ((_launch("holds"), _launch(problem="a loop")), False),
        ((_launch("holds"), _launch("unmet")), False),
        ((_launch("unknown"),), False),
    ],
)
def test_launches_are_decided_if_each_is_read_and_each_requirement_is_met(
    launches: tuple[LaunchReport, ...], decided: bool
) -> None:
    assert has_decided_launches(_kernel(Verdict.CONDITIONAL, launches)) == decided


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("demand", DEMANDS)
def test_a_kernel_below_the_level_ends_the_run_with_3(demand: str, verify: bool) -> None:
    options = Options(require=demand, undecided_fails=verify, needs_kernels=verify)
    report = held_to(Report((_kernel(Verdict.CONDITIONAL, ()),), (), 1), demand)
    is_below = demand != "conditional"
    assert [d.code for d in report.diagnostics] == [BELOW_DEMAND] * is_below
    assert exit_code_of(report, options) == (ExitCode.UNDECIDED if is_below else ExitCode.OK)


def test_the_finding_is_no_reason_for_1_and_hides_none() -> None:
    options = Options(require="launches", fail_on=Severity.INFO)
    below = held_to(Report((_kernel(Verdict.CONDITIONAL, ()),), (), 1), "launches")
    assert exit_code_of(below, options) is ExitCode.UNDECIDED
    race = Diagnostic("TC201", "name", Severity.ERROR, "message", SITE, "k")
    assert exit_code_of(replace(below, diagnostics=(*below.diagnostics, race)), options) is ExitCode.FINDINGS


def test_neither_a_suppression_nor_a_baseline_lifts_a_kernel() -> None:
    silenced = Diagnostic(
        "TC201", "name", Severity.ERROR, "message", SITE, "k", suppression=Suppression("external", "known")
    )
    violated = held_to(Report((_kernel(Verdict.VIOLATED),), (silenced,), 1), "launches")
    assert exit_code_of(violated, Options()) is ExitCode.OK
    assert exit_code_of(violated, Options(require="launches")) is ExitCode.UNDECIDED
    accepted = Report((replace(UNKNOWN, accepted=True),), (), 1)
    assert exit_code_of(accepted, Options()) is ExitCode.OK
    assert exit_code_of(accepted, Options(require="launches")) is ExitCode.UNDECIDED
