"""From obligations to what became of each: proved, conditional, trusted, violated, or unknown.

The order of a kernel's decisions: the premises must be satisfiable; the ladder proves what follows from the
text; launch conditions are derived for what does not; a counterexample is sought, under those conditions,
for what no condition saves. A counterexample counts only after it ran.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from tilecheck.ir.expr import (
    TRUE,
    Expr,
    Kind,
    Symbol,
    all_of,
    any_of,
    conjuncts,
    le,
    negate,
    substitute,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.kernel import CheckKind, Kernel
from tilecheck.model import Reason, Witness
from tilecheck.proof.cases import cases, is_apart_first
from tilecheck.proof.cases import settled as settled_by_guards
from tilecheck.proof.claims import is_memory
from tilecheck.proof.context import Context, Outcome
from tilecheck.proof.contracts import some_memory
from tilecheck.proof.dispatch import is_dispatched, reached
from tilecheck.proof.ladder import prove
from tilecheck.proof.numbered import numbered
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation, Ordered
from tilecheck.proof.predicate import inhabited
from tilecheck.proof.session import Session
from tilecheck.proof.solver import Answer, satisfiable
from tilecheck.proof.work import Work

# A kernel that stays unknown after so many searches is not worth more of them.
_MOST_FAILED_HUNTS = 2
# What the search for the launch conditions of one kernel may cost, in budgets of one query.
_DERIVATION = 6
_CHEAP_PROOFS = 100  # and then without the solver
# Before conditions are sought, the solver may spend this part of a budget on a goal, so many budgets on all.
_FIRST, _FIRST_ALL = 5, 2
# When the work on a kernel is done, a contract is still looked for so many of its goals, without the solver.
_LATE_PROPOSALS = 2
_LONE_GROUPS = 2  # budgets that the last of conditions may cost, when all other work is done
_QUICK = 5  # a question that changes no verdict gets one part in so many


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of one obligation. `reason` is a word of `Reason`, only for `unknown`; `queries` are those
    that the solver refuted to prove it, if they were to be kept."""

    obligation: Obligation
    status: str  # proved | conditional | trusted | violated | unknown
    rung: str
    time_ms: float
    reason: str = ""
    witness: Witness | None = None
    queries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """All obligations of a kernel, settled, and the launch conditions that they need. `spent` is what that
    cost in resource units of the solver, `work` in those of `proof.work`."""

    settled: tuple[Settled, ...]
    conditions: tuple[Expr, ...]
    vacuous: bool = False
    spent: int = 0
    work: int = 0


def decide(
    kernel: Kernel,
    obligations: Sequence[Obligation],
    path: str,
    *,
    without: frozenset[str],
    budget: int,
    keep: bool = False,
    work: Work | None = None,
    proves_only: bool = False,
) -> Decision:
    """Settle every obligation of `kernel`, whose text stands in the file `path`. With `keep`, the queries that
    proved something are kept. `work` is what may be spent, if not as much as one kernel may. With
    `proves_only`, nothing is looked for that would show or repair what is not proved."""
    work = work or Work.of_kernel(budget)
    with closing(Session(budget=budget, keep=keep, work=work)) as session:
        return _decide(kernel, obligations, path, without, session, proves_only=proves_only)


