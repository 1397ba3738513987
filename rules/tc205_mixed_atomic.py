"""An atomic update and another access meet without a common scope.
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
    """Yield one obligation for each pair with an atomic that the memory model does not make safe."""
    for conflict in facts.graph.conflicts():
        first, second = conflict.first, conflict.second
        if Effect.ATOMIC not in (first.effect, second.effect) or both_atomic_enough(first, second):
            continue
        plain = next((a for a in (first, second) if a.effect is not Effect.ATOMIC), None)
        if plain is None:
            cause = f"blocks update the same element of `{conflict.array}` atomically, but their scope is one block"
        else:
            verb = "reads" if plain.effect is Effect.READ else "writes"
            cause = f"a block {verb} an element of `{conflict.array}` that another block updates atomically"
        yield Obligation(
            rule=RULE.code,
            goal=Disjoint(first, second, Between.BLOCKS),
            sites=sites_of(first, second),
            cause=cause,
            stage=2,
            kind="overlap",
            unsafe=unsafe_of(first, second),
            array=conflict.array,
        )

RULE = Rule(
    code="TC205",
    name="mixed-atomic",
    level=Severity.ERROR,
    summary="an atomic update and another access meet without a common scope",
    since="0.1.0",
    check=check,
)
