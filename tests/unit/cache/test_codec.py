"""Results as JSON: what is written is read, and nothing else is."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from tilecheck.cache.codec import Misfit, from_json, to_json
from tilecheck.model import (
    ConditionAt,
    Diagnostic,
    GlobalName,
    KernelReport,
    LaunchReport,
    LaunchTerms,
    ObligationReport,
    ParamReport,
    Related,
    Severity,
    Site,
    Span,
    StatedContract,
    TrustedBlock,
    Verdict,
    Witness,
)

SITE = Site("k.py", Span(3, 9))
WITNESS = Witness("overlap", (2,), ((0, 0, 0), (1, 0, 0)), {"T": 4, "t": [1, 2]}, "out", (0,), ((1,), (2,)))
FINDING = Diagnostic("TC201", "n", Severity.ERROR, "m", SITE, "k", "l", (Related(SITE, "r"),), WITNESS, ("n",))
KERNEL = KernelReport(
    "k",
    "cutile",
    SITE,
    Verdict.VIOLATED,
    reason_site=SITE,
    conditions=("a < b",),
    launches=(LaunchReport(SITE, (ConditionAt("a < b", "holds"),)),),
    trusted=(TrustedBlock(SITE, "because"),),
    params=(ParamReport("x", "mut", True, True, 2),),
    obligations=(ObligationReport("TC201", "violated", "none", (SITE, SITE), 1.5),),
    terms=LaunchTerms(
        (("k.py", "00"),),
        (0, 1),
        globals=(
            GlobalName("k.py", "T", (1, True, (2.5, "x"))),
            GlobalName("k.py", "N", float("inf")),
            GlobalName("k.py", "f", site=SITE),
        ),
        contracts=(StatedContract("within", ("t",), ("0", "n"), "0 <= t < n"),),
    ),
    time_ms=3,
    steps=10**30,
)


def travelled(value: Any) -> Any:
    return from_json(type(value), json.loads(json.dumps(to_json(value))))


@pytest.mark.parametrize("value", [KERNEL, FINDING, WITNESS, SITE])
def test_a_result_is_read_as_it_was_written(value: object) -> None:
    assert travelled(value) == value
    assert repr(travelled(value)) == repr(value)  # numbers and truth values stay apart


@pytest.mark.parametrize("name", [f.name for f in fields(KernelReport)])
def test_a_missing_field_is_no_result(name: str) -> None:
    data = to_json(KERNEL)
    del data[name]
    with pytest.raises(Misfit):
        from_json(KernelReport, data)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("more", 1),
        ("verdict", "SAFE"),
        ("verdict", "proved"),
        ("verdict", ["PROVED"]),
        ("name", 1),
        ("conditions", "a < b"),
        ("conditions", [1]),
        ("cached", 1),
        ("steps", 1.5),
        ("site", {"file": "k.py"}),
        ("site", None),
        ("terms", {}),
        ("obligations", {}),
    ],
)
def test_a_field_of_another_form_is_no_result(name: str, value: object) -> None:
    data = to_json(KERNEL)
    data[name] = value
    with pytest.raises(Misfit):
        from_json(KernelReport, data)


@pytest.mark.parametrize("value", [object(), {1: 2}, {1, 2}, b"bytes", (1, object())])
def test_what_is_no_result_is_not_written(value: object) -> None:
    with pytest.raises(Misfit):
        to_json(value)
