"""The names that a loop of a module binds anew: `for name in ("f", "g"): globals()[name] = ...`.

The variable holds one of the texts of a literal tuple wherever the body uses it, for the loop alone binds it:
no other part of the file stores to that name, not even inside a function, where it would mostly be another
variable. So the names of that tuple are all that the assignment can bind. A tuple that stands under a name of
its own is that one if the module stores to this name once: what is in a tuple no code changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from tilecheck.frontend.modules.mutations import Changes


def looped_names(c: Changes, item: cst.Subscript) -> tuple[str, ...]:
    """The names that `namespace[name] = ...` binds in such a loop; none where that is not clear."""
    index = item.slice[0].slice
    if len(item.slice) != 1 or not isinstance(index, cst.Index) or not isinstance(index.value, cst.Name):
        return ()
    loop = _loop_around(c, item, index.value.value)
    if loop is None or _stores(c, index.value.value) != [loop.target]:
        return ()
    used = [node.value for node in (loop.target, loop.iter) if isinstance(node, cst.Name)]
    if _may_be_bound_unseen(c, *used):
        return ()
    return _texts(_tuple(c, loop.iter))


def _loop_around(c: Changes, node: cst.CSTNode, name: str) -> cst.For | None:
    """The loop of the module, inside no function, over that variable, of which `node` is in the body."""
    if is_inside_function(c, node):
        return None
    while node in c.parents:
        before, node = node, c.parents[node]
        if isinstance(node, cst.For) and before is node.body:
            target = node.target
            return node if isinstance(target, cst.Name) and target.value == name else None
    return None


def _stores(c: Changes, name: str) -> list[cst.Name]:
    """Every place that may bind the name, in whatever scope. To delete it binds nothing."""
    return [use for use in c.uses.get(name, ()) if not _only_looks(c, use)]


def _only_looks(c: Changes, use: cst.Name) -> bool:
    parent = c.parents[use]
    if isinstance(parent, cst.Index | cst.Arg | cst.Del):  # what is before `=` in `f(name=1)` is no variable
        return True
    return isinstance(parent, cst.For) and parent.iter is use


def _tuple(c: Changes, given: cst.BaseExpression) -> cst.BaseExpression | None:
    """What the loop goes over: itself, or what the module binds to the name that stands there."""
    if not isinstance(given, cst.Name):
        return given
    stores = _stores(c, given.value)
    if len(stores) != 1 or is_inside_function(c, stores[0]):
        return None
    target = c.parents[stores[0]]
    assigned = c.parents.get(target)
    alone = isinstance(target, cst.AssignTarget) and target.target is stores[0]
    return assigned.value if alone and isinstance(assigned, cst.Assign) else None


def _may_be_bound_unseen(c: Changes, *names: str) -> bool:
    """Whether the module imports names that it does not list, or tells one of these to something as a text:
    an assignment through a namespace has its name from a literal, or else may be one to any name at all."""
    return any(
        isinstance(node, cst.ImportStar)
        or (isinstance(node, cst.SimpleString) and node.evaluated_value in names)
        for node in c.parents
    )


def is_inside_function(c: Changes, node: cst.CSTNode) -> bool:
    """Whether a name that stands there, or is bound there, need not be one of the module's."""
    while node in c.parents:
        node = c.parents[node]
        if isinstance(node, cst.FunctionDef | cst.Lambda | cst.ClassDef):
            return True
    return False


def _texts(node: cst.BaseExpression | None) -> tuple[str, ...]:
    """The items of a literal tuple of texts; none if it is anything else."""
    if not isinstance(node, cst.Tuple):
        return ()
    items = [e.value if isinstance(e, cst.Element) else None for e in node.elements]  # `*"ab"` is two texts
    values = [item.evaluated_value if isinstance(item, cst.SimpleString) else None for item in items]
    return tuple(value for value in values if isinstance(value, str)) if None not in values else ()
