"""One store writes the same element twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import unsafe_of
from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import Effect
from tilecheck.model import Severity
from tilecheck.proof.obligation import Between, Disjoint, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each write with several lanes."""
    for array in facts.graph.arrays():
        for access in facts.graph.borrows(array):
            if access.effect is Effect.WRITE and access.lanes:
                yield Obligation(
                    rule=RULE.code,
                    goal=Disjoint(access, access, Between.LANES),
                    sites=(access.site,),
                    cause=f"one store writes an element of `{array}` twice",
                    stage=2,
                    kind="overlap",
                    unsafe=unsafe_of(access),
                    array=array,
                )

RULE = Rule(
    code="TC203",
    name="duplicate-element",
    level=Severity.ERROR,
    summary="one store writes the same element twice",
    since="0.1.0",
    check=check,
)
