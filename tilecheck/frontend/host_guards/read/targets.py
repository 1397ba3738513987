"""What variables, attributes and items get."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tilecheck.frontend.host_guards.calls.containers import put
from tilecheck.frontend.host_guards.kinds import (
    NOTHING,
    Box,
    Checked,
    Code,
    Kind,
    Made,
    Pending,
    Sort,
    is_handle,
)
from tilecheck.frontend.host_guards.read import names
from tilecheck.frontend.host_guards.read.expressions import elements, evaluate, quietly
from tilecheck.frontend.host_guards.run import Run


def bind(r: Run, target: cst.CSTNode, kind: Kind) -> None:
    """Note that a target may get a value of this kind."""
    match target:
        case cst.Name(value=name):
            holder = r.frame.holder(name)
            if holder is not None:
                r.p.bind(holder, name, kind)
        case cst.Tuple(elements=parts) | cst.List(elements=parts):
            _unpack(r, target, parts, kind)
        case cst.StarredElement(value=value):
            bind(r, value, r.p.fill(r.box(target), kind))
        case cst.Attribute(value=value, attr=cst.Name(value=name)):
            _to_attribute(r, target, evaluate(r, value), name, kind)
        case cst.Subscript(value=value):
            owner = quietly(r, value)
            keys = NOTHING
            for element in target.slice:
                if isinstance(element.slice, cst.Index):
                    keys |= evaluate(r, element.slice.value)
            _to_item(r, target, owner, keys, kind)
        case _:
            r.refuse(target, "this target is not read")


def _unpack(r: Run, target: cst.CSTNode, parts: Sequence[cst.BaseElement], kind: Kind) -> None:
    starred = [k for k, part in enumerate(parts) if isinstance(part, cst.StarredElement)]
    for at, part in enumerate(parts):
        found: Kind = NOTHING
        for atom in kind:
            if isinstance(atom, Box) and not starred:
                found |= r.p.item(atom, at) | r.p.keys(atom)
            else:
                found |= elements(r, target, frozenset({atom}))
        bind(r, part if isinstance(part, cst.StarredElement) else part.value, found)


def _holds_work(r: Run, kind: Kind) -> bool:
    """Whether it matters where a value is kept."""
    inside = r.p.inside(kind)
    return any(isinstance(a, Checked | Pending | Code | Made) or a is Sort.TENSOR for a in inside)


def _to_attribute(r: Run, node: cst.CSTNode, owner: Kind, name: str, kind: Kind) -> None:
    if any(map(is_handle, r.p.inside(kind))):
        r.frame.facts.kept.append(node)
    for atom in owner:
        match atom:
            case Made(of=of):
                r.p.add_field(of, name, kind)
                found = names.member(r.p, of, name)
                if found is not None and isinstance(found[1], cst.FunctionDef):
                    r.refuse(node, "what setting this attribute does is not followed")
            case Sort.NONE:
                pass  # it raises
            case Sort.PLAIN | Sort.UNKNOWN if not _holds_work(r, kind):
                pass
            case Sort.TENSOR if name in ("grad", "requires_grad"):
                r.raw(node)
            case Code() if not _holds_work(r, kind):
                pass
            case _:
                r.refuse(node, "what this changes is not followed")


def _to_item(r: Run, node: cst.CSTNode, owner: Kind, keys: Kind, kind: Kind) -> None:
    for atom in owner:
        match atom:
            case Box():
                r.frame.facts.changes.append((atom, node))
                put(r, node, atom, kind)
                r.p.fill(atom, NOTHING, keys)
            case Sort.ARRAY if not _holds_work(r, kind):
                r.frame.facts.changes.append((None, node))
            case Sort.TENSOR:
                r.raw(node)
                if any(isinstance(a, Checked | Pending) for a in kind):
                    r.refuse(node, "tilecheck.host does not see this copy")
            case Sort.NONE:
                pass
            case Sort.PLAIN | Sort.UNKNOWN if not _holds_work(r, kind):
                pass
            case _:
                r.refuse(node, "what this changes is not followed")
