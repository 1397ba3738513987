"""GitLab's Code Quality report: a JSON list of findings, each with a fingerprint of its own."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tilecheck.demand import passes
from tilecheck.history.fingerprint import Identity, identities
from tilecheck.model import Severity, Site
from tilecheck.report.findings import paragraph, told
from tilecheck.report.places import Places, kernels_in_order
from tilecheck.report.run import Run
from tilecheck.report.verdicts import given

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(run: Run) -> str:
    """Every finding that is not suppressed. Of two with one fingerprint GitLab would show one."""
    places = Places(run.report.sources)
    # Suppressed ones are counted too, so that silencing one of two that are alike does not rename the other.
    every = told(run.report, suppressed=True)
    named = identities(every, run.report.sources, path=run.root.path)
    entries = []

    def where(site: Site) -> str:
        return run.root.place(places.of(site))

    for diagnostic, identity in zip(every, named, strict=True):
        if diagnostic.suppressed:
            continue
        place = places.of(diagnostic.site)
        entries.append(
            {
                # GitLab does not show `check_name`.
                "description": f"{diagnostic.code}: {diagnostic.message}",
                "check_name": diagnostic.name,
                "fingerprint": identity.digest(),
                "severity": _SEVERITIES[diagnostic.severity],
                "location": {
                    "path": run.root.path(place.file),
                    "lines": {"begin": place.line, "end": max(place.end_line, place.line)},
                },
                "content": {"body": paragraph(diagnostic, where)},
            }
        )
    entries += _given(run, places)
    return json.dumps(entries, indent=2) + "\n"


def _given(run: Run, places: Places) -> list[dict[str, Any]]:
    """An entry for each contract that a pass rests on: GitLab shows in a merge request those that are new."""
    found = []
    seen: Counter[tuple[str, ...]] = Counter()
    for kernel in kernels_in_order(run.report.kernels):
        place = places.of(kernel.site)
        path = run.root.path(place.file)
        for premise in kernel.premises if passes(kernel) else ():
            named = (path, kernel.name, premise.text, premise.origin)
            entry = {
                "description": f"`{kernel.name}` is {kernel.verdict.value} {given(premise)}",
                "check_name": "given",
                "fingerprint": Identity("given", *named, occurrence=seen[named]).digest(),
                "severity": "info",
                "location": {"path": path, "lines": {"begin": place.line, "end": place.line}},
            }
            seen[named] += 1
            found.append(entry)
    return found
