"""A tile may lie wholly outside its array.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import unsafe_of
from tilecheck.analysis.facts import Facts
from tilecheck.ir.expr import all_of, le, lt, mul
from tilecheck.ir.kernel import CheckKind, Space
from tilecheck.model import Severity
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each axis of each tile access: 0 <= i and i * step < extent."""
    for operation in facts.kernel.checks:
        if operation.kind is CheckKind.TILE:
            yield Obligation(
                rule=RULE.code,
                goal=Holds(operation.goal, operation.guard),
                sites=(operation.site,),
                cause=f"a tile may lie wholly outside its array along {operation.what}",
                stage=1,
                kind="bounds",
                unsafe=() if operation.unsafe is None else (operation.unsafe,),
                array=operation.array,
            )
    for array in facts.graph.arrays():
        for access in facts.graph.borrows(array):
            if access.space is not Space.TILE:
                continue
            for number, axis in enumerate(access.axes):
                yield Obligation(
                    rule=RULE.code,
                    goal=Holds(
                        all_of(le(0, axis.index), lt(mul(axis.index, axis.step), axis.extent)), access.guard, access
                    ),
                    sites=(access.site,),
                    cause=f"a tile of `{array}` may lie wholly outside the array along axis {number}",
                    stage=1,
                    kind="bounds",
                    unsafe=unsafe_of(access),
                    array=array,
                )

RULE = Rule(
    code="TC302",
    name="tile-outside-array",
    level=Severity.ERROR,
    summary="a tile may lie wholly outside its array",
    since="0.1.0",
    check=check,
)
