"""The last stage before the report: one verdict for each kernel, and the findings in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilecheck.analysis.facts import Facts
from tilecheck.analysis.limits import int32_limits, values_in_memory
from tilecheck.analysis.ordering import laid_out_alike, large_tiles
from tilecheck.ir.expr import Expr, Kind, Symbol, evaluate, render, symbols, walk
from tilecheck.ir.kernel import Access, Effect, Kernel, Ownership, made_of
from tilecheck.ir.launch import HostList, Launch
from tilecheck.model import (
    ConditionAt,
    Diagnostic,
    KernelReport,
    LaunchReport,
    LaunchTerms,
    ObligationReport,
    ParamReport,
    Reason,
    Related,
    Severity,
    Site,
    StatedContract,
    TrustedBlock,
    Verdict,
    Witness,
)
from tilecheck.options import DEFAULT_BUDGET
from tilecheck.proof.conditions import condition_text
from tilecheck.proof.decide import Decision, Settled
from tilecheck.proof.obligation import Between, Disjoint, Obligation
from tilecheck.registry import rule_files

if TYPE_CHECKING:
    from tilecheck.analysis.borrow import Alias
    from tilecheck.proof.launch_judge import Broken
    from tilecheck.proof.session import Session

UNSUPPORTED = "TC905"
UNDECIDED = "TC906"
UNNEEDED_UNSAFE = "TC105"
ALIASED = "TC401"
STANDING = "TC403"


def conclude(
    facts: Facts,
    decision: Decision,
    findings: Sequence[Diagnostic],
    launches: tuple[Launch, ...],
    path: str,
    budget: int = DEFAULT_BUDGET,
    is_harmless: Callable[[Alias], bool] = lambda _: False,
) -> tuple[KernelReport, tuple[Diagnostic, ...]]:
    """The report of one kernel and everything that was found in it. `budget` bounds what its launches take.
    `is_harmless` may show that two parameters of a launch may be one tensor."""
    kernel = facts.kernel
    findings, shared = _with_aliases(facts, findings, path, is_harmless)
    launched = _check_launches(facts, decision, launches, path, findings, shared, budget)
    diagnostics = [*findings, *_violations(kernel, decision), *launched.diagnostics]
    diagnostics += _unneeded_unsafe(kernel, decision)
    verdict, reason, site = _verdict(kernel, decision, launched)
    if verdict is Verdict.UNKNOWN and reason is not None:
        diagnostics += _undecided(kernel, decision, launched, reason)
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
        requires=tuple(
            dict.fromkeys([*(r.text for r in kernel.requires), *(c.text for c in kernel.contracts)])
        ),
        params=_params(facts),
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
        name=_rule_name(UNSUPPORTED),
        severity=Severity.WARNING,
        message=f"`{name}` is not decided: {construct} is not supported",
        site=where,
        kernel=name,
        label="not supported",
        help="rewrite this part, or prove the rest apart from it in a kernel of its own",
    )
    return KernelReport(name, language, site, Verdict.UNKNOWN, reason, where), (finding,)


def _rule_name(code: str) -> str:
    return next(file.name for file in rule_files() if file.code == code)


# ---- the verdict -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Launched:
    """What the visible launches add."""

    reports: tuple[LaunchReport, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    broken: bool = False
    undecided: tuple[Site, str] | None = None  # a launch, and what is not decided there


def _verdict(
    kernel: Kernel, decision: Decision, launched: _Launched
) -> tuple[Verdict, str | None, Site | None]:
    """violated over unknown over trusted over conditional over proved."""
    if decision.vacuous:
        return Verdict.UNKNOWN, Reason.VACUOUS.value, _premises(kernel)[0]
    statuses = {s.status for s in decision.settled}
    if "violated" in statuses or launched.broken:
        return Verdict.VIOLATED, None, None
    open_ = [s for s in decision.settled if s.status == "unknown"]
    # A spent budget says least: what else is missing would be missing with a larger one too.
    for settled in sorted(open_, key=lambda s: s.reason == Reason.BUDGET.value):
        return Verdict.UNKNOWN, settled.reason, settled.obligation.sites[0]
    if launched.undecided is not None:
        return Verdict.UNKNOWN, Reason.NONLINEAR.value, launched.undecided[0]
    if "trusted" in statuses:
        return Verdict.TRUSTED, None, None
    conditional = decision.conditions or kernel.requires or kernel.contracts
    return (Verdict.CONDITIONAL if conditional else Verdict.PROVED), None, None


def _premises(kernel: Kernel) -> list[Site]:
    return [*(r.site for r in kernel.requires), *(c.site for c in kernel.contracts)]


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


def _unneeded_unsafe(kernel: Kernel, decision: Decision) -> Iterator[Diagnostic]:
    """An unsafe block is needed when an obligation inside it was not proved."""
    needed = {
        n for s in decision.settled if s.status not in ("proved", "conditional") for n in s.obligation.unsafe
    }
    for number, block in enumerate(kernel.unsafe_blocks):
        if number not in needed:
            yield Diagnostic(
                code=UNNEEDED_UNSAFE,
                name=_rule_name(UNNEEDED_UNSAFE),
                severity=Severity.WARNING,
                message=f"this unsafe block of `{kernel.name}` has nothing to trust: all of it is proved",
                site=block.site,
                kernel=kernel.name,
                label="not needed",
                help="remove it",
            )


# ---- findings ----------------------------------------------------------------------------------------------


def _violations(kernel: Kernel, decision: Decision) -> Iterator[Diagnostic]:
    """One finding for each rule and pair of sites."""
    seen: set[tuple[str, tuple[Site, ...]]] = set()
    for settled in decision.settled:
        key = (settled.obligation.rule, settled.obligation.sites)
        if settled.status == "violated" and settled.witness is not None and key not in seen:
            seen.add(key)
            yield _violation(kernel, settled, settled.witness, decision)


def _violation(kernel: Kernel, settled: Settled, witness: Witness, decision: Decision) -> Diagnostic:
    obligation = settled.obligation
    first, second = _labels(obligation, witness)
    related = [Related(site, second) for site in obligation.sites[1:]]
    missing = _missing(kernel, obligation, witness)
    return Diagnostic(
        code=obligation.rule,
        name=_rule_name(obligation.rule),
        severity=Severity.ERROR,
        message=obligation.cause,
        site=obligation.sites[0],
        kernel=kernel.name,
        label=first,
        related=tuple(related),
        witness=witness,
        notes=_notes(kernel, obligation, missing, decision),
        help=_help(obligation, missing),
    )


def _labels(obligation: Obligation, witness: Witness) -> tuple[str, str]:
    """What happens at the first site and at the second."""
    goal = obligation.goal
    element = "" if witness.element is None else f"{witness.array}[{', '.join(map(str, witness.element))}]"
    blocks = [_block(b) for b in witness.blocks]
    if isinstance(goal, Disjoint) and goal.between is Between.ITERATIONS:
        return f"block {blocks[0]} writes {element} in two iterations, in no order", ""
    if isinstance(goal, Disjoint) and len(blocks) > 1:
        verbs = [_verb(a) for a in (goal.first, goal.second)]
        if len(obligation.sites) == 1:
            return f"{element} is {verbs[0]} by block {blocks[0]} and by block {blocks[1]}", ""
        return (
            f"block {blocks[0]}: {element} is {verbs[0]} here",
            f"block {blocks[1]}: {element} is {verbs[1]} here",
        )
    where = f"block {blocks[0]}" if blocks else "a block"
    if isinstance(goal, Disjoint) and goal.between in (Between.PROGRAM, Between.THREADS):
        verbs = [_verb(a) for a in (goal.first, goal.second)]
        if len(obligation.sites) == 1:
            return f"{element} is {verbs[0]} by two threads of {where}, in no order", ""
        return f"{element} is {verbs[0]} by one thread of {where}", f"{element} is {verbs[1]} by another thread"
    match obligation.kind:
        case "overlap":
            return f"{where} writes {element} twice in one store", ""
        case "bounds":
            return (
                f"{where} reaches outside `{witness.array}`" if witness.array else f"{where} reaches outside",
                "",
            )
        case "ownership":
            return f"{where} writes `{witness.array}` here", "declared shared here"
        case "overflow":
            return f"wraps in {where}", ""
        case _:
            return f"undefined in {where}", ""


def _verb(access: Access) -> str:
    return {Effect.READ: "read", Effect.WRITE: "written", Effect.ATOMIC: "updated"}[access.effect]


def _block(block: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, block))}{',' if len(block) == 1 else ''})"


def _missing(kernel: Kernel, obligation: Obligation, witness: Witness) -> list[str]:
    """The author's values that tell the two blocks apart and that no index of the accesses depends on."""
    goal = obligation.goal
    if not isinstance(goal, Disjoint) or len(witness.blocks) < 2:
        return []
    used = set(walk(*(axis.index for a in (goal.first, goal.second) for axis in a.axes)))
    named = [(n, e) for n, e in kernel.names if e not in used and _differs(e, kernel, witness)]
    digits = [n for n, e in named if e.op != "sym"]
    if digits:
        return digits
    plain = [n for n, e in named if e.op == "sym"]
    axes = [f"ct.bid({k})" for i, k in enumerate(kernel.grid_axes) if _axis_differs(witness, i)]
    return plain or [a for a in axes if not any(s.name == a for s in symbols(*used))]


