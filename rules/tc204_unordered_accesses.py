"""Two accesses of one block are not ordered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import sites_of, unsafe_of
from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import Effect
from tilecheck.model import Severity
from tilecheck.proof.obligation import Obligation, Ordered
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each pair of accesses of one array of which one is a store."""
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

RULE = Rule(
    code="TC204",
    name="unordered-accesses",
    level=Severity.ERROR,
    summary="two accesses of one block are not ordered",
    since="0.1.0",
    check=check,
)
