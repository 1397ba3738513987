"""A contract speaks of a name that is no parameter.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.model import Diagnostic, Severity
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Yield a finding for each unknown name in a contract."""
    names = ", ".join(f"`{p.name}`" for p in facts.kernel.params)
    for unknown in facts.kernel.unknown_names:
        yield Diagnostic(
            code=RULE.code,
            name=RULE.name,
            severity=RULE.level,
            message=f"this contract names `{unknown.name}`, which is no parameter of `{facts.kernel.name}`",
            site=unknown.site,
            kernel=facts.kernel.name,
            label="the contract has no effect",
            help=f"the parameters are {names}" if names else "the kernel has no parameters",
        )

RULE = Rule(
    code="TC103",
    name="contract-names-unknown-parameter",
    level=Severity.ERROR,
    summary="a contract speaks of a name that is no parameter",
    since="0.1.0",
    check=check,
)