def _axis_differs(witness: Witness, position: int) -> bool:
    first, second = witness.blocks[:2]
    return position < min(len(first), len(second)) and first[position] != second[position]


def _differs(value: Expr, kernel: Kernel, witness: Witness) -> bool:
    """Whether the two blocks of the witness compute different values."""
    results = []
    for block in witness.blocks[:2]:

        def of(symbol: Symbol, block: tuple[int, ...] = block) -> int | bool:
            if symbol.kind is Kind.BLOCK:
                return block[int(symbol.name[7])]
            number = witness.values[symbol.name]
            if isinstance(number, list):
                raise KeyError(symbol.name)
            return number

        try:
            results.append(evaluate(value, of))
        except (KeyError, IndexError, ZeroDivisionError):
            return False
    return results[0] != results[1]


def _notes(kernel: Kernel, obligation: Obligation, missing: list[str], decision: Decision) -> tuple[str, ...]:
    notes = []
    if missing:
        names = " and ".join(f"`{m}`" for m in missing)
        verb = "differs" if len(missing) == 1 else "differ"
        notes.append(f"{names} {verb} between the two blocks, and no index of this access depends on it")
    proved = sum(1 for s in decision.settled if s.status in ("proved", "conditional"))
    notes.append(f"{proved} of {len(decision.settled)} obligations of `{kernel.name}` are proved")
    if decision.conditions:
        listed = " and ".join(condition_text(c) for c in decision.conditions)
        notes.append(f"this happens although {listed}")
    return tuple(notes)


