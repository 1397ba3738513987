"""Findings with their source lines, as rustc shows them."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.model import Diagnostic, KernelReport, Report
from tilecheck.report.findings import details
from tilecheck.report.places import Places, in_order, undecided_without_finding
from tilecheck.report.run import Run
from tilecheck.report.snippet import Mark, detail, snippets
from tilecheck.report.style import Line, line
from tilecheck.report.topics import topic_of_reason
from tilecheck.report.verdicts import render_end


def render(run: Run) -> Iterator[Line]:
    """The findings with their source, then the verdicts and the summary."""
    yield from render_findings(run.report)
    yield from render_end(run)


def render_findings(report: Report) -> Iterator[Line]:
    """Every finding that is not suppressed, then every undecided kernel that no finding speaks of."""
    places = Places(report.sources)
    for diagnostic in in_order(report):
        if not diagnostic.suppressed:
            yield from render_finding(diagnostic, places)
            yield ()
    for kernel in undecided_without_finding(report):
        yield from _undecided(kernel, places)
        yield ()


def render_finding(diagnostic: Diagnostic, places: Places) -> Iterator[Line]:
    """One finding with its source."""
    word = diagnostic.severity.word
    yield line((f"{word}[{diagnostic.code}]", word), (f": {diagnostic.message}", "strong"))
    marks = [Mark(diagnostic.site, diagnostic.label or "", word, primary=True)]
    marks += [Mark(r.site, r.message, "related", primary=False) for r in diagnostic.related]
    yield from snippets(marks, places)
    for title, text in details(diagnostic):
        yield from detail(marks, places, title, text)


def _undecided(kernel: KernelReport, places: Places) -> Iterator[Line]:
    reason = kernel.reason or "internal"
    word, _, construct = reason.partition(":")
    yield line((f"unknown[{word}]", "unknown"), (f": `{kernel.name}` is not decided", "strong"))
    site = kernel.reason_site or kernel.site
    label = f"tilecheck does not read this: {construct}" if construct else ""
    marks = [Mark(site, label, "unknown", primary=True)]
    yield from snippets(marks, places)
    yield from detail(marks, places, "note", "nothing was proved and nothing was refuted: not a pass")
    yield from detail(marks, places, "more", f"tilecheck explain {topic_of_reason(reason)}")
