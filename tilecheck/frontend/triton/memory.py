"""Loads, stores and atomics of Triton: each call becomes one `Access`, and each load a value.

A pointer parameter is taken for a flat array: its elements from the first that its tensor reaches to the last,
gaps between rows included. An offset is an index into it, and nothing checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.accesses import PLAIN, Grounds, Order, fresh_lanes, loaded, record, updated
from tilecheck.frontend.execute.expressions import static_items
from tilecheck.frontend.execute.overflow import spread
from tilecheck.frontend.execute.state import Arguments, Executor
from tilecheck.frontend.execute.tiles import as_tuple, mask_of, tile_size
from tilecheck.frontend.triton.masked_loads import masked_off
from tilecheck.frontend.triton.pointers import pointer_of
from tilecheck.frontend.values import arithmetic
from tilecheck.frontend.values.values import (
    NO_RESTS,
    NOTHING,
    Array,
    BlockPointer,
    Const,
    Made,
    Num,
    Param,
    Place,
    Pointer,
    Rests,
    Seq,
    Token,
    lane,
)
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.kernel import ANY_ORDER, Axis, Effect, Space, extent_symbol

_HINTS = ("cache_modifier?", "eviction_policy?")
_LOAD = ("pointer", "mask?", "other?", "boundary_check?", "padding_option?", *_HINTS, "volatile?")
_STORE = ("pointer", "value", "mask?", "boundary_check?", *_HINTS)
_ORDERS = {"relaxed": "RELAXED", "acquire": "ACQUIRE", "release": "RELEASE", "acq_rel": "ACQ_REL"}
_SCOPES = {"cta": "BLOCK", "gpu": "DEVICE", "sys": "SYS"}


def load(x: Executor, args: Arguments) -> Any:
    """`tl.load(pointer, mask, other, ...)`."""
    given = args.bind(_LOAD, "load")
    if isinstance(given["pointer"], BlockPointer):
        return _block(x, given["pointer"], Effect.READ, _checked_axes(x, given), _order_of_load(x, given))
    other = given.get("other")
    padded = isinstance(other, Num) or (isinstance(other, Const) and other.value is not None)  # no parameter
    order = replace(_order_of_load(x, given), padded=padded)
    read = _access(x, given["pointer"], given.get("mask"), (), Effect.READ, order)
    return masked_off(x, read, other)


def store(x: Executor, args: Arguments) -> Const:
    """`tl.store(pointer, value, mask, ...)`."""
    given = args.bind(_STORE, "store")
    if isinstance(given["pointer"], BlockPointer):
        value = x.number_of(given["value"], "stored value")
        order = Order(made=value.made if value.shape == given["pointer"].block else NOTHING)
        _block(x, given["pointer"], Effect.WRITE, _checked_axes(x, given), order)
    else:
        _access(x, given["pointer"], given.get("mask"), (given["value"],), Effect.WRITE, PLAIN)
    return Const(None)


def _order_of_load(x: Executor, given: dict[str, Any]) -> Order:
    """A volatile load may see what another block wrote: it says nothing of order."""
    volatile = given.get("volatile")
    return PLAIN if volatile is None or x.truth(volatile) is E.FALSE else Order("RELAXED", "DEVICE")


ATOMICS = ("add", "max", "min", "and", "or", "xor", "xchg", "cas")


def atomic(x: Executor, kind: str, args: Arguments) -> Num:
    """`tl.atomic_add(pointer, val, mask, sem, scope)` and its siblings; gives the old elements."""
    names = ("pointer", "cmp", "val", "sem?", "scope?") if kind == "cas" else (
        "pointer", "val", "mask?", "sem?", "scope?"
    )  # fmt: skip
    given = args.bind(names, f"atomic_{kind}")
    sem, scope = given.get("sem"), _word(given.get("scope"), _SCOPES, "DEVICE")
    # An atomic whatever the word is; what else it orders, the launch says.
    of_launch = isinstance(sem, Param | Token)
    order = Order(ANY_ORDER if of_launch else _word(sem, _ORDERS, "ACQ_REL"), scope, kind)
    values = tuple(given[n] for n in ("cmp", "val") if n in given)
    return _access(x, given["pointer"], given.get("mask"), values, Effect.ATOMIC, order)


def _word(value: Any, words: dict[str, str], default: str) -> str:
    if value is None or (isinstance(value, Const) and value.value is None):
        return default
    if not isinstance(value, Const) or value.value not in words:
        raise UnsupportedConstruct("memory order or scope that is not one word")
    return words[value.value]


# ---- pointers ---------------------------------------------------------------------------------------------


def _access(x: Executor, pointer: Any, mask: Any, values: Sequence[Any], effect: Effect, order: Order) -> Num:
    """One operation through a tile of pointers."""
    target = pointer_of(x, pointer, "pointer")
    mask_num = mask_of(x, mask)
    shape = arithmetic.broadcast_shapes(target.offset.shape, mask_num.shape)
    for value in values:
        if not isinstance(value, Pointer):
            shape = arithmetic.broadcast_shapes(shape, x.number_of(value, "stored value").shape)
    if effect is not Effect.READ:
        shape = _of_pointers(shape, target.offset.shape)
    given = [x.number_of(v, "stored value") for v in values if not isinstance(v, Pointer)]
    made = Made(exchanges=x.widened(shape, mask_num, *given))
    if effect is Effect.WRITE and len(given) == 1:
        made |= given[0].made
    test, tested = arithmetic.mask_of(mask_num, shape, x)
    way = target.offset.way if target.offset.shape == shape else None
    return _elements(x, target, shape, test, effect, replace(order, made=made, way=way), tested, values)


def _of_pointers(shape: tuple[Expr, ...], own: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The shape of a store or an atomic whose operands have together `shape`: that of its pointers.

    The value and the mask are broadcast to the pointers and never the other way round: nothing compiles where
    they are larger. So of two sizes that are not known to be equal, which are one larger than the other at
    most where one is 1, the size of the pointers is the larger.
    """
    if len(own) != len(shape):
        return shape
    return tuple(mine if size.op == "max" else size for size, mine in zip(shape, own, strict=True))


