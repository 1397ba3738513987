"""Two accesses of a program whose elements are computed alike, lane for lane, but by lanes of other names."""

from __future__ import annotations

from dataclasses import replace

from tilecheck.ir.expr import Expr, Symbol, substitute, sym, symbols
from tilecheck.ir.kernel import Access
from tilecheck.proof.goals.predicate import are_paired
from tilecheck.proof.obligation import Between, Disjoint


def with_equal_lanes(goal: Disjoint) -> Disjoint | None:
    """The goal with the lanes of its second access named as those of its first; None where that is not so.

    It says the same. The instance of the second access computes nothing but that access, so what its lanes are
    called is of no matter, as long as no two symbols in it get one name. Their ranges are those of the first's
    (`are_paired`), and of these two lanes the predicate says that some pair differs, whatever they are called.
    """
    first, second = goal.first, goal.second
    if goal.between is not Between.PROGRAM or first.lanes == second.lanes or not are_paired(first, second):
        return None
    names = {b: a for a, b in zip(first.lanes, second.lanes, strict=True) if a != b}
    places = (e for axis in second.axes for e in (axis.coordinate, axis.extent))
    members = () if second.member is None else (second.member,)
    taken = {*symbols(second.happens, *places, *members), *second.lanes}
    if len(set(second.lanes)) < len(second.lanes) or not taken.isdisjoint(names.values()):
        return None
    return replace(goal, second=_renamed(second, names))


def _renamed(access: Access, names: dict[Symbol, Symbol]) -> Access:
    new = {sym(old): sym(name) for old, name in names.items()}

    def of(e: Expr) -> Expr:
        return substitute(e, new)

    return access.mapped(of, lambda lane: names.get(lane, lane))