def _decide(
    kernel: Kernel,
    obligations: Sequence[Obligation],
    path: str,
    without: frozenset[str],
    session: Session,
    *,
    proves_only: bool,
) -> Decision:
    context = Context(kernel)
    session.models.promise(kernel.contracts)
    obligations = as_decided(kernel, obligations)
    if _is_vacuous(kernel, context, session):
        unknown = tuple(Settled(o, "unknown", "none", 0.0, Reason.VACUOUS.value) for o in obligations)
        return Decision(unknown, (), vacuous=True)
    outcomes, facts = _prove_all(obligations, context, session, without)
    open_ = [i for i, outcome in enumerate(outcomes) if not outcome.proved]
    conditions: tuple[Expr, ...] = ()
    saved: set[int] = set()
    lost = set(open_)
    ended = True
    eligible = [i for i in open_ if not obligations[i].advice]
    if eligible:
        eased = [_with_facts(obligations[i], facts) for i in eligible]
        settled_so = [o for o, outcome in zip(obligations, outcomes, strict=True) if outcome.proved]
        derived = _derive(eased, settled_so, context, session, without)
        conditions, saved, lost, ended = _possible(derived, context, session)
        saved, lost = {eligible[k] for k in saved}, {eligible[k] for k in lost}
    under = context.under(*conditions)
    for i in open_ if conditions else ():
        if obligations[i].advice and _holds_under(obligations[i], under, session, without):
            saved.add(i)
    settled: list[Settled] = []
    failed = late = 0  # searches for a counterexample, and proposals when the work is done
    for i, (obligation, outcome) in enumerate(zip(obligations, outcomes, strict=True)):
        if outcome.proved:
            proved = Settled(obligation, "proved", outcome.rung, outcome.time_ms, queries=outcome.queries)
            settled.append(proved)
        elif i in saved and "launch" not in without:
            settled.append(Settled(obligation, "conditional", "launch", outcome.time_ms))
        elif i in saved or proves_only:  # and so not violated: that is what no condition saves, granted or not
            reason = _reason(obligation, outcome)
            settled.append(Settled(obligation, "unknown", "none", outcome.time_ms, reason))
        else:
            is_late = session.work.is_spent
            contract = _proposal(obligation, under, session, without) if late < _LATE_PROPOSALS else ""
            late += is_late and _reads_memory(obligation)
            if contract:
                advised = replace(obligation, advice=f"`{contract}` decides this, if it is so")
                reason = Reason.NEEDS_CONTRACT.value
                settled.append(Settled(advised, "unknown", "none", outcome.time_ms, reason))
                continue
            if is_late and not obligation.unsafe:
                settled.append(Settled(obligation, "unknown", "none", outcome.time_ms, Reason.BUDGET.value))
                continue
            hunted = failed < _MOST_FAILED_HUNTS and (ended or i in lost) and _is_hunted(obligation, under)
            settled.append(_refute(obligation, outcome, under, path, session, lost=i in lost, hunted=hunted))
            failed += hunted and settled[-1].status == "unknown"
    if not proves_only and "launch" not in without:
        conditions = _with_lone_groups(settled, conditions, facts, context, session, without)
    return _decision(settled, conditions, facts, context, session, without)


def _decision(
    settled: Sequence[Settled],
    conditions: tuple[Expr, ...],
    facts: Sequence[_Fact],
    context: Context,
    session: Session,
    without: frozenset[str],
) -> Decision:
    spent, work = session.spent, session.work.spent
    if session.keep:
        under = context.under(*conditions)
        settled = [_with_queries(s, under, facts, session, without) for s in settled]
    granted = () if "launch" in without else conditions
    return Decision(tuple(settled), granted, spent=spent, work=work)


def _with_lone_groups(
    settled: list[Settled],
    conditions: tuple[Expr, ...],
    facts: Sequence[_Fact],
    context: Context,
    session: Session,
    without: frozenset[str],
) -> tuple[Expr, ...]:
    """The conditions, and those under which races that are still open are none as each group of blocks has one
    (`x[i_head // GROUP]` with GROUP <= 1); `settled` is changed for these.

    That says that a kernel is not for the groups that it seems to be written for, and so it is the last thing
    to be asked: after all other conditions, and of no race that a counterexample shows.
    """
    from tilecheck.proof.candidates import tile_symbols  # lazy: only what is open comes here
    from tilecheck.proof.candidates_last import lone_groups  # lazy
    from tilecheck.proof.conditions_terms import Terms  # lazy

    kernel = context.kernel
    terms = Terms(tile_symbols(kernel))
    open_ = []
    is_grouped = False
    for i, one in enumerate(settled):
        goal = one.obligation.goal
        if one.status != "unknown" or one.obligation.advice:
            continue
        if not isinstance(goal, Disjoint) or not goal.first.flat:
            continue
        open_.append(i)  # what a block does itself too, which the search before may not have come to
        if goal.between is Between.BLOCKS:
            is_grouped |= bool(lone_groups((goal.first, goal.second), kernel, terms))
    if not is_grouped:
        return conditions
    proved = [s.obligation for s in settled if s.status == "proved"]
    eased = [_with_facts(settled[i].obligation, facts) for i in open_]
    under = context.under(*conditions)
    with session.work.extended(_LONE_GROUPS * session.budget):
        more, saved, *_ = _derive(eased, proved, under, session, without, lone=True)
        joined = tuple(dict.fromkeys((*conditions, *more)))
        joined, saved, *_ = _possible((joined, saved, set(), False), context, session)
    for k in saved:
        one = settled[open_[k]]
        settled[open_[k]] = Settled(one.obligation, "conditional", "launch", one.time_ms)
    return joined if saved else conditions


