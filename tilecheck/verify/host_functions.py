"""The host functions of a file: read, judged and put in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from tilecheck.errors import UnsupportedConstruct, trace_of_bug
from tilecheck.model import Diagnostic, HostReport, Site, Span

if TYPE_CHECKING:
    from tilecheck.frontend.host_guards import Guards
    from tilecheck.frontend.host_programs import HostFunction
    from tilecheck.frontend.kernels.definitions import Definition
    from tilecheck.frontend.modules.project import ModuleTable
    from tilecheck.ir.host_program import HostProgram
    from tilecheck.ir.launch_footprint import KernelFootprint
    from tilecheck.proof.interleavings.judge import Judgement, Open
    from tilecheck.proof.solver.session import Session

Result = tuple[tuple[HostReport, ...], tuple[Diagnostic, ...]]
MOST_ACTIONS = 600  # of a path whose interleavings are explored


def judge_hosts(table: ModuleTable, budget: int) -> Result:
    """A record for each host function of a file that uses streams, events, graphs, dependent launches or
    asynchronous copies, and what is wrong with them.

    Args:
        table: the file.
        budget: what one question may cost the solver.
    """
    try:
        from tilecheck.frontend.host_programs import read_host_programs  # lazy: loads libcst

        functions = read_host_programs(table, footprint_of)
    except Exception:  # noqa: BLE001 - a bug of ours in reading one file must not stop the others
        whole = Site(table.file, Span(0, 0))
        return (HostReport("<module>", whole, "unread", "internal", internal_error=trace_of_bug()),), ()
    results = [_judged(function, budget) for function in functions]
    found = tuple(d for _, of_one in results for d in of_one)
    return _with_guarded(table, functions, tuple(report for report, _ in results)), found


def footprint_of(definition: Definition) -> KernelFootprint | None:
    """What a launch of a kernel touches; None if the kernel is not read."""
    from tilecheck.analysis.launch_footprint import kernel_footprint  # lazy
    from tilecheck.frontend.lower import lower  # lazy: loads libcst

    try:
        return kernel_footprint(lower(definition))
    except (UnsupportedConstruct, RecursionError):
        return None


def _judged(function: HostFunction, budget: int) -> tuple[HostReport, tuple[Diagnostic, ...]]:
    from tilecheck.proof.solver.session import Session  # lazy

    if function.unread:
        return HostReport(function.name, function.site, "unread", function.unread), ()
    try:
        with closing(Session(budget=budget)) as session:
            return _of_paths(function, session)
    except Exception:  # noqa: BLE001 - a bug of ours in one function must not stop the others
        trace = trace_of_bug()
        return HostReport(function.name, function.site, "unread", "internal", internal_error=trace), ()


def _of_paths(function: HostFunction, session: Session) -> tuple[HostReport, tuple[Diagnostic, ...]]:
    """What all paths of a function come to: one that is not understood says nothing of the others."""
    from tilecheck.findings.host_functions import Shown, diagnostic  # lazy

    shown: dict[tuple[object, ...], list[Shown]] = {}
    unread: list[tuple[Site | None, str]] = []
    for program in function.programs:
        if program.unread:
            unread += program.unread
            continue
        if len(program.actions) > MOST_ACTIONS:
            unread.append((None, f"a path has more than {MOST_ACTIONS} steps"))
            continue
        judgement = _judgement(program, session)
        for confirmed in judgement.errors:
            one = Shown(program, confirmed)
            shown.setdefault(one.key, []).append(one)
        unread += [_why(program, open_) for open_ in judgement.open]
    found = tuple(map(diagnostic, shown.values()))
    codes = tuple(sorted({d.code for d in found}))
    if found:
        return HostReport(function.name, function.site, "violated", findings=codes), found
    if not unread:
        return HostReport(function.name, function.site, "ordered"), ()
    place, why = unread[0]
    return HostReport(function.name, function.site, "unread", why, place), ()


# ---- what the library checks as it runs ----------------------------------------------------------------------

_LIBRARY = re.compile(r"\btilecheck\b")


def _with_guarded(
    table: ModuleTable, functions: Sequence[HostFunction], reports: tuple[HostReport, ...]
) -> tuple[HostReport, ...]:
    """The records, with those that are unread and leave all to `tilecheck.host` as guarded.

    What was found wrong stays: the library refuses what is out of order, and does not mend it.
    """
    undecided = any(r.status == "unread" and r.internal_error is None for r in reports)
    if not undecided or _LIBRARY.search(table.parsed.words) is None:
        return reports
    from tilecheck.frontend.host_guards import Guards  # lazy: not where nothing is left open

    guards = Guards(table, [f for f, r in zip(functions, reports, strict=True) if r.status == "ordered"])
    return tuple(
        _guarded(guards, function, report) if report.status == "unread" else report
        for function, report in zip(functions, reports, strict=True)
    )


def _guarded(guards: Guards, function: HostFunction, report: HostReport) -> HostReport:
    if report.internal_error is not None:
        return report
    try:
        found = guards.of(function.entry)
    except Exception:  # noqa: BLE001 - a bug of ours in one function must not stop the others
        return replace(report, reason="internal", reason_site=None, internal_error=trace_of_bug())
    if not found.uses_library:
        return report
    if found.why is None:
        return HostReport(report.name, report.site, "guarded")
    site, why = found.why
    return replace(report, reason=why, reason_site=site)


def _judgement(program: HostProgram, session: Session) -> Judgement:
    from tilecheck.proof.interleavings.judge import judge  # lazy

    return judge(program, session)


def _why(program: HostProgram, open_: Open) -> tuple[Site | None, str]:
    """Why a path is not decided: the finding that may be one, and where."""
    finding = open_.finding
    steps = [program.actions[k] for k in (finding.second, finding.first) if 0 <= k < len(program.actions)]
    place = steps[0].site if steps else None
    return place, f"{finding.code} on `{finding.memory}` is not decided: {open_.why}"
