"""One line for each finding: `path:line:column: severity[CODE] message (kernel)`. Stable: tools match it."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.model import Report, Verdict
from tilecheck.report.places import Places, in_order, kernels_in_order
from tilecheck.report.style import Line, line


def render_findings(report: Report) -> Iterator[Line]:
    """Every finding that is not suppressed, then every kernel that is undecided."""
    places = Places(report.sources)
    for diagnostic in in_order(report):
        if diagnostic.suppressed:
            continue
        word = diagnostic.severity.word
        kernel = f" ({diagnostic.kernel})" if diagnostic.kernel else ""
        head = f"{places.of(diagnostic.site)}: "
        yield line(head, (f"{word}[{diagnostic.code}]", word), f" {one_line(diagnostic.message)}{kernel}")
    for report_of in kernels_in_order(report.kernels):
        if report_of.verdict is Verdict.UNKNOWN:
            head = f"{places.of(report_of.reason_site or report_of.site)}: "
            reason = report_of.reason or "internal"
            yield line(head, (f"unknown[{reason}]", "unknown"), f" the kernel is not decided ({report_of.name})")


def one_line(text: str) -> str:
    return " ".join(text.split("\n"))