def _holds_under(obligation: Obligation, under: Context, session: Session, without: frozenset[str]) -> bool:
    """Whether an obligation holds under conditions and contracts that were found for others, or are tried."""
    from tilecheck.proof.branches import Branches  # lazy: most kernels have no conditions

    plainer = Branches(session.premises).settled(obligation, under)
    return prove(plainer, under, session, without).proved


def as_decided(kernel: Kernel, obligations: Sequence[Obligation]) -> list[Obligation]:
    """Obligations in the form in which they are decided, and stand in the decision."""
    whole = (numbered(_with_divisors(o, kernel), kernel) for o in obligations)
    return [settled_by_guards(_for_every_member(o)) for o in whole]


def _with_queries(
    settled: Settled, under: Context, facts: Sequence[_Fact], session: Session, without: frozenset[str]
) -> Settled:
    """What is proved under conditions with the queries of its proof under all of them."""
    if settled.status != "conditional":
        return settled
    parts = cases(_with_facts(settled.obligation, facts))
    again = [prove(part, under, session, without) for part in parts]
    return replace(settled, queries=tuple(q for outcome in again for q in outcome.queries))


def _is_vacuous(kernel: Kernel, context: Context, session: Session) -> bool:
    """Whether no launch meets the author's premises, or no memory that is not empty keeps the contracts."""
    if not kernel.requires and not kernel.contracts:
        return False
    premises = (*inhabited(context), *some_memory(kernel))
    return satisfiable(premises, session=session).status == "unsat"


def _possible(found: _Derived, context: Context, session: Session) -> _Derived:
    """What was found, unless the conditions contradict what the author requires, or leave no ordinary launch:
    they save none then."""
    conditions = found[0]
    if not conditions:
        return found
    from tilecheck.proof.degenerate import ordinary  # lazy: loaded where conditions are sought

    asked = [ordinary(conditions, context.kernel)]
    if context.kernel.requires:
        asked.append(inhabited(context.under(*conditions)))
    none = any(satisfiable(one, session=session).status == "unsat" for one in asked)
    return ((), set(), set(), False) if none else found


# Conditions, what they save, what nothing saves, and whether all was looked at: see `_derive`.
_Derived = tuple[tuple[Expr, ...], set[int], set[int], bool]


@dataclass(frozen=True, slots=True)
class _Fact:
    """What was proved of one block, iteration and lane: `goal` wherever `given` and `assume` hold."""

    given: frozenset[Expr]
    assume: Expr
    goal: Expr


