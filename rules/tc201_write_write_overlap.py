"""Two blocks write the same element of an array.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import both_atomic_enough, sites_of, unsafe_of
from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import Effect
from tilecheck.model import Severity
from tilecheck.proof.obligation import Between, Disjoint, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each pair of writes of one array, the pair of a write with itself included."""
    for conflict in facts.graph.conflicts():
        first, second = conflict.first, conflict.second
        if first.effect is Effect.WRITE and second.effect is Effect.WRITE and not both_atomic_enough(first, second):
            yield Obligation(
                rule=RULE.code,
                goal=Disjoint(first, second, Between.BLOCKS),
                sites=sites_of(first, second),
                cause=f"two blocks write the same element of `{conflict.array}`",
                stage=2,
                kind="overlap",
                unsafe=unsafe_of(first, second),
                array=conflict.array,
            )

RULE = Rule(
    code="TC201",
    name="write-write-overlap",
    level=Severity.ERROR,
    summary="two blocks write the same element of an array",
    since="0.1.0",
    check=check,
)