_BARRIER = "put `tl.debug_barrier()` between the two accesses"
_HELP = {
    "TC101": "drop the declaration, or write to another array",
    "TC202": "read what the block itself wrote, or split the kernel in two launches",
    "TC203": "make the index different in every lane, or mask the duplicates off",
    "TC204": "let every iteration write elements of its own, or store after the loop",
    "TC205": "use atomics for every access to this array, with device scope",
    "TC301": "guard the operation, or add a contract: `# tilecheck: requires ... -- why`",
    "TC302": "bound the index by the number of tiles, `ct.num_tiles(...)`",
    "TC303": "keep the bounds check on, or bound the index",
    "TC304": "clamp the bounds of the slice to the array",
    "TC305": "compute in 64 bits: `ct.astype(value, ct.int64)`",
    "TC306": "bound the index by the length of the list",
}


def _help(obligation: Obligation, missing: list[str]) -> str | None:
    if missing and isinstance(obligation.goal, Disjoint):
        return f"let the index depend on `{missing[0]}`, or drop the grid axis it comes from"
    if _is_about_threads(obligation):
        return _BARRIER
    if obligation.rule == "TC201":
        return "give every block elements of its own"
    return _HELP.get(obligation.rule)


def _advice(obligation: Obligation) -> str | None:
    """What would decide an open obligation, where that is known."""
    return obligation.advice or (_BARRIER if _is_about_threads(obligation) else None)


