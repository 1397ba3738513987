"""32-bit index arithmetic wraps at ordinary sizes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.analysis.ranges import INT32_MAX, INT32_MIN, promised_sizes, wraps_when_small
from tilecheck.ir.expr import Expr, Kind, Symbol, all_of, le, render, substitute, sym, symbols, walk
from tilecheck.model import Severity
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each 32-bit value that feeds an address or branch and wraps at small sizes."""
    used = _feeding(facts)
    promised = promised_sizes(r.condition for r in facts.kernel.requires)
    for operation in facts.kernel.arithmetic:
        if _without_lanes(operation.value) in used and wraps_when_small(operation.value, promised):
            yield Obligation(
                rule=RULE.code,
                goal=Holds(
                    all_of(le(INT32_MIN, operation.value), le(operation.value, INT32_MAX)), operation.guard
                ),
                sites=(operation.site,),
                cause=f"`{render(operation.value)}` is computed in 32 bits and may wrap",
                stage=0,
                kind="overflow",
                unsafe=() if operation.unsafe is None else (operation.unsafe,),
            )


def _feeding(facts: Facts) -> set[Expr]:
    """Every expression that an access or an operation of the kernel depends on."""
    roots = []
    for access in facts.kernel.accesses:
        roots += [access.guard, access.mask, *(axis.index for axis in access.axes)]
    roots += [check.goal for check in facts.kernel.checks]
    return set(walk(*(_without_lanes(root) for root in roots)))


def _without_lanes(value: Expr) -> Expr:
    """The lanes of an operation and of the access that it feeds have names of their own: forget them."""
    lanes = {sym(s): _LANE for s in symbols(value) if s.kind is Kind.LANE}
    return substitute(value, lanes)


_LANE = sym(Symbol("lane", Kind.LANE))

RULE = Rule(
    code="TC305",
    name="index-overflow",
    level=Severity.ERROR,
    summary="32-bit index arithmetic wraps at ordinary sizes",
    since="0.1.0",
    check=check,
)
