"""Whether two tensors of one launch may share memory, and who answers for it.

HOST     the host's own text relates them: parts of one buffer, a tensor and a copy that it may be
RELATED  code that is not read was given one of them and gave back the other, or gave back both
CALLER   they are handed in independently
UNREAD   code that is not read computed one of them and could reach the other, but nothing in view relates them
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from enum import Enum

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr
from tilecheck.ir.launch import HostTensor
from tilecheck.ir.overlap import Overlap, overlap

_LEADING_ON = re.compile(r"[.\[(]|$")  # after the name of an object, to what lies in it


class Answers(Enum):
    """Who answers for what two tensors share."""

    HOST = "host"
    RELATED = "related"
    CALLER = "caller"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class Sharing:
    """How two tensors may share memory, and who answers for it."""

    overlap: Overlap
    answers: Answers


def sharing(a: HostTensor, b: HostTensor, facts: Sequence[Expr]) -> Sharing | None:
    """How two tensors may share memory; None if they do not, or if they are two inputs of the host function,
    of which the standing obligation S1 speaks by itself."""
    found = overlap(a, b, facts)
    if found not in (Overlap.SAME, Overlap.PARTLY) and not _own(a) & _own(b) and _is_given_back(a, b):
        return Sharing(found, Answers.RELATED)
    if found is Overlap.APART:
        return Sharing(found, Answers.UNREAD) if _is_related(a, b) else None
    if found in (Overlap.SAME, Overlap.PARTLY):
        return Sharing(found, Answers.HOST)
    if _own(a) & _own(b):
        return Sharing(found, _of_one_storage(a, b))
    if _is_related(a, b):
        return Sharing(found, Answers.UNREAD)
    if a.allocated and b.allocated:
        return None
    if a.opaque and b.opaque:
        return Sharing(found, Answers.UNREAD)
    if a.opaque or b.opaque:
        other = b if a.opaque else a
        return None if other.allocated else Sharing(found, Answers.CALLER)
    made = a if a.allocated else b
    return Sharing(found, Answers.UNREAD) if made.allocated and made.fresh else None


def _own(t: HostTensor) -> frozenset[str]:
    return frozenset(t.among or (t.storage,))


def _of_one_storage(a: HostTensor, b: HostTensor) -> Answers:
    if a.opaque or b.opaque:
        return Answers.RELATED
    return Answers.CALLER if a.given and b.given and _are_items(a, b) else Answers.HOST


def _are_items(a: HostTensor, b: HostTensor) -> bool:
    """Whether they are different items, `xs[0]` and `xs[1]`, of something that is handed in: counted from one
    end, since from both ends they may be one."""
    if a.name == b.name or a.part != (a.name,) or b.part != (b.name,):
        return False
    return ("[-" in a.name) == ("[-" in b.name)


def _is_given_back(a: HostTensor, b: HostTensor) -> bool:
    """Whether code that is not read was given one and gave back the other, or gave back both."""
    one, two = (_own(t) | set(t.may_be) for t in (a, b))
    return bool(one & two or _own(a) & set(b.given_back) or _own(b) & set(a.given_back))


def _is_related(a: HostTensor, b: HostTensor) -> bool:
    """Whether the code that computed one could reach the other, or an object that it lies in."""
    if a.allocated and b.allocated and not a.perhaps and not b.perhaps:
        return False
    # A storage that is allocated here lies in no object, though `x.clone()` is named after one.
    made = {s for t in (a, b) if t.allocated for s in _own(t)}
    one, two = (_own(t) | set(t.perhaps) for t in (a, b))
    return any(_leads_on(s, t, made) or _leads_on(t, s, made) for s in one for t in two)


def _leads_on(path: str, name: str, made: Collection[str]) -> bool:
    return path == name if path in made else is_under(path, name)


def is_under(path: str, name: str) -> bool:
    """Whether a path is a name, or leads on from it."""
    return path.startswith(name) and path[len(name) : len(name) + 1] in ("", ".", "[", "(")


def wholes(path: str) -> Iterator[str]:
    """The names that a path leads on from: see `is_under`."""
    return (path[: at.start()] for at in _LEADING_ON.finditer(path))
