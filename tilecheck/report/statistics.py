"""Counts of a run: by rule, by verdict, by rung of the proof ladder, and the kernels that took longest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tilecheck.model import Report, Verdict
from tilecheck.options import RUNGS
from tilecheck.report.places import Places
from tilecheck.report.style import Line, line

_SLOWEST = 10


def render(report: Report) -> Iterator[Line]:
    """Four small tables, a blank line before each; one that would be empty is left out."""
    for title, rows in (
        ("by rule", list(_rules(report))),
        ("by verdict", list(_verdicts(report))),
        ("by rung", list(_rungs(report))),
        ("slowest kernels", list(_slowest(report))),
    ):
        if rows:
            yield ()
            yield line((title, "strong"))
            yield from _aligned(rows)


def _rules(report: Report) -> Iterator[tuple[str, ...]]:
    found = Counter(d.code for d in report.diagnostics if not d.suppressed)
    silenced = Counter(d.code for d in report.diagnostics if d.suppressed)
    stated: dict[str, Counter[str]] = defaultdict(Counter)
    for obligation in (o for kernel in report.kernels for o in kernel.obligations):
        stated[obligation.rule][obligation.verdict] += 1
    for code in sorted({*found, *silenced, *stated}):
        verdicts = stated[code]
        settled = ", ".join(f"{verdicts[v.value]} {v.value}" for v in Verdict if verdicts[v.value])
        yield (
            code,
            f"{found[code]} reported",
            f"{silenced[code]} suppressed",
            settled and f"obligations: {settled}",
        )


def _verdicts(report: Report) -> Iterator[tuple[str, ...]]:
    reasons = Counter(
        (k.reason or "internal").partition(":")[0] for k in report.kernels if k.verdict is Verdict.UNKNOWN
    )
    for verdict in Verdict:
        count = report.count(verdict)
        why = ", ".join(f"{reasons[r]} {r}" for r in sorted(reasons)) if verdict is Verdict.UNKNOWN else ""
        if count:
            yield verdict.value, f"{count}", f"{count / len(report.kernels):.0%}", why


def _rungs(report: Report) -> Iterator[tuple[str, ...]]:
    obligations = [o for kernel in report.kernels for o in kernel.obligations]
    for rung in (*RUNGS, *sorted({o.rung for o in obligations} - set(RUNGS))):
        own = [o for o in obligations if o.rung == rung]
        if own:
            time_s = sum(o.time_ms for o in own) / 1000
            yield rung, f"{len(own)}", f"{len(own) / len(obligations):.0%}", f"{time_s:.2f} s"


def _slowest(report: Report) -> Iterator[tuple[str, ...]]:
    places = Places(report.sources)
    for kernel in sorted(report.kernels, key=lambda k: (-k.time_ms, k.site.file, k.site.span.start))[:_SLOWEST]:
        place = places.of(kernel.site)
        where = f"{place.file}:{place.line}"
        yield (
            f"{kernel.time_ms / 1000:.2f} s",
            where,
            kernel.name,
            "cached" if kernel.cached else f"{kernel.steps} steps",
        )


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[Line]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield line("  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)))
