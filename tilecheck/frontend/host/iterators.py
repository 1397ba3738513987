"""Iterators of host code: generators, `zip` and the like run when their items are asked for, and only once.

They are read where that is at once, and nowhere else: `m = tuple(f(t) for t in xs)` is as if it were a list,
while what `g = (f(t) for t in xs)` gives depends on what is changed, or was taken out of it, until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.frontend.host.memory.mutations import holds_mutable
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.text.syntax import names_touched, walk_kind

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor
    from tilecheck.frontend.modules.project import ModuleTable
    from tilecheck.frontend.values.values import Frame

_USING_UP = frozenset("list tuple set frozenset dict sum max min any all sorted".split())
_LAZY = frozenset("zip enumerate reversed".split())
_LIBRARIES = ("torch", "math", "numpy")


def is_used_at_once(node: cst.CSTNode, table: ModuleTable, *, in_loop: bool) -> bool:
    """Whether all items of an iterator are taken out of it where it stands, or in a loop's rounds."""
    parents = table.changes.parents
    match parents.get(node):
        case cst.Arg(star="*") | cst.StarredElement():
            return True
        case cst.For(iter=items) | cst.CompFor(iter=items):
            return in_loop and items is node
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple() | cst.List())]):
            return True
        case cst.Arg(keyword=None) as arg:
            return _is_taken_by(parents.get(arg), table, in_loop=in_loop)
    return False


def _is_taken_by(call: cst.CSTNode | None, table: ModuleTable, *, in_loop: bool) -> bool:
    if not isinstance(call, cst.Call):
        return False
    text = dotted(call.func)
    if text in _LAZY and table.is_builtin(text):
        return is_used_at_once(call, table, in_loop=in_loop)
    if text in _USING_UP:
        return table.is_builtin(text)
    return table.full_name(text).partition(".")[0] in _LIBRARIES


def may_change_source(x: HostExecutor, node: cst.For, frame: Frame) -> bool:
    """Whether the body of a loop may change a list that the loop takes its items from: each use of it that does
    more than to read an item counts, under whatever name of this function."""
    used = {n.value for n in walk_kind(node.iter, cst.Name)}
    held = [value for name in used if (value := frame.find(name)) is not None and holds_mutable(value)]
    names = {name for name, value in frame.names.items() if any(value is other for other in held)} | {
        name for name in used if any(frame.find(name) is other for other in held)
    }
    if names & x.named_inside(frame.table):
        return True
    return not names.isdisjoint(names_touched(node.body))
