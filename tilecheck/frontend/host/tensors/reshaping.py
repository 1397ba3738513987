"""Methods that give a tensor itself another shape or other memory: `t.t_()`, `t.resize_(n)`, `t.data = other`.

A value of this reader does not change, so every value that may be the tensor is replaced: by one of unknown
shape in the same storage. That is right only where no older value is at hand: the operation is the first thing
that its statement does, outside loops and functions that are called.

Where `t.resize_(sizes)` says the new shape, `t` has it. Another input keeps its sizes, as if it were another
tensor: a launch that speaks of them must be given both, so that S1 says so.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host.memory import sharing
from tilecheck.frontend.host.memory.mutations import anything_changed, live_frames
from tilecheck.frontend.host.memory.sharing import storages_in
from tilecheck.frontend.host.sizes.unknown_ranks import Parts
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.values import Axes, Tensor, Unknown
from tilecheck.frontend.text.syntax import walk, walk_kind
from tilecheck.frontend.values.values import Choice, Frame, Seq
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr
from tilecheck.ir.host import owners

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor


def can_follow(x: HostExecutor, node: cst.BaseExpression, target: cst.BaseExpression, frame: Frame) -> bool:
    """Whether the change that `node` makes to the tensor `target` is followed: nothing else is at hand."""
    kept = (x.cached, x.defaults, x.stored)
    if x.line is None or x.events.callers or any(kept):
        return False
    statement = x.line[0]
    first = next(walk_kind(_value(statement), cst.Name), None)
    if first is None or not any(n is first for n in walk(target)) or not isinstance(target, cst.Name):
        return False
    loops = frame.table.nodes(cst.For, cst.While, cst.Try)
    return not any(n is node for loop in loops for n in walk(loop))


def _value(statement: cst.CSTNode) -> cst.CSTNode:
    """What a statement computes before it assigns anything."""
    return statement.value if isinstance(statement, cst.Assign) and not _is_place(statement) else statement


def _is_place(statement: cst.Assign) -> bool:
    return any(isinstance(t.target, cst.Attribute) for t in statement.targets)


@dataclass(frozen=True, slots=True)
class Supposed:
    """Two inputs that a path took to be two tensors: storages of one, storages and sizes of the other."""

    path: tuple[Expr, ...]
    resized: frozenset[str]
    storages: frozenset[str]
    names: frozenset[str]

    def is_said_by(
        self, x: HostExecutor, facts: Collection[Expr], passed: Collection[str], asked: Collection[str]
    ) -> bool:
        """Whether S1 of a launch says so, to which tensors with these storages are passed; or nothing hangs on
        it, since it asks for sizes of others or lies on another path."""
        if self.storages.isdisjoint(passed) and _made_of(x, self.names).isdisjoint(asked):
            return True
        if any(E.negate(fact) in facts for fact in self.path):
            return True
        return not self.resized.isdisjoint(passed) and not self.storages.isdisjoint(passed)


def _has_own_sizes(x: HostExecutor, t: Tensor) -> bool:
    """Whether a launch that rests on the sizes of a tensor speaks of it."""
    if t.shape is None:
        return t.shape_of not in ("", *x.shapes, *x.counts)
    return all(owners(size) for size in t.shape) and owners(*t.shape) == (t.name,)


def _made_of(x: HostExecutor, names: Collection[str]) -> set[str]:
    """Names of tensors and shapes, and of all that is made of their sizes."""
    found, before = set(names), -1
    while len(found) != before:
        before = len(found)
        for (of, _), parts in x.cuts.items():
            found.update(parts if of in found else ())
        for name, shape in x.shapes.items():
            axes = {part.of for part in shape if isinstance(part, Axes)}
            sizes = owners(*(part for part in shape if isinstance(part, Expr)))
            found.update(() if found.isdisjoint((*axes, *sizes)) else {name})
        for name, count in x.counts.items():
            found.update(() if found.isdisjoint(owners(count)) else {name})
    return found


def changed(
    x: HostExecutor, value: Any, others: tuple[Any, ...], frame: Frame, sizes: Parts | None = None
) -> Any:
    """The tensor after the change, of these `sizes` where they are known; `others` are those whose memory it
    may have got."""
    own = frozenset(sharing.storages_in((value,)))
    frames = list(live_frames(x, frame))
    # Under another name, or in a tuple, it may be a view, `z = y[:]`, which keeps its sizes.
    held = [other for at in frames for other in at.names.values() if not own.isdisjoint(storages_in((other,)))]
    sizes = sizes if len(held) == 1 and held[0] is value else None
    change = _Change(x, own, tuple(sharing.storages_in(others)), value, sizes)
    found = change.of(value)
    for at in frames:
        for name, held in at.names.items():
            at.names[name] = change.of(held)
    for key, held in x.module_values.items():
        x.module_values[key] = change.of(held)
    anything_changed(x, frame)
    return found


@dataclass(eq=False)
class _Change:
    """The values of one change. Mutable: what was one value before is one after it."""

    x: HostExecutor
    own: frozenset[str]
    others: tuple[str, ...]
    itself: Any
    sizes: Parts | None
    made: list[tuple[Any, Any]] = field(default_factory=list)

    def of(self, value: Any) -> Any:
        match value:
            case Tensor() | Unknown() if self._is_reached(value):
                t = self.x.tensor(value)
                if self.sizes is None or self._holds(value) or not _has_own_sizes(self.x, t):
                    return self._replaced(value)
                storages = frozenset(t.among or (t.storage,))
                names = frozenset({t.name, t.storage, t.shape_of, t.strides_of, t.span_of} - {""})
                self.x.supposed.append(Supposed(E.conjuncts(self.x.guard), self.own, storages, names))
                return value
            case Choice():
                return Choice(value.cond, self.of(value.first), self.of(value.second))
            case Seq() if not value.is_list:
                return Seq(tuple(map(self.of, value.items)))
            case _:
                if self._holds(value):
                    self.x.stop("a tensor in a container is changed")
                return value

    def _holds(self, value: Any) -> bool:
        held = frozenset(sharing.storages_in((value,)))
        return not held.isdisjoint(self.own)

    def _is_reached(self, value: Tensor | Unknown) -> bool:
        """Whether a value may be the tensor, or what other code or the caller holds."""
        if self._holds(value):
            return True
        if isinstance(value, Unknown):
            return value.name not in (self.x.integer_names | self.x.of_numbers)
        storages = value.among or (value.storage,)
        is_alone = value.fresh and self.x.handed_on.isdisjoint(storages)
        return not is_alone and not all(s in self.x.allocated - self.x.handed_on for s in self.own)

    def _replaced(self, value: Tensor | Unknown) -> Any:
        for before, after in self.made:
            if before is value or (self.sizes is None and before == value):
                return after
        after = self._new(value)
        self.made.append((value, after))
        return after

    def _new(self, value: Tensor | Unknown) -> Any:
        x = self.x
        if self.sizes is not None and value is self.itself:
            return self._resized(x.tensor(value), self.sizes)
        if isinstance(value, Unknown) and not self._holds(value):
            return sharing.unread_of(x, value.name, value)
        t = x.tensor(value)
        name = x.unread(t.name).name
        x.doubted.add(name)  # the caller answers for no shape that this code makes
        found = replace(T.piece(t, name), shape_of=name, strides_of=name, span_of=name, room=None, copied="")
        if not self.others and not t.copied:
            return found
        among = dict.fromkeys((*(t.among or (t.storage,)), *self.others))
        return replace(found, among=tuple(among), fresh=False)

    def _resized(self, t: Tensor, sizes: Parts) -> Tensor:
        """`t.resize_(sizes)`: row-major, unless it has these sizes already; then nothing changes. A buffer that
        is larger stays as it is, of which a caller may know."""
        x = self.x
        plain = T.piece(t, x.unread(t.name).name)
        laid = replace(plain, contiguous=x.laid_out(t).contiguous, strides_of=plain.name, copied="")
        if all(isinstance(part, Expr) for part in sizes):
            found = x.shaped(laid, sizes)
        else:
            x.shapes[plain.name] = sizes
            found = replace(laid, shape_of=plain.name, span_of=plain.name)
        x.doubted |= set() if t.fresh else {plain.name, t.name}
        count = x.count_of(found)
        if t.room is None or count is None or t.offset is None or not laid.contiguous:
            return replace(found, room=None)
        end = E.add(t.offset, count)
        return replace(found, offset=t.offset, room=E.ite(E.le(t.room, end), end, t.room))
