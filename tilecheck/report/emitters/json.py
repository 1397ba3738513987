"""The machine interface: one JSON object, its keys in a fixed order."""

from __future__ import annotations

import json
from typing import Any

from tilecheck.demand import passes
from tilecheck.model import (
    ConditionAt,
    Diagnostic,
    HostReport,
    KernelReport,
    LaunchOrder,
    Premise,
    Report,
    Verdict,
    Witness,
)
from tilecheck.report.places import Places, hosts_in_order, in_order, kernels_in_order
from tilecheck.report.run import Run
from tilecheck.report.verdicts import PASSES
from tilecheck.report.versions import versions

SCHEMA_VERSION = 1


def render(run: Run) -> str:
    """The report as one JSON object with a final newline."""
    return json.dumps(to_object(run.report), indent=2) + "\n"


def to_object(report: Report) -> dict[str, Any]:
    """The report as plain dictionaries and lists."""
    places = Places(report.sources)
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": versions(),
        "kernels": [_kernel(kernel, places) for kernel in kernels_in_order(report.kernels)],
        "hosts": [_host(host, places) for host in hosts_in_order(report.hosts)],
        "diagnostics": [_diagnostic(diagnostic, places) for diagnostic in in_order(report)],
        "summary": _summary(report),
        "complete": True,
    }


def _kernel(kernel: KernelReport, places: Places) -> dict[str, Any]:
    return {
        "file": kernel.site.file,
        "line": places.of(kernel.site).line,
        "name": kernel.name,
        "language": kernel.language,
        "verdict": kernel.verdict.value,
        "reason": kernel.reason,
        "conditions": list(kernel.conditions),
        "standing": list(kernel.standing),
        "launches": [
            {
                "file": launch.site.file,
                "line": places.of(launch.site).line,
                "status": launch.status,
                "conditions": [_condition(condition) for condition in launch.conditions],
            }
            for launch in kernel.launches
        ],
        "trusted": [{"line": places.of(t.site).line, "reason": t.reason} for t in kernel.trusted],
        "premises": [premise(p) for p in kernel.premises],
        "params": [{"name": p.name, "ownership": p.ownership, "declared": p.declared} for p in kernel.params],
        "launch_order": None if kernel.launch_order is None else _launch_order(kernel.launch_order),
        "obligations": [
            {
                "rule": o.rule,
                "verdict": o.verdict,
                "rung": o.rung,
                "sites": [{"line": p.line, "column": p.column} for p in map(places.of, o.sites)],
                "time_ms": round(o.time_ms, 3),
            }
            for o in kernel.obligations
        ],
        "accepted": kernel.accepted,
        "cached": kernel.cached,
        "time_ms": round(kernel.time_ms, 3),
    }


def _host(host: HostReport, places: Places) -> dict[str, Any]:
    return {
        "file": host.site.file,
        "line": places.of(host.site).line,
        "name": host.name,
        "status": host.status,
        "reason": host.reason or None,
        "findings": list(host.findings),
    }


def _launch_order(order: LaunchOrder) -> dict[str, Any]:
    parts = {"before": order.before, "after": order.after}
    touched = {name: {"reads": list(part.reads), "writes": list(part.writes)} for name, part in parts.items()}
    return {"waits": "always" if order.always else "sometimes", "needs": list(order.needs), **touched}


def _condition(condition: ConditionAt) -> dict[str, Any]:
    witness = _witness(condition.witness) if condition.witness else None
    return {"text": condition.text, "status": condition.status, "witness": witness}


def premise(given: Premise) -> dict[str, str | None]:
    """A contract that a verdict rests on."""
    return {"text": given.text, "reason": given.reason, "origin": given.origin, "status": given.status}


def _diagnostic(diagnostic: Diagnostic, places: Places) -> dict[str, Any]:
    place = places.of(diagnostic.site)
    why = diagnostic.suppression
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity.word,
        "message": diagnostic.message,
        "kernel": diagnostic.kernel,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
        "related": [
            {"file": p.file, "line": p.line, "column": p.column, "message": related.message}
            for related in diagnostic.related
            for p in (places.of(related.site),)
        ],
        "witness": _witness(diagnostic.witness) if diagnostic.witness else None,
        "label": diagnostic.label,
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
        "suppressed": diagnostic.suppressed,
        "suppression": {"kind": why.kind, "reason": why.reason} if why else None,
    }


def _witness(witness: Witness) -> dict[str, Any]:
    return {
        "kind": witness.kind,
        "grid": list(witness.grid),
        "blocks": [list(block) for block in witness.blocks],
        "lanes": None if witness.lanes is None else [list(lane) for lane in witness.lanes],
        "iterations": None if witness.iterations is None else [list(i) for i in witness.iterations],
        "values": dict(witness.values),
        "array": witness.array,
        "element": None if witness.element is None else list(witness.element),
        "replayed": witness.replayed,
    }


def _summary(report: Report) -> dict[str, Any]:
    passing = [kernel for kernel in report.kernels if passes(kernel)]
    return {
        "files": report.files,
        "kernels": len(report.kernels),
        "hosts": len(report.hosts),
        **{verdict.value: report.count(verdict) for verdict in Verdict},
        **{key: sum(map(is_so, passing)) for key, (is_so, _) in PASSES.items()},
        "obligations": sum(len(kernel.obligations) for kernel in report.kernels),
        "cached": sum(1 for kernel in report.kernels if kernel.cached),
        "suppressed": sum(1 for diagnostic in report.diagnostics if diagnostic.suppressed),
        "baselined": report.baselined,
        "unchanged": len(report.unchanged),
        "parse_time_s": round(report.parse_time_s, 3),
        "time_s": round(report.time_s, 3),
    }
