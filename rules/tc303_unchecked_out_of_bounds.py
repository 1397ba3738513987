"""An unchecked access may leave its array.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import unsafe_of
from tilecheck.analysis.facts import Facts
from tilecheck.ir.expr import Expr, add, all_of, le, lt, mul
from tilecheck.ir.kernel import Access, Space
from tilecheck.model import Severity
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each axis of each access that nothing checks."""
    for array in facts.graph.arrays():
        for access in facts.graph.borrows(array):
            if access.checked:
                continue
            for number in range(len(access.axes)):
                yield Obligation(
                    rule=RULE.code,
                    goal=Holds(stays_inside(access, number), performed(access), access),
                    sites=(access.site,),
                    cause=f"an unchecked access of `{array}` may leave the array along axis {number}",
                    stage=1,
                    kind="bounds",
                    unsafe=unsafe_of(access),
                    array=array,
                )


def performed(access: Access) -> Expr:
    """Where a lane takes part, whether or not its element exists."""
    return all_of(access.guard, access.lane_facts, access.mask)


def stays_inside(access: Access, number: int) -> Expr:
    """A tile stays inside when its last element does; an element when it does itself."""
    axis = access.axes[number]
    if access.space is Space.TILE:
        end = add(mul(axis.index, axis.step), axis.size)
        return all_of(le(0, axis.index), le(end, axis.extent))
    return all_of(le(0, axis.local), lt(axis.local, axis.extent))

RULE = Rule(
    code="TC303",
    name="unchecked-out-of-bounds",
    level=Severity.ERROR,
    summary="an unchecked access may leave its array",
    since="0.1.0",
    check=check,
)