def _prove_all(
    obligations: Sequence[Obligation], context: Context, session: Session, without: frozenset[str]
) -> tuple[list[Outcome], list[_Fact]]:
    """The ladder's answer for each obligation, and what the solver found to hold on the way.

    Equal predicates are proved once, those with the fewest guards first: what holds before a loop helps in it.
    """
    known: dict[object, Outcome] = {}
    facts: list[_Fact] = []
    # Most proofs are short. What takes longer is asked once more, with the whole budget, when conditions are
    # sought for it: the empty set of conditions comes first.
    budget = session.budget if "launch" in without else session.budget // _FIRST
    limit = session.work.spent + _FIRST_ALL * session.budget
    for obligation in sorted(obligations, key=_rank):
        key = _predicate(obligation)
        if key in known:
            continue
        if session.work.spent > limit and "launch" not in without:
            without = without | {"smt"}
        outcome = known[key] = _prove(_with_facts(obligation, facts), context, session, without, budget)
        goal = obligation.goal
        # What the cheap rungs prove is as cheap to prove again and would only make the questions longer;
        # stage 0 is assumed in any case.
        if outcome.rung == "smt" and isinstance(goal, Holds) and obligation.stage > 0:
            facts.append(_Fact(frozenset(conjuncts(goal.given)), obligation.assume, goal.goal))
    seen: set[object] = set()
    outcomes = []
    for obligation in obligations:
        key = _predicate(obligation)
        outcomes.append(replace(known[key], time_ms=0.0) if key in seen else known[key])
        seen.add(key)
    return outcomes, facts


def _prove(
    obligation: Obligation, context: Context, session: Session, without: frozenset[str], budget: int
) -> Outcome:
    """The ladder's answer; that of each case, if it has several and they need no solver."""
    parts = cases(obligation)
    is_late = "launch" not in without and _is_looked_up(obligation)
    if len(parts) > 1:
        for part in parts:
            outcome = prove(part, context, session, without | {"smt"})
            if not outcome.proved:
                break
        else:
            return outcome
        if is_late:
            return replace(outcome, reason=Reason.NEEDS_CONTRACT.value)
    if not is_late:
        return prove(obligation, context, session, without, budget)
    # Of races in flat memory where tables tell, the solver knows little that the rungs before it do not; it is
    # asked when conditions are sought.
    outcome = prove(obligation, context, session, without | {"smt"})
    return outcome if outcome.proved else replace(outcome, reason=Reason.NEEDS_CONTRACT.value)


def _is_looked_up(obligation: Obligation) -> bool:
    """Whether it is a race in flat memory where tables tell."""
    goal = obligation.goal
    if not isinstance(goal, Disjoint) or not (goal.first.flat and goal.second.flat):
        return False
    return any(node.op == "read" for node in walk(*_terms(obligation)))


def _rank(obligation: Obligation) -> tuple[int, int]:
    goal = obligation.goal
    return obligation.stage, len(conjuncts(goal.given)) if isinstance(goal, Holds) else 0


def _with_facts(obligation: Obligation, facts: Sequence[_Fact]) -> Obligation:
    """Let a goal about one block use what was proved of that block, iteration and lane.

    Sound because a fact was proved for all values that meet the kernel's premises, its `given` and its
    `assume`: here they are met, `given` because all of its terms are given here too, and `assume` because it
    is assumed along with the fact. That says that divisors are positive (`_with_divisors`), which has
    obligations of its own: these, at stage 0, must not assume it and get no facts. Nor does a fact help to
    prove itself: it was proved from those before it, and what is open is no fact.
    """
    goal = obligation.goal
    if obligation.stage == 0 or not isinstance(goal, Holds):
        return obligation
    given = frozenset(conjuncts(goal.given))
    own = [all_of(fact.assume, fact.goal) for fact in facts if fact.given <= given]
    return replace(obligation, assume=all_of(obligation.assume, *own)) if own else obligation


def _predicate(obligation: Obligation) -> object:
    match obligation.goal:
        case Holds(goal, given, _):
            return goal, given, obligation.assume
        case Disjoint(first, second, between):
            return first, second, between, obligation.assume
        case Ordered(first, second, array):
            return first, second, array


