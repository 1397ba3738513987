"""The contracts that a verdict rests on, and what the launches in view say of each."""

from __future__ import annotations

from collections.abc import Sequence

from tilecheck.ir.kernel import Contract, Kernel, Requirement
from tilecheck.ir.launch import Launch
from tilecheck.model import ConditionAt, LaunchReport, Premise

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
