"""What CI services read: annotations of GitHub, Code Quality of GitLab, JUnit, and the page of a step."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tilecheck.model import Related, Severity, Suppression, Verdict, Witness
from tilecheck.report import statistics
from tilecheck.report.emitters import step_summary
from tilecheck.report.formats import text_of
from tilecheck.report.run import Root, Run, root_of
from tilecheck.report.style import plain

SILENCED = Suppression("inSource", "the launcher sees to it")
LONG = "ct.store(\n        out, index=(1,), tile=a)"


# ---- GitHub ------------------------------------------------------------------------------------------------


def test_an_annotation_of_one_line_has_columns_and_one_of_several_has_none(made) -> None:
    one, several = text_of("github", made.run(made.finding(), made.finding(LONG))).splitlines()
    assert one.startswith(
        "::error file=k.py,line=4,endLine=4,col=5,endColumn=38,title=TC201 write-write-overlap::"
    )
    assert several.startswith("::error file=k.py,line=5,endLine=6,title=TC201 write-write-overlap::")


def test_what_would_end_a_command_or_a_property_is_escaped(make) -> None:
    made = make(file="a,b:c%.py")
    (command,) = text_of("github", made.run(made.finding(message="100%\r\nwrong: a,b"))).splitlines()
    assert command.startswith("::error file=a%2Cb%3Ac%25.py,line=4,")
    assert "::100%25%0D%0Awrong: a,b%0Akernel: `first`" in command


def test_the_most_severe_come_first_and_totals_are_stated(made) -> None:
    findings = [
        made.finding(message=f"finding {number}", severity=severity)
        for severity, count in ((Severity.INFO, 12), (Severity.WARNING, 3), (Severity.ERROR, 11))
        for number in range(count)
    ]
    lines = text_of("github", made.run(*findings)).splitlines()
    levels = [line[2:].partition(" ")[0] for line in lines]
    assert levels == ["error"] * 10 + ["warning"] * 3 + ["notice"] * 10
    assert lines[-1].endswith("shown here: 10 of 11 errors, 9 of 12 notices")


def test_no_total_where_all_are_shown(made) -> None:
    assert "shown here" not in text_of("github", made.run(*[made.finding()] * 10))


def test_suppressed_findings_are_no_annotations_and_silent_kernels_are(made) -> None:
    kernels = [made.kernel("first", Verdict.UNKNOWN, reason="budget"), made.kernel("second", Verdict.PROVED)]
    (line,) = text_of("github", made.run(*kernels, made.finding(suppression=SILENCED))).splitlines()
    assert line.startswith("::warning file=k.py,line=2,")
    assert "`first` is not decided: budget" in line


# ---- GitLab ------------------------------------------------------------------------------------------------


def test_code_quality_names_the_code_and_every_fingerprint_is_unique(make) -> None:
    made = make(file="sub/../sub/k.py")
    twice = "ct.store(out, index=(0,), tile=0)"
    findings = [made.finding(twice, 0), made.finding(twice, 1), made.finding(severity=Severity.INFO)]
    found = json.loads(text_of("gitlab", made.run(*findings)))
    assert len({entry["fingerprint"] for entry in found}) == 3
    assert {entry["location"]["path"] for entry in found} == {"sub/k.py"}
    assert [entry["severity"] for entry in found] == ["info", "critical", "critical"]
    assert found[0]["description"] == "TC201: a message"
    assert found[0]["location"]["lines"] == {"begin": 4, "end": 4}


def test_silencing_one_of_two_alike_does_not_rename_the_other(made) -> None:
    twice = "ct.store(out, index=(0,), tile=0)"
    first, second = made.finding(twice, 0), made.finding(twice, 1)
    both = json.loads(text_of("gitlab", made.run(first, second)))
    one = json.loads(text_of("gitlab", made.run(replace(first, suppression=SILENCED), second)))
    assert [entry["fingerprint"] for entry in one] == [both[1]["fingerprint"]]


def test_nothing_found_is_an_empty_list(made) -> None:
    assert json.loads(text_of("gitlab", made.run(made.kernel("first", Verdict.PROVED)))) == []


# ---- JUnit -------------------------------------------------------------------------------------------------


def _cases(run: Run) -> dict[str, ET.Element]:
    root = ET.fromstring(text_of("junit", run))
    for element in (root, *root):
        for name, tag in (
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            assert element.attrib[name] == str(len(list(element.iter(tag))))
    return {case.attrib["name"]: case for case in root.iter("testcase")}


def _state(case: ET.Element) -> list[str]:
    return [child.tag for child in case]


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (Verdict.PROVED, ["system-out"]),
        (Verdict.CONDITIONAL, ["system-out"]),
        (Verdict.TRUSTED, ["system-out"]),
        (Verdict.VIOLATED, ["failure", "system-out"]),
        (Verdict.UNKNOWN, ["error", "system-out"]),
    ],
)
def test_every_verdict_has_its_state(made, verdict: Verdict, state: list[str]) -> None:
    case = _cases(made.run(made.kernel("first", verdict)))["first"]
    assert _state(case) == state
    assert case.attrib["classname"] == case.attrib["file"] == "k.py"
    assert case.attrib["line"] == "2"
    assert (case.findtext("system-out") or "").startswith(verdict.value)


def test_a_conditional_kernel_lists_its_conditions(made) -> None:
    kernel = made.kernel("first", Verdict.CONDITIONAL, conditions=("grid[0] <= cdiv(x.shape[0], 4)",))
    assert "if grid[0] <= cdiv(x.shape[0], 4)" in _cases(made.run(kernel))["first"].findtext("system-out")


def test_a_violation_shows_its_source_and_counterexample(made) -> None:
    witness = Witness("overlap", (2,), ((0,), (1,)), {"T": 1}, "out", (0,))
    run = made.run(made.kernel("first", Verdict.VIOLATED), made.finding(witness=witness))
    failure = _cases(run)["first"].find("failure")
    assert (failure.attrib["type"], failure.attrib["message"]) == ("violated", "a message")
    assert "4 |     ct.store(out, index=(0,), tile=a)" in failure.text
    assert "block (0,) and block (1,) both touch `out[0]`" in failure.text


def test_the_other_access_and_its_block_are_told_everywhere(make) -> None:
    made = make(file="a [1].py")
    load = made.site("ct.load(x, index=(0,), shape=(1,))")
    finding = made.finding(
        severity=Severity.WARNING,
        label="block (0,): out[0] is written here",
        related=(Related(load, "block (1,): out[0] is read here"),),
    )
    run = made.run(made.kernel("first", Verdict.PROVED), finding)
    told = "here: block (0,): out[0] is written here\nalso: a [1].py:3:9: block (1,): out[0] is read here\n"
    assert told.replace("\n", "%0A") in text_of("github", run)
    assert told in json.loads(text_of("gitlab", run))[0]["content"]["body"]
    assert told in _cases(run)["first"].findtext("system-out")
    sarif = json.loads(text_of("sarif", run))["runs"][0]["results"][0]["message"]["text"]
    assert "also: [a \\[1\\].py:3:9](1): block (1,)" in sarif


def test_a_suppressed_violation_is_skipped_with_its_reason(made) -> None:
    run = made.run(made.kernel("first", Verdict.VIOLATED), made.finding(suppression=SILENCED))
    case = _cases(run)["first"]
    assert _state(case) == ["skipped", "system-out"]
    assert case.find("skipped").attrib["message"] == "violated, and suppressed: TC201: the launcher sees to it"


def test_an_unknown_kernel_stays_an_error_when_its_finding_is_suppressed(made) -> None:
    kernel = made.kernel("first", Verdict.UNKNOWN, reason="budget")
    finding = made.finding(code="TC906", name="x", severity=Severity.WARNING, suppression=SILENCED)
    case = _cases(made.run(kernel, finding))["first"]
    assert case.find("error").attrib["type"] == "unknown(budget)"
    accepted = _cases(made.run(replace(kernel, accepted=True), finding))["first"]
    assert _state(accepted) == ["skipped", "system-out"]


def test_a_warning_fails_a_case_where_it_fails_the_run(made) -> None:
    kernel, warning = made.kernel("first", Verdict.PROVED), made.finding(severity=Severity.WARNING)
    case = _cases(made.run(kernel, warning))["first"]
    assert _state(case) == ["system-out"]
    assert "a message" in case.findtext("system-out")
    assert _state(_cases(made.run(kernel, warning, fail_on=Severity.WARNING))["first"])[0] == "failure"


def test_kernels_of_one_name_are_cases_of_their_own(made) -> None:
    cases = _cases(made.run(made.kernel("first", Verdict.PROVED), made.kernel("first", Verdict.UNKNOWN)))
    assert set(cases) == {"first", "first (2)"}


def test_findings_of_no_kernel_are_a_case_of_their_file(made) -> None:
    proved = made.kernel("first", Verdict.PROVED)
    wrong = made.finding(code="TC903", name="x", kernel=None)
    assert _state(_cases(made.run(proved, wrong))["source"]) == ["failure"]
    unread = made.finding(code="TC901", name="x", kernel=None)
    assert _state(_cases(made.run(proved, unread))["source"]) == ["error"]
    assert _state(_cases(made.run(proved, replace(wrong, severity=Severity.WARNING)))["source"]) == [
        "system-out"
    ]


def test_no_kernels_is_no_empty_success(made) -> None:
    assert _state(_cases(made.run())["kernels"]) == ["error"]
    assert _cases(made.run(lists_verdicts=False)) == {}


def test_kernels_that_were_not_looked_at_are_no_success(made) -> None:
    report = made.report(since="main", unchanged=(("k.py", "first"),))
    cases = _cases(Run(report, Root("/repository", "/repository")))
    assert {name: _state(case) for name, case in cases.items()} == {"first": ["skipped"]}
    assert cases["first"].find("skipped").attrib["message"] == "unchanged since main, not looked at"


def test_what_xml_cannot_carry_is_replaced(make) -> None:
    made = make("@ct.kernel\ndef first(x):\n    store('\x00\x1b\ufffe & < ]]>')\n", file="\x07k.py")
    run = made.run(made.kernel("first", Verdict.VIOLATED), made.finding("store", message="\x1b[31m & <b>"))
    case = _cases(run)["first"]
    assert case.find("failure").attrib["message"] == "\ufffd[31m & <b>"
    assert case.attrib["file"] == "\ufffdk.py"
    assert "\ufffd & < ]]>" in case.find("failure").text


# ---- the page of a step, and statistics --------------------------------------------------------------------


def test_the_page_has_the_worst_first_and_shows_text_as_it_is(made) -> None:
    kernels = [
        made.kernel("first", Verdict.PROVED),
        made.kernel("second", Verdict.VIOLATED),
        replace(made.kernel("first", Verdict.UNKNOWN, reason="budget"), name="a|b`"),
    ]
    page = step_summary.render(
        made.run(*kernels, made.finding(kernel="second", message="`x[0]` | <b> *a*\nmore"))
    )
    rows = [line for line in page.splitlines() if line.startswith(("| violated", "| unknown", "| proved"))]
    assert [row.split()[1] for row in rows] == ["violated", "unknown", "proved"]
    assert r"| \`x\[0\]\` \| \<b\> \*a\* more |" in page
    assert r"| a\|b\` |" in page
    assert "3 kernels: 1 proved, 1 violated, 1 unknown" in page


def test_a_long_page_is_cut_and_says_so(made) -> None:
    page = step_summary.render(made.run(*[made.finding(message="x" * 5000)] * 5000))
    assert len(page) < 500_000
    assert "and 4700 more of 5000" in page


def test_statistics(made) -> None:
    assert plain(statistics.render(made.report())) == ""
    text = plain(
        statistics.render(made.report(made.kernel("first", Verdict.UNKNOWN, reason="unsupported:match")))
    )
    assert re.search(r"by verdict\n  unknown  1  100%  1 unsupported\n", text)
    assert re.search(r"slowest kernels\n  0\.00 s  k\.py:2  first  0 steps\n", text)


# ---- paths -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
def test_paths_are_from_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert root_of({}).path("k.py") == "k.py"
    assert root_of({name: str(tmp_path)}).path("k.py") == "sub/k.py"
    assert root_of({name: str(tmp_path)}).path("../k.py") == "k.py"
    assert root_of({name: "/elsewhere"}).path("k.py") == "k.py"
    assert root_of({name: ""}).path("k.py") == "k.py"


def test_a_file_beside_the_checkout_keeps_its_whole_path() -> None:
    assert Root("/repository", "/repository").path("../other/k.py") == "/other/k.py"
    assert Root("/repository", "/repository").path("/repository2/k.py") == "/repository2/k.py"
