"""An array declared shared is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.ir.expr import FALSE
from tilecheck.ir.kernel import Effect, Ownership
from tilecheck.model import Severity
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation, that it never happens, for each write of a shared array."""
    for param in facts.kernel.params:
        if param.declared is not Ownership.SHARED or facts.graph.ownership(param.name) is not Ownership.MUT:
            continue
        for access in facts.graph.borrows(param.name):
            if access.effect is not Effect.READ:
                yield Obligation(
                    rule=RULE.code,
                    goal=Holds(FALSE, access.happens, access),
                    sites=(access.site, param.site),
                    cause=f"`{param.name}` is declared shared but is written",
                    stage=0,
                    kind="ownership",
                    array=param.name,
                )

RULE = Rule(
    code="TC101",
    name="shared-array-written",
    level=Severity.ERROR,
    summary="an array declared shared is written",
    since="0.1.0",
    check=check,
)
