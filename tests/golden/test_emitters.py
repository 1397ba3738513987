"""Every emitter on every kind of report, compared with files that a person has read."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck.model import Report
from tilecheck.report import audit, concise, full, verdicts
from tilecheck.report import json as machine
from tilecheck.report.style import plain, write

EXPECTED = Path(__file__).parent / "expected"
# Words of the implementation that no user should have to know.
INTERNALS = re.compile(
    r"\b(Span|Site|Expr|Kind\.|KernelReport|Obligation\(|libcst|networkx|uid|None|True|False)\b"
)


def _text(emitter: Callable[[Report], str], report: Report) -> str:
    text = emitter(report)
    # The versions of this machine are not part of what is compared.
    text = re.sub(r"tilecheck \d[\w.]*, z3 \d[\w.]*", "tilecheck VERSION, z3 VERSION", text)
    return re.sub(r'("(?:version|z3)": )"[^"]*"', r'\1"VERSION"', text)


def _full(report: Report) -> str:
    return plain(
        [*full.render_findings(report), *verdicts.render_verdicts(report), *verdicts.render_summary(report)]
    )


def _concise(report: Report) -> str:
    return plain([*concise.render_findings(report), *verdicts.render_summary(report)])


def _colour(report: Report) -> str:
    stream = io.StringIO()
    write(full.render_findings(report), stream, colour=True)
    return stream.getvalue()


EMITTERS: dict[str, Callable[[Report], str]] = {
    "full.txt": _full,
    "concise.txt": _concise,
    "json": machine.render_json,
    "audit.txt": lambda report: plain(audit.render_audit(report)),
    "audit.json": audit.audit_object,
}


@pytest.mark.parametrize("emitter", EMITTERS)
def test_output(emitter: str, case: tuple[str, Report], golden: Callable[[Path, str], None]) -> None:
    name, report = case
    golden(EXPECTED / f"{name}.{emitter}", _text(EMITTERS[emitter], report))


@pytest.mark.parametrize("emitter", ["full.txt", "concise.txt", "audit.txt"])
def test_no_internal_names(emitter: str, case: tuple[str, Report]) -> None:
    assert not INTERNALS.search(EMITTERS[emitter](case[1]))


def test_colour_changes_no_text(case: tuple[str, Report]) -> None:
    coloured = re.sub(r"\x1b\[[0-9;]*m", "", _colour(case[1]))
    without = "".join(line.rstrip() + "\n" for line in coloured.split("\n")[:-1])
    assert without == plain(full.render_findings(case[1]))


def test_nothing_acts_on_the_terminal(case: tuple[str, Report]) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", _full(case[1]))


def test_json_keys_are_the_documented_ones(case: tuple[str, Report]) -> None:
    found = json.loads(machine.render_json(case[1]))
    assert list(found) == ["schema_version", "tool", "kernels", "diagnostics", "summary", "complete"]
    for kernel in found["kernels"]:
        assert list(kernel) == [
            "file", "line", "name", "language", "verdict", "reason", "conditions", "standing", "launches",
            "trusted", "params", "obligations", "cached", "time_ms",
        ]  # fmt: skip
    for diagnostic in found["diagnostics"]:
        assert list(diagnostic) == [
            "code", "name", "severity", "message", "kernel", "file", "line", "column", "end_line", "end_column",
            "related", "witness", "help", "suppressed",
        ]  # fmt: skip
    assert found["complete"] is True
