"""The launches in view of one kernel: their reports, and findings where one breaks what the kernel needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilecheck.analysis.facts import Facts
from tilecheck.dataclass import dataclass
from tilecheck.findings.kernels import UNDECIDED, rule_name
from tilecheck.findings.premises import launch_report
from tilecheck.ir.kernel import Kernel
from tilecheck.ir.launch import Launch
from tilecheck.ir.sharing import Answers
from tilecheck.model import (
    ConditionAt,
    Diagnostic,
    LaunchReport,
    Literal,
    Reason,
    Related,
    Severity,
    Site,
    Witness,
)
from tilecheck.proof.decide import Decision

if TYPE_CHECKING:
    from tilecheck.analysis.borrow import Alias
    from tilecheck.proof.launches.judge import Broken
    from tilecheck.proof.launches.visible import Judges
    from tilecheck.proof.obligation import Obligation
    from tilecheck.proof.solver.fuel import Fuel

ALIASED = "TC401"
STANDING = "TC403"
CANNOT_START = "TC404"


@dataclass(frozen=True, slots=True)
class Launched:
    """What the visible launches add."""

    reports: tuple[LaunchReport, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    broken: bool = False
    undecided: tuple[Site, str] | None = None  # a launch, and what is not decided there


def check_launches(
    facts: Facts,
    decision: Decision,
    launches: tuple[Launch, ...],
    judges: Judges,
    path: str,
    findings: Sequence[Diagnostic],
    shared: Mapping[int, Sequence[ConditionAt]],
) -> Launched:
    """Judge every visible launch; a condition counts as broken only after the launch was replayed."""
    if not launches:
        return Launched()
    from tilecheck.proof.solver.fuel import LAUNCHES, Fuel  # lazy: most files have no launch that needs it

    fuel = Fuel(LAUNCHES, judges.session.work)
    all_ = (
        _check_one(facts.kernel, decision, launch, judges, path, fuel, shared.get(id(launch), ()))
        for launch in launches
    )
    checked = [one for one in all_ if one is not None]
    reports = tuple(report for report, _ in checked)
    diagnostics = tuple(d for _, found in checked for d in found)
    aliased = [d for d in findings if d.code == ALIASED and d.witness is not None]
    open_ = ((r.site, c.text) for r in reports for c in r.conditions if c.status == "unmet")
    undecided = next(open_, None)
    broken = [d for d in diagnostics if d.code != CANNOT_START]  # that says nothing of the kernel
    return Launched(reports, diagnostics, bool(broken or aliased), undecided)


def _check_one(
    kernel: Kernel,
    decision: Decision,
    launch: Launch,
    judges: Judges,
    path: str,
    fuel: Fuel,
    shared: Sequence[ConditionAt],
) -> tuple[LaunchReport, list[Diagnostic]] | None:
    from tilecheck.proof.launches.check import check_launch  # lazy: most files have no launch that needs it

    settled: dict[str, list[Obligation]] = {}
    for one in decision.settled:
        settled.setdefault(one.status, []).append(one.obligation)
    proved, needed, unknown, trusted = (
        settled.get(status, []) for status in ("proved", "conditional", "unknown", "trusted")
    )
    checked = check_launch(
        kernel, decision.conditions, proved, needed, unknown, trusted, launch, judges, fuel, path
    )
    if checked is None:
        return None
    from tilecheck.proof.launches.windows import judged_descriptors  # lazy

    judged = tuple(judged_descriptors(kernel, launch, judges, path, fuel))
    said = (*checked.conditions, *((j.text, j.status) for j in judged))
    report = launch_report(launch, (*(ConditionAt(t, s) for t, s in said), *shared))
    found = [_broken_launch(kernel, launch, b, witness) for b, witness in checked.broken]
    found += [_broken_launch(kernel, launch, j.broken, j.witness) for j in judged if j.broken is not None]
    if checked.cannot_start:
        found.append(_cannot_start(kernel, launch, checked.cannot_start))
    return report, found


def _cannot_start(kernel: Kernel, launch: Launch, why: str) -> Diagnostic:
    return Diagnostic(
        code=CANNOT_START,
        name=rule_name(CANNOT_START),
        severity=Severity.ERROR,
        message=f"this launch of `{kernel.name}` cannot start, whatever its inputs are: {why}",
        site=launch.site,
        kernel=kernel.name,
        label="no input makes it run",
        related=(Related(kernel.site, "the kernel that is launched"),),
        help="choose a tile size that is a power of two"
        if "tile" in why
        else "put the long axis of the grid first: axis 0 may have 2^31 - 1 blocks",
    )


def _broken_launch(kernel: Kernel, launch: Launch, broken: Broken, witness: Witness | None) -> Diagnostic:
    inputs = ", ".join(f"{name} = {value}" for name, value in broken.values.items())
    notes = () if witness is not None else (Literal(f"with {inputs}" if inputs else "whatever the inputs are"),)
    what = "a standing obligation" if broken.rule in (STANDING, ALIASED) else "a condition"
    message = f"this launch of `{kernel.name}` breaks {what} of the kernel: {broken.text}"
    if not broken.is_condition:
        message = f"at this launch of `{kernel.name}` {broken.text}"
    return Diagnostic(
        code=broken.rule,
        name=rule_name(broken.rule),
        severity=Severity.ERROR,
        message=message,
        site=launch.site,
        kernel=kernel.name,
        label=f"not met by what `{launch.function}` passes"
        if broken.is_condition
        else f"with what `{launch.function}` passes",
        related=(Related(kernel.site, "the kernel that needs it"),),
        witness=witness,
        notes=notes,
        help="launch with a grid and arguments that meet it, or check them before the launch"
        if broken.is_condition
        else "change the grid or the arguments, or the indices of the kernel",
    )


def with_aliases(
    facts: Facts,
    findings: Sequence[Diagnostic],
    judges: Judges,
    path: str,
    is_harmless: Callable[[Alias], bool],
) -> tuple[tuple[Diagnostic, ...], Mapping[int, Sequence[ConditionAt]]]:
    """Attach to each aliasing finding what a replay with one buffer bound twice shows; and say of the launches
    that remain whether S1 holds there.

    One call can stand for several launches (one for each choice that the host function makes): a finding
    counts if the replay shows it for one of them, with the flags of that launch. Of the others it must be
    proved that no two blocks meet in it, or that they are apart. Tensors that are handed in independently are
    left to the caller.
    """
    kept = [d for d in findings if d.code != ALIASED]
    aliased = [d for d in findings if d.code == ALIASED]
    shared: dict[int, dict[ConditionAt, None]] = {}
    aliases = tuple(facts.graph.aliases())
    if not aliases:
        return tuple(kept), {}
    from tilecheck.proof.goals.context import Context  # lazy
    from tilecheck.proof.launches.aliasing import find_alias  # lazy: loads NumPy
    from tilecheck.proof.launches.windows import judged_alias  # lazy
    from tilecheck.proof.solver.fuel import LAUNCHES, Fuel  # lazy

    overlapping: list[Diagnostic] = []
    context, fuel = Context(facts.kernel), Fuel(LAUNCHES, judges.session.work)
    for alias in aliases:
        names = [f"`{n}`" for n in (alias.buffer, alias.mutable, alias.other)]
        own = (
            k
            for k, d in enumerate(aliased)
            if d.site == alias.launch.site and all(n in d.message for n in names)
        )
        k = next(own, None)
        if k is not None and aliased[k].witness is None:
            flags = judges.flags(alias.launch)
            witness = find_alias(context, alias.mutable, alias.other, path, flags, alias.launch, judges, fuel)
            aliased[k] = replace(aliased[k], witness=witness)
        if k is not None and aliased[k].witness is not None:
            status = "broken"
        elif alias.sharing.answers in (Answers.CALLER, Answers.UNREAD):
            status = alias.sharing.answers.value
        elif is_harmless(alias):
            status = "holds"
        else:
            judged = judged_alias(facts.kernel, alias, judges, path, fuel)
            status = judged.status
            if judged.broken is not None:
                found = _broken_launch(facts.kernel, alias.launch, judged.broken, judged.witness)
                overlapping += [] if found in overlapping else [found]
        if status == "holds":
            continue
        said = ConditionAt(f"S1: `{alias.mutable}` and `{alias.other}` do not overlap", status)
        shared.setdefault(id(alias.launch), {})[said] = None
    shown = [*(d for d in aliased if d.witness is not None), *overlapping]
    return (*kept, *shown), {launch: tuple(found) for launch, found in shared.items()}


def undecided_launch(kernel: Kernel, launched: Launched, reason: str) -> Iterator[Diagnostic]:
    """A warning for the first launch that is not decided."""
    if launched.undecided is None or reason == Reason.VACUOUS.value:
        return
    site, text = launched.undecided
    is_shared = text.startswith("S1: ")
    yield Diagnostic(
        UNDECIDED,
        rule_name(UNDECIDED),
        Severity.WARNING,
        f"not decided ({reason}): whether this launch of `{kernel.name}` meets what it needs: {text}",
        site,
        kernel.name,
        "one buffer is passed twice and written, and two blocks may meet in it"
        if is_shared
        else "neither a proof nor inputs that do harm were found",
        help="pass a copy, or write the kernel with one parameter for both" if is_shared else None,
    )
