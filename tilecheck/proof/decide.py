"""From obligations to what became of each: proved, conditional, trusted, violated, or unknown.

The order of a kernel's decisions: the premises must be satisfiable; the ladder proves what follows from the
text; what values in memory decide alone waits for a contract; launch conditions are derived for the rest; a
counterexample is sought, under those conditions, for what no condition saves. A counterexample counts only
after it ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace

from tilecheck.ir.expr import (
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
from tilecheck.proof.conditions.memory_dependence import is_unbounded
from tilecheck.proof.conditions.open_goals import derived, possible
from tilecheck.proof.goals.context import Context, Outcome
from tilecheck.proof.goals.contracts import some_memory
from tilecheck.proof.goals.predicate import inhabited
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation, Ordered
from tilecheck.proof.refute.memory_claims import depends_on_memory
from tilecheck.proof.rewrite.access_families import families
from tilecheck.proof.rewrite.block_numbering import numbered
from tilecheck.proof.rewrite.case_split import cases
from tilecheck.proof.rewrite.case_split import settled as settled_by_guards
from tilecheck.proof.rungs.ladder import prove
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import satisfiable
from tilecheck.proof.solver.work import Work

# A kernel that stays unknown after so many searches is not worth more of them.
_MOST_FAILED_HUNTS = 2
# Before conditions are sought, the solver may spend this part of a budget on a goal, so many budgets on all.
_FIRST, _FIRST_ALL = 5, 2
_WAITING = 4  # budgets that conditions may cost of a kernel that waits for a contract, whatever they are
_LONE_GROUPS = 1  # budget that the last of conditions may cost, when all other work is done


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
    cost in resource units of the solver, `work` in those of `proof.solver.work`. `asked` are the contracts that
    were found for what is open."""

    settled: tuple[Settled, ...]
    conditions: tuple[Expr, ...]
    vacuous: bool = False
    spent: int = 0
    work: int = 0
    asked: tuple[str, ...] = ()


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
    most = work.most_obligations
    if most is not None and len(obligations) > most:
        reason = Reason.BUDGET.value
        return Decision(tuple(Settled(o, "unknown", "none", 0.0, reason) for o in obligations), ())
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
    # With the queries that proved something, each obligation keeps those of its own.
    joined = None if session.keep else families(obligations, kernel)
    stated = obligations if joined is None else joined.asked
    found = _sought(stated, context, session, without, proves_only=proves_only)
    if joined is not None and not joined.joined <= found.settled:
        joined, stated = None, obligations
        found = _sought(stated, context, session, without, proves_only=proves_only)
    outcomes, facts, conditions, saved = found.outcomes, found.facts, found.conditions, found.saved
    open_ = [i for i, outcome in enumerate(outcomes) if not outcome.proved]
    under = context.under(*conditions)
    for i in open_ if conditions else ():
        if stated[i].advice and _holds_under(stated[i], under, session, without):
            saved.add(i)
    settled: list[Settled] = []
    failed = 0  # searches for a counterexample
    for i, (obligation, outcome) in enumerate(zip(stated, outcomes, strict=True)):
        if outcome.proved:
            proved = Settled(obligation, "proved", outcome.rung, outcome.time_ms, queries=outcome.queries)
            settled.append(proved)
        elif i in saved and "launch" not in without:
            settled.append(Settled(obligation, "conditional", "launch", outcome.time_ms))
        elif i in saved or proves_only:  # and so not violated: that is what no condition saves, granted or not
            reason = _reason(obligation, outcome)
            settled.append(Settled(obligation, "unknown", "none", outcome.time_ms, reason))
        elif i in found.waiting and not obligation.unsafe:
            reason = Reason.NEEDS_CONTRACT.value
            settled.append(Settled(obligation, "unknown", "none", outcome.time_ms, reason))
        else:
            if session.work.is_spent and not obligation.unsafe:
                settled.append(Settled(obligation, "unknown", "none", outcome.time_ms, Reason.BUDGET.value))
                continue
            lost = i in found.lost
            hunted = failed < _MOST_FAILED_HUNTS and (found.ended or lost) and _is_hunted(obligation, under)
            settled.append(_refute(obligation, outcome, under, path, session, lost=lost, hunted=hunted))
            failed += hunted and settled[-1].status == "unknown"
    if not proves_only and "launch" not in without:
        conditions = _with_lone_groups(settled, conditions, facts, context, session, without)
    if joined is not None:
        settled = [replace(settled[n], obligation=o) for n, o in zip(joined.places, obligations, strict=True)]
    return _decision(settled, conditions, facts, context, session, without)


