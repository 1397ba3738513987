"""Two accesses of one block are not ordered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import sites_of, unsafe_of
from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import Access, Effect
from tilecheck.model import Severity
from tilecheck.proof.obligation import Between, Disjoint, Obligation, Ordered
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each pair that tokens order, and for each store that they do not."""
    for conflict in facts.graph.conflicts():
        first, second = conflict.first, conflict.second
        if first is second or Effect.WRITE not in (first.effect, second.effect):
            continue
        if facts.graph.ordered(first, second):
            # Discharged by the happens-before edge; recorded so that the report shows it.
            yield Obligation(
                rule=RULE.code,
                goal=Ordered(first, second, conflict.array),
                sites=sites_of(first, second),
                cause=f"two accesses of `{conflict.array}` in one block are not ordered",
                stage=1,
                kind="overlap",
                unsafe=unsafe_of(first, second),
                array=conflict.array,
            )
    for array in facts.graph.arrays():
        borrows = facts.graph.borrows(array)
        for access in borrows:
            if access.effect is Effect.WRITE and _runs_parallel(access, borrows):
                yield Obligation(
                    rule=RULE.code,
                    goal=Disjoint(access, access, Between.ITERATIONS),
                    sites=(access.site,),
                    cause=f"two iterations of one block write the same element of `{array}`, in no order",
                    stage=2,
                    kind="overlap",
                    unsafe=unsafe_of(access),
                    array=array,
                )


def _runs_parallel(access: Access, borrows: tuple[Access, ...]) -> bool:
    """Whether the compiler drops the order between a store's iterations: it is the only access of its array
    in the loop body, and the loop variable itself is one of its tile indices."""
    loop = access.stepped_by
    return loop is not None and all(other.site == access.site for other in borrows if loop in other.loops)


RULE = Rule(
    code="TC204",
    name="unordered-accesses",
    level=Severity.ERROR,
    summary="two accesses of one block are not ordered",
    since="0.1.0",
    check=check,
)
