"""One launch passes one buffer twice and writes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.model import Diagnostic, Severity
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Yield a finding for each launch that moves one buffer into two parameters, one of them written."""
    for alias in facts.graph.aliases():
        if not alias.partial:
            yield Diagnostic(
                code=RULE.code,
                name=RULE.name,
                severity=RULE.level,
                message=(
                    f"this launch of `{facts.kernel.name}` passes `{alias.buffer}` as `{alias.mutable}`, which is"
                    f" written, and again as `{alias.other}`"
                ),
                site=alias.launch,
                kernel=facts.kernel.name,
                label=f"`{alias.buffer}` is borrowed mutably and once more",
                help="pass a copy, or a kernel that reads and writes one parameter in place",
            )

RULE = Rule(
    code="TC401",
    name="aliased-arguments",
    level=Severity.ERROR,
    summary="one launch passes one buffer twice and writes it",
    since="0.1.0",
    check=check,
)
