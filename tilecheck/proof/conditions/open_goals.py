"""Launch conditions for the obligations of a kernel that do not follow from its text: which there are, for
which launches each is asked, and what is left open.

`conditions.derive` finds them for a group of obligations; here groups are formed, and their conditions put
together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tilecheck.ir.expr import TRUE, Expr, Kind, all_of, any_of, conjuncts, negate, symbols
from tilecheck.model import Reason
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.predicate import inhabited
from tilecheck.proof.obligation import Disjoint, Holds, Obligation
from tilecheck.proof.rewrite.block_dispatch import is_dispatched, reached
from tilecheck.proof.rewrite.case_split import cases, is_apart_first
from tilecheck.proof.rungs.ladder import prove
from tilecheck.proof.solver.session import Session
from tilecheck.proof.solver.solver import Answer, satisfiable

# What the search for the launch conditions of one kernel may cost, in budgets of one query.
_DERIVATION = 6
_CHEAP_PROOFS = 100  # and then without the solver
_QUICK = 5  # a question that changes no verdict gets one part in so many

# Conditions, what they save, what nothing saves, and whether all was looked at.
Derived = tuple[tuple[Expr, ...], set[int], set[int], bool]
_Parts = Sequence[tuple[int, Obligation]]
# Flags, and how many blocks there are.
_Launches = tuple[Expr, tuple[Expr, ...]]


def derived(
    open_: list[Obligation],
    proved: Sequence[Obligation],
    context: Context,
    session: Session,
    without: frozenset[str],
    *,
    lone: bool = False,
) -> Derived:
    """Launch conditions for the open obligations, which of these they save, and which nothing saves; and
    whether all was looked at: where the search gave up, a counterexample may only show what it missed.

    What stands under a compile-time flag needs its conditions only where the flag is set, so obligations
    are taken flag by flag, those under no flag first and races last, and their conditions are weakened by the
    flag. What is one of several by a flag is taken case by case. With `lone`, see `decide._with_lone_groups`.
    """
    from tilecheck.proof.conditions.abduction import (  # lazy: most kernels of a proved library never need it
        derive,
    )
    from tilecheck.proof.rewrite.conditionals import Branches  # lazy, as below
    from tilecheck.proof.rewrite.whole_goals import Wholes  # lazy, as above

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
    if context.kernel.contracts:
        from tilecheck.proof.rewrite.proved_bounds import once_more  # lazy: few kernels have contracts

        wholes = Wholes()  # anew: more is known of them
        open_, open_still = once_more(open_, open_still, proved, partial(unsaved, solver=False))
    wholes = None
    apart = dict(enumerate(map(cases, open_)))
    skipped = {k: (o,) for k, o in enumerate(open_) if is_apart_first(o)}
    for solver, parts in ((False, apart), (True, apart), (True, skipped)):
        asked = open_still & parts.keys()
        if not solver and all(len(parts[k]) == 1 for k in asked):
            continue
        lost -= asked
        open_still = open_still - asked | unsaved(
            [(k, part) for k in sorted(asked) for part in parts[k]], solver=solver
        )
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


def possible(found: Derived, context: Context, session: Session) -> Derived:
    """What was found, unless the conditions contradict what the author requires, or leave no ordinary launch:
    they save none then."""
    conditions = found[0]
    if not conditions:
        return found
    from tilecheck.proof.conditions.degenerate import ordinary  # lazy: loaded where conditions are sought

    asked = [ordinary(conditions, context.kernel)]
    if context.kernel.requires:
        asked.append(inhabited(context.under(*conditions)))
    none = any(satisfiable(one, session=session).status == "unsat" for one in asked)
    return ((), set(), set(), False) if none else found


def _always() -> Callable[[], bool]:
    return lambda: True


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
