"""The last stage before the report: one verdict for each kernel, and the findings in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tilecheck.analysis.dependent import launch_order
from tilecheck.analysis.facts import Facts
from tilecheck.analysis.limits import int32_limits, values_in_memory
from tilecheck.analysis.ordering import laid_out_alike, large_tiles
from tilecheck.findings.advice import with_repairs
from tilecheck.findings.duplicates import merged
from tilecheck.findings.kernels import (
    UNSUPPORTED,
    premise_sites,
    rule_name,
    undecided,
    unneeded_unsafe,
    violations,
)
from tilecheck.findings.launches import Launched, check_launches, undecided_launch, with_aliases
from tilecheck.findings.premises import premises_of
from tilecheck.ir.expr import Kind, render, symbols
from tilecheck.ir.kernel import Kernel, Ownership, made_of
from tilecheck.ir.launch import Launch
from tilecheck.model import (
    Diagnostic,
    KernelReport,
    LaunchTerms,
    ObligationReport,
    ParamReport,
    Reason,
    Severity,
    Site,
    StatedContract,
    TrustedBlock,
    Verdict,
)
from tilecheck.proof.conditions.abduction import condition_text
from tilecheck.proof.decide import Decision

if TYPE_CHECKING:
    from tilecheck.analysis.borrow import Alias
    from tilecheck.proof.launches.visible import Judges


def conclude(
    facts: Facts,
    decision: Decision,
    findings: Sequence[Diagnostic],
    launches: tuple[Launch, ...],
    judges: Judges,
    path: str,
    is_harmless: Callable[[Alias], bool] = lambda _: False,
) -> tuple[KernelReport, tuple[Diagnostic, ...]]:
    """The report of one kernel and everything that was found in it. `judges` are those of its launches.
    `is_harmless` may show that two parameters may be one tensor."""
    kernel = facts.kernel
    findings, shared = with_aliases(facts, findings, judges, path, is_harmless)
    launched = check_launches(facts, decision, launches, judges, path, findings, shared)
    diagnostics = [*findings, *violations(kernel, decision), *launched.diagnostics]
    diagnostics += unneeded_unsafe(kernel, decision)
    verdict, reason, site = _verdict(kernel, decision, launched)
    if verdict is Verdict.UNKNOWN and reason is not None:
        diagnostics += [*undecided_launch(kernel, launched, reason), *undecided(kernel, decision, path)]
    diagnostics = list(with_repairs(kernel, merged(diagnostics)))
    report = KernelReport(
        name=kernel.name,
        language=kernel.language,
        site=kernel.site,
        verdict=verdict,
        reason=reason,
        reason_site=site,
        conditions=tuple(condition_text(c) for c in decision.conditions),
        standing=standing(facts),
        launches=launched.reports,
        trusted=_trusted(kernel, decision),
        premises=premises_of(kernel, launched.reports),
        params=_params(facts),
        launch_order=launch_order(kernel),
        terms=LaunchTerms(
            kernel.files,
            kernel.grid_axes,
            tuple(render(r.condition) for r in kernel.requires),
            int32_limits(kernel),
            tuple(map(render, large_tiles(kernel))),
            kernel.globals,
            tuple(
                StatedContract(c.kind, c.arrays, tuple(map(render, c.bounds)), c.text, c.part)
                for c in kernel.contracts
            ),
        ),
        obligations=tuple(
            ObligationReport(s.obligation.rule, s.status, s.rung, s.obligation.sites, s.time_ms)
            for s in decision.settled
        ),
        steps=decision.spent,
    )
    return report, tuple(diagnostics)


def unsupported(
    name: str, language: str, site: Site, construct: str, where: Site
) -> tuple[KernelReport, tuple[Diagnostic, ...]]:
    """The report of a kernel with a construct that is not read."""
    reason = f"{Reason.UNSUPPORTED.value}:{construct}"
    finding = Diagnostic(
        code=UNSUPPORTED,
        name=rule_name(UNSUPPORTED),
        severity=Severity.WARNING,
        message=f"`{name}` is not decided: {construct} is not supported",
        site=where,
        kernel=name,
        label="not supported",
        help="rewrite this part, or prove the rest apart from it in a kernel of its own",
    )
    return KernelReport(name, language, site, Verdict.UNKNOWN, reason, where), (finding,)


# ---- the verdict -------------------------------------------------------------------------------------------


def _verdict(kernel: Kernel, decision: Decision, launched: Launched) -> tuple[Verdict, str | None, Site | None]:
    """violated over unknown over trusted over conditional over proved."""
    if decision.vacuous:
        return Verdict.UNKNOWN, Reason.VACUOUS.value, premise_sites(kernel)[0]
    statuses = {s.status for s in decision.settled}
    if "violated" in statuses or launched.broken:
        return Verdict.VIOLATED, None, None
    open_ = [s for s in decision.settled if s.status == "unknown"]
    # A spent budget says least: what else is missing would be missing with a larger one too.
    for settled in sorted(open_, key=lambda s: s.reason == Reason.BUDGET.value):
        return Verdict.UNKNOWN, settled.reason, settled.obligation.sites[0]
    if launched.undecided is not None:
        return Verdict.UNKNOWN, Reason.LAUNCH.value, launched.undecided[0]
    if "trusted" in statuses:
        return Verdict.TRUSTED, None, None
    conditional = decision.conditions or kernel.requires or kernel.contracts
    return (Verdict.CONDITIONAL if conditional else Verdict.PROVED), None, None


def standing(facts: Facts) -> tuple[str, ...]:
    """The standing obligations that concern this kernel, S1 to S8 of the documentation."""
    arrays = facts.graph.arrays()
    written = [a for a in arrays if facts.graph.ownership(a) is Ownership.MUT]
    found = []
    if written and len(arrays) > 1:
        found.append("S1")
    if written:
        found.append("S2")
        if len(facts.kernel.grid_axes) < 3:
            found.append("S3")
    if any(facts.graph.borrows(a) for a in arrays):
        found.append("S4")
    values = [a.value for a in facts.kernel.arithmetic]
    of_sizes = any(s.kind is Kind.BLOCK or made_of(s) is not None for s in symbols(*values))
    if of_sizes or any(map(values_in_memory, values)):
        found.append("S5")
    if any(p.is_array and p.integer for p in facts.kernel.params):
        found.append("S6")
    if laid_out_alike(facts.kernel):
        found.append("S7")
    if large_tiles(facts.kernel):
        found.append("S8")
    return tuple(found)


def _params(facts: Facts) -> tuple[ParamReport, ...]:
    found, laid_out = [], laid_out_alike(facts.kernel)
    for param in facts.kernel.params:
        ownership = facts.graph.ownership(param.name) if param.is_array else param.ownership
        if param.is_array and ownership is Ownership.UNUSED:
            ownership = param.ownership
        found.append(
            ParamReport(
                param.name,
                ownership.value,
                param.declared is not None,
                array=param.is_array,
                rank=param.rank,
                members=param.is_list,
                scalar=param.scalar,
                wide=param.wide,
                integer=param.integer,
                updated=param.updated,
                alike=param.name in laid_out,
            )
        )
    return tuple(found)


def _trusted(kernel: Kernel, decision: Decision) -> tuple[TrustedBlock, ...]:
    used = dict.fromkeys(n for s in decision.settled if s.status == "trusted" for n in s.obligation.unsafe)
    return tuple(TrustedBlock(kernel.unsafe_blocks[n].site, kernel.unsafe_blocks[n].reason or "") for n in used)
