"""Findings with one cause and one witness are one."""

from __future__ import annotations

from dataclasses import replace

from tilecheck.findings.duplicates import merged
from tilecheck.model import Diagnostic, Related, Severity, Site, Span, Witness

LAUNCH, KERNEL = Site("k.py", Span(50, 60)), Site("k.py", Span(0, 10))
SEEN = Witness("bounds", (2,), ((1,),), {"n": 65}, "x", (65,))
OUT = Diagnostic(
    "TC402",
    "launch-condition-broken",
    Severity.ERROR,
    "this launch breaks a condition: n <= numel(out)",
    LAUNCH,
    "k",
    related=(Related(KERNEL, "the kernel"),),
    witness=SEEN,
    notes=("with n = 65",),
)
X = replace(OUT, message="this launch breaks a condition: n <= numel(x)")
LEFT = replace(OUT, code="TC504", name="", severity=Severity.WARNING, message="partly written", label="left")


def test_conditions_that_one_run_breaks_are_one_finding_that_names_the_array_of_the_witness_first() -> None:
    [one] = merged([OUT, X])
    assert one.message == "this launch breaks a condition: n <= numel(x), and n <= numel(out)"
    assert one.related == OUT.related
    assert one.notes == OUT.notes


def test_other_runs_places_and_rules_stay_apart() -> None:
    others = [
        replace(X, witness=replace(SEEN, element=(66,))),
        replace(X, site=KERNEL),
        replace(X, code="TC403"),
        replace(X, witness=None),
        replace(X, witness=None, message="another"),
    ]
    assert merged([OUT, *others]) == (OUT, *others)


def test_what_an_error_leaves_unwritten_is_no_finding_of_its_own() -> None:
    assert merged([OUT, LEFT]) == (OUT,)
    elsewhere = replace(LEFT, site=KERNEL)
    assert merged([OUT, elsewhere]) == (OUT, elsewhere)
    race = replace(OUT, code="TC201", site=KERNEL)
    assert merged([race, LEFT]) == (race,)
