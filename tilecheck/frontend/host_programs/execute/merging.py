"""Both ways of a branch in one path, where each in its own would be too many.

A branch that uses no streams is run both ways, one after the other, from the same values. What either way
enqueues may not happen, so none of it is exact; what a variable holds behind the branch may be from either.
A way that orders anything (a wait of the host, say) is not run like that: then each way is a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace
from typing import Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_programs.knowledge import PathEnds
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.kinds import as_tensor
from tilecheck.frontend.host_programs.values.lifetimes import sweep
from tilecheck.ir import host_program as H

_MAY_BE_LEFT_OUT = (H.Work, H.Touch, H.Allocate)
_NOWHERE = object()


class NeedsChoice(Exception):
    """The two ways cannot be one path."""


def is_open(m: Machine, value: V.Value) -> bool:
    """Whether the truth of a value is not decided on this path."""
    if not isinstance(value, V.Unknown) or value.name in m.given or ("truth", value.name) in m.decided:
        return False
    return value.name not in m.tests or m.answer(m.tests[value.name]) is None


def joins(m: Machine, node: cst.CSTNode) -> bool:
    """Whether both ways of a branch are run in one path."""
    return m.knowledge.joins and not m.captures and not m.orders(node)


def raises(body: cst.BaseSuite | None) -> bool:
    """Whether a block ends in `raise`."""
    last = body.body[-1] if body is not None and body.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, cst.Raise)


def either(
    m: Machine, node: cst.CSTNode, first: Callable[[], V.Value], second: Callable[[], V.Value]
) -> V.Value:
    """What one of two ways gives, after both.

    Raises:
        NeedsChoice: they must be paths of their own. Nothing has been done then.
    """
    before = _Saved(m)
    mark, owned = len(m.actions), dict(m.owned)
    facts, stored, ranges = dict(m.facts), dict(m.stored), dict(m.ranges.known)
    recorded, m.recorded = m.recorded, _copied(m.recorded)
    m.holds_frees += 1
    try:
        one = first()
        after = _Saved(m, before.parts)
        stored_one, m.stored = m.stored, dict(stored)
        recorded_one, m.recorded = m.recorded, _copied(recorded)
        before.restore()
        m.facts, m.ranges.known = dict(facts), dict(ranges)
        m.pending.append(one)
        other = second()
        m.pending.pop()
        _check_may_be_left_out(m.actions[mark:])
        m.recorded = _in_both(recorded_one, m.recorded)
        value = joined(m, node, one, other)
        after.join(m, node)
        m.stored = _joined_table(m, node, stored_one, m.stored)
    except (NeedsChoice, PathEnds):  # a way that ends in an exception leaves the other one alone
        before.restore()
        del m.actions[mark:]
        m.owned, m.stored, m.recorded = owned, stored, recorded
        raise NeedsChoice from None
    finally:
        m.holds_frees -= 1
        m.facts, m.ranges.known = facts, ranges
    m.actions[mark:] = [_perhaps(action) for action in m.actions[mark:]]
    m.rebound = True
    m.pending.append(value)
    sweep(m, node)
    m.pending.pop()
    return value


def _check_may_be_left_out(actions: Iterable[H.Action]) -> None:
    """Raises: NeedsChoice, if one of them orders or captures anything, or gives memory back."""
    if any(not isinstance(action, _MAY_BE_LEFT_OUT) for action in actions):
        raise NeedsChoice


def _copied(recorded: dict[str, list[str]]) -> dict[str, list[str]]:
    return {memory: list(streams) for memory, streams in recorded.items()}


def _in_both(one: dict[str, list[str]], other: dict[str, list[str]]) -> dict[str, list[str]]:
    """The streams that keep memory on either way."""
    return {memory: [s for s in streams if s in other.get(memory, ())] for memory, streams in one.items()}


def _perhaps(action: H.Action) -> H.Action:
    def footprint(of: H.Footprint) -> H.Footprint:
        return H.Footprint(_inexact(of.reads), _inexact(of.writes))

    if isinstance(action, H.Work):
        return replace(action, before=footprint(action.before), after=footprint(action.after))
    return replace(action, footprint=footprint(action.footprint)) if isinstance(action, H.Touch) else action


def _inexact(regions: Iterable[H.Region]) -> tuple[H.Region, ...]:
    return tuple(dict.fromkeys(replace(region, exact=False) for region in regions))


# ---- values ------------------------------------------------------------------------------------------------


def joined(m: Machine, node: cst.CSTNode, one: V.Value, other: V.Value) -> V.Value:
    """A value that is one of two.

    Raises:
        NeedsChoice: nothing stands for both.
    """
    if one is other or (type(one) is type(other) and one == other):
        return one
    match one, other:
        case V.Tensor(), V.Tensor():
            return _tensors(m, one, other)
        case (V.Tensor() as tensor, rest) | (rest, V.Tensor() as tensor):
            found = as_tensor(m, rest, node) if isinstance(rest, V.Unknown) else None
            if found is not None:
                return _tensors(m, tensor, found)
            if _holds_nothing(rest):
                return replace(tensor, holes=True)
        case V.Sequence(), V.Sequence() if len(one.items) == len(other.items):
            pairs = zip(one.items, other.items, strict=True)
            return V.Sequence([joined(m, node, a, b) for a, b in pairs], one.is_tuple)
    if _holds_nothing(one) and _holds_nothing(other):
        return V.Unknown(m.unique("either"), given=False, plain=True)
    raise NeedsChoice


def _tensors(m: Machine, one: V.Tensor, other: V.Tensor) -> V.Tensor:
    regions = (*one.aliases, *m.regions(other, exact=False))
    aliases = tuple(dict.fromkeys(region for region in regions if region.memory != one.memory))
    same = one.box == other.box
    base = one if one.memory != other.memory or same else V.Tensor(one.memory)
    return replace(base, axes=(), rest=None, holes=True, aliases=aliases, kept="")


def _holds_nothing(value: V.Value) -> bool:
    """Whether a value holds no memory, stream, event, graph or code."""
    match value:
        case V.Unknown(plain=plain):
            return plain
        case V.Number() | V.Const() | V.Range():
            return True
        case V.Method():
            return V.is_description(value)
        case V.Library(name=name):
            return name.startswith("torch.") and name.rpartition(".")[2].islower()
        case V.Imported():
            return False
        case V.Sequence(items=items):
            return all(map(_holds_nothing, items))
        case _:
            return False


# ---- all that a way may have changed -----------------------------------------------------------------------


@dataclass(slots=True)
class _Saved:
    """What scopes, objects, lists and dictionaries held at one moment."""

    m: Machine
    parts: list[V.Value] = field(default_factory=list)
    held: list[dict[Any, V.Value]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.parts:
            seen: set[int] = set()
            roots = [*self.m.scopes, *self.m.globals.values(), *self.m.stored.values(), *self.m.pending]
            found = (part for root in roots for part in V.contents(root, seen))
            mutable = (V.Scope, V.Object, V.Sequence, V.Mapping)
            self.parts = list({id(p): p for p in found if isinstance(p, mutable)}.values())
        self.held = [_table(part) for part in self.parts]

    def restore(self) -> None:
        for part, table in zip(self.parts, self.held, strict=True):
            _set_table(part, table)

    def join(self, m: Machine, node: cst.CSTNode) -> None:
        """Let each part hold what it held then, or what it holds now."""
        for part, table in zip(self.parts, self.held, strict=True):
            now = _table(part)
            if isinstance(part, V.Sequence) and len(now) != len(table):
                raise NeedsChoice
            _set_table(part, _joined_table(m, node, table, now))


def _table(part: V.Value) -> dict[Any, V.Value]:
    match part:
        case V.Scope(names=table) | V.Object(fields=table) | V.Mapping(items=table):
            return dict(table)
        case V.Sequence(items=items):
            return dict(enumerate(items))
        case _:
            raise AssertionError(type(part).__name__)


def _set_table(part: V.Value, table: dict[Any, V.Value]) -> None:
    match part:
        case V.Scope(names=held) | V.Object(fields=held) | V.Mapping(items=held):
            held.clear()
            held.update(table)
        case V.Sequence(items=items):
            items[:] = table.values()


def _joined_table(
    m: Machine, node: cst.CSTNode, one: dict[Any, V.Value], other: dict[Any, V.Value]
) -> dict[Any, V.Value]:
    found = {}
    for key in dict.fromkeys((*one, *other)):
        a, b = one.get(key, _NOWHERE), other.get(key, _NOWHERE)
        if a is _NOWHERE or b is _NOWHERE:  # it is bound on one way: on the other nobody may read it
            found[key] = b if a is _NOWHERE else a
        else:
            found[key] = joined(m, node, a, b)
    return found
