"""Findings kernel by kernel, below the kernel's verdict; what belongs to no kernel comes last, file by file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tilecheck.model import Diagnostic, KernelReport, Report, Verdict
from tilecheck.report.emitters.concise import one_line
from tilecheck.report.findings import Owners
from tilecheck.report.places import Places, in_order, kernels_in_order
from tilecheck.report.run import Run
from tilecheck.report.style import Line, line
from tilecheck.report.verdicts import grounds, render_summary


def render(run: Run) -> Iterator[Line]:
    """A group for each kernel (with `check`: each that something is said of), then the summary."""
    places = Places(run.report.sources)
    groups, rest = grouped(run.report, (d for d in in_order(run.report) if not d.suppressed))
    for kernel, findings in groups:
        if findings or kernel.verdict is Verdict.UNKNOWN or (run.lists_verdicts and not run.quiet):
            yield from _kernel(kernel, findings, places)
            yield ()
    for file in dict.fromkeys(d.site.file for d in rest):
        yield line((file, "strong"))
        yield from _findings([d for d in rest if d.site.file == file], file, places)
        yield ()
    if not run.quiet:
        yield from render_summary(run.report)


def grouped(
    report: Report, diagnostics: Iterable[Diagnostic]
) -> tuple[list[tuple[KernelReport, list[Diagnostic]]], list[Diagnostic]]:
    """Each kernel with its findings, and the findings of no kernel."""
    kernels = kernels_in_order(report.kernels)
    owners = Owners(report)
    groups: dict[int, list[Diagnostic]] = {id(kernel): [] for kernel in kernels}
    rest: list[Diagnostic] = []
    for diagnostic in diagnostics:
        owner = owners.of(diagnostic)
        (rest if owner is None else groups[id(owner)]).append(diagnostic)
    return [(kernel, groups[id(kernel)]) for kernel in kernels], rest


def _kernel(kernel: KernelReport, findings: Sequence[Diagnostic], places: Places) -> Iterator[Line]:
    word = kernel.verdict.value
    place = places.of(kernel.site)
    yield line((word, word), f"  {place.file}:{place.line}  ", (kernel.name, "strong"))
    yield from (line("    ", text) for text in grounds(kernel, places))
    yield from _findings(findings, kernel.site.file, places)


def _findings(findings: Sequence[Diagnostic], file: str, places: Places) -> Iterator[Line]:
    for diagnostic in findings:
        place = places.of(diagnostic.site)
        where = f"{place.line}:{place.column}" if place.file == file else str(place)
        word = diagnostic.severity.word
        head = (f"{word}[{diagnostic.code}]", word)
        yield line(f"    {where}: ", head, f" {one_line(diagnostic.message)}")