def _is_about_threads(obligation: Obligation) -> bool:
    goal = obligation.goal
    return isinstance(goal, Disjoint) and goal.between in (Between.PROGRAM, Between.THREADS)


def _undecided(kernel: Kernel, decision: Decision, launched: _Launched, reason: str) -> Iterator[Diagnostic]:
    """One warning for each site that is not decided."""
    seen: set[tuple[str, tuple[Site, ...]]] = set()
    name = _rule_name(UNDECIDED)
    if decision.vacuous:
        message = (
            f"the contracts of `{kernel.name}` contradict each other, so nothing they prove means anything"
        )
        yield Diagnostic(
            UNDECIDED, name, Severity.WARNING, message, _premises(kernel)[0], kernel.name, "never true together"
        )
        return
    if launched.undecided is not None:
        site, text = launched.undecided
        is_shared = text.startswith("S1: ")
        yield Diagnostic(
            UNDECIDED,
            name,
            Severity.WARNING,
            f"not decided ({reason}): whether this launch of `{kernel.name}` meets what it needs: {text}",
            site,
            kernel.name,
            "one buffer is passed twice and written, and two blocks may meet in it"
            if is_shared
            else "inputs that break it are too large to be replayed",
            help="pass a copy, or write the kernel with one parameter for both" if is_shared else None,
        )
    for settled in decision.settled:
        key = (settled.obligation.rule, settled.obligation.sites)
        if settled.status != "unknown" or key in seen:
            continue
        seen.add(key)
        yield Diagnostic(
            code=UNDECIDED,
            name=name,
            severity=Severity.WARNING,
            message=f"not decided ({settled.reason}): whether {settled.obligation.cause}",
            site=settled.obligation.sites[0],
            kernel=kernel.name,
            label=f"{settled.obligation.rule} is neither proved nor refuted here",
            related=tuple(Related(s, "the other access") for s in settled.obligation.sites[1:]),
            help=_advice(settled.obligation) or f"tilecheck explain unknown/{settled.reason}",
        )


# ---- launches ----------------------------------------------------------------------------------------------


def _check_launches(
    facts: Facts,
    decision: Decision,
    launches: tuple[Launch, ...],
    path: str,
    findings: Sequence[Diagnostic],
    shared: Mapping[int, Sequence[ConditionAt]],
    budget: int,
) -> _Launched:
    """Judge every visible launch; a condition counts as broken only after the launch was replayed."""
    if not launches:
        return _Launched()
    from tilecheck.proof.fuel import LAUNCHES, Fuel  # lazy: most files have no launch that needs it
    from tilecheck.proof.session import Session  # lazy
    from tilecheck.proof.work import Work  # lazy

    with closing(Session(fuel=Fuel(LAUNCHES), work=Work.of_launches(budget, decision.work))) as session:
        all_ = (
            _check_one(facts.kernel, decision, launch, path, session, shared.get(id(launch), ()))
            for launch in launches
        )
        checked = [one for one in all_ if one is not None]
    reports = tuple(report for report, _ in checked)
    diagnostics = tuple(d for _, found in checked for d in found)
    aliased = [d for d in findings if d.code == ALIASED and d.witness is not None]
    open_ = ((r.site, c.text) for r in reports for c in r.conditions if c.status == "unknown")
    undecided = next(open_, None)
    return _Launched(reports, diagnostics, bool(diagnostics or aliased), undecided)


def _check_one(
    kernel: Kernel,
    decision: Decision,
    launch: Launch,
    path: str,
    session: Session,
    shared: Sequence[ConditionAt],
) -> tuple[LaunchReport, list[Diagnostic]] | None:
    from tilecheck.proof.launch_check import check_launch  # lazy: most files have no launch that needs it

    seen: dict[str, Witness] = {}
    open_ = tuple(s.obligation for s in decision.settled if s.status in ("unknown", "trusted"))
    given = dict(launch.arguments)
    lists = [p.name for p in kernel.params if p.is_list]
    unknown = {name for name in lists if not isinstance(given.get(name), HostList)}

    def replayed(broken: Broken) -> bool | None:
        from tilecheck.proof.launch_replay import TooLarge, replay_launch  # lazy: loads NumPy

        try:
            witness = replay_launch(kernel, broken, path, session.fuel, open_, unknown)
        except TooLarge:
            return None
        if witness is not None:
            seen[broken.text] = witness
        return witness is not None

    checked = check_launch(kernel, decision.conditions, launch, session, replayed)
    if checked is None:
        return None
    report = LaunchReport(launch.site, (*(ConditionAt(t, s) for t, s in checked.conditions), *shared))
    return report, [_broken_launch(kernel, launch, b, seen.get(b.text)) for b in checked.broken]


