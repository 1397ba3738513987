"""The names that a function binds, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.modules.bindings import imports_of
from tilecheck.frontend.text.syntax import children, walk

# Methods that change what a container holds.
CHANGING = frozenset(
    "append extend insert add update setdefault pop popitem popleft appendleft remove clear discard sort "
    "reverse extendleft rotate".split()
)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a function: `bound` are its variables, with the nodes that bind or change each."""

    bound: dict[str, list[cst.CSTNode]] = field(default_factory=dict)
    changed: dict[str, list[cst.CSTNode]] = field(default_factory=dict)  # what they hold, through the name
    globals: frozenset[str] = frozenset()
    nonlocals: frozenset[str] = frozenset()
    parents: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)
    is_generator: bool = False


def is_own(node: cst.CSTNode) -> bool:
    """Whether the inside of a node runs as part of the function around it."""
    return not isinstance(node, cst.FunctionDef | cst.Lambda | cst.ClassDef)


def body_of(node: cst.FunctionDef | cst.Lambda | cst.Module) -> cst.CSTNode:
    return node if isinstance(node, cst.Module) else node.body


def parameters_of(node: cst.FunctionDef | cst.Lambda) -> list[cst.Param]:
    """The parameters that take one argument each, in order."""
    params = node.params
    return [*params.posonly_params, *params.params, *params.kwonly_params]


def names_of(node: cst.FunctionDef | cst.Lambda | cst.Module) -> Names:
    """The names that a function binds. Those of a module are looked up in its table."""
    bound: dict[str, list[cst.CSTNode]] = {}
    changed: dict[str, list[cst.CSTNode]] = {}
    outside: dict[str, set[str]] = {"global": set(), "nonlocal": set()}
    parents: dict[cst.CSTNode, cst.CSTNode] = {}
    is_generator = False
    for part in walk(body_of(node)):
        parents.update(dict.fromkeys(children(part), part))
    for part in walk(body_of(node), is_own):
        is_generator = is_generator or isinstance(part, cst.Yield)
        if isinstance(part, cst.Global | cst.Nonlocal):
            kind = "global" if isinstance(part, cst.Global) else "nonlocal"
            outside[kind] |= {item.name.value for item in part.names}
        for name in _bound_by(part):
            bound.setdefault(name, []).append(part)
        for name in _changed_by(part):
            changed.setdefault(name, []).append(part)
    if isinstance(node, cst.Module):
        return Names({}, changed, parents=parents)
    every = [*parameters_of(node), node.params.star_arg, node.params.star_kwarg]
    for param in every:
        if isinstance(param, cst.Param):
            bound.setdefault(param.name.value, []).append(param)
    own = frozenset(outside["global"]), frozenset(outside["nonlocal"])
    return Names(bound, changed, *own, parents, is_generator)


def _bound_by(node: cst.CSTNode) -> Iterator[str]:
    """The names that a node binds."""
    match node:
        case cst.AssignTarget(target=target) | cst.AnnAssign(target=target) | cst.AugAssign(target=target):
            yield from _names_in(target)
        case cst.For(target=target) | cst.CompFor(target=target) | cst.NamedExpr(target=target):
            yield from _names_in(target)
        case cst.AsName(name=target):  # of `with` and `except`; imports have their own
            yield from _names_in(target)
        case cst.FunctionDef(name=cst.Name(value=name)) | cst.ClassDef(name=cst.Name(value=name)):
            yield name
        case cst.Import() | cst.ImportFrom():
            yield from (name for name, _ in imports_of(node))
        case cst.MatchAs(name=cst.Name(value=name)) | cst.MatchStar(name=cst.Name(value=name)):
            yield name
        case cst.Del(target=target):
            yield from _names_in(target)


def _names_in(target: cst.CSTNode) -> Iterator[str]:
    match target:
        case cst.Name(value=name):
            yield name
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from _names_in(element.value)
        case cst.StarredElement(value=value):
            yield from _names_in(value)


def _changed_by(node: cst.CSTNode) -> Iterator[str]:
    """The names through which a node changes what they hold."""
    for target in changed_targets(node):
        owner = target
        while isinstance(owner, cst.Subscript | cst.Attribute):
            owner = owner.value
        if isinstance(owner, cst.Name):
            yield owner.value


def changed_targets(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The items and attributes that a node stores to, and the containers that it changes by a method."""
    match node:
        case cst.AssignTarget(target=target) | cst.AnnAssign(target=target) | cst.AugAssign(target=target):
            yield from _places_in(target)
        case cst.For(target=target) | cst.Del(target=target) | cst.AsName(name=target):
            yield from _places_in(target)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))) if name in CHANGING:
            yield owner


def _places_in(target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    match target:
        case cst.Subscript() | cst.Attribute():
            yield target
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from _places_in(element.value)
        case cst.StarredElement(value=value):
            yield from _places_in(value)


_LOOPS = (cst.For, cst.While, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)


def loops_around(names: Names, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The loops of the function that a node lies in, innermost first; a loop binds its target in each round."""
    found: list[cst.CSTNode] = [node] if isinstance(node, cst.For) else []
    above = names.parents.get(node)
    while above is not None:
        if isinstance(above, _LOOPS):
            found.append(above)
        above = names.parents.get(above)
    return found
