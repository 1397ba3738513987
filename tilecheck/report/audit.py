"""The trust base of a run: everything that a verdict takes on trust, assumes, or leaves to the caller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tilecheck.model import KernelReport, Report
from tilecheck.report.places import Places, in_order, kernels_in_order
from tilecheck.report.style import Line, line
from tilecheck.report.topics import STANDING
from tilecheck.report.verdicts import given


def render_audit(report: Report) -> Iterator[Line]:
    """For each kernel what it rests on; then the suppressed findings and the files that were not read."""
    places = Places(report.sources)
    for kernel in kernels_in_order(report.kernels):
        place = places.of(kernel.site)
        word = kernel.verdict.value
        yield line((f"{place.file}:{place.line} ", ""), (kernel.name, "strong"), " ", (word, word))
        entries = list(_entries(kernel, places))
        for kind, text in entries:
            yield line(f"    {kind:<10}", text)
        if not entries:
            yield line("    nothing is assumed")
    suppressed = [d for d in in_order(report) if d.suppressed]
    for diagnostic in suppressed:
        place = places.of(diagnostic.site)
        why = diagnostic.suppression
        reason = f" -- {why.reason}" if why is not None and why.reason else ""
        yield line(f"{place}: suppressed {diagnostic.code} {diagnostic.message}{reason}")
    for path in report.unreadable:
        yield line(f"{path}: not read")
    yield ()
    yield line(_totals(report, len(suppressed)))


def _entries(kernel: KernelReport, places: Places) -> Iterator[tuple[str, str]]:
    if kernel.reason:
        yield "undecided", kernel.reason
    for block in kernel.trusted:
        yield "trusted", f"line {places.of(block.site).line}: {block.reason}"
    for premise in kernel.premises:
        yield "given", given(premise).removeprefix("given: ")
    for text in kernel.conditions:
        yield "condition", text
    for launch in kernel.launches:
        if launch.is_unread:
            place = places.of(launch.site)
            yield "unread", f"{place.file}:{place.line}: {launch.problem}"
        for judged in launch.conditions if launch.is_read else ():
            if judged.status != "holds":
                place = places.of(launch.site)
                yield judged.status, f"{place.file}:{place.line}: {judged.text}"
    for code in kernel.standing:
        yield "standing", f"{code}: {STANDING[code]}" if code in STANDING else code


def _totals(report: Report, suppressed: int) -> str:
    def total(name: str) -> int:
        return sum(len(getattr(kernel, name)) for kernel in report.kernels)

    promised = sum(p.status == "promised" for kernel in report.kernels for p in kernel.premises)
    return (
        f"{len(report.kernels)} kernels: {total('trusted')} trusted, {total('premises')} given "
        f"({promised} promised), "
        f"{total('conditions')} conditions, {total('standing')} standing, {suppressed} suppressed, "
        f"{len(report.unreadable)} not read"
    )


def audit_object(report: Report) -> str:
    """The audit as one JSON object with a final newline."""
    places = Places(report.sources)
    found: dict[str, Any] = {
        "schema_version": 1,
        "kernels": [
            {
                "file": kernel.site.file,
                "line": places.of(kernel.site).line,
                "name": kernel.name,
                "verdict": kernel.verdict.value,
                "entries": [{"kind": kind, "text": text} for kind, text in _entries(kernel, places)],
            }
            for kernel in kernels_in_order(report.kernels)
        ],
        "suppressed": [
            {
                "code": d.code,
                "file": d.site.file,
                "line": places.of(d.site).line,
                "message": d.message,
                "kind": d.suppression.kind,
                "reason": d.suppression.reason,
            }
            for d in in_order(report)
            if d.suppression is not None
        ],
        "unreadable": list(report.unreadable),
        "complete": True,
    }
    return json.dumps(found, indent=2) + "\n"