def _broken_launch(kernel: Kernel, launch: Launch, broken: Broken, witness: Witness | None) -> Diagnostic:
    inputs = ", ".join(f"{name} = {value}" for name, value in broken.values.items())
    notes = [f"with {inputs}" if inputs else "whatever the inputs are"]
    if witness is not None:
        element = "" if witness.element is None else f"[{', '.join(map(str, witness.element))}]"
        blocks = " and ".join(f"block {_block(b)}" for b in witness.blocks)
        verb = "meet in" if len(witness.blocks) > 1 else "goes wrong at"
        notes.append(f"the grid is {witness.grid}; {blocks} {verb} {witness.array}{element}")
    standing = broken.rule == STANDING
    what = "a standing obligation" if standing else "a condition"
    return Diagnostic(
        code=broken.rule,
        name=_rule_name(broken.rule),
        severity=Severity.ERROR,
        message=f"this launch of `{kernel.name}` breaks {what} of the kernel: {broken.text}",
        site=launch.site,
        kernel=kernel.name,
        label=f"not met by what `{launch.function}` passes",
        related=(Related(kernel.site, "the kernel that needs it"),),
        witness=witness,
        notes=tuple(notes),
        help="launch with a grid and arguments that meet it, or check them before the launch",
    )


def _with_aliases(
    facts: Facts, findings: Sequence[Diagnostic], path: str, is_harmless: Callable[[Alias], bool]
) -> tuple[tuple[Diagnostic, ...], Mapping[int, Sequence[ConditionAt]]]:
    """Attach to each aliasing finding what a replay with one buffer bound twice shows; and say of the launches
    that remain whether S1 holds there.

    One call can stand for several launches (one for each choice that the host function makes): a finding
    counts if the replay shows it for one of them, with the flags of that launch. Of the others it must be
    proved that no two blocks meet in it; the rest is left to the caller. So is whether parts of a buffer
    overlap, but for those of one that the host function has allocated itself.
    """
    kept = [d for d in findings if d.code != ALIASED]
    aliased = [d for d in findings if d.code == ALIASED]
    shared: dict[int, dict[ConditionAt, None]] = {}
    aliases = tuple(facts.graph.aliases())
    if not aliases:
        return tuple(kept), {}
    from tilecheck.proof.alias import find_alias  # lazy: loads NumPy
    from tilecheck.proof.context import Context  # lazy
    from tilecheck.proof.fuel import LAUNCHES, Fuel  # lazy
    from tilecheck.proof.launch_judge import launch_flags  # lazy

    context, fuel = Context(facts.kernel), Fuel(LAUNCHES)
    for alias in aliases:
        names = [f"`{n}`" for n in (alias.buffer, alias.mutable, alias.other)]
        own = (
            k
            for k, d in enumerate(aliased)
            if d.site == alias.launch.site and all(n in d.message for n in names)
        )
        k = next(own, None)
        if k is not None and aliased[k].witness is None:
            flags = launch_flags(alias.launch)
            witness = find_alias(context, alias.mutable, alias.other, path, flags, alias.launch, fuel)
            aliased[k] = replace(aliased[k], witness=witness)
        if k is not None and aliased[k].witness is not None:
            status = "broken"
        else:
            is_callers = (alias.partial and not alias.owned) or is_harmless(alias)
            status = "caller" if is_callers else "unknown"
        said = ConditionAt(f"S1: `{alias.mutable}` and `{alias.other}` do not overlap", status)
        shared.setdefault(id(alias.launch), {})[said] = None
    shown = [d for d in aliased if d.witness is not None]
    return (*kept, *shown), {launch: tuple(found) for launch, found in shared.items()}
