"""The contracts that a verdict rests on, and what the launches in view say of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilecheck.ir.kernel import Contract, Kernel, Requirement
from tilecheck.ir.launch import Launch
from tilecheck.model import ConditionAt, KernelReport, LaunchReport, Premise

HOLDS, GUARDED, PROMISED = "holds", "guarded", "promised"


def launch_report(launch: Launch, conditions: Sequence[ConditionAt]) -> LaunchReport:
    """The report of a launch whose requirements are judged."""
    return LaunchReport(
        launch.site,
        tuple(conditions),
        status="read" if launch.problem is None else "unread",
        problem=launch.problem or "",
        function=launch.function,
        guarded=launch.guarded,
        checks_contracts=launch.checks_contracts,
    )


def with_checked(report: KernelReport, launches: Sequence[Launch]) -> KernelReport:
    """The report of a kernel with its launches through `tilecheck.host`, which no proof looks at."""
    if not launches:
        return report
    stated = () if report.terms is None else report.terms.contracts
    in_memory = {contract.text for contract in stated}
    more = tuple(
        LaunchReport(la.site, (), status="guarded", function=la.function, guarded=True) for la in launches
    )
    premises = []
    for premise in report.premises:
        # The library checks launch values, and no memory.
        found = {PROMISED if premise.text in in_memory else GUARDED}
        found |= {premise.status} if report.launches else set()
        premises.append(replace(premise, status=next(s for s in (PROMISED, GUARDED, HOLDS) if s in found)))
    return replace(report, launches=(*report.launches, *more), premises=tuple(premises))


def premises_of(kernel: Kernel, launches: Sequence[LaunchReport]) -> tuple[Premise, ...]:
    """The contracts of a kernel, each once for each place that states it, with their status."""
    found: dict[Premise, None] = {}
    every: tuple[Requirement | Contract, ...] = (*kernel.requires, *kernel.contracts)
    for stated in every:
        found[Premise(stated.text, stated.reason, stated.origin, _status(stated, launches))] = None
    return tuple(found)


def _status(stated: Requirement | Contract, launches: Sequence[LaunchReport]) -> str:
    """Without a launch in view a contract is somebody's word; one launch that neither shows nor checks it is
    enough to make it so again."""
    statuses = {_status_at(stated, launch) for launch in launches} or {PROMISED}
    return next(status for status in (PROMISED, GUARDED, HOLDS) if status in statuses)


def _status_at(stated: Requirement | Contract, launch: LaunchReport) -> str:
    judged = {c.status for c in launch.conditions if c.text == stated.text}
    if launch.is_read and judged == {HOLDS}:
        return HOLDS
    # The guard reads launch values always, and memory only where the launch asks for it.
    is_checked = launch.guarded and (isinstance(stated, Requirement) or launch.checks_contracts)
    return GUARDED if is_checked else PROMISED
