"""Workflow commands that GitHub Actions shows as annotations beside the code."""

from __future__ import annotations

from tilecheck.demand import passes
from tilecheck.model import Diagnostic, KernelReport, Severity
from tilecheck.report.findings import paragraph, told
from tilecheck.report.places import Places, kernels_in_order
from tilecheck.report.run import Run
from tilecheck.report.verdicts import given

# GitHub drops in silence what one step prints beyond this, for each level apart.
_MOST = 10
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(run: Run) -> str:
    """An annotation for each finding, the most severe first; the total is stated where some are left out."""
    places = Places(run.report.sources)
    findings = told(run.report)
    commands: list[str] = []
    left_out = []
    for severity, level in _LEVELS.items():
        found = [d for d in findings if d.severity is severity]
        # The statement of totals is a notice itself, and must not be the one that is dropped.
        most = _MOST - 1 if severity is Severity.INFO else _MOST
        commands += [_command(level, d, run, places) for d in found[:most]]
        if len(found) > most:
            left_out.append(f"{most} of {len(found)} {level}s")
    resting = [k for k in kernels_in_order(run.report.kernels) if passes(k) and k.premises]
    free = max(_MOST - 1 - sum(d.severity is Severity.INFO for d in findings), 0)
    commands += [_given(kernel, run, places) for kernel in resting[:free]]
    if len(resting) > free:
        left_out.append(f"{free} of {len(resting)} kernels that rest on contracts")
    if left_out:
        text = f"GitHub shows few annotations for one step; shown here: {', '.join(left_out)}"
        commands.append(f"::notice title=tilecheck::{_data(text)}")
    return "".join(command + "\n" for command in commands)


def _command(level: str, diagnostic: Diagnostic, run: Run, places: Places) -> str:
    place = places.of(diagnostic.site)
    properties: dict[str, object] = {
        "file": run.root.path(place.file),
        "line": place.line,
        "endLine": max(place.end_line, place.line),
    }
    if place.end_line == place.line:  # columns of a span of several lines are refused
        properties |= {"col": place.column, "endColumn": max(place.end_column, place.column)}
    properties["title"] = f"{diagnostic.code} {diagnostic.name}"
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{level} {listed}::{_data(paragraph(diagnostic, lambda site: run.root.place(places.of(site))))}"


def _given(kernel: KernelReport, run: Run, places: Places) -> str:
    """What a pass rests on, as a notice at the kernel."""
    place = places.of(kernel.site)
    where = f"file={_property(run.root.path(place.file))},line={place.line}"
    text = "\n".join([f"`{kernel.name}` is {kernel.verdict.value}", *map(given, kernel.premises)])
    return f"::notice {where},title=given::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
