"""The JSON Schema that is shipped describes what is printed: all of it, and nothing that is not printed."""

from __future__ import annotations

import copy
import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tilecheck.model import Related, Severity, Suppression, Verdict, Witness
from tilecheck.report.emitters.json import SCHEMA_VERSION
from tilecheck.report.formats import text_of
from tilecheck.report.run import Root, Run

FIXTURES = Path(__file__).parents[3] / "fixtures"
SCHEMA = json.loads((resources.files("tilecheck.report") / "schema.json").read_text(encoding="utf-8"))


def _closed(schema: Any) -> Any:
    """The schema with every object closed: what is printed and not described is an error."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: _closed(part) for key, part in schema.items()}
    closes = "properties" in inner or "allOf" in inner
    return inner | ({"unevaluatedProperties": False} if closes else {})


def _validator(part: str = "") -> jsonschema.Draft202012Validator:
    schema = copy.deepcopy(SCHEMA)
    if part:
        schema = {"$schema": schema["$schema"], "$ref": f"#/$defs/{part}", "$defs": schema["$defs"]}
    else:
        schema = _closed({k: v for k, v in schema.items() if k != "$defs"})
        # A line adds keys to these, so they are closed only where they stand alone.
        schema["$defs"] = {k: v if k == "line" else _closed(v) for k, v in SCHEMA["$defs"].items()}
    return jsonschema.Draft202012Validator(schema)


def _check(run: Run) -> dict[str, Any]:
    found = json.loads(text_of("json", run))
    _validator().validate(found)
    for line in text_of("json-lines", run).splitlines():
        _validator("line").validate(json.loads(line))
    return found


def test_the_schema_is_one_and_has_the_version_of_the_report() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema_version"] == {"const": SCHEMA_VERSION}
    assert SCHEMA["required"] == list(SCHEMA["properties"])
    assert SCHEMA["required"][-1] == "complete"


@pytest.mark.parametrize(
    "path",
    [
        "cutile/races/permute_heads.py",  # a race, with its counterexample
        "cutile/launch/early_raise.py",  # launches, whose conditions hold or are broken
        "cutile/ownership/declared.py",
        "cutile/unsupported/recursion.py",
        "triton/launch/same_tensor.py",  # memory in the counterexample
    ],
)
def test_real_reports_are_as_described(path: str, verified) -> None:
    report = verified(FIXTURES / path)
    assert report.kernels
    found = _check(Run(report, Root("/", "/")))
    assert len(found["kernels"]) == len(report.kernels)


def test_what_fixtures_seldom_have_is_described_too(made) -> None:
    witness = Witness(
        "overlap", (2,), ((0,), (1,)), {"T": 1, "ids": [0, 0]}, "out", (0,), ((0,), (1,)), ((2,), (3,))
    )
    _check(
        made.run(
            *(made.kernel("first", verdict, reason="budget") for verdict in Verdict),
            made.kernel("second", Verdict.UNKNOWN, reason="vacuous", accepted=True),
            made.finding(witness=witness, related=(Related(made.site("ct.load"), "here"),), help="do"),
            made.finding(severity=Severity.INFO, kernel=None, suppression=Suppression("external", "known")),
        )
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("complete",), False),
        (("schema_version",), 2),
        (("kernels", 0, "verdict"), "safe"),
        (("kernels", 0, "line"), 0),
        (("diagnostics", 0, "code"), "unknown"),
        (("diagnostics", 0, "suppression"), {"kind": "inSource"}),
        (("summary", "files"), -1),
    ],
)
def test_what_is_wrong_is_refused(made, path: tuple[Any, ...], value: object) -> None:
    found = json.loads(text_of("json", made.run(made.kernel("first", Verdict.PROVED), made.finding())))
    at = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    assert not _validator().is_valid(found)
