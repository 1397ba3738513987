"""What the text of a piece of code says, read once: each path through a function asks for it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

import libcst as cst

from tilecheck.frontend.text.syntax import has_kind, walk, walk_kind

if TYPE_CHECKING:
    from tilecheck.frontend.host_programs.machine import Machine

T = TypeVar("T")


def once(m: Machine, read: Callable[[cst.CSTNode], T], node: cst.CSTNode) -> T:
    """What a function reads from a node, which never changes."""
    known, key = m.kernels.texts, (read, node)
    if key not in known:
        known[key] = read(node)
    return cast("T", known[key])


def _outside_functions(node: cst.CSTNode) -> bool:
    return not isinstance(node, cst.FunctionDef | cst.Lambda)


def returns(body: cst.CSTNode) -> bool:
    """Whether a block may return or yield."""
    return any(isinstance(n, cst.Return | cst.Yield) for n in walk(body, _outside_functions))


def leaves(body: cst.CSTNode) -> bool:
    """Whether a block may return, or leave or go on with a loop around it."""
    own = walk(body, lambda n: not isinstance(n, cst.FunctionDef | cst.Lambda | cst.For | cst.While))
    return any(isinstance(n, cst.Break | cst.Continue) for n in own) or returns(body)


def names_in(node: cst.CSTNode) -> frozenset[str]:
    """The names that a piece of code mentions."""
    return frozenset(n.value for n in walk_kind(node, cst.Name))


def has_call(node: cst.CSTNode) -> bool:
    return has_kind(node, cst.Call)


def literal(node: cst.CSTNode) -> object:
    """The value of a string or a number; None if it is not known."""
    return getattr(node, "evaluated_value", None)
