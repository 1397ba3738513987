"""Fast walks over libcst trees.

libcst's own `children` rebuilds the node that it is asked about; reading the fields is many times faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from typing import cast

import libcst as cst

_SKIPPED = ("whitespace", "leading_", "trailing_", "lines_after", "comma", "semicolon", "lpar", "rpar", "equal")
_ALSO_SKIPPED = ("header", "footer", "dot", "colon")


@cache
def _values_of(kind: type[cst.CSTNode]) -> Callable[[cst.CSTNode], tuple[object, ...]]:
    """Reads the fields that can hold code: whitespace, punctuation and parentheses cannot."""
    fields = kind.__dataclass_fields__
    names = [n for n in fields if not n.startswith(_SKIPPED) and n not in _ALSO_SKIPPED]
    if len(names) < 2:  # then an `attrgetter` gives no tuple
        return lambda node: tuple([getattr(node, name) for name in names])
    read: Callable[[cst.CSTNode], tuple[object, ...]] = attrgetter(*names)
    return read


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The child nodes that are code, in the order of the fields."""
    found: list[cst.CSTNode] = []
    for value in _values_of(type(node))(node):
        kind: type = type(value)
        if kind is str or value is None:
            continue
        if kind is tuple or kind is list:
            found += [v for v in cast("list[cst.CSTNode]", value) if _is_node(type(v))]
        elif _is_node(kind):
            found.append(cast("cst.CSTNode", value))
    return found


_NODE_KINDS: dict[type, bool] = {}


def _is_node(kind: type) -> bool:
    """libcst's classes are abstract base classes, for which `issubclass` is slow."""
    known = _NODE_KINDS.get(kind)
    if known is None:
        known = _NODE_KINDS[kind] = issubclass(kind, cst.CSTNode)
    return known


def walk(node: cst.CSTNode, enter: Callable[[cst.CSTNode], bool] = lambda _: True) -> Iterator[cst.CSTNode]:
    """`node` and what is below it, parents first; the inside of a node is skipped if `enter` says no."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if enter(node):
            stack.extend(reversed(children(node)))


def names_touched(tree: cst.CSTNode) -> list[str]:
    """The names in a tree that are used for more than to read an item: `t[i]` is no more, `t[i] = 0` is."""
    nodes = list(walk(tree))
    stored = {id(n.target) for n in nodes if isinstance(n, cst.AssignTarget | cst.AugAssign | cst.Del)}
    read = {id(n.value) for n in nodes if isinstance(n, cst.Subscript) and id(n) not in stored}
    return [n.value for n in nodes if isinstance(n, cst.Name) and id(n) not in read]
