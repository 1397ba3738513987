"""The stages of one kernel as plain calls: lower, analyse, state obligations, decide, conclude."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.demand import PASSING
from tilecheck.errors import UnsupportedConstruct, UsageError, refusal, trace_of_bug
from tilecheck.findings.premises import with_checked
from tilecheck.findings.wording import in_words_of
from tilecheck.model import Diagnostic, KernelReport, Reason, Site, Span, Verdict
from tilecheck.options import Options
from tilecheck.overlay import watched

if TYPE_CHECKING:
    from tilecheck.analysis.borrow import Alias
    from tilecheck.analysis.facts import Facts
    from tilecheck.assumptions.shared_tensors import InPlace
    from tilecheck.cache.session import FileSession
    from tilecheck.frontend.kernels.definitions import Definition
    from tilecheck.gate.decisions import Decisions
    from tilecheck.ir.kernel import Kernel, Requirement
    from tilecheck.ir.launch import Launch
    from tilecheck.proof.decide import Decision
    from tilecheck.proof.launches.visible import Judges
    from tilecheck.proof.obligation import Obligation
    from tilecheck.rule import Rule

    _Analyse = Callable[[Definition], tuple[KernelReport, tuple[Diagnostic, ...]]]


def verify_kernel(
    definition: Definition,
    launches: tuple[Launch, ...],
    options: Options,
    kept: FileSession | None = None,
    decisions: Decisions | None = None,
) -> tuple[KernelReport, tuple[Diagnostic, ...]]:
    """Verify one kernel. A limit of ours, or a bug of ours, is this kernel's verdict and no one else's. `kept`
    are results of earlier runs, `decisions` those of other kernels that may ask the same."""
    checked = [launch for launch in launches if launch.checked]
    launches = tuple(launch for launch in launches if not launch.checked)
    load_stages(definition.language, launches=bool(launches))  # what importing takes is not the kernel's time
    definition = replace(definition, floats=passed_floats(launches))
    project = definition.table.project
    start = time.perf_counter() - project.reading_s  # nor is what reading other modules takes
    try:
        report, diagnostics = _as_launched(definition, launches, options, kept, decisions)
    except UnsupportedConstruct as problem:
        report, diagnostics = unsupported_kernel(definition, problem)
    except RecursionError:
        report, diagnostics = unsupported_kernel(definition, UnsupportedConstruct("code nested this deeply"))
    except UsageError:  # a folder for certificates that cannot be written
        raise
    except Exception:  # noqa: BLE001 - the one place: a bug of ours must not stop the other kernels
        report = internal_error(definition)
        diagnostics = ()
    report = with_checked(report, checked)
    return replace(report, time_ms=(time.perf_counter() - project.reading_s - start) * 1000), diagnostics


def passed_floats(launches: Sequence[Launch]) -> frozenset[str]:
    """The parameters for which every launch in view passes a float."""
    from tilecheck.ir.launch import FLOAT  # lazy: a warm run judges nothing

    passed: dict[str, set[bool]] = {}
    for launch in launches:
        for name, value in launch.arguments:
            passed.setdefault(name, set()).add(value == FLOAT)
    return frozenset(name for name, found in passed.items() if found == {True})


def load_stages(*languages: str, launches: bool = True) -> None:
    """Import what the analysis of a kernel in any of these languages needs, and that of its launches. z3 is not
    among it: many kernels do without."""
    import tilecheck.analysis.borrow  # lazy, as below
    import tilecheck.findings.verdict
    import tilecheck.proof.decide
    from tilecheck.frontend.lower import dialect
    from tilecheck.registry import load_rules

    load_rules()
    if launches:
        import tilecheck.proof.launches.axes  # lazy: loads NumPy
        import tilecheck.proof.launches.check  # noqa: F401
    for language in languages:
        dialect(language)


def preload() -> None:
    """Import all that the analysis of a kernel may need, but for z3: in a process that forks others, or lives
    long."""
    from tilecheck.analysis.edges import Edges  # lazy, as above

    load_stages("cutile", "triton")
    Edges().as_networkx()
    for name in (
        "frontend.text.byte_spans",
        "frontend.launches.discovery",
        "proof.launches.windows",
        "proof.initialisation.completeness",
    ):
        importlib.import_module(f"tilecheck.{name}")  # the reading of host code, and what its launches need
    for name in (
        "reference.running",
        "proof.refute.confirmation",
        "assumptions.initial_values",
        "assumptions.host_contracts",
    ):
        importlib.import_module(f"tilecheck.{name}")  # replays, and what few kernels need


def internal_error(definition: Definition) -> KernelReport:
    """The report of a kernel in whose analysis an exception of ours is being handled."""
    site = definition.table.site(definition.node.name)
    return KernelReport(
        definition.name,
        definition.language,
        site,
        Verdict.UNKNOWN,
        reason=Reason.INTERNAL.value,
        reason_site=site,
        internal_error=trace_of_bug(),
    )


def lost_process(name: str, language: str, site: Site) -> KernelReport:
    """The report of a kernel of a file in whose analysis a process died."""
    reason = Reason.INTERNAL.value
    error = "the process that analysed the file died (a crash of a native library, or too little memory)\n"
    return KernelReport(
        name, language, site, Verdict.UNKNOWN, reason=reason, reason_site=site, internal_error=error
    )


def _as_launched(
    definition: Definition,
    launches: tuple[Launch, ...],
    options: Options,
    kept: FileSession | None,
    decisions: Decisions | None,
) -> tuple[KernelReport, tuple[Diagnostic, ...]]:
    """The kernel as it stands; where that is not decided, the program that every launch in view compiles."""
    analyse = partial(_analyse, launches=launches, options=options, kept=kept, decisions=decisions)
    try:
        general = analyse(definition)
    except UnsupportedConstruct:
        if (special := _passing_program(definition, launches, "", analyse)) is not None:
            return special
        raise
    if general[0].verdict is not Verdict.UNKNOWN:
        return general
    return _passing_program(definition, launches, general[0].reason, analyse) or general


def _passing_program(
    definition: Definition, launches: tuple[Launch, ...], reason: str | None, analyse: _Analyse
) -> tuple[KernelReport, tuple[Diagnostic, ...]] | None:
    """The program that every launch in view compiles, if it passes. `reason` says why the kernel does not: what
    is open at a launch was judged with its values, and what took all of the work would take as much again."""
    if reason in (Reason.LAUNCH.value, Reason.BUDGET.value):
        return None
    from tilecheck.assumptions.host_contracts import as_launched  # lazy: few kernels come here

    try:
        special = as_launched(definition, launches, waits=reason == Reason.NEEDS_CONTRACT.value)
        found = None if special is None else analyse(special)
    except UnsupportedConstruct:
        return None
    return found if found is not None and found[0].verdict in PASSING else None


def _analyse(
    definition: Definition,
    launches: tuple[Launch, ...],
    options: Options,
    kept: FileSession | None,
    decisions: Decisions | None,
) -> tuple[KernelReport, tuple[Diagnostic, ...]]:
    from tilecheck.frontend.lower import lower, rounds_floats  # lazy

    kernel = whole = lower(definition)
    if rounds_floats(kernel):
        whole = lower(definition, bounded=True)
    known = None if kept is None else kept.find(definition, whole, launches)
    if known is not None:
        return known
    with watched() as seen:
        result = _decided(definition, kernel, launches, options, decisions)
        if whole is not kernel and result[0].verdict is Verdict.UNKNOWN:
            # What bounds floats is asked of launches only where the kernel is not decided without.
            other = _decided(definition, whole, launches, options, decisions)
            result = other if other[0].verdict in (Verdict.PROVED, Verdict.CONDITIONAL) else result
    if kept is not None:
        kept.keep(definition, whole, launches, result, seen)
    return result


def _decided(
    definition: Definition,
    kernel: Kernel,
    launches: tuple[Launch, ...],
    options: Options,
    decisions: Decisions | None,
) -> tuple[KernelReport, tuple[Diagnostic, ...]]:
    from tilecheck.ir.kernel import PASSED  # lazy, as below
    from tilecheck.proof.launches.visible import Judges  # lazy
    from tilecheck.proof.solver.work import Work  # lazy

    if passed := tuple(r for r in kernel.requires if r.origin == PASSED):
        kernel = replace(kernel, requires=tuple(r for r in kernel.requires if r.origin != PASSED))
    with closing(Judges(kernel, Work.of_kernel(options.budget))) as judges:
        return _judged(definition, kernel, launches, judges, options, decisions, passed)


def _judged(
    definition: Definition,
    kernel: Kernel,
    launches: tuple[Launch, ...],
    judges: Judges,
    options: Options,
    decisions: Decisions | None,
    passed: tuple[Requirement, ...],
) -> tuple[KernelReport, tuple[Diagnostic, ...]]:
    """Decide a kernel and judge its launches. What these have `passed` is a premise, and so a condition."""
    from tilecheck.analysis.borrow import build  # lazy, as below
    from tilecheck.analysis.facts import Facts  # lazy
    from tilecheck.proof.decide import decide  # lazy
    from tilecheck.proof.solver.work import Work  # lazy
    from tilecheck.registry import load_rules  # lazy

    facts = Facts(kernel, build(kernel, launches))
    work = judges.session.work  # for both times, if it is decided twice
    rules = [entry.rule for entry in load_rules()]
    obligations, findings = state_obligations(facts, rules, most=work.most_obligations)
    file = definition.table.file

    ask = partial(decide, keep=options.dump_smt is not None) if decisions is None else decisions.decide

    def settle(kernel: Kernel) -> Decision:
        kernel = replace(kernel, requires=(*kernel.requires, *passed)) if passed else kernel
        return ask(kernel, obligations, file, without=options.without, budget=options.budget, work=work)

    decision = None
    if launches:
        from tilecheck.proof.launches.axes import with_single_digits  # lazy

        decision = with_single_digits(kernel, launches, judges, settle)
    decision = decision or settle(kernel)
    if launches and any(s.status in ("violated", "unknown") for s in decision.settled):
        from tilecheck.proof.launches.axes import with_single_axes  # lazy: few kernels need it

        decision = with_single_axes(kernel, decision, launches, settle)
    decision = replace(decision, conditions=(*(r.condition for r in passed), *decision.conditions))
    with work.limited(Work.of_launches(options.budget, len(launches))):
        return _concluded(definition, facts, decision, findings, launches, judges, options, decisions)


def _concluded(
    definition: Definition,
    facts: Facts,
    decision: Decision,
    findings: tuple[Diagnostic, ...],
    launches: tuple[Launch, ...],
    judges: Judges,
    options: Options,
    decisions: Decisions | None,
) -> tuple[KernelReport, tuple[Diagnostic, ...]]:
    """What the launches make of the decision, and the report."""
    from tilecheck.findings.verdict import conclude  # lazy, as above

    kernel, file = facts.kernel, definition.table.file
    if launches and any(s.status == "violated" for s in decision.settled):
        from tilecheck.proof.launches.claims import upheld  # lazy: loads NumPy

        decision = upheld(kernel, decision, launches, judges, file)
    if any(s.status in ("violated", "unknown") for s in decision.settled):
        from tilecheck.assumptions.initial_values import (  # lazy: only what is open comes here
            with_initial_values,
        )
        from tilecheck.assumptions.proposals import with_proposals  # lazy, as above

        decision = with_initial_values(definition, kernel, decision, launches, options)
        decision = with_proposals(definition, kernel, decision, launches, options)
        shown = _shown(definition, decision, launches, judges, options, decisions)
        if shown is not None:
            return shown
    _write_proofs(definition, kernel, decision, options)
    if kernel.fills and not decision.vacuous and _is_accepted(decision):
        from tilecheck.proof.initialisation.coverage import unfilled  # lazy: few kernels say it

        findings = (*findings, *unfilled(kernel, decision.conditions, options.budget))
    if kernel.tuning is not None and not decision.vacuous:
        from tilecheck.proof.initialisation.tuner_runs import repeated  # lazy: few kernels are tuned

        findings = (*findings, *repeated(kernel, kernel.tuning, decision.conditions, options.budget))
    if launches and not decision.vacuous:
        from tilecheck.frontend.kernels.fills import is_straight  # lazy, as below
        from tilecheck.proof.initialisation.completeness import incomplete  # lazy: loads NumPy

        straight = cache(partial(is_straight, definition))
        findings = (*findings, *incomplete(kernel, launches, file, judges, straight))

    @cache
    def in_place() -> InPlace:
        from tilecheck.assumptions.shared_tensors import InPlace  # lazy: few launches pass one tensor twice

        return InPlace(definition, kernel, decision, judges, options)

    def is_harmless(alias: Alias) -> bool:
        return in_place().is_harmless(alias)

    found = conclude(facts, decision, findings, launches, judges, file, is_harmless)
    return in_words_of(kernel, found)


def _shown(
    definition: Definition,
    decision: Decision,
    launches: tuple[Launch, ...],
    judges: Judges,
    options: Options,
    decisions: Decisions | None,
) -> tuple[KernelReport, tuple[Diagnostic, ...]] | None:
    """The kernel decided with the contracts that it waits for, if every launch in view shows them and they
    decide it."""
    from tilecheck.assumptions.host_contracts import shown_contracts  # lazy: few kernels come here

    found = shown_contracts(definition, judges, decision.asked, launches)
    if found is None:
        return None
    result = _decided(*found, launches, options, decisions)
    return result if result[0].verdict in PASSING else None


def _is_accepted(decision: Decision) -> bool:
    return not any(settled.status in ("violated", "unknown") for settled in decision.settled)


def line_of(definition: Definition, site: Site) -> str:
    """`file:line`; a site in a helper's file has no line here."""
    source = definition.table.parsed.source
    own = site.file == definition.table.file
    return f"{site.file}:{source.position(site.span.start)[0]}" if own else site.file