def _derive(
    open_: list[Obligation],
    proved: Sequence[Obligation],
    context: Context,
    session: Session,
    without: frozenset[str],
    *,
    lone: bool = False,
) -> _Derived:
    """Launch conditions for the open obligations, which of these they save, and which nothing saves; and
    whether all was looked at: where the search gave up, a counterexample may only show what it missed.

    What stands under a compile-time flag needs its conditions only where the flag is set, so obligations
    are taken flag by flag, those under no flag first and races last, and their conditions are weakened by the
    flag. What is one of several by a flag is taken case by case. With `lone`, see `_with_lone_groups`.
    """
    from tilecheck.proof.branches import Branches  # lazy, as below
    from tilecheck.proof.conditions import derive  # lazy: most kernels of a proved library never need it
    from tilecheck.proof.wholes import Wholes  # lazy, as above

    branches = Branches(session.premises)
    limit = session.spent + _DERIVATION * session.budget
    left = _CHEAP_PROOFS

    def is_cut() -> bool:
        return session.spent > limit or session.work.is_spent

    def decides(
        assertions: Sequence[Expr],
        refutes: Callable[[], bool] | None = None,
        *,
        solver: bool = True,
        quick: bool = False,
    ) -> Answer:
        nonlocal left
        left -= session.spent > limit
        if left < 0:
            return Answer("unknown", reason=Reason.BUDGET.value)
        allowed = solver and session.spent <= limit
        budget = session.budget // (_QUICK if quick else 1)
        return satisfiable(
            assertions,
            session=session,
            refutes=refutes,
            solver=allowed,
            budget=budget,
            prove_only=quick and not solver,
        )

    def spare() -> Callable[[], bool]:
        most = session.work.spent + session.budget
        return lambda: session.work.spent <= most

    conditions: dict[Expr, None] = {}
    lost: set[int] = set()

    def unsaved(parts: Sequence[tuple[int, Obligation]], *, solver: bool = True) -> set[int]:
        """Derives conditions for obligations, or cases of them; those of which something is not saved."""
        failed: set[int] = set()
        for (_, (flags, blocks)), members in _grouped(parts, open_).items():
            under = context.under(*conditions, *(() if flags is TRUE else (flags,)), *blocks)
            asked = all_of(flags, *blocks[-1:])

            def proves(obligation: Obligation, extra: tuple[Expr, ...], under: Context = under) -> bool:
                nonlocal left
                left -= session.spent > limit
                cheap = without | {"smt"}  # the solver was asked: `decides` has every way to prove
                return left >= 0 and prove(obligation, under.under(*extra), session, cheap).proved

            derivation = derive(
                [part for _, part in members],
                under,
                proves,
                decides,
                lambda: session.work.is_spent,
                solver=solver,
                spare=_always if solver else spare,
                settle=branches.settled,
                wholes=wholes,
                groups=lone,
            )
            for condition in derivation.conditions:
                other = any_of(asked, condition)  # what is asked with the flag and without it is asked
                is_plain = other in conditions or _limits_ids(condition, blocks)
                conditions.pop(other, None)
                conditions[condition if is_plain else any_of(negate(asked), condition)] = None
            failed |= {k for (k, _), used in zip(members, derivation.used, strict=True) if used is None}
            if not is_cut():  # a candidate that was given up on is not one that saves nothing
                refuted = zip(members, derivation.refuted, strict=True)
                lost.update(k for (k, _), is_refuted in refuted if is_refuted)
        return failed

    # What needs no solver comes first: its conditions help the rest, and a goal that takes all there is to
    # spend leaves nothing for others.
    wholes: Wholes | None = Wholes()
    open_still = unsaved(list(enumerate(open_)), solver=False)
    wholes = None
    if context.kernel.contracts:
        from tilecheck.proof.inside import once_more  # lazy: few kernels have contracts

        open_, open_still = once_more(open_, open_still, proved, partial(unsaved, solver=False))
    apart = dict(enumerate(map(cases, open_)))
    skipped = {k: (o,) for k, o in enumerate(open_) if is_apart_first(o)}
    for solver, parts in ((False, apart), (True, apart), (True, skipped)):
        asked = open_still & parts.keys()
        if not solver and all(len(parts[k]) == 1 for k in asked):
            continue
        lost -= asked
        failed = unsaved([(k, part) for k in sorted(asked) for part in parts[k]], solver=solver)
        open_still = open_still - asked | failed
    return tuple(conditions), set(range(len(open_))) - open_still, lost, not is_cut()


def _is_late(obligation: Obligation) -> bool:
    """Whether it is about races: these take most of what a search may cost, and may use what bounds need."""
    return isinstance(obligation.goal, Disjoint)


