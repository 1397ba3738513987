"""Accesses and what a load gives, in every language: each call becomes one `Access`, each load a value.

What a load gives. An array that the launch writes nowhere holds the same values for every block, so an
element that was certainly read is the function `read(array, coordinates)`. Everything else (arrays that are
written, lanes that are masked off or outside) is a fresh unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.values.values import NOTHING, Array, Made, Num, Rests, Way, lane
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.kernel import Access, Axis, Effect, Space


@dataclass(frozen=True, slots=True)
class Order:
    """The memory order and scope of an access as cuTile names them, which atomic operation it is, whether a
    copy engine makes it, what a stored value is made of, how the address is computed, and whether a load says
    what the lanes that take no part hold."""

    order: str = "WEAK"
    scope: str = "NONE"
    atomic: str | None = None
    copied: bool = False
    made: Made = NOTHING
    way: Way | None = None
    padded: bool = False


PLAIN = Order()


@dataclass(frozen=True, slots=True)
class Grounds:
    """The overflow checks that an access rests on: those of its index along each axis, over placeholders for
    which `lanes` has the lanes of the access, and those of its mask."""

    axes: Sequence[Rests]
    mask: Rests
    lanes: Mapping[Expr, Expr] = field(default_factory=dict)

    def sink(self, x: Executor, position: int) -> None:
        """Record them for the access at `position`."""
        if x.carries_no_rests:
            return
        x.overflow.test(self.mask)
        for axis, rests in enumerate(self.axes):
            x.overflow.index(rests, position, axis, self.lanes)


def fresh_lanes(x: Executor, shape: Sequence[Expr]) -> tuple[dict[Expr, Expr], list[Symbol | None]]:
    """Fresh lane symbols for the axes of a tile, and the placeholders that they replace."""
    mapping: dict[Expr, Expr] = {}
    lanes: list[Symbol | None] = []
    for k, size in enumerate(shape):
        place = lane(len(shape) - 1 - k)
        if size is E.ONE:
            mapping[place] = E.ZERO
            lanes.append(None)
            continue
        if size.value is None and any(s.varies for s in E.symbols(size)):
            raise UnsupportedConstruct("tile size that is not a compile-time constant")
        symbol = Symbol(f"lane {k}", Kind.LANE, x.number(), bound=size)
        mapping[place] = E.sym(symbol)
        lanes.append(symbol)
    return mapping, lanes


def record(
    x: Executor,
    array: Array,
    effect: Effect,
    space: Space,
    axes: tuple[Axis, ...],
    lanes: Sequence[Symbol | None],
    mask: Expr,
    order: Order,
    grounds: Grounds,
    *,
    unchecked: Expr,
) -> None:
    is_split = effect is Effect.WRITE and unchecked is E.FALSE
    ways = list(redirected(axes, mask)) if is_split else [(axes, mask, False)]
    if len(ways) > 1:  # what chooses is a mask now
        grounds = Grounds((), grounds.mask.union(*grounds.axes))
    for own, kept, spare in ways:
        _record(x, array, effect, space, own, lanes, kept, order, grounds, unchecked=unchecked, spare=spare)


def redirected(axes: tuple[Axis, ...], mask: Expr) -> Iterator[tuple[tuple[Axis, ...], Expr, bool]]:
    """`scatter(x, where(keep, i, n), v)` as a store to x[i] where `keep` holds and one to x[n] elsewhere, which
    the check leaves out where the array has no more than n elements. A minimum of `i` and `n` is such a choice.

    The axes and the mask of each, and whether it is the second.
    """
    for k, axis in enumerate(axes):
        if axis.index.op == "ite":
            keep, index, spare = axis.index.args
        elif axis.index.op == "min":
            index, spare = axis.index.args
            keep = E.lt(index, spare)
        else:
            continue
        if spare.op != "sym" or spare.args[0].kind not in (Kind.SCALAR, Kind.CONSTANT, Kind.EXTENT):
            continue
        both = [(*axes[:k], replace(axis, index=i), *axes[k + 1 :]) for i in (index, spare)]
        yield both[0], E.all_of(mask, keep), False
        if E.all_of(*(other.inside for other in both[1])) is not E.FALSE:
            yield both[1], E.all_of(mask, E.negate(keep)), True
        return
    yield axes, mask, False


def updated(
    x: Executor,
    array: Array,
    space: Space,
    axes: tuple[Axis, ...],
    lanes: Sequence[Symbol | None],
    shape: tuple[Expr, ...],
    mask: Expr,
    order: Order,
    operands: Sequence[Num],
    grounds: Grounds,
    *,
    unchecked: Expr,
) -> Num:
    """Record an atomic, and give the old elements: unknown values."""
    old = x.fresh(f"atomic:{array.name}", per_lane=bool(shape))
    single = not any(s is not None for s in lanes)
    found = tuple(o.elem if o.kind in ("int", "any") else None for o in operands) if single else ()
    if single:  # protocols of atomics count what they add
        grounds = replace(grounds, mask=grounds.mask.union(*(o.rests for o in operands)))
    _record(
        x,
        array,
        Effect.ATOMIC,
        space,
        axes,
        lanes,
        mask,
        order,
        grounds,
        unchecked=unchecked,
        operands=found,
        result=old if single else None,
    )
    return Num(shape, old, "any")


def _record(
    x: Executor,
    array: Array,
    effect: Effect,
    space: Space,
    axes: tuple[Axis, ...],
    lanes: Sequence[Symbol | None],
    mask: Expr,
    order: Order,
    grounds: Grounds,
    *,
    unchecked: Expr,
    operands: tuple[Expr | None, ...] = (),
    result: Expr | None = None,
    spare: bool = False,
) -> None:
    position = x.number()
    grounds.sink(x, position)
    x.record(
        Access(
            array=array.name,
            effect=effect,
            space=space,
            axes=axes,
            guard=x.guard,
            mask=mask,
            lanes=tuple(s for s in lanes if s is not None),
            site=x.site,
            position=position,
            unchecked=unchecked,
            member=array.member,
            order=order.order,
            scope=order.scope,
            synchronised=x.synchronised,
            unsafe=x.unsafe,
            atomic_kind=order.atomic,
            operands=operands,
            copied=order.copied,
            takes=order.made.loads,
            needs=order.made.exchanges,
            way=order.way,
            result=result,
            loops=tuple(k for k, _ in x.nest),
            stepped_by=_stepped_by(x, axes),
            spare=spare,
            padded=order.padded,
        )
    )


def _stepped_by(x: Executor, axes: tuple[Axis, ...]) -> Symbol | None:
    if not x.nest or x.nest[-1][1] is None:
        return None
    symbol, variable = x.nest[-1]
    return symbol if any(axis.index is variable for axis in axes) else None


def loaded(
    x: Executor,
    array: Array,
    coordinates: list[Expr],
    valid: Expr,
    shape: tuple[Expr, ...],
    order: Order = PLAIN,
) -> Num:
    """What a load gives: `coordinates` over placeholders, certainly read where `valid` holds.

    A strong load may observe what another block released, as an atomic's result does.
    """
    source = "memory" if order.order == "WEAK" else "atomic"
    unknown = x.fresh(f"{source}:{array.name}", per_lane=any(s is not E.ONE for s in shape))
    if x.knows("written", array.name):
        return Num(shape, unknown, "any")
    where = [array.member, *coordinates] if array.member is not None else coordinates
    known = E.read(array.name, *where)
    return Num(shape, E.ite(valid, known, unknown), "any")
