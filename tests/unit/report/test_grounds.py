"""What stands below a verdict: conditions, contracts, and each launch with who has to meet what."""

from __future__ import annotations

import json

import pytest

from tilecheck.model import ConditionAt, LaunchReport, Premise, Verdict
from tilecheck.options import FORMATS
from tilecheck.report.emitters import step_summary
from tilecheck.report.formats import text_of
from tilecheck.report.places import Places
from tilecheck.report.style import plain
from tilecheck.report.verdicts import grounds, render_summary

LAUNCH = "ct.store(out, index=(0,), tile=0)"  # in line 11
PREMISE = Premise("distinct(x)", "each row once", "config")


def _launch(made, *judged: str, function: str = "run", problem: str = "") -> LaunchReport:
    conditions = tuple(ConditionAt(f"c{number}", status) for number, status in enumerate(judged))
    return LaunchReport(made.site(LAUNCH), conditions, "unread" if problem else "read", problem, function)


def _lines(made, verdict: Verdict, *launches: LaunchReport) -> list[str]:
    kernel = made.kernel("first", verdict, launches=launches)
    return list(grounds(kernel, Places({made.file: made.source.encode()})))


@pytest.mark.parametrize(
    ("judged", "said"),
    [
        (("holds",), "the requirement holds"),
        (("holds", "holds"), "all 2 requirements hold"),
        (("holds", "caller", "holds"), "2 of 3 requirements hold; `run` relies on its caller for: c1"),
        (("caller", "caller"), "0 of 2 requirements hold; `run` relies on its caller for: c0, c1"),
        (("unmet", "caller"), "0 of 2 requirements hold; unmet: c0; `run` relies on its caller for: c1"),
    ],
)
def test_a_launch_says_how_much_holds_and_who_meets_the_rest(made, judged: tuple[str, ...], said: str) -> None:
    assert _lines(made, Verdict.CONDITIONAL, _launch(made, *judged)) == [f"launch at line 11: {said}"]


def test_a_launch_of_the_module_relies_on_the_module(made) -> None:
    (line,) = _lines(made, Verdict.CONDITIONAL, _launch(made, "caller", function="<module>"))
    assert line.endswith("the module relies on its caller for: c0")


@pytest.mark.parametrize("verdict", list(Verdict))
def test_an_unread_launch_is_never_passed_over(made, verdict: Verdict) -> None:
    lines = _lines(made, verdict, _launch(made, problem="the arguments are not known"))
    assert "launch at line 11: unread: the arguments are not known" in lines


@pytest.mark.parametrize(
    ("verdict", "judged", "is_told"),
    [
        (Verdict.PROVED, ("holds",), False),
        (Verdict.PROVED, ("caller",), True),
        (Verdict.CONDITIONAL, ("holds",), True),
        (Verdict.CONDITIONAL, (), False),
        (Verdict.UNKNOWN, ("holds", "unmet"), True),
        (Verdict.UNKNOWN, ("holds",), False),
        (Verdict.VIOLATED, ("broken",), False),  # its finding says so
    ],
)
def test_launches_are_told_where_the_verdict_rests_on_them(
    made, verdict: Verdict, judged: tuple[str, ...], is_told: bool
) -> None:
    lines = _lines(made, verdict, _launch(made, *judged))
    assert any(line.startswith("launch at line 11: ") for line in lines) == is_told


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_what_a_pass_is_given(made, name: str) -> None:
    kernel = made.kernel("first", Verdict.CONDITIONAL, premises=(PREMISE,))
    text = text_of(name, made.run(kernel))
    for part in ("distinct(x)", "each row once", "config", "promised"):
        assert part in text


def test_the_page_of_a_job_has_it_too(made) -> None:
    kernel = made.kernel("first", Verdict.CONDITIONAL, premises=(PREMISE,))
    assert "given: distinct(x) -- each row once (config, promised)" in step_summary.render(made.run(kernel))


@pytest.mark.parametrize("name", ["github", "gitlab", "sarif"])
def test_a_kernel_that_does_not_pass_rests_on_nothing(made, name: str) -> None:
    kernel = made.kernel("first", Verdict.VIOLATED, premises=(PREMISE,))
    assert "distinct(x)" not in text_of(name, made.run(kernel, made.finding()))


def test_two_kernels_of_one_name_have_entries_of_their_own(made) -> None:
    kernels = [made.kernel("first", Verdict.CONDITIONAL, premises=(PREMISE,)) for _ in range(2)]
    found = json.loads(text_of("gitlab", made.run(*kernels)))
    assert len({entry["fingerprint"] for entry in found}) == 2


def test_notices_of_contracts_stay_within_what_github_shows(made) -> None:
    kernels = [made.kernel("first", Verdict.CONDITIONAL, premises=(PREMISE,)) for _ in range(12)]
    lines = text_of("github", made.run(*kernels)).splitlines()
    assert len(lines) == 10
    assert lines[-1].endswith("shown here: 9 of 12 kernels that rest on contracts")


def test_the_summary_counts_how_kernels_pass(made) -> None:
    decided, unread = _launch(made, "holds"), _launch(made, problem="a loop")
    kernels = [
        made.kernel("first", Verdict.CONDITIONAL, launches=(decided,), premises=(PREMISE,)),
        made.kernel("first", Verdict.PROVED, launches=(decided,)),
        made.kernel("first", Verdict.TRUSTED, launches=(decided, unread), premises=(PREMISE,)),
        made.kernel("first", Verdict.CONDITIONAL),
        made.kernel("second", Verdict.UNKNOWN, launches=(unread,), premises=(PREMISE,), reason="budget"),
    ]
    run = made.run(*kernels)
    (line,) = plain(render_summary(run.report)).splitlines()
    assert "2 pass with every launch decided" in line
    assert "1 passes with unread launches" in line
    assert "2 pass on promises" in line
    summary = json.loads(text_of("json", run))["summary"]
    assert (summary["decided"], summary["unread"], summary["promised"]) == (2, 1, 2)
