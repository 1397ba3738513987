"""An unsafe block does not say why it may be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.model import Diagnostic, Severity
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Yield a finding for each unsafe block without a reason."""
    for block in facts.kernel.unsafe_blocks:
        if not block.reason:
            yield Diagnostic(
                code=RULE.code,
                name=RULE.name,
                severity=RULE.level,
                message="this unsafe block gives no reason",
                site=block.site,
                kernel=facts.kernel.name,
                label="trusted for no stated reason",
                help="write why the accesses inside cannot collide",
            )

RULE = Rule(
    code="TC104",
    name="unsafe-without-reason",
    level=Severity.ERROR,
    summary="an unsafe block does not say why it may be trusted",
    since="0.1.0",
    check=check,
)
