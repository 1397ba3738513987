"""A block reads an element that another block writes.
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
    """Yield one obligation for each pair of a write and a read of one array."""
    for conflict in facts.graph.conflicts():
        first, second = conflict.first, conflict.second
        if {first.effect, second.effect} != {Effect.READ, Effect.WRITE} or both_atomic_enough(first, second):
            continue
        if first.effect is Effect.READ:
            first, second = second, first
        yield Obligation(
            rule=RULE.code,
            goal=Disjoint(first, second, Between.BLOCKS),
            sites=sites_of(first, second),
            cause=f"a block reads an element of `{conflict.array}` that another block writes",
            stage=2,
            kind="overlap",
            unsafe=unsafe_of(first, second),
            array=conflict.array,
        )

RULE = Rule(
    code="TC202",
    name="write-read-overlap",
    level=Severity.ERROR,
    summary="a block reads an element that another block writes",
    since="0.1.0",
    check=check,
)
