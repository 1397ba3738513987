"""A divisor or the step of a range may not be positive.
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
        if operation.kind in (CheckKind.DIVISOR, CheckKind.STEP,):
            yield Obligation(
                rule=RULE.code,
                goal=Holds(operation.goal, operation.guard),
                sites=(operation.site,),
                cause=f"`{operation.what}` is used as a divisor or step but may not be positive",
                stage=0,
                kind="undefined",
                unsafe=() if operation.unsafe is None else (operation.unsafe,),
            )

RULE = Rule(
    code="TC301",
    name="divisor-not-positive",
    level=Severity.ERROR,
    summary="a divisor or the step of a range may not be positive",
    since="0.1.0",
    check=check,
)
