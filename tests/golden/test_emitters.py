"""Every emitter on every kind of report, compared with files that a person has read."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck.model import Report
from tilecheck.options import FORMATS as NAMES
from tilecheck.report import audit, statistics
from tilecheck.report.emitters import full, step_summary
from tilecheck.report.formats import FORMATS, text_of
from tilecheck.report.run import Root, Run
from tilecheck.report.style import plain, write
from tilecheck.report.versions import versions

EXPECTED = Path(__file__).parent / "expected"
# Words of the implementation that no user should have to know.
INTERNALS = re.compile(
    r"\b(Span|Site|Expr|Kind\.|KernelReport|Obligation\(|libcst|networkx|uid|None|True|False)\b"
)


def _text(emitter: Callable[[Report], str], report: Report) -> str:
    text = emitter(report)
    # The versions of this machine are not part of what is compared.
    text = re.sub(r"tilecheck \d[\w.]*, z3 \d[\w.]*", "tilecheck VERSION, z3 VERSION", text)
    for version in (versions()["version"], versions()["z3"]):
        text = text.replace(f'"{version}"', '"VERSION"')
    return text


def _run(report: Report) -> Run:
    return Run(report, Root("/repository", "/repository"), includes_pass=True)


def _format(name: str) -> Callable[[Report], str]:
    return lambda report: text_of(name, _run(report))


def _sarif(report: Report) -> str:
    """Without the pages of rules, which are compared where they are written."""
    log = json.loads(text_of("sarif", _run(report)))
    for rule in log["runs"][0]["tool"]["driver"]["rules"]:
        rule["help"] = {kind: text.partition("\n")[0] for kind, text in rule["help"].items()}
    return json.dumps(log, indent=2) + "\n"


def _colour(report: Report) -> str:
    stream = io.StringIO()
    write(full.render_findings(report), stream, colour=True)
    return stream.getvalue()


EMITTERS: dict[str, Callable[[Report], str]] = {
    "full.txt": _format("full"),
    "concise.txt": _format("concise"),
    "grouped.txt": _format("grouped"),
    "json": _format("json"),
    "jsonl": _format("json-lines"),
    "sarif": _sarif,
    "github.txt": _format("github"),
    "gitlab.json": _format("gitlab"),
    "junit.xml": _format("junit"),
    "statistics.txt": lambda report: plain(statistics.render(report)),
    "summary.md": lambda report: step_summary.render(_run(report)),
    "audit.txt": lambda report: plain(audit.render_audit(report)),
    "audit.json": audit.audit_object,
}
FOR_PEOPLE = [
    "full.txt",
    "concise.txt",
    "grouped.txt",
    "github.txt",
    "statistics.txt",
    "summary.md",
    "audit.txt",
]


def test_every_format_is_in_the_table() -> None:
    assert tuple(FORMATS) == NAMES


@pytest.mark.parametrize("emitter", EMITTERS)
def test_output(emitter: str, case: tuple[str, Report], golden: Callable[[Path, str], None]) -> None:
    name, report = case
    golden(EXPECTED / f"{name}.{emitter}", _text(EMITTERS[emitter], report))


@pytest.mark.parametrize("emitter", FOR_PEOPLE)
def test_no_internal_names(emitter: str, case: tuple[str, Report]) -> None:
    assert not INTERNALS.search(EMITTERS[emitter](case[1]))


def test_colour_changes_no_text(case: tuple[str, Report]) -> None:
    coloured = re.sub(r"\x1b\[[0-9;]*m", "", _colour(case[1]))
    without = "".join(line.rstrip() + "\n" for line in coloured.split("\n")[:-1])
    assert without == plain(full.render_findings(case[1]))


def test_nothing_acts_on_the_terminal(case: tuple[str, Report]) -> None:
    for emitter in ("full.txt", "grouped.txt", "statistics.txt", "summary.md"):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", EMITTERS[emitter](case[1]))


def test_json_keys_are_the_documented_ones(case: tuple[str, Report]) -> None:
    found = json.loads(text_of("json", _run(case[1])))
    assert list(found) == ["schema_version", "tool", "kernels", "hosts", "diagnostics", "summary", "complete"]
    for kernel in found["kernels"]:
        assert list(kernel) == [
            "file", "line", "name", "language", "verdict", "reason", "conditions", "standing", "launches",
            "trusted", "premises", "params", "launch_order", "obligations", "accepted", "cached", "time_ms",
        ]  # fmt: skip
    for diagnostic in found["diagnostics"]:
        assert list(diagnostic) == [
            "code", "name", "severity", "message", "kernel", "file", "line", "column", "end_line", "end_column",
            "related", "witness", "label", "notes", "help", "suppressed", "suppression",
        ]  # fmt: skip
    assert found["complete"] is True
