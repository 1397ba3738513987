"""Loads, stores and atomics of cuTile: each call becomes one `Access`, and each load a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.accesses import PLAIN, Grounds, Order, fresh_lanes, loaded, record, updated
from tilecheck.frontend.execute.expressions import static_items
from tilecheck.frontend.execute.overflow import spread
from tilecheck.frontend.execute.state import Arguments, Executor
from tilecheck.frontend.execute.tiles import assume_where_compiled, mask_of, tile_size, tile_sizes
from tilecheck.frontend.values import arithmetic
from tilecheck.frontend.values.values import (
    NO_RESTS,
    Array,
    Const,
    DenseSlice,
    Named,
    Num,
    RawMemory,
    Seq,
    Shape,
    TiledView,
    View,
    lane,
)
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.kernel import Axis, CheckKind, Effect, Space, extent_symbol, stride_symbol

_HINTS = ("latency?", "allow_tma?")
_ORDERED = ("memory_order?", "memory_scope?")


# ---- shapes ------------------------------------------------------------------------------------------------


def axis_order(x: Executor, order: Any, rank: int) -> tuple[int, ...]:
    """`order[k]` is the array axis that tile axis k runs along."""
    if isinstance(order, Const) and order.value in ("C", "F"):
        axes = tuple(range(rank))
        return axes if order.value == "C" else tuple(reversed(axes))
    values = [x.scalar(item, "order").value for item in static_items(x, order, "order")]
    axes = tuple(v % rank for v in values if v is not None)
    if sorted(axes) != list(range(rank)):
        raise UnsupportedConstruct("order that is not a constant permutation")
    return axes


def set_rank(x: Executor, array: Array, rank: int) -> None:
    x.used.add(array.name)
    known = x.ranks.setdefault(array.name, rank)
    if known != rank:
        raise UnsupportedConstruct(f"array `{array.name}` used with {known} and with {rank} axes")


def root_extent(x: Executor, array: Array, axis: int) -> Expr:
    """The extent of the root array. Members of a list have their own: a function of the list index."""
    x.used.add(array.name)
    name = array.name
    if array.member is not None:
        if array.member.value is None:
            return E.maximum(E.read(f"{array.name}.shape[{axis}]", array.member), 0)
        name = f"{array.name}[{array.member.value}]"
    symbol = E.sym(extent_symbol(name, axis))
    x.facts[E.le(0, symbol)] = None
    return symbol


def extent(x: Executor, array: Array, axis: int) -> Expr:
    """The extent of a view along an axis of its array."""
    view = dict(array.views).get(axis)
    return root_extent(x, array, axis) if view is None else view.extent


def _base(array: Array, axis: int) -> Expr:
    view = dict(array.views).get(axis)
    return E.ZERO if view is None else view.base


def shape_items(x: Executor, shape: Shape, length: int) -> Seq:
    set_rank(x, shape.array, length)
    return Seq(tuple(_shape_entry(x, shape, k) for k in range(length)))


def shape_item(x: Executor, shape: Shape, index: Any) -> Any:
    if isinstance(index, Seq):  # x.shape[a:b]
        rank = x.knows("ranks", shape.array.name)
        if rank is None:
            raise UnsupportedConstruct("slice of a shape of unknown rank")
        ends = [None if isinstance(e, Const) else x.scalar(e, "slice").value for e in index.items[1:]]
        return Seq(tuple(_shape_entry(x, shape, k) for k in range(rank))[slice(*ends)])
    axis = x.scalar(index, "axis").value
    if axis is None:
        raise UnsupportedConstruct("shape indexed by a symbolic axis")
    if axis < 0:
        rank = x.knows("ranks", shape.array.name)
        if rank is None:
            # The rank becomes known from an access; this run is repeated then.
            x.used.add(shape.array.name)
            return Num((), E.sym(Symbol(f"{shape.array.name}.shape[{axis}]", Kind.EXTENT)), "int")
        axis += rank
    return _shape_entry(x, shape, axis)


def _shape_entry(x: Executor, shape: Shape, axis: int) -> Num:
    bits = 64 if shape.array.name in x.wide else 32
    if shape.strides:
        x.used.add(shape.array.name)
        if shape.array.member is not None:  # each member has its own
            return Num((), x.fresh("data", per_lane=False), "int", bits)
        return Num((), E.sym(stride_symbol(shape.array.name, axis)), "int", bits)
    return Num((), extent(x, shape.array, axis), "int", bits)


# ---- accesses ----------------------------------------------------------------------------------------------


def _order(given: dict[str, Any], order: str = "WEAK", scope: str = "NONE", atomic: str | None = None) -> Order:
    return Order(_member(given.get("memory_order"), order), _member(given.get("memory_scope"), scope), atomic)


def _member(value: Any, default: str) -> str:
    if value is None:
        return default
    if not isinstance(value, Named):
        raise UnsupportedConstruct("symbolic memory order or scope")
    return value.name.rsplit(".", 1)[-1]


def _unchecked(x: Executor, given: dict[str, Any]) -> Expr:
    return E.negate(x.truth(given.get("check_bounds", Const(True))))


def _indices(x: Executor, value: Any, what: str) -> list[Num]:
    items = static_items(x, value, what) if isinstance(value, Seq) else (value,)
    return [x.index(item, f"{what} index") for item in items]


# ---- tile space --------------------------------------------------------------------------------------------


def load(x: Executor, args: Arguments) -> Num:
    """`ct.load(array, index, shape, ...)`."""
    names = ("array", "index", "shape", "*", "order?", "padding_mode?", "check_bounds?", *_HINTS, *_ORDERED)
    given = args.bind(names, "load")
    array = x.array_of(given["array"], "array of load")
    index = _indices(x, given["index"], "load")
    shape = tile_sizes(x, given["shape"])
    sizes = shape or (E.ONE,) * len(index)
    axes, lanes, coordinates, inside, grounds = _tile_axes(
        x, array, index, sizes, sizes, given.get("order", Const("C"))
    )
    unchecked, order = _unchecked(x, given), replace(_order(given), padded=_is_padded(given))
    record(x, array, Effect.READ, Space.TILE, axes, lanes, E.TRUE, order, grounds, unchecked=unchecked)
    return loaded(x, array, coordinates, inside, shape, order)


def _is_padded(given: Mapping[str, Any]) -> bool:
    """Whether a load names what the part of its tile outside the array holds."""
    mode = given.get("padding_mode")
    return isinstance(mode, Named) and not mode.name.endswith(".UNDETERMINED")


def store(x: Executor, args: Arguments) -> Const:
    """`ct.store(array, index, tile, ...)`."""
    names = ("array", "index", "tile", "*", "order?", "check_bounds?", *_HINTS, *_ORDERED)
    given = args.bind(names, "store")
    array = x.array_of(given["array"], "array of store")
    index = _indices(x, given["index"], "store")
    shape = x.number_of(given["tile"], "stored tile").shape
    sizes = shape or (E.ONE,) * len(index)
    axes, lanes, _, _, grounds = _tile_axes(x, array, index, sizes, sizes, given.get("order", Const("C")))
    unchecked = _unchecked(x, given)
    record(x, array, Effect.WRITE, Space.TILE, axes, lanes, E.TRUE, _order(given), grounds, unchecked=unchecked)
    return Const(None)


def _tile_axes(
    x: Executor,
    array: Array,
    index: list[Num],
    sizes: Sequence[Expr],
    steps: Sequence[Expr],
    order: Any,
) -> tuple[tuple[Axis, ...], list[Symbol | None], list[Expr], Expr, Grounds]:
    """The axes of a tile access in array order, its lanes, each element's coordinates and what these rest on.

    Two are over placeholders: the coordinates in the root array, and whether they are inside.
    """
    if len(index) != len(sizes):
        raise UnsupportedConstruct("index and tile of different rank")
    set_rank(x, array, len(index))
    axes_of = axis_order(x, order, len(index))
    _, lanes = fresh_lanes(x, sizes)
    axes: list[Axis | None] = [None] * len(index)
    coordinates: list[Expr] = [E.ZERO] * len(index)
    rests = [NO_RESTS] * len(index)
    inside = E.TRUE
    for k, axis in enumerate(axes_of):
        length, base = extent(x, array, axis), _base(array, axis)
        start, rests[axis] = index[k].elem or E.ZERO, index[k].rests
        axes[axis] = Axis(start, steps[k], sizes[k], length, base, lanes[k])
        place = E.ZERO if lanes[k] is None else lane(len(index) - 1 - k)
        local = E.add(E.mul(start, steps[k]), place)
        coordinates[axis] = E.add(base, local)
        if lanes[k] is not None:
            # A tile of one element that is not wholly outside (TC302) is inside; others may hang over.
            inside = E.all_of(inside, E.le(0, local), E.lt(local, length))
    return tuple(a for a in axes if a is not None), lanes, coordinates, inside, Grounds(rests, NO_RESTS)


# ---- element space -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Elements:
    """The operands of a gather, scatter or atomic, broadcast to one shape."""

    array: Array
    shape: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    lanes: list[Symbol | None]
    mask: Expr
    coordinates: list[Expr]  # over placeholders
    valid: Expr  # over placeholders: inside the array and not masked off
    grounds: Grounds


def _elements(x: Executor, given: dict[str, Any], what: str, *others: Num) -> _Elements:
    array = x.array_of(given["array"], f"array of {what}")
    value = given["indices"]
    items = static_items(x, value, what) if isinstance(value, Seq) else (value,)
    tiles = [_index_tile(x, item, what) for item in items]
    mask_num = mask_of(x, given.get("mask"))
    shape: tuple[Expr, ...] = ()
    for tile in (*tiles, mask_num, *others):
        shape = arithmetic.broadcast_shapes(shape, tile.shape)
    set_rank(x, array, len(tiles))
    mapping, lanes = fresh_lanes(x, shape)
    test, tested = arithmetic.mask_of(mask_num, shape, x)
    rests = [frozenset(spread(tile.rests, tile.shape, shape)) for tile in tiles]
    axes, coordinates, valid = [], [], test
    for axis, tile in enumerate(tiles):
        index = arithmetic.stretch(tile, shape)
        if index is None:
            raise UnsupportedConstruct(f"{what} index that is not an integer")
        length, base = extent(x, array, axis), _base(array, axis)
        axes.append(Axis(E.substitute(index, mapping), E.ONE, E.ONE, length, base))
        coordinates.append(E.add(base, index))
        valid = E.all_of(valid, E.le(0, index), E.lt(index, length))
    mask, grounds = E.substitute(test, mapping), Grounds(rests, tested, mapping)
    return _Elements(array, shape, tuple(axes), lanes, mask, coordinates, valid, grounds)


def _index_tile(x: Executor, value: Any, what: str) -> Num:
    first = len(x.overflow.checks)
    num = x.number_of(value, f"{what} index")
    elem = arithmetic.as_int(num, x)
    x.use_as_integer(elem)
    if num.bits == 32 and arithmetic.may_have_wrapped(elem):
        elem = x.fits(elem, num.shape)
    return arithmetic.rested(Num(num.shape, elem, "int", num.bits), x, first, num)


def gather(x: Executor, args: Arguments) -> Num:
    """`ct.gather(array, indices, ...)`; lanes outside or masked off give the padding value."""
    names = ("array", "indices", "*", "mask?", "padding_value?", "check_bounds?", "latency?")
    given = args.bind(names, "gather")
    e = _elements(x, given, "gather")
    unchecked = _unchecked(x, given)
    record(
        x, e.array, Effect.READ, Space.ELEMENT, e.axes, e.lanes, e.mask, PLAIN, e.grounds, unchecked=unchecked
    )
    return loaded(x, e.array, e.coordinates, e.valid, e.shape)


def scatter(x: Executor, args: Arguments) -> Const:
    """`ct.scatter(array, indices, value, ...)`."""
    names = ("array", "indices", "value", "*", "mask?", "check_bounds?", "latency?")
    given = args.bind(names, "scatter")
    e = _elements(x, given, "scatter", x.number_of(given["value"], "scattered value"))
    unchecked = _unchecked(x, given)
    record(
        x, e.array, Effect.WRITE, Space.ELEMENT, e.axes, e.lanes, e.mask, PLAIN, e.grounds, unchecked=unchecked
    )
    return Const(None)


_ATOMICS = ("xchg", "add", "max", "min", "and", "or", "xor", "cas")


def atomic(x: Executor, kind: str, args: Arguments) -> Num:
    """`ct.atomic_add(array, indices, update, ...)` and its siblings; gives the old elements."""
    if kind not in _ATOMICS:
        raise UnsupportedConstruct(f"call of `ct.atomic_{kind}`")
    operands = ("expected", "desired") if kind == "cas" else ("update",)
    given = args.bind(("array", "indices", *operands, "*", "check_bounds?", *_ORDERED), f"atomic_{kind}")
    values = [x.number_of(given[n], n) for n in operands]
    e = _elements(x, given, f"atomic_{kind}", *values)
    order = _order(given, "ACQ_REL", "DEVICE", kind)
    u = _unchecked(x, given)
    return updated(
        x, e.array, Space.ELEMENT, e.axes, e.lanes, e.shape, e.mask, order, values, e.grounds, unchecked=u
    )


def load_advanced(x: Executor, args: Arguments) -> Num:
    """`ct.load_advanced_indexing(array, indices, ...)`."""
    given = args.bind(("array", "indices", "*", "padding_mode?", *_HINTS), "load_advanced_indexing")
    e = _advanced(x, given, "load_advanced_indexing")
    record(x, e.array, Effect.READ, Space.ELEMENT, e.axes, e.lanes, E.TRUE, PLAIN, e.grounds, unchecked=E.FALSE)
    return loaded(x, e.array, e.coordinates, e.valid, e.shape)


def store_advanced(x: Executor, args: Arguments) -> Const:
    """`ct.store_advanced_indexing(array, indices, tile, ...)`."""
    given = args.bind(("array", "indices", "tile", "*", *_HINTS), "store_advanced_indexing")
    e = _advanced(x, given, "store_advanced_indexing")
    record(
        x, e.array, Effect.WRITE, Space.ELEMENT, e.axes, e.lanes, E.TRUE, PLAIN, e.grounds, unchecked=E.FALSE
    )
    return Const(None)


def _advanced(x: Executor, given: dict[str, Any], what: str) -> _Elements:
    """One axis is indexed by a 1-D tile, the others by `ct.Slice(start, length)`.

    A tile that lies wholly outside is undefined: each slice must start inside the array, and the first
    index of the tile must be inside it. (More than needed: any lane inside would do.)
    """
    array = x.array_of(given["array"], f"array of {what}")
    items = static_items(x, given["indices"], what)
    rank = len(items)
    set_rank(x, array, rank)
    shape: list[Expr] = []
    indices: list[Expr] = []
    tested = NO_RESTS
    for axis, item in enumerate(items):
        place = lane(rank - 1 - axis)
        if isinstance(item, DenseSlice):
            start = x.scalar(item.start, "start of Slice")  # a test: it is checked to be inside
            shape.append(tile_size(x, item.length))
            indices.append(E.add(start, place))
            _starts_inside(x, array, axis, start)
            continue
        tile = _index_tile(x, item, what)
        if len(tile.shape) != 1 or tile.elem is None:
            raise UnsupportedConstruct(f"{what} with an index of this rank")
        shape.append(tile.shape[0])
        tested |= tile.rests  # its first lane is checked to be inside
        indices.append(arithmetic.rearrange(tile.elem, {lane(0): place}, x))
        _starts_inside(x, array, axis, E.substitute(tile.elem, {lane(0): E.ZERO}))
    mapping, lanes = fresh_lanes(x, shape)
    axes, coordinates, valid = [], [], E.TRUE
    for axis, index in enumerate(indices):
        length, base = extent(x, array, axis), _base(array, axis)
        axes.append(Axis(E.substitute(index, mapping), E.ONE, E.ONE, length, base))
        coordinates.append(E.add(base, index))
        valid = E.all_of(valid, E.le(0, index), E.lt(index, length))
    return _Elements(
        array, tuple(shape), tuple(axes), lanes, E.TRUE, coordinates, valid, Grounds((), tested, mapping)
    )


def _starts_inside(x: Executor, array: Array, axis: int, first: Expr) -> None:
    goal = E.all_of(E.le(0, first), E.lt(first, extent(x, array, axis)))
    x.check(CheckKind.TILE, goal, f"axis {axis} of `{array.name}`", array.name)


# ---- methods of arrays, views and raw memory ----------------------------------------------------------------


def array_method(x: Executor, array: Array, name: str, args: Arguments) -> Any:
    match name:
        case "slice":
            return _slice(x, array, args)
        case "tiled_view":
            given = args.bind(("tile_shape", "*", "padding_mode?", "traversal_steps?"), name)
            tile = tile_sizes(x, given["tile_shape"])
            steps = given.get("traversal_steps", Const(None))
            if isinstance(steps, Const) and steps.value is None:
                return TiledView(array, tile, tile)
            sizes = static_items(x, steps, name) if isinstance(steps, Seq) else (steps,)
            return TiledView(array, tile, tuple(_traversal_step(x, s) for s in sizes))
        case "stride":  # only in contracts: `x.stride(0)` as host code writes it
            axis = x.scalar(args.bind(("axis",), name)["axis"], "axis").value
            if axis is None or axis < 0:
                raise UnsupportedConstruct("stride of a symbolic axis")
            return _shape_entry(x, Shape(array, strides=True), axis)
        case "get_raw_memory":
            args.bind((), name)
            if array.views:  # its offsets count from the start of the slice
                raise UnsupportedConstruct("raw memory of a slice")
            return RawMemory(array)
        case _:
            raise UnsupportedConstruct(f"array method `.{name}`")


def _traversal_step(x: Executor, value: Any) -> Expr:
    step = x.scalar(value, "traversal step")
    if step.value is None:
        assume_where_compiled(x, E.le(1, step))
    return step


def _slice(x: Executor, array: Array, args: Arguments) -> Array:
    given = args.bind(("axis", "start", "stop"), "slice")
    axis = x.scalar(given["axis"], "axis").value
    if axis is None:
        raise UnsupportedConstruct("slice along a symbolic axis")
    if axis < 0:
        rank = x.knows("ranks", array.name)
        if rank is None:
            raise UnsupportedConstruct("slice along a negative axis of an array of unknown rank")
        axis += rank
    start, stop = x.scalar(given["start"], "slice start"), x.scalar(given["stop"], "slice stop")
    length = extent(x, array, axis)
    goal = E.all_of(E.le(0, start), E.lt(start, length), E.le(start, stop), E.le(stop, length))
    x.check(CheckKind.SLICE, goal, f"{array.name}.slice({axis}, {E.render(start)}, {E.render(stop)})")
    views = dict(array.views)
    views[axis] = View(E.add(_base(array, axis), start), E.sub(stop, start))
    return Array(array.name, array.member, tuple(sorted(views.items())))


def view_method(x: Executor, view: TiledView, name: str, args: Arguments) -> Any:
    """Methods of a tiled view."""
    if name == "num_tiles":
        axis = x.scalar(args.bind(("axis",), name)["axis"], "axis").value
        if axis is None:
            raise UnsupportedConstruct("num_tiles of a symbolic axis")
        axis %= len(view.tile)
        set_rank(x, view.array, len(view.tile))
        return Num((), E.cdiv(extent(x, view.array, axis), view.steps[axis]), "int")
    if name.startswith("atomic_store_"):
        return _view_atomic(x, view, name.removeprefix("atomic_store_"), args)
    names: tuple[str, ...] = ("index", "*", "check_bounds?", *_HINTS)
    if name == "store":
        names = ("index", "tile", "*", "check_bounds?", *_HINTS)
    elif name != "load":
        raise UnsupportedConstruct(f"tiled view method `.{name}`")
    given = args.bind(names, f"tiled view {name}")
    index = _indices(x, given["index"], f"tiled view {name}")
    axes, lanes, coordinates, inside, grounds = _tile_axes(
        x, view.array, index, view.tile, view.steps, Const("C")
    )
    effect = Effect.READ if name == "load" else Effect.WRITE
    unchecked = _unchecked(x, given)
    record(x, view.array, effect, Space.TILE, axes, lanes, E.TRUE, PLAIN, grounds, unchecked=unchecked)
    return loaded(x, view.array, coordinates, inside, view.tile) if name == "load" else Const(None)


def _view_atomic(x: Executor, view: TiledView, kind: str, args: Arguments) -> Const:
    if kind not in _ATOMICS:
        raise UnsupportedConstruct(f"tiled view method `.atomic_store_{kind}`")
    given = args.bind(("index", "update"), f"atomic_store_{kind}")
    index = _indices(x, given["index"], f"atomic_store_{kind}")
    axes, lanes, _, _, grounds = _tile_axes(x, view.array, index, view.tile, view.steps, Const("C"))
    order = Order("RELAXED", "DEVICE", kind)
    record(x, view.array, Effect.ATOMIC, Space.TILE, axes, lanes, E.TRUE, order, grounds, unchecked=E.FALSE)
    return Const(None)


def raw_method(x: Executor, raw: RawMemory, name: str, args: Arguments) -> Any:
    """`load_offset`, `store_offset` and the atomics on raw memory: never bounds-checked."""
    if name == "load_offset":
        names: tuple[str, ...] = ("offset", "*", "mask?", "padding_value?", "latency?")
        effect, order = Effect.READ, Order()
    elif name == "store_offset":
        names = ("offset", "value", "*", "mask?", "latency?")
        effect, order = Effect.WRITE, Order()
    elif name.startswith("atomic_") and name.endswith("_offset"):
        kind = name.removeprefix("atomic_").removesuffix("_offset")
        operands = ("expected", "desired") if kind == "cas" else ("update",)
        if kind not in _ATOMICS:
            raise UnsupportedConstruct(f"raw memory method `.{name}`")
        names = ("offset", *operands, "*", "mask?", *_ORDERED)
        given = args.bind(names, name)
        effect, order = Effect.ATOMIC, _order(given, "ACQ_REL", "DEVICE", kind)
    else:
        raise UnsupportedConstruct(f"raw memory method `.{name}`")
    given = args.bind(names, name)
    others = [x.number_of(given[n], n) for n in ("value", "update", "expected", "desired") if n in given]
    return _raw_access(x, raw, given, effect, order, others)


def storage(x: Executor, array: Array) -> Expr:
    """The number of elements that an offset from the first one can name."""
    x.used.add(array.name)
    length = E.sym(Symbol(f"numel({array.name})", Kind.EXTENT))
    x.facts[E.le(0, length)] = None
    return length


def _raw_access(
    x: Executor, raw: RawMemory, given: dict[str, Any], effect: Effect, order: Order, others: list[Num]
) -> Any:
    offset = _index_tile(x, given["offset"], "raw memory")
    mask_num = mask_of(x, given.get("mask"))
    shape = arithmetic.broadcast_shapes(offset.shape, mask_num.shape)
    for other in others:
        shape = arithmetic.broadcast_shapes(shape, other.shape)
    mapping, lanes = fresh_lanes(x, shape)
    where = arithmetic.stretch(offset, shape)
    test, tested = arithmetic.mask_of(mask_num, shape, x)
    if where is None:
        raise UnsupportedConstruct("raw memory offset that is not an integer")
    axis = Axis(E.substitute(where, mapping), E.ONE, E.ONE, storage(x, raw.array), E.ZERO)
    mask_expr = E.substitute(test, mapping)
    grounds = Grounds((frozenset(spread(offset.rests, offset.shape, shape)),), tested, mapping)
    record(x, raw.array, effect, Space.RAW, (axis,), lanes, mask_expr, order, grounds, unchecked=E.TRUE)
    if effect is Effect.WRITE:
        return Const(None)
    origin = f"{'atomic' if effect is Effect.ATOMIC else 'memory'}:{raw.array.name}"
    return Num(shape, x.fresh(origin, per_lane=bool(shape)), "any")
