"""The findings of a report as diagnostics of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilecheck.dataclass import dataclass
from tilecheck.hygiene import UNUSED_SUPPRESSION
from tilecheck.lsp.analysed import Analysed
from tilecheck.lsp.positions import Json
from tilecheck.lsp.uris import uri_of
from tilecheck.model import Diagnostic, KernelReport, Related, Severity, Span, Witness
from tilecheck.report.places import in_order, undecided_without_finding

SOURCE = "tilecheck"
_SEVERITIES = {Severity.ERROR: 1, Severity.WARNING: 2, Severity.INFO: 3}
_UNNECESSARY = 1  # the tag that lets a client fade a place out


@dataclass(frozen=True, slots=True)
class Shown:
    """A finding and how a client sees it. `finding` is None for what no rule said."""

    finding: Diagnostic | None
    kernel: str | None
    diagnostic: Json


def shown(analysed: Analysed, *, related: bool = True) -> list[Shown]:
    """What a client is shown of a document, in the order of the text. Suppressed findings are not.

    Where a client takes no related places (`related` False), they are told in the message.
    """
    if analysed.problem:
        whole = {"range": analysed.positions().range(Span(0, 0)), "severity": 1, "source": SOURCE}
        return [Shown(None, None, {**whole, "message": analysed.problem})]
    found = [
        Shown(finding, finding.kernel, _diagnostic(analysed, here, related=related))
        for finding in in_order(analysed.report)
        if not finding.suppressed and (here := _here(analysed, finding)) is not None
    ]
    found += [_undecided(analysed, k) for k in undecided_without_finding(analysed.report) if not k.accepted]
    return sorted(found, key=lambda s: _start(s.diagnostic))


def _start(diagnostic: Json) -> tuple[int, int]:
    start = diagnostic["range"]["start"]
    return start["line"], start["character"]


def _here(analysed: Analysed, finding: Diagnostic) -> Diagnostic | None:
    """A finding as this document shows it: one in a helper's file at the kernel that calls the helper."""
    if finding.site.file == analysed.path:
        return finding
    kernel = next((k for k in analysed.kernels if k.name == finding.kernel), None)
    if kernel is None:
        return None
    there = Related(finding.site, finding.label or "here")
    return replace(finding, site=kernel.site, label=None, related=(there, *finding.related))


def _diagnostic(analysed: Analysed, finding: Diagnostic, *, related: bool) -> Json:
    positions = analysed.positions()
    places = [r for r in finding.related if r.message]
    result: Json = {
        "range": positions.range(finding.site.span),
        "severity": _SEVERITIES[finding.severity],
        "source": SOURCE,
        "code": finding.code,
        "message": "\n".join(_message(analysed, finding, () if related else places)),
        "data": {"code": finding.code, "kernel": finding.kernel},
    }
    if finding.code == UNUSED_SUPPRESSION:
        result["tags"] = [_UNNECESSARY]
    if related and places:
        result["relatedInformation"] = [
            {"location": _location(analysed, place), "message": place.message} for place in places
        ]
    return result


def _location(analysed: Analysed, place: Related) -> Json:
    file = place.site.file
    uri = analysed.uri if file == analysed.path else uri_of(file)
    return {"uri": uri, "range": analysed.positions(file).range(place.site.span)}


def _message(
    analysed: Analysed, finding: Diagnostic, places: tuple[Related, ...] | list[Related]
) -> Iterator[str]:
    """It stands alone: many clients show nothing else."""
    yield finding.message
    if finding.label and finding.label not in finding.message:
        yield finding.label
    for place in places:
        line = analysed.positions(place.site.file).position(place.site.span.start)["line"] + 1
        file = "" if place.site.file == analysed.path else f"{place.site.file}, "
        yield f"{file}line {line}: {place.message}"
    if finding.witness is not None:
        yield f"counterexample: {_launch(finding.witness)}"
    if finding.help:
        yield f"help: {finding.help}"


def _launch(witness: Witness) -> str:
    values = {name: value for name, value in witness.values.items() if not name.startswith("grid[")}
    grid = f"grid=({', '.join(map(str, witness.grid))}{',' if len(witness.grid) == 1 else ''})"
    launch = [] if witness.kind == "order" else [grid]
    return ", ".join([*launch, *(f"{name}={value}" for name, value in values.items())])


def _undecided(analysed: Analysed, kernel: KernelReport) -> Shown:
    """A kernel that is unknown although no finding says why: silence would look like a proof."""
    reason = kernel.reason or "internal"
    diagnostic = {
        "range": analysed.positions().range(kernel.site.span),
        "severity": _SEVERITIES[Severity.WARNING],
        "source": SOURCE,
        "code": f"unknown/{reason.partition(':')[0]}",
        "message": f"`{kernel.name}` is not decided ({reason})",
        "data": {"code": f"unknown/{reason.partition(':')[0]}", "kernel": kernel.name},
    }
    return Shown(None, kernel.name, diagnostic)
