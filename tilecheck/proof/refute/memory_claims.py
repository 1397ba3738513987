"""What a claim says about memory: whether, and which, values that are read decide it."""

from __future__ import annotations

from tilecheck.ir.expr import Expr, symbols, walk
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation


def is_of_contents(obligation: Obligation) -> bool:
    """Whether it is a race between blocks, or memory decides if its accesses are made at all."""
    goal = obligation.goal
    if not isinstance(goal, Disjoint):
        return False
    guards = walk(*(part for a in (goal.first, goal.second) for part in (a.guard, a.mask)))
    return is_between_blocks(obligation) or any(map(is_memory, guards))


def is_between_blocks(obligation: Obligation) -> bool:
    """Whether it is a race between blocks."""
    return isinstance(obligation.goal, Disjoint) and obligation.goal.between is Between.BLOCKS


def deciding(obligation: Obligation) -> set[str]:
    """The arrays whose contents decide a claim."""
    from tilecheck.proof.refute.concrete import memory_name  # lazy: loads NumPy

    goal = obligation.goal
    terms = [goal.goal, goal.given] if isinstance(goal, Holds) else terms_of(obligation)
    names: set[str] = set()
    for node in filter(is_memory, walk(*terms)):
        read = node.op == "read"
        names.update([memory_name(node.args[0])] if read else node.args[0].origin.partition(":")[2].split(","))
    return names


def terms_of(obligation: Obligation) -> list[Expr]:
    """What decides a race: when its accesses happen, and where; nothing for other claims."""
    goal = obligation.goal
    if not isinstance(goal, Disjoint):
        return []
    found: list[Expr] = []
    for access in (goal.first, goal.second):
        found += [access.guard, access.mask, *(axis.coordinate for axis in access.axes)]
    return found


def is_memory(node: Expr) -> bool:
    """Whether a node stands for what memory holds."""
    if node.op == "read":
        return True
    return node.op in ("sym", "bsym") and node.args[0].origin.startswith(("memory", "atomic"))


def depends_on_memory(*terms: Expr) -> bool:
    """Whether what memory holds decides terms: as a number, or as a truth about it that is not followed."""
    return any(map(is_memory, walk(*terms))) or any(s.origin == "data of memory" for s in symbols(*terms))
