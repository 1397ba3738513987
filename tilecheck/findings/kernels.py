"""The findings of one kernel in words: what is violated, what is not decided, what an unsafe block trusts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilecheck.findings.advice import repair, sources, updates
from tilecheck.ir.expr import Expr, Kind, Symbol, evaluate, symbols, walk
from tilecheck.ir.kernel import Access, Effect, Kernel
from tilecheck.model import Diagnostic, Reason, Related, Severity, Site, Witness
from tilecheck.proof.conditions.abduction import condition_text
from tilecheck.proof.decide import Decision, Settled
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation
from tilecheck.registry import rule_files

if TYPE_CHECKING:
    from tilecheck.proof.refute.collisions import Reached, SmallRuns

UNSUPPORTED = "TC905"
UNDECIDED = "TC906"
UNNEEDED_UNSAFE = "TC105"


def rule_name(code: str) -> str:
    return next(file.name for file in rule_files() if file.code == code)


def premise_sites(kernel: Kernel) -> list[Site]:
    return [*(r.site for r in kernel.requires), *(c.site for c in kernel.contracts)]


def violations(kernel: Kernel, decision: Decision) -> Iterator[Diagnostic]:
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
        name=rule_name(obligation.rule),
        severity=Severity.ERROR,
        message=obligation.cause,
        site=obligation.sites[0],
        kernel=kernel.name,
        label=first,
        related=tuple(related),
        witness=witness,
        notes=_notes(kernel, obligation, missing, decision),
        help=_help(kernel, obligation, missing),
    )


def _labels(obligation: Obligation, witness: Witness) -> tuple[str, str]:
    """What happens at the first site and at the second."""
    goal = obligation.goal
    element = "" if witness.element is None else f"{witness.array}[{', '.join(map(str, witness.element))}]"
    blocks = [block_text(b) for b in witness.blocks]
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


def block_text(block: tuple[int, ...]) -> str:
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
        verb = "hold" if len(decision.conditions) > 1 else "holds"
        notes.append(f"this happens even when {listed} {verb}")
    return tuple(notes)


_HELP = {
    "TC101": "drop the declaration, or write to another array",
    "TC202": "read what the block itself wrote, or split the kernel in two launches",
    "TC203": "make the index different in every lane, or mask the duplicates off",
    "TC204": "let every iteration write elements of its own, or store after the loop",
    "TC205": "use atomics for every access to this array, with device scope",
    "TC301": "guard the operation, or let the host check it before the launch",
    "TC302": "bound the index by the number of tiles, `ct.num_tiles(...)`",
    "TC303": "keep the bounds check on, or bound the index",
    "TC304": "clamp the bounds of the slice to the array",
    "TC305": "compute in 64 bits: `ct.astype(value, ct.int64)`",
    "TC306": "bound the index by the length of the list",
}


def _help(kernel: Kernel, obligation: Obligation, missing: list[str]) -> str | None:
    """The repair of the code first, then what is done elsewhere."""
    fixed = repair(kernel, obligation)
    if missing and isinstance(obligation.goal, Disjoint):
        other = f"let the index depend on `{missing[0]}`, or drop the grid axis it comes from"
        return other if fixed is None else f"{fixed}; or {other}"
    if fixed is not None:
        return fixed
    if obligation.rule == "TC201":
        return "give every block elements of its own"
    return _HELP.get(obligation.rule)


def _advice(kernel: Kernel, settled: Settled) -> str:
    """What would decide an open obligation: the repair of the code before any contract."""
    obligation = settled.obligation
    known = [text for text in (repair(kernel, obligation), obligation.advice) if text]
    return "; ".join(known) or f"tilecheck explain {_topic(settled.reason)}"


# What a reason of unknown means, in the words of a finding.
_REASONS = {
    Reason.BUDGET.value: "it takes more steps than the budget allows",
    Reason.NONLINEAR.value: "products or quotients of launch values are beyond the proof",
    Reason.NEEDS_CONTRACT.value: "depends on values in memory",
}


def _topic(reason: str | None) -> str:
    return (reason or "unknown").partition(":")[0]


def _why(reason: str | None) -> str:
    """Why something is not decided, with the page that says more."""
    head, _, construct = (reason or "unknown").partition(":")
    words = f"{construct} is not read" if construct else _REASONS.get(head, head)
    return f"unknown: {words} (tilecheck explain {head})"


def _question(settled: Settled) -> str:
    """What could not be decided, and where the index comes from that decides it."""
    obligation = settled.obligation
    goal = obligation.goal
    what = obligation.cause
    if isinstance(goal, Holds) and goal.access is not None and obligation.rule == "TC303":
        verb = {Effect.READ: "load", Effect.WRITE: "store", Effect.ATOMIC: "atomic"}[goal.access.effect]
        what = f"this {verb} stays inside `{goal.access.array}`"
    found = sources(obligation) if settled.reason == Reason.NEEDS_CONTRACT.value else ""
    return f"could not decide whether {what}" + (f": its index comes from {found}" if found else "")


def undecided(kernel: Kernel, decision: Decision, path: str) -> Iterator[Diagnostic]:
    """One warning for each site that is not decided, and one for each array that blocks update at the same
    time. `path` is the file of the kernel."""
    seen: set[tuple[str, tuple[Site, ...]]] = set()
    name = rule_name(UNDECIDED)
    if decision.vacuous:
        message = (
            f"the contracts of `{kernel.name}` contradict each other, so nothing they prove means anything"
        )
        yield Diagnostic(
            UNDECIDED,
            name,
            Severity.WARNING,
            message,
            premise_sites(kernel)[0],
            kernel.name,
            "never true together",
        )
        return
    from tilecheck.proof.refute.collisions import SmallRuns  # lazy: loads NumPy

    open_ = [s for s in decision.settled if s.status == "unknown"]
    runs = SmallRuns(kernel, decision.conditions, path)
    for update in updates(kernel, open_):
        yield _undecided_update(kernel, update, runs)
    shared = {id(s) for update in updates(kernel, open_) for s in update}
    for settled in open_:
        key = (settled.obligation.rule, settled.obligation.sites)
        if key in seen or id(settled) in shared:
            continue
        seen.add(key)
        yield Diagnostic(
            code=UNDECIDED,
            name=name,
            severity=Severity.WARNING,
            message=_question(settled),
            site=settled.obligation.sites[0],
            kernel=kernel.name,
            label=_why(settled.reason),
            related=tuple(Related(s, "the other access") for s in settled.obligation.sites[1:]),
            notes=_outside_notes(settled, runs),
            help=_advice(kernel, settled),
        )


def _undecided_update(kernel: Kernel, update: tuple[Settled, ...], runs: SmallRuns) -> Diagnostic:
    """One finding for the races of a read, a change and a store of an element that blocks may share."""
    first = next((s for s in update if s.obligation.rule == "TC201"), update[0])
    goal = first.obligation.goal
    array = goal.first.array if isinstance(goal, Disjoint) else ""
    sites = dict.fromkeys(site for s in (first, *update) for site in s.obligation.sites)
    found = sources(first.obligation)
    return Diagnostic(
        code=UNDECIDED,
        name=rule_name(UNDECIDED),
        severity=Severity.WARNING,
        message=f"could not decide whether two blocks update one element of `{array}` at the same time"
        + (f": its index comes from {found}" if found else ""),
        site=first.obligation.sites[0],
        kernel=kernel.name,
        label=_why(first.reason),
        related=tuple(Related(s, "the other access") for s in sites if s != first.obligation.sites[0]),
        notes=_collision_notes(update, runs),
        help=_advice(kernel, first),
    )


def _collision_notes(update: tuple[Settled, ...], runs: SmallRuns) -> tuple[str, ...]:
    """The race with two values of the table, where a run shows it."""
    from tilecheck.proof.refute.collisions import collision  # lazy: loads NumPy

    for settled in update:
        found = collision(runs, settled.obligation)
        if found is not None:
            return (f"blocks {_reached(found, 'both update')}",)
    return ()


def _outside_notes(settled: Settled, runs: SmallRuns) -> tuple[str, ...]:
    """The element that is touched outside its array with some values of others, where a run shows it."""
    if settled.reason != Reason.NEEDS_CONTRACT.value:
        return ()
    from tilecheck.proof.refute.collisions import outside  # lazy: loads NumPy

    found = outside(runs, settled.obligation)
    return () if found is None else (f"block {_reached(found, 'touches')}",)


def _reached(found: Reached, verb: str) -> str:
    """The element that blocks touch, and the cells of memory that lead them there."""
    blocks = " and ".join(map(block_text, found.blocks))
    cells = " = ".join(f"{array}{list(at)}" for array, at in found.cells)
    return f"{blocks} {verb} `{found.array}{list(found.element)}` where {cells} = {found.value}"


def unneeded_unsafe(kernel: Kernel, decision: Decision) -> Iterator[Diagnostic]:
    """An unsafe block is needed when an obligation inside it was not proved."""
    needed = {
        n for s in decision.settled if s.status not in ("proved", "conditional") for n in s.obligation.unsafe
    }
    for number, block in enumerate(kernel.unsafe_blocks):
        if number not in needed:
            yield Diagnostic(
                code=UNNEEDED_UNSAFE,
                name=rule_name(UNNEEDED_UNSAFE),
                severity=Severity.WARNING,
                message=f"this unsafe block of `{kernel.name}` has nothing to trust: all of it is proved",
                site=block.site,
                kernel=kernel.name,
                label="not needed",
                help="remove it",
            )