def _elements(
    x: Executor,
    target: Pointer,
    shape: tuple[Expr, ...],
    test: Expr,
    effect: Effect,
    order: Order,
    tested: Rests,
    values: Sequence[Any] = (),
) -> Num:
    index = arithmetic.stretch(target.offset, shape)
    if index is None:  # the pointers are not known yet
        return Num(shape, x.fresh(f"memory:{target.array}", per_lane=bool(shape)), "any")
    array, length = flat(x, target.array)
    mapping, lanes = fresh_lanes(x, shape)
    axis = Axis(E.substitute(index, mapping), E.ONE, E.ONE, length, E.ZERO)
    mask = E.substitute(test, mapping)
    grounds = Grounds((frozenset(spread(target.offset.rests, target.offset.shape, shape)),), tested, mapping)
    if effect is Effect.ATOMIC:
        operands = [x.number_of(v, "operand of an atomic") for v in values if not isinstance(v, Pointer)]
        return updated(
            x, array, Space.ELEMENT, (axis,), lanes, shape, mask, order, operands, grounds, unchecked=E.TRUE
        )
    record(x, array, effect, Space.ELEMENT, (axis,), lanes, mask, order, grounds, unchecked=E.TRUE)
    x.guards[x.serial] = x.guard
    if effect is Effect.WRITE:
        return Num(shape, None, "data")
    lanes_of = frozenset({x.serial} if shape else ())
    itself = Made(lanes_of, places=frozenset({_place(target.array, index)}), atom=True, closed=True)
    # An element that is not inside is an error of its own (TC303): what is read was inside.
    return replace(loaded(x, array, [index], test, shape, order), made=itself)


def _place(array: str, index: Expr) -> Place:
    literal = sum(
        term.value for term in (index.args if index.op == "add" else (index,)) if term.value is not None
    )
    return array, E.sub(index, literal), literal


def flat(x: Executor, name: str) -> tuple[Array, Expr]:
    """The flat array behind a pointer parameter, and its length."""
    x.arrays.add(name)
    x.used.add(name)
    x.ranks[name] = 1
    length = E.sym(extent_symbol(name, 0))
    x.facts[E.le(0, length)] = None
    return Array(name), length


# ---- block pointers and descriptors -------------------------------------------------------------------------


def make_block_pointer(x: Executor, args: Arguments) -> BlockPointer:
    """`tl.make_block_ptr(base, shape, strides, offsets, block_shape, order)`."""
    given = args.bind(("base", "shape", "strides", "offsets", "block_shape", "order"), "make_block_ptr")
    lists = [_numbers(x, given[n], n) for n in ("shape", "strides", "offsets")]
    return _block_pointer(x, given["base"], lists, given["block_shape"], descriptor=False)


def make_descriptor(x: Executor, args: Arguments) -> BlockPointer:
    """`tl.make_tensor_descriptor(base, shape, strides, block_shape)`."""
    given = args.bind(("base", "shape", "strides", "block_shape", "padding_option?"), "make_tensor_descriptor")
    lists = [_numbers(x, given[n], n) for n in ("shape", "strides")]
    lists.append(tuple(Num((), E.ZERO, "int", 32) for _ in lists[0]))
    return _block_pointer(x, given["base"], lists, given["block_shape"], descriptor=True)


def _block_pointer(
    x: Executor, base: Any, lists: list[tuple[Num, ...]], block: Any, *, descriptor: bool
) -> BlockPointer:
    shape, strides, offsets = lists
    sizes = tuple(tile_size(x, x.scalar(s, "block shape")) for s in as_tuple(block))
    if not len(shape) == len(strides) == len(offsets) == len(sizes):
        raise UnsupportedConstruct("block pointer whose parts have different lengths")
    return BlockPointer(
        pointer_of(x, base, "base of a block pointer"), shape, strides, offsets, sizes, descriptor
    )