def _write_proofs(definition: Definition, kernel: Kernel, decision: Decision, options: Options) -> None:
    """Certificates and queries, where they are asked for."""

    def place(site: Site) -> str:
        return line_of(definition, site)

    file = definition.table.file
    try:
        if options.certify is not None:
            from tilecheck.verify.certificates import write_certificates  # lazy: only on demand

            folder = Path(options.certify)
            write_certificates(kernel, decision, place, folder, file=file, budget=options.budget)
        if options.dump_smt is not None:
            from tilecheck.verify.queries import write_queries  # lazy: only on demand

            write_queries(kernel.name, decision, place, Path(options.dump_smt), file)
    except OSError as error:
        named = " or ".join(name for name in (options.certify, options.dump_smt) if name is not None)
        raise UsageError(f"cannot write to {named}: {refusal(error)}") from None


def state_obligations(
    facts: Facts, rules: Sequence[Rule], most: int | None = None
) -> tuple[tuple[Obligation, ...], tuple[Diagnostic, ...]]:
    """Ask every rule; obligations in the order of their proofs, findings in the order of the rules.

    No more are stated once there are more than `most`: all of them stay undecided then, so no verdict rests on
    those that are missing.
    """
    from tilecheck.proof.obligation import Obligation  # lazy

    obligations: list[Obligation] = []
    findings: list[Diagnostic] = []
    for rule in rules:
        for item in rule.check(facts) if rule.check is not None else ():
            if most is not None and len(obligations) > most:
                break
            if isinstance(item, Obligation):
                obligations.append(item)
            elif isinstance(item, Diagnostic):
                findings.append(item)
            else:
                raise TypeError(f"{rule.code} yields a {type(item).__name__}")
    obligations.sort(key=lambda o: (o.stage, o.rule))
    return tuple(obligations), tuple(findings)


def unsupported_kernel(
    definition: Definition, problem: UnsupportedConstruct
) -> tuple[KernelReport, tuple[Diagnostic, ...]]:
    """The report of a kernel that is not read because of one construct, and the finding that says so."""
    from tilecheck.findings.verdict import unsupported  # lazy

    site = definition.table.site(definition.node.name)
    where = site if problem.span is None else Site(problem.file or site.file, problem.span)
    if where.span == Span(0, 0):
        where = site
    return unsupported(definition.name, definition.language, site, problem.construct, where)
