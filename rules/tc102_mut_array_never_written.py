"""An array declared mut is never written.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import Ownership
from tilecheck.model import Diagnostic, Severity
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Yield a finding for each parameter declared mut that the block never borrows mutably."""
    for param in facts.kernel.params:
        if param.declared is Ownership.MUT and facts.graph.ownership(param.name) is not Ownership.MUT:
            yield Diagnostic(
                code=RULE.code,
                name=RULE.name,
                severity=RULE.level,
                message=f"`{param.name}` is declared mut but `{facts.kernel.name}` never writes it",
                site=param.site,
                kernel=facts.kernel.name,
                label="never written",
                help=f"declare it shared, or store to `{param.name}`",
            )

RULE = Rule(
    code="TC102",
    name="mut-array-never-written",
    level=Severity.ERROR,
    summary="an array declared mut is never written",
    since="0.1.0",
    check=check,
)
