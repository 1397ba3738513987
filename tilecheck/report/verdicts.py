"""The verdict of every kernel, and the summary line. Printed also when all is well: silence is no proof."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.model import KernelReport, LaunchReport, Report, Verdict
from tilecheck.report.places import Places, kernels_in_order
from tilecheck.report.run import Run
from tilecheck.report.style import Line, Piece, line
from tilecheck.report.versions import versions


def render_end(run: Run) -> Iterator[Line]:
    """What follows the findings: the verdicts if they are asked for, and the summary; nothing if quiet."""
    if run.quiet:
        return
    if run.lists_verdicts and run.report.kernels:
        yield from render_verdicts(run.report)
        yield ()
    yield from render_summary(run.report)


def render_verdicts(report: Report) -> Iterator[Line]:
    """One line for each kernel, and below it what the verdict rests on."""
    places = Places(report.sources)
    kernels = kernels_in_order(report.kernels)
    where = [f"{kernel.site.file}:{places.of(kernel.site).line}" for kernel in kernels]
    width = max((len(text) for text in where), default=0)
    for kernel, place in zip(kernels, where, strict=True):
        word = kernel.verdict.value
        yield line((f"{word:<11}", word), f"  {place:<{width}}  ", (kernel.name, "strong"))
        for text in grounds(kernel, places):
            yield line(" " * 15, text)


def grounds(kernel: KernelReport, places: Places) -> Iterator[str]:
    """What a verdict rests on, or why there is none."""
    if kernel.verdict is Verdict.UNKNOWN:
        yield f"because {kernel.reason or 'internal'}"
    if kernel.verdict in (Verdict.CONDITIONAL, Verdict.TRUSTED):
        yield from (f"if {condition}" for condition in kernel.conditions)
        seen = (_launch(launch, kernel, places) for launch in kernel.launches if launch.conditions)
        yield from dict.fromkeys(seen)  # one call may be several launches, by the choices before it
    for block in kernel.trusted:
        yield f"trusting line {places.of(block.site).line}: {block.reason}"


def _launch(launch: LaunchReport, kernel: KernelReport, places: Places) -> str:
    """What one launch that can be seen makes of the conditions: all alike, or the ones that do not hold."""
    place = places.of(launch.site)
    where = f"line {place.line}" if place.file == kernel.site.file else f"{place.file}:{place.line}"
    found: dict[str, list[str]] = {}
    for judged in launch.conditions:
        found.setdefault(judged.status, []).append(judged.text)
    if len(found) == 1:
        (status,) = found
        return f"at the launch in {where}: {_ALL[status]}"
    parts = [
        f"{_ONE[status]}: {', '.join(found[status])}" for status in _ONE if status in found
    ]
    parts += ["the others hold"] if "holds" in found else []
    return f"at the launch in {where}: {'; '.join(parts)}"


_ALL = {
    "holds": "all hold",
    "caller": "all left to the caller",
    "broken": "all broken",
    "unmet": "none is shown",
    "unread": "none is read",
}
_ONE = {"caller": "left to the caller", "broken": "broken", "unmet": "not shown", "unread": "not read"}


def render_summary(report: Report) -> Iterator[Line]:
    """The counts of the run in one line; those that are zero are left out."""
    kernels = len(report.kernels)
    counts: list[Piece] = []
    for verdict in Verdict:
        count = report.count(verdict)
        if count:
            counts += [Piece(", " if counts else ""), Piece(f"{count} {verdict.value}", verdict.value)]
    obligations = sum(len(kernel.obligations) for kernel in report.kernels)
    suppressed = sum(1 for diagnostic in report.diagnostics if diagnostic.suppressed)
    tool = versions()
    rest = [_count(report.files, "file")]
    rest += [_count(obligations, "obligation")] if kernels else []
    cached = sum(1 for kernel in report.kernels if kernel.cached)
    rest += [f"{cached} cached"] if cached else []
    rest += [f"{len(report.unreadable)} not read"] if report.unreadable else []
    rest += [_suppressed(suppressed, report.baselined)] if suppressed else []
    unchanged = f"{len(report.unchanged)} unchanged since {report.since}, not looked at"
    rest += [unchanged] if report.unchanged else []
    rest += [f"{report.time_s:.2f} s", f"tilecheck {tool['version']}, z3 {tool['z3']}"]
    head = Piece(_count(kernels, "kernel") + (": " if counts else ""), "strong")
    yield (head, *counts, Piece("".join(f" \N{MIDDLE DOT} {part}" for part in rest), "faint"))


def _suppressed(number: int, baselined: int) -> str:
    return f"{number} suppressed" + (f" ({baselined} by the baseline)" if baselined else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
