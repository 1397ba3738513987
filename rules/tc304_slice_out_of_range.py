"""The bounds of a slice may lie outside its array.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import CheckKind
from tilecheck.model import Severity
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each such operation of the kernel."""
    for operation in facts.kernel.checks:
        if operation.kind in (CheckKind.SLICE,):
            yield Obligation(
                rule=RULE.code,
                goal=Holds(operation.goal, operation.guard),
                sites=(operation.site,),
                cause=f"`{operation.what}` may reach outside its array",
                stage=0,
                kind="bounds",
                unsafe=() if operation.unsafe is None else (operation.unsafe,),
            )

RULE = Rule(
    code="TC304",
    name="slice-out-of-range",
    level=Severity.ERROR,
    summary="the bounds of a slice may lie outside its array",
    since="0.1.0",
    check=check,
)
