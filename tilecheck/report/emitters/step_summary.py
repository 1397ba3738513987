"""A Markdown page of one run, for the summary of a CI job: what must be looked at first, then every kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tilecheck.model import KernelReport, Report, Verdict
from tilecheck.report.findings import told
from tilecheck.report.places import Places, kernels_in_order
from tilecheck.report.run import Run
from tilecheck.report.style import plain, safe
from tilecheck.report.verdicts import grounds, render_summary

# GitHub refuses a summary of more than 1 MiB; these stay far below it.
_MOST_ROWS = 300
_LONGEST = 400
_WORST_FIRST = (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.TRUSTED, Verdict.CONDITIONAL, Verdict.PROVED)
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&])")


def render(run: Run) -> str:
    """The page, with its total counts even where tables are cut short."""
    return "\n".join(["## tilecheck", "", *_parts(run), ""])


def _parts(run: Run) -> Iterator[str]:
    report = run.report
    places = Places(report.sources)
    yield _cell(plain(render_summary(report)).strip())
    findings = sorted(told(report), key=lambda d: -d.severity)  # stable: by place among equals
    rows = [
        (
            f"{d.severity.word}",
            f"`{d.code}`",
            f"{_code(places.of(d.site))}",
            _code(d.kernel or ""),
            _cell(d.message),
        )
        for d in findings
    ]
    yield from _table(("", "code", "where", "kernel", "finding"), rows)
    yield from _table(("verdict", "kernel", "where", "rests on"), list(_kernels(report, places)))


def _kernels(report: Report, places: Places) -> Iterator[tuple[str, ...]]:
    for kernel in sorted(kernels_in_order(report.kernels), key=lambda k: _WORST_FIRST.index(k.verdict)):
        place = places.of(kernel.site)
        yield (
            kernel.verdict.value,
            _code(kernel.name),
            _code(f"{place.file}:{place.line}"),
            _grounds(kernel, places),
        )


def _grounds(kernel: KernelReport, places: Places) -> str:
    return "<br>".join(map(_cell, grounds(kernel, places)))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        yield ""
        yield f"and {len(rows) - _MOST_ROWS} more of {len(rows)}"


def _cell(text: str) -> str:
    """Text that shows as it is, in one cell of a table."""
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return _SPECIAL.sub(r"\\\1", safe(" ".join(cut.split("\n"))))


def _code(value: object) -> str:
    """Text in the type of code; what would end it is left out of it."""
    text = safe(str(value))
    return f"`{text}`" if text and not re.search(r"[`|]", text) else _cell(text)