@dataclass(frozen=True, slots=True)
class _Found:
    """What the ladder says of obligations, and the conditions for those that it does not prove: which of these
    they save, which nothing saves, which wait for contracts, and whether all was looked at."""

    outcomes: Sequence[Outcome]
    facts: Sequence[_Fact]
    conditions: tuple[Expr, ...]
    saved: set[int]
    lost: set[int]
    waiting: set[int]
    ended: bool

    @property
    def settled(self) -> set[int]:
        return self.saved | {i for i, outcome in enumerate(self.outcomes) if outcome.proved}


def _sought(
    obligations: Sequence[Obligation],
    context: Context,
    session: Session,
    without: frozenset[str],
    *,
    proves_only: bool,
) -> _Found:
    outcomes, facts = _prove_all(obligations, context, session, without)
    open_ = [i for i, outcome in enumerate(outcomes) if not outcome.proved]
    waiting = {i for i in open_ if is_unbounded(obligations[i], context)}
    eligible = [i for i in open_ if i not in waiting and not obligations[i].advice]
    if not eligible or (proves_only and "launch" in without):  # conditions that nothing would be done with
        return _Found(outcomes, facts, (), set(), set(open_), waiting, ended=True)
    eased = [_with_facts(obligations[i], facts) for i in eligible]
    settled_so = [o for o, outcome in zip(obligations, outcomes, strict=True) if outcome.proved]
    with session.work.limited(_WAITING * session.budget) if waiting else nullcontext():
        found = derived(eased, settled_so, context, session, without)
    conditions, saved, lost, ended = possible(found, context, session)
    saved, lost = {eligible[k] for k in saved}, {eligible[k] for k in lost}
    return _Found(outcomes, facts, conditions, saved, lost, waiting, ended)


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
    from tilecheck.proof.conditions.candidates import tile_symbols  # lazy: only what is open comes here
    from tilecheck.proof.conditions.generators.last_block import lone_groups  # lazy
    from tilecheck.proof.conditions.terms import Terms  # lazy

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
    with session.work.limited(_LONE_GROUPS * session.budget):
        more, saved, *_ = derived(eased, proved, under, session, without, lone=True)
        joined = tuple(dict.fromkeys((*conditions, *more)))
        joined, saved, *_ = possible((joined, saved, set(), False), context, session)
    for k in saved:
        one = settled[open_[k]]
        settled[open_[k]] = Settled(one.obligation, "conditional", "launch", one.time_ms)
    return joined if saved else conditions


def _holds_under(obligation: Obligation, under: Context, session: Session, without: frozenset[str]) -> bool:
    """Whether an obligation holds under conditions and contracts that were found for others, or are tried."""
    from tilecheck.proof.rewrite.conditionals import Branches  # lazy: most kernels have no conditions

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
    from tilecheck.proof.refute.confirmation import may_be_saved  # lazy: loads NumPy
    from tilecheck.proof.refute.counterexample import find  # lazy

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
    from tilecheck.proof.refute.counterexample import is_claimable  # lazy: loads NumPy

    if _depends_on_members(obligation) or _is_converted(obligation):
        return False
    return is_claimable(obligation, context)


def _is_synchronised(obligation: Obligation) -> bool:
    """Whether an access is reached through a branch on an atomic's result: blocks may then be ordered in
    ways that the race model does not see, so that an overlap is no proof of a race."""
    goal = obligation.goal
    return isinstance(goal, Disjoint) and (goal.first.synchronised or goal.second.synchronised)


def _is_converted(obligation: Obligation) -> bool:
    """Whether it is about `(i * pitch).to(tl.int64)` of an argument that may be a float. Were it an integer,
    a launch condition on `pitch` might save it. That is not looked for: a counterexample would claim too much.
    """
    found = symbols(*_terms(obligation))
    return any(s.kind is Kind.OPAQUE and s.origin == "converted" for s in found)


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


def _reason(obligation: Obligation, outcome: Outcome) -> str:
    goal = obligation.goal
    if isinstance(goal, Disjoint) and goal.between in (Between.PROGRAM, Between.THREADS):
        return f"{Reason.UNSUPPORTED.value}:order of a program's threads without a barrier"
    if outcome.reason == Reason.BUDGET.value:
        return outcome.reason
    of_memory = _is_synchronised(obligation) or depends_on_memory(*_terms(obligation))
    return Reason.NEEDS_CONTRACT.value if of_memory else Reason.NONLINEAR.value


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
