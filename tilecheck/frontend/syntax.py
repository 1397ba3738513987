"""Fast walks over libcst trees.

libcst's own `children` rebuilds the node that it is asked about; reading the fields is many times faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import libcst as cst


@cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """The fields that can hold code: whitespace, punctuation and parentheses cannot."""
    skip = ("whitespace", "leading_", "trailing_", "lines_after", "comma", "semicolon", "lpar", "rpar", "equal")
    names: tuple[str, ...] = tuple(kind.__dataclass_fields__)
    return tuple(n for n in names if not n.startswith(skip) and n not in ("header", "footer", "dot", "colon"))


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The child nodes that are code, in the order of the fields."""
    found: list[cst.CSTNode] = []
    for name in _fields(type(node)):
        value = getattr(node, name)
        kind = type(value)
        if kind is str or value is None:
            continue
        if kind is tuple or kind is list:
            found += [v for v in value if _is_node(type(v))]
        elif _is_node(kind):
            found.append(value)
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
