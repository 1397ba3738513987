"""Whether every element of an array is written, where the author says so (`# tilecheck: fills out`).

For any element there must be a block, an iteration and a lane that write it. They are named by
`analysis.coverage`, so that what is left to prove has no quantifier but that over the element: the named ones
exist in every launch, the store is made there, and it touches this element. A store counts only if its path and
its mask are known exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from tilecheck.analysis.coverage import Writer, writers
from tilecheck.ir.expr import TRUE, Expr, all_of, le
from tilecheck.ir.kernel import Access, Effect, Filled, Kernel
from tilecheck.model import Diagnostic, Related, Severity
from tilecheck.proof.conditions.abduction import condition_text
from tilecheck.proof.goals.context import Context
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.proof.rungs.ladder import prove
from tilecheck.proof.solver.session import Session

CODE, NAME = "TC501", "output-not-filled"


def unfilled(kernel: Kernel, conditions: Sequence[Expr], budget: int) -> Iterator[Diagnostic]:
    """A finding for each array that the author says is filled, where that is not shown."""
    with closing(Session(budget=budget)) as session:
        context = Context(kernel).under(*conditions)
        for filled in kernel.fills:
            stores = [a for a in kernel.accesses if a.array == filled.array and a.effect is Effect.WRITE]
            ways = [way for store in stores if filled.exact for way in writers(store)]
            if not any(_shown(way, context, session) for way in ways):
                yield _finding(kernel, filled, stores, _missing(ways, context, session))


def _shown(way: Writer, context: Context, session: Session) -> bool:
    positive = [le(1, divisor) for divisor in way.divisors]
    assume = all_of(*positive)
    return all(_holds(part, TRUE, context, session) for part in positive) and all(
        _holds(part, assume, context, session) for part in way.goals
    )


def _holds(goal: Expr, assume: Expr, context: Context, session: Session) -> bool:
    """Proved in the stage of bounds, for any element: nothing is known of it but that it is in the array."""
    obligation = Obligation(CODE, Holds(goal, TRUE), (context.kernel.site,), "", 1, "bounds", assume=assume)
    return prove(obligation, context, session).proved


def _missing(ways: Sequence[Writer], context: Context, session: Session) -> str:
    """What the launch would have to keep, where that is all that is missing."""
    for way in ways:
        needs = [need for need in way.needs if not _holds(need, TRUE, context, session)]
        if needs and _shown(way, context.under(*needs), session):
            return " and ".join(f"`{condition_text(need)}`" for need in needs)
    return ""


def _finding(kernel: Kernel, filled: Filled, stores: Sequence[Access], missing: str) -> Diagnostic:
    return Diagnostic(
        code=CODE,
        name=NAME,
        severity=Severity.WARNING,
        message=f"`{kernel.name}` is said to fill `{filled.array}`, which is not shown",
        site=filled.site,
        kernel=kernel.name,
        label="some element may be left as it was",
        related=tuple(Related(store.site, "written here") for store in stores),
        help=f"it does if every launch keeps {missing}: state it with `requires`" if missing else None,
    )
