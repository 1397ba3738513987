"""Which uses of a container of a function the run of that function follows itself, whatever it does there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from tilecheck.frontend.modules.mutations import Changes, Key


def is_in_sight(c: Changes, node: cst.CSTNode, same: set[Key]) -> bool:
    """Whether a use is a method, an item or an argument of a variable among `same`, those that hold the
    container: another variable may hold what is in it, or a function that is called later on may."""
    if not isinstance(node, cst.Name) or c.key(node) not in same:
        return False
    parent = c.parents[node]
    if isinstance(parent, cst.Attribute):
        after = c.parents[parent]
        return isinstance(after, cst.Call) and after.func is parent
    return isinstance(parent, cst.Subscript | cst.Arg | cst.AugAssign)


def names_of_one(c: Changes, node: cst.Name) -> list[Key]:
    """The variables that `b = a` gives the object in `a`; in a loop, code above may run after it."""
    parent = c.parents[node]
    above: cst.CSTNode = parent
    while not isinstance(above, cst.FunctionDef | cst.Module):
        if isinstance(above, cst.For | cst.While):
            return []
        above = c.parents[above]
    targets = [t.target for t in parent.targets] if isinstance(parent, cst.Assign) else []
    return [c.key(target) for target in targets if isinstance(target, cst.Name)]