def _flags(obligation: Obligation) -> Expr:
    """The part of an obligation's guard that is fixed at compile time."""
    goal = obligation.goal
    match goal:
        case Holds(_, given, _):
            guards = [given]
        case Disjoint(first, second, _):
            guards = [first.guard, second.guard]
        case _:
            guards = []
    terms = [term for guard in guards for term in conjuncts(guard)]
    return all_of(*(t for t in terms if symbols(t) and all(s.kind is Kind.CONSTANT for s in symbols(t))))


def _proposal(obligation: Obligation, context: Context, session: Session, without: frozenset[str]) -> str:
    """The contract that the author is asked for, where one is found; none for what is trusted or advised."""
    if obligation.unsafe or obligation.advice or not _reads_memory(obligation):
        return ""
    from tilecheck.proof.proposals import proposed  # lazy: only what is open comes here

    if not session.work.is_spent:
        return proposed(obligation, context, lambda o, c: _holds_under(o, c, session, without))
    cheap = without | {"smt"}
    with session.work.extended(session.budget):
        return proposed(obligation, context, lambda o, c: _holds_under(o, c, session, cheap))


def _refute(
    obligation: Obligation,
    outcome: Outcome,
    context: Context,
    path: str,
    session: Session,
    *,
    lost: bool,
    hunted: bool,
) -> Settled:
    """Trusted inside an unsafe block; else violated if a counterexample runs, else unknown.

    `lost` says that the search for launch conditions came to its end and found that none saves it; `hunted`
    whether a counterexample is looked for.
    """
    if obligation.unsafe:
        return Settled(obligation, "trusted", "none", outcome.time_ms)
    from tilecheck.proof.benign import may_be_saved  # lazy: loads NumPy
    from tilecheck.proof.counterexample import find  # lazy

    if hunted:
        witness = find(obligation, context, path, session)
        if witness is not None and not may_be_saved(
            obligation, context, path, witness, session.fuel, searched=lost
        ):
            return Settled(obligation, "violated", "none", outcome.time_ms, witness=witness)
    return Settled(obligation, "unknown", "none", outcome.time_ms, _reason(obligation, outcome))


def _is_hunted(obligation: Obligation, context: Context) -> bool:
    """Whether a counterexample can be shown, and would say that the obligation is violated."""
    if obligation.unsafe or obligation.advice:
        return False
    from tilecheck.proof.counterexample import is_claimable  # lazy: loads NumPy

    return not _depends_on_members(obligation) and is_claimable(obligation, context)


def _is_synchronised(obligation: Obligation) -> bool:
    """Whether an access is reached through a branch on an atomic's result: blocks may then be ordered in
    ways that the race model does not see, so that an overlap is no proof of a race."""
    goal = obligation.goal
    return isinstance(goal, Disjoint) and (goal.first.synchronised or goal.second.synchronised)


def _depends_on_members(obligation: Obligation) -> bool:
    """Whether the extents of a list's members decide a bound. A launch condition about every member might
    save it, and such conditions are not derived yet, so a counterexample would claim too much."""
    return any(
        (n.op == "read" and _MEMBER_EXTENT in n.args[0]) or (n.op == "sym" and EVERY_MEMBER in n.args[0].name)
        for n in walk(*_terms(obligation)[:1])
    )


_MEMBER_EXTENT = ".shape["
EVERY_MEMBER = "[*]"


def _for_every_member(obligation: Obligation) -> Obligation:
    """State a bound about one member of a list for a member of any extents.

    The goal speaks of one block and one member, whichever that is: writing its extents as free values
    `xs[*].shape[k]` proves it for all members at once, and a condition on them is one on every member. Not
    done where two members of one list occur, since they may differ.
    """
    goal = obligation.goal
    if not isinstance(goal, Holds):
        return obligation
    roots = (goal.goal, goal.given, obligation.assume)
    reads = [n for n in walk(*roots) if n.op == "read" and _MEMBER_EXTENT in n.args[0]]
    members: dict[str, set[Expr]] = {}
    for node in reads:
        members.setdefault(node.args[0].partition(".")[0], set()).add(node.args[1])
    if not reads or any(len(found) > 1 for found in members.values()):
        return obligation
    free = {n: sym(Symbol(n.args[0].replace(".", f"{EVERY_MEMBER}.", 1), Kind.EXTENT)) for n in reads}
    goal = replace(goal, goal=substitute(goal.goal, free), given=substitute(goal.given, free))
    return replace(obligation, goal=goal, assume=substitute(obligation.assume, free))


