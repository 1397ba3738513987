"""Containers of Python: what their functions and methods put in, and take out."""

from __future__ import annotations

import libcst as cst

from tilecheck.frontend.host_guards.calls.arguments import Given
from tilecheck.frontend.host_guards.kinds import (
    NONE,
    NOTHING,
    PLAIN,
    UNKNOWN,
    Box,
    External,
    Kind,
    Made,
    Sort,
    is_handle,
)
from tilecheck.frontend.host_guards.read.expressions import elements
from tilecheck.frontend.host_guards.run import Run

_UNSEEN = "tilecheck.host does not see what this does"


def function(r: Run, name: str, given: Given) -> Kind | None:
    """A call of a function that gives a container, or a copy of what it is given; None if it does neither."""
    box = r.box(given.node)
    match name:
        case (
            "collections.Counter" | "collections.OrderedDict" | "collections.deque" | "collections.defaultdict"
        ):
            factory = {
                External("builtins.list"),
                External("builtins.int"),
                External("builtins.dict"),
                Sort.NONE,
            }
            if name == "collections.defaultdict" and not given.get(0, "") <= factory:
                return r.refuse(given.node, _UNSEEN)
            first = NOTHING if name == "collections.defaultdict" else given.get(0, "iterable")
            inside = elements(r, given.node, first)
            return r.p.fill(box, inside | PLAIN | elements(r, given.node, inside), inside)
        case "dataclasses.replace":
            for atom in given.get(0, "obj"):
                if not isinstance(atom, Made):
                    return r.refuse(given.node, _UNSEEN)
                for field, (kind, _) in given.keywords.items():
                    r.p.add_field(atom.of, field, kind)
            return given.get(0, "obj")
        case "dataclasses.asdict" | "dataclasses.astuple":
            return r.refuse(given.node, _UNSEEN)
        case "dataclasses.field":
            return UNKNOWN  # what a data class makes of it is read with the class
        case (
            "itertools.chain"
            | "itertools.chain.from_iterable"
            | "itertools.product"
            | "itertools.islice"
            | ("itertools.repeat" | "itertools.pairwise" | "itertools.count" | "itertools.cycle")
        ):
            inside = NOTHING.union(
                PLAIN, *(elements(r, given.node, kind) | kind for _, kind, _ in given.every())
            )
            inside |= elements(r, given.node, inside)
            return r.p.fill(box, inside | frozenset({box}))
        case _:
            return None


# ---- methods -----------------------------------------------------------------------------------------------

_ASKING = frozenset("index count keys __len__ isdisjoint issubset issuperset".split())
_TAKING = frozenset("pop popleft get setdefault popitem".split())
_ADDING = frozenset("append appendleft add".split())
_EXTENDING = frozenset("extend extendleft update".split())
_LEAVING = frozenset("remove discard clear sort reverse rotate".split())


def method(r: Run, box: Box, name: str, given: Given) -> Kind:
    p, first = r.p, given.get(0, "")
    if name in _ADDING | _EXTENDING | _TAKING - {"get"} | _LEAVING | {"insert"}:
        r.frame.facts.changes.append((box, given.node))
    if name in _ADDING or name == "insert":
        put(r, given.node, box, given.get(1, "") if name == "insert" else first)
        return NONE
    if name in _EXTENDING:
        values = elements(r, given.node, first).union(*(kind for kind, _ in given.keywords.values()))
        put(r, given.node, box, values | elements(r, given.node, values))
        keys = NOTHING.union(*(p.keys(a) for a in first if isinstance(a, Box)))
        p.fill(box, NOTHING, keys | (PLAIN if given.keywords else NOTHING))
        return NONE
    if name in _TAKING:
        default = given.get(1, "default")
        if name == "setdefault":
            put(r, given.node, box, default)
            p.fill(box, NOTHING, first)
        return p.items(box) | p.keys(box) | default | (NONE if name == "get" else NOTHING)
    match name:
        case "items":
            row = p.row(r.box(given.node, "row"), (p.keys(box), p.items(box)))
            return r.boxed(given.node, row)
        case "values":
            return r.boxed(given.node, p.items(box))
        case "keys":
            return r.boxed(given.node, p.keys(box))
        case "copy" | "union" | "intersection" | "difference":
            return p.fill(r.box(given.node), p.items(box) | elements(r, given.node, first), p.keys(box))
        case "most_common" | "elements":
            return r.boxed(given.node, r.boxed(given.node, p.items(box) | p.keys(box) | PLAIN, "row"))
        case _ if name in _ASKING:
            return PLAIN
        case _ if name in _LEAVING:
            return NONE if not given.keywords.get("key") else r.refuse(given.node, _UNSEEN)
        case _:
            return r.refuse(given.node, "what this does with a container is not followed")


def put(r: Run, node: cst.CSTNode, box: Box, kind: Kind) -> None:
    """Put something into a container."""
    r.p.fill(box, kind)
    if any(map(is_handle, r.p.inside(kind))):
        r.frame.facts.kept.append(node)
