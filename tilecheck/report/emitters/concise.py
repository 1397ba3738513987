"""One line for each finding: `path:line:column: severity[CODE] message (kernel)`. Stable: tools match it."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.model import Report
from tilecheck.report.places import Places, in_order, undecided_without_finding
from tilecheck.report.run import Run
from tilecheck.report.style import Line, line
from tilecheck.report.verdicts import render_end


def render(run: Run) -> Iterator[Line]:
    """The findings one a line, then the verdicts and the summary."""
    yield from render_findings(run.report)
    yield from render_end(run)


def render_findings(report: Report) -> Iterator[Line]:
    """Every finding that is not suppressed, then every undecided kernel that no finding speaks of."""
    places = Places(report.sources)
    for diagnostic in in_order(report):
        if diagnostic.suppressed:
            continue
        word = diagnostic.severity.word
        kernel = f" ({diagnostic.kernel})" if diagnostic.kernel else ""
        head = f"{places.of(diagnostic.site)}: "
        yield line(head, (f"{word}[{diagnostic.code}]", word), f" {one_line(diagnostic.message)}{kernel}")
    for undecided in undecided_without_finding(report):
        head = f"{places.of(undecided.reason_site or undecided.site)}: "
        reason = undecided.reason or "internal"
        yield line(head, (f"unknown[{reason}]", "unknown"), f" the kernel is not decided ({undecided.name})")


def one_line(text: str) -> str:
    return " ".join(text.split("\n"))