def _always() -> Callable[[], bool]:
    return lambda: True


_Parts = Sequence[tuple[int, Obligation]]
# Flags, and how many blocks there are.
_Launches = tuple[Expr, tuple[Expr, ...]]


def _grouped(
    parts: _Parts, open_: Sequence[Obligation]
) -> dict[tuple[bool, _Launches], list[tuple[int, Obligation]]]:
    """Obligations, or cases of them, by the launches in which they say anything: those under no flag first, and
    races last. How many blocks there are is looked at where several literals tell ids apart in one that is
    open."""
    several_ids = any(map(is_dispatched, open_))

    def launches(part: Obligation) -> _Launches:
        return _flags(part), _reached(part) if several_ids else ()

    groups: dict[tuple[bool, _Launches], list[tuple[int, Obligation]]] = {}
    several = len({launches(part) for _, part in parts}) > 1
    for k, part in sorted(parts, key=lambda p: (several and _is_late(p[1]), _flags(p[1]) is not TRUE)):
        groups.setdefault((several and _is_late(part), launches(part)), []).append((k, part))
    return groups


def _reached(obligation: Obligation) -> tuple[Expr, ...]:
    """How many blocks there are where the accesses happen, the most last."""
    goal = obligation.goal
    if isinstance(goal, Holds):
        return reached((goal.given,))
    return reached((goal.first.guard, goal.second.guard)) if isinstance(goal, Disjoint) else ()


def _limits_ids(condition: Expr, blocks: tuple[Expr, ...]) -> bool:
    """Whether a condition limits the blocks of which there are some number."""
    return condition.op == "le" and any(condition.args[0] is least.args[1] for least in blocks)


def _reason(obligation: Obligation, outcome: Outcome) -> str:
    goal = obligation.goal
    if isinstance(goal, Disjoint) and goal.between in (Between.PROGRAM, Between.THREADS):
        return f"{Reason.UNSUPPORTED.value}:order of a program's threads without a barrier"
    if outcome.reason == Reason.BUDGET.value:
        return outcome.reason
    return Reason.NEEDS_CONTRACT.value if _reads_memory(obligation) else Reason.NONLINEAR.value


def _reads_memory(obligation: Obligation) -> bool:
    """Whether values from memory, or from an atomic, decide the goal."""
    if _is_synchronised(obligation):
        return True
    return any(map(is_memory, walk(*_terms(obligation))))


def _terms(obligation: Obligation) -> list[Expr]:
    """The expressions that a goal speaks of."""
    goal = obligation.goal
    if isinstance(goal, Holds):
        return [goal.goal, goal.given]
    terms: list[Expr] = []
    if isinstance(goal, Disjoint):
        for access in (goal.first, goal.second):
            terms += [access.guard, access.mask, *(axis.coordinate for axis in access.axes)]
            terms += [] if access.member is None else [access.member]
    return terms


def _with_divisors(obligation: Obligation, kernel: Kernel) -> Obligation:
    """Let bounds and races take for granted that the divisors in them are positive.

    Each divisor has an obligation of its own, at stage 0; a kernel in which that is not proved is not
    proved, whatever follows from it here.
    """
    if obligation.stage == 0:
        return obligation
    divisors = {node.args[1] for node in walk(*_terms(obligation)) if node.op in ("floordiv", "mod")}
    assumed = [
        any_of(negate(check.guard), check.goal)
        for check in kernel.checks
        if check.kind is CheckKind.DIVISOR and any(le(1, d) is check.goal for d in divisors)
    ]
    return replace(obligation, assume=all_of(obligation.assume, *assumed))