def _numbers(x: Executor, value: Any, what: str) -> tuple[Num, ...]:
    items = static_items(x, value, what) if isinstance(value, Seq) else (value,)
    return tuple(replace(x.index(item, what), kind="int", bits=64) for item in items)


def advance(x: Executor, block: BlockPointer, offsets: Any) -> BlockPointer:
    """`tl.advance(block_pointer, offsets)`."""
    steps = _numbers(x, offsets, "offsets")
    if len(steps) != len(block.offsets) or block.descriptor:
        raise UnsupportedConstruct("advance by offsets of another length")
    moved = tuple(arithmetic.binary("+", a, b, x) for a, b in zip(block.offsets, steps, strict=True))
    return BlockPointer(block.base, block.shape, block.strides, moved, block.block)


def _checked_axes(x: Executor, given: dict[str, Any]) -> frozenset[int]:
    """The axes along which a block pointer's access is checked; a mask is not allowed beside it."""
    if not _is_none(given.get("mask")):
        raise UnsupportedConstruct("mask of a block pointer's access")
    value = given.get("boundary_check")
    if _is_none(value):
        return frozenset()
    found = [x.scalar(item, "boundary_check").value for item in as_tuple(value)]
    if None in found:
        raise UnsupportedConstruct("symbolic boundary_check")
    return frozenset(axis for axis in found if axis is not None)


def _is_none(value: Any) -> bool:
    return value is None or (isinstance(value, Const) and value.value in (None, ""))


def host_descriptor_access(x: Executor, name: str, offsets: Any, value: Any) -> Num | Const:
    """`.load(offsets)` and `.store(offsets, value)` of a descriptor that the host made: an array of as
    many axes as there are offsets, checked along each. The size of its blocks is fixed at compile time."""
    starts = _numbers(x, offsets, "offsets")
    array = Array(name)
    x.arrays.add(name)
    x.used.add(name)
    if x.ranks.setdefault(name, len(starts)) != len(starts):
        raise UnsupportedConstruct("tensor descriptor used with different numbers of offsets")
    sizes = tuple(E.sym(Symbol(f"{name}.block_shape[{k}]", Kind.CONSTANT)) for k in range(len(starts)))
    if value is not None:
        shape = x.number_of(value, "stored value").shape
        sizes = shape if len(shape) == len(starts) else sizes
    mapping, lanes = fresh_lanes(x, tuple(tile_size(x, size) for size in sizes))
    axes, where, inside = [], [], E.TRUE
    grounds = Grounds([start.rests for start in starts], NO_RESTS, mapping)
    for k, start in enumerate(starts):
        place = lane(len(starts) - 1 - k)
        index, length = E.add(start.elem or E.ZERO, place), E.sym(extent_symbol(name, k))
        x.facts[E.le(0, length)] = None
        axes.append(Axis(E.substitute(index, mapping), E.ONE, E.ONE, length, E.ZERO))
        where.append(index)
        inside = E.all_of(inside, E.le(0, index), E.lt(index, length))
    effect = Effect.READ if value is None else Effect.WRITE
    order = Order(copied=True)
    record(x, array, effect, Space.ELEMENT, tuple(axes), lanes, E.TRUE, order, grounds, unchecked=E.FALSE)
    return loaded(x, array, where, inside, sizes) if value is None else Const(None)


def _block(x: Executor, block: BlockPointer, effect: Effect, checked: frozenset[int], order: Order) -> Num:
    """A block as a tile of pointers, masked by the shape along the axes that are checked."""
    rank = len(block.block)
    total, test = block.base.offset.elem, E.TRUE
    own, tested = block.base.offset.rests, NO_RESTS
    for k, (size, stride, start, extent) in enumerate(
        zip(block.block, block.strides, block.offsets, block.shape, strict=True)
    ):
        place = E.ZERO if size is E.ONE else lane(rank - 1 - k)
        index = E.add(start.elem or E.ZERO, place)
        if total is not None:
            total = E.add(total, E.mul(index, stride.elem or E.ZERO))
        if k in checked or k - rank in checked:
            test = E.all_of(test, E.le(0, index), E.lt(index, extent.elem or E.ZERO))
            tested |= start.rests | extent.rests
        own |= start.rests | stride.rests
    kind = "int" if total is not None else "data"
    target = Pointer(block.base.array, Num(block.block, total, kind, 64, rests=own))
    return _elements(x, target, block.block, test, effect, order, tested)


def descriptor_access(
    x: Executor, block: BlockPointer, offsets: Any, effect: Effect, order: Order = PLAIN
) -> Num:
    """`descriptor.load(offsets)` and its siblings: always checked against the descriptor's shape."""
    starts = _numbers(x, offsets, "offsets")
    if len(starts) != len(block.block):
        raise UnsupportedConstruct("descriptor access with offsets of another length")
    moved = BlockPointer(block.base, block.shape, block.strides, starts, block.block, descriptor=True)
    return _block(x, moved, effect, frozenset(range(len(starts))), replace(order, copied=True))
