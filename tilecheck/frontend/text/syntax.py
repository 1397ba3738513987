"""Fast walks over libcst trees.

libcst's own `children` rebuilds the node that it is asked about; reading the fields is many times faster. The
tree of a file is read once (`Index`): a walk over a part of it is then a slice.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, cast, overload

import libcst as cst

from tilecheck.dataclass import dataclass

_SKIPPED = ("whitespace", "leading_", "trailing_", "lines_after", "comma", "semicolon", "lpar", "rpar", "equal")
_ALSO_SKIPPED = ("header", "footer", "dot", "colon")
_Node = TypeVar("_Node", bound=cst.CSTNode)
_Other = TypeVar("_Other", bound=cst.CSTNode)
_Third = TypeVar("_Third", bound=cst.CSTNode)


def _may_hold_code(field: str) -> bool:
    return not field.startswith(_SKIPPED) and field not in _ALSO_SKIPPED


@cache
def _values_of(kind: type[cst.CSTNode]) -> Callable[[cst.CSTNode], tuple[object, ...]]:
    """Reads the fields that can hold code: whitespace, punctuation and parentheses cannot."""
    names = [f.name for f in fields(kind) if f.type is not str and _may_hold_code(f.name)]
    if len(names) < 2:  # then an `attrgetter` gives no tuple
        return lambda node: tuple([getattr(node, name) for name in names])
    read: Callable[[cst.CSTNode], tuple[object, ...]] = attrgetter(*names)
    return read


def _read_children(node: cst.CSTNode) -> list[cst.CSTNode]:
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


@dataclass(slots=True, eq=False)
class _Tree:
    """The nodes of one tree that are code, parents first: what is below `nodes[i]` stands before `ends[i]`.
    Mutable: filled once."""

    nodes: list[cst.CSTNode] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    children: list[Sequence[cst.CSTNode]] = field(default_factory=list)
    kinds: dict[type, list[int]] = field(default_factory=dict)  # the places of the nodes of each type

    def fill(self, root: cst.CSTNode) -> None:
        stack: list[cst.CSTNode | int] = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, int):
                self.ends[node] = len(self.nodes)
                continue
            place, below = len(self.nodes), _read_children(node)
            self.nodes.append(node)
            self.ends.append(place + 1)
            self.children.append(below or ())
            self.kinds.setdefault(type(node), []).append(place)
            if below:
                stack.append(place)
                below = below[::-1]
                stack += below

    def walk(self, place: int, enter: Callable[[cst.CSTNode], bool]) -> Iterator[cst.CSTNode]:
        end = self.ends[place]
        while place < end:
            node = self.nodes[place]
            yield node
            place = place + 1 if enter(node) else self.ends[place]

    def places(self, place: int, *kinds: type) -> list[int]:
        """The places at or below one place that hold nodes of these types, in order."""
        found: list[int] = []
        for kind in kinds:
            every = self.kinds.get(kind, ())
            found += every[bisect_left(every, place) : bisect_left(every, self.ends[place])]
        if len(kinds) > 1:
            found.sort()
        return found


_PLACES: dict[int, tuple[_Tree, int]] = {}  # by the identity of a node: an indexed tree keeps its nodes alive


class Index:
    """What walks over one tree know of it, for as long as this object is kept."""

    __slots__ = ("__weakref__", "_tree")

    def __init__(self, root: cst.CSTNode) -> None:
        self._tree = tree = _Tree()
        tree.fill(root)
        _PLACES.update((id(node), (tree, place)) for place, node in enumerate(tree.nodes))
        # The entries go before the nodes do: no other object gets the identity of a node that has one.
        weakref.finalize(self, _forget, tree).atexit = False

    @property
    def nodes(self) -> Sequence[cst.CSTNode]:
        """All nodes that are code, parents first."""
        return self._tree.nodes

    def functions(
        self, *kinds: type[_Node], skips: Callable[[cst.FunctionDef], bool] | None = None
    ) -> Iterator[tuple[_Node | cst.FunctionDef, tuple[cst.FunctionDef, ...]]]:
        """The functions and the nodes of `kinds`, each with the functions around it, the outermost first. What
        `skips` is left out, and so is what stands in it."""
        tree, after = self._tree, 0
        around: tuple[cst.FunctionDef, ...] = ()
        ends: list[int] = []  # of the functions in `around`
        for place in tree.places(0, cst.FunctionDef, *kinds):
            if place < after:
                continue
            while ends and ends[-1] <= place:
                ends.pop()
                around = around[:-1]
            node = tree.nodes[place]
            if not isinstance(node, cst.FunctionDef):
                yield cast("_Node", node), around
            elif skips is not None and skips(node):
                after = tree.ends[place]
            else:
                yield node, around
                around = (*around, node)
                ends.append(tree.ends[place])


def _forget(tree: _Tree) -> None:
    for node in tree.nodes:
        del _PLACES[id(node)]


def children(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """The child nodes that are code, in the order of the fields."""
    known = _PLACES.get(id(node))
    return _read_children(node) if known is None else known[0].children[known[1]]


def walk(node: cst.CSTNode, enter: Callable[[cst.CSTNode], bool] | None = None) -> Iterator[cst.CSTNode]:
    """`node` and what is below it, parents first; the inside of a node is skipped if `enter` says no."""
    known = _PLACES.get(id(node))
    if known is None:
        return _walk(node, enter)
    tree, place = known
    return iter(tree.nodes[place : tree.ends[place]]) if enter is None else tree.walk(place, enter)


def _walk(node: cst.CSTNode, enter: Callable[[cst.CSTNode], bool] | None) -> Iterator[cst.CSTNode]:
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if enter is None or enter(node):
            stack.extend(reversed(children(node)))


@overload
def walk_kind(node: cst.CSTNode, kind: type[_Node], /) -> Iterator[_Node]: ...
@overload
def walk_kind(node: cst.CSTNode, kind: type[_Node], second: type[_Other], /) -> Iterator[_Node | _Other]: ...
@overload
def walk_kind(
    node: cst.CSTNode, kind: type[_Node], second: type[_Other], third: type[_Third], /
) -> Iterator[_Node | _Other | _Third]: ...
@overload
def walk_kind(node: cst.CSTNode, /, *kinds: type[cst.CSTNode]) -> Iterator[Any]: ...
def walk_kind(node: cst.CSTNode, /, *kinds: type[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """The nodes of `walk(node)` whose type is one of `kinds`, which have no subclasses."""
    known = _PLACES.get(id(node))
    if known is None:
        return (n for n in _walk(node, None) if type(n) in kinds)
    tree, place = known
    return map(tree.nodes.__getitem__, tree.places(place, *kinds))


def has_kind(node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> bool:
    """Whether a node of one of `kinds`, which have no subclasses, is at or below `node`."""
    return any(True for _ in walk_kind(node, *kinds))


def names_touched(tree: cst.CSTNode) -> list[str]:
    """The names in a tree that are used for more than to read an item: `t[i]` is no more, `t[i] = 0` is."""
    stored = {id(n.target) for n in walk_kind(tree, cst.AssignTarget, cst.AugAssign, cst.Del)}
    read = {id(n.value) for n in walk_kind(tree, cst.Subscript) if id(n) not in stored}
    return [n.value for n in walk_kind(tree, cst.Name) if id(n) not in read]
