"""Methods of tensors that give another view of the same elements, or a copy where no view exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilecheck.frontend.host.arguments import (
    constant_axis,
    constants,
    number,
    one_axis,
    sizes,
    unsupported,
)
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.tensors.dtypes import full_type, width
from tilecheck.frontend.host.values import Axes, HostShape, Order, Pieces, Split, Tensor, Unknown
from tilecheck.frontend.values.values import Named, Seq, Token, integer
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr
from tilecheck.ir.host import exact_quotient, host_extent, host_rank, host_stride

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor

_MOST_CHUNKS = 16
_MOST_AXES = 5  # of which is said how they follow from others


def known(found: Tensor | None) -> Tensor:
    if found is None:
        raise unsupported("view of a tensor of unknown shape")
    return found


def transposed(x: HostExecutor, t: Tensor, *, whole: bool) -> Tensor | None:
    """`t.T` where it reverses all axes (`whole`), else `t.mT`."""
    t = x.known_rank(t)
    if t.shape is None:
        return None
    axes = list(range(len(t.shape)))
    if len(axes) < 2:
        return t
    return T.permuted(t, axes[::-1] if whole else [*axes[:-2], axes[-1], axes[-2]])


def reordered(x: HostExecutor, t: Tensor, text: str) -> Tensor:
    """A view of all elements of a tensor in another order, of unknown shape."""
    return replace(of_all(x, t, text), dense=T.is_dense(t), expanded=t.expanded)


def of_all(x: HostExecutor, t: Tensor, text: str) -> Tensor:
    """A view of all elements of a tensor, of unknown shape: what it is follows from the tensor's."""
    found = x.of_count(replace(T.piece(t, t.name), offset=t.offset), text, x.count_of(t))
    x.computed.add(found.shape_of)
    return found


def reversed_axes(x: HostExecutor, t: Tensor, text: str) -> Tensor:
    """`t.T` of a tensor of unknown rank: a matrix has its two axes exchanged, a vector is itself."""
    found = reordered(x, t, text)
    if not t.shape_of or t.shape_of in x.shapes or t.shape_of in x.counts or not t.strides_of:
        return found
    rank = E.sym(host_rank(t.shape_of))
    x.computed.discard(found.shape_of)  # how its sizes follow is said
    found = replace(found, strides_of=found.shape_of)
    x.define(E.sym(host_rank(found.shape_of)), E.eq(E.sym(host_rank(found.shape_of)), rank))
    for k in range(2):
        for make, of in ((host_extent, t.shape_of), (host_stride, t.strides_of)):
            own = E.sym(make(found.shape_of, k))
            x.define(own, E.any_of(E.ne(rank, 2), E.eq(own, E.sym(make(of, 1 - k)))))
    return found


# ---- other shapes ------------------------------------------------------------------------------------------


def _view(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    first = args.at(0) if args.positional else None
    if len(args.positional) == 1 and isinstance(first, Unknown) and first.name not in x.integer_names:
        raise unsupported("view as a size, or as another type")
    if isinstance(first, Named):
        return _of_type(x, t, full_type(first.name))
    if isinstance(first, Token):
        raise unsupported("view as another type")
    return shaped(x, t, sizes(x, args))


def _of_type(x: HostExecutor, t: Tensor, dtype: str) -> Tensor:
    """`t.view(torch.uint8)`: each element becomes several smaller ones along the last axis."""
    before, after = width(t.dtype), width(dtype)
    if after is None or (before is None and after > 1) or (before is not None and before % after):
        raise unsupported("view as another type")
    if t.expanded or (t.fresh and not T.is_dense(x.laid_out(x.known_rank(t)))):
        raise unsupported("view as another type")
    several = x.natural("element_size()").elem if before is None else E.const(before // after)
    count = x.count_of(t)
    if several is None or count is None:
        raise unsupported("view as another type")
    x.assume(E.le(1, several))
    t = x.laid_out(x.known_rank(t))
    own = replace(T.piece(t, t.name), recast=True, dtype=dtype, dense=T.is_dense(t), room=None)
    own = replace(own, contiguous=t.contiguous, expanded=t.expanded)
    if not t.shape:
        return x.of_count(own, f"{t.name}.view()", E.mul(count, several))
    return replace(own, shape=(*t.shape[:-1], E.mul(t.shape[-1], several)))


def _view_as_real(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    """The real and the imaginary parts of complex elements, side by side along an axis of their own."""
    t = x.laid_out(x.known_rank(t))
    parts = t.shape if t.shape is not None else unknown_ranks.parts_of(x, HostShape(t.shape_of))
    own = replace(T.piece(t, x.unread(f"{t.name}.view_as_real()").name), recast=True, room=None)
    if parts is None or not T.is_dense(t):
        return own
    return x.shaped(replace(own, contiguous=t.contiguous, dense=True), (*parts, E.const(2)))


def shaped(x: HostExecutor, t: Tensor, parts: unknown_ranks.Parts) -> Tensor:
    """`t.view(parts)`: torch raises unless there are as many elements."""
    t = x.laid_out(t)
    count = x.count_of(t)
    plain = tuple(part for part in parts if isinstance(part, Expr))
    if len(plain) == len(parts):
        found = T.reshaped(t, plain, count)
        if found is None:
            raise unsupported("reshape of an unknown number of elements")
        x.assume(found[1])
        return found[0]
    if unknown_ranks.parts_of(x, HostShape(t.shape_of)) == parts and t.shape is None:
        return t
    if any(part.value == -1 for part in plain):
        parts = _filled_in(parts, count)
    elif count is not None:
        x.assume(E.eq(unknown_ranks.product(parts), count))
    return x.shaped(replace(t, strides=None, strides_of=""), parts)


def _filled_in(parts: unknown_ranks.Parts, count: Expr | None) -> unknown_ranks.Parts:
    """A shape with -1 replaced by the quotient that it stands for, where that is exact."""
    rest = unknown_ranks.product(tuple(p for p in parts if not isinstance(p, Expr) or p.value != -1))
    size = None if count is None else exact_quotient(count, rest)
    holes = [k for k, part in enumerate(parts) if isinstance(part, Expr) and part.value == -1]
    if size is None or len(holes) > 1:
        raise unsupported("reshape of an unknown number of elements")
    return (*parts[: holes[0]], size, *parts[holes[0] + 1 :])


def _reshape(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    # Where no view exists, the result is a copy: it repeats nothing, and has a span of its own.
    return T.copied_unless_contiguous(shaped(x, t, sizes(x, args)), t)


def _parts_of_other(x: HostExecutor, args: Arguments) -> unknown_ranks.Parts:
    other = x.known_rank(x.tensor(args.at(0)))
    parts = other.shape if other.shape is not None else unknown_ranks.parts_of(x, HostShape(other.shape_of))
    if parts is None or not (other.shape is not None or other.shape_of):
        raise unsupported("shape of this tensor")
    return parts


def _view_as(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return shaped(x, t, _parts_of_other(x, args))


def _reshape_as(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return T.copied_unless_contiguous(shaped(x, t, _parts_of_other(x, args)), t)


def _contiguous(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    if args.positional:
        raise unsupported("memory format without its name")
    return T.dense(x.laid_out(t))


def _flatten(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    given = args.bind(("start_dim?", "end_dim?"), "flatten")
    start = x.scalar(given.get("start_dim", integer(0)), "start_dim").value
    end = x.scalar(given.get("end_dim", integer(-1)), "end_dim").value
    if start is None or end is None:
        raise unsupported("symbolic axis")
    return known(T.flattened(x.laid_out(t), start, end, x.count_of(t)))


def _ravel(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    """`t.contiguous().view(-1)`, where `flatten` keeps the stride of the only axis."""
    return known(T.flattened(T.dense(x.laid_out(t)), 0, -1, x.count_of(t)))


def _unflatten(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    given = args.bind(("dim", "sizes"), "unflatten")
    axis, inner = x.scalar(given["dim"], "dim").value, unknown_ranks.parts_of(x, given["sizes"])
    plain = tuple(part for part in inner or () if isinstance(part, Expr))
    if t.shape is None or axis is None or not plain or len(plain) != len(inner or ()):
        raise unsupported("unflatten")
    found = T.unflattened(t, axis, plain)
    if found is None:
        raise unsupported("unflatten")
    x.assume(found[1])
    return found[0]


# ---- other orders ------------------------------------------------------------------------------------------


def _t(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return transposed(x, t, whole=True) or reversed_axes(x, t, f"{t.name}.t()")


def _transpose(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    given = args.bind(("dim0", "dim1"), "transpose")
    asked = tuple(x.scalar(given[name], name) for name in ("dim0", "dim1"))
    axes = [axis.value for axis in asked]
    if axes[0] is None or axes[1] is None:
        return _swapped_somewhere(x, t, asked)
    if t.shape is None:
        return t if axes[0] == axes[1] else _swapped(x, t, axes[0], axes[1])
    return known(T.swapped(t, axes[0], axes[1]))


def _swapped_somewhere(x: HostExecutor, t: Tensor, axes: tuple[Expr, ...]) -> Tensor:
    """`t.transpose(dim, -1)`: of one shape it makes one other, of which it makes that shape again."""
    if t.shape is not None or not all(map(unknown_ranks.is_read, axes)):
        raise unsupported("symbolic axis")
    found = reordered(x, t, f"{t.name}.transpose()")
    source, swapped = x.transposes.get(t.shape_of, (t.shape_of, frozenset()))
    ranks = frozenset(E.sym(host_rank(name)) for name in (source, t.shape_of))
    places = frozenset(unknown_ranks.modulo_rank(axis, ranks) for axis in axes)
    if places == swapped:
        return replace(found, shape_of=source)
    made = next((name for name, of in x.transposes.items() if of == (t.shape_of, places)), "")
    if made or not t.shape_of:
        return replace(found, shape_of=made or found.shape_of)
    rank = E.sym(host_rank(found.shape_of))
    x.define(rank, E.eq(rank, E.sym(host_rank(t.shape_of))))
    x.transposes[found.shape_of] = t.shape_of, places
    return found


def _swapped(x: HostExecutor, t: Tensor, a: int, b: int) -> Tensor:
    """`t.transpose(a, b)` of a tensor of unknown rank, axes counted from one end."""
    found = reordered(x, t, f"{t.name}.transpose()")
    if not t.shape_of or t.shape_of in x.shapes or (a < 0) != (b < 0):
        return found
    rank = E.sym(host_rank(found.shape_of))
    x.define(rank, E.eq(rank, E.sym(host_rank(t.shape_of))))
    made = [(host_extent, t.shape_of), *([(host_stride, t.strides_of)] if t.strides_of else [])]
    axes = range(-_MOST_AXES, 0) if a < 0 else range(_MOST_AXES)
    if t.shape_of not in x.computed:
        x.said_of[found.shape_of] = frozenset(axes)
    for k in axes:
        for make, of in made:
            own = E.sym(make(found.shape_of, k))
            x.define(own, E.eq(own, E.sym(make(of, {a: b, b: a}.get(k, k)))))
    return replace(found, strides_of=found.shape_of if t.strides_of else "")


def _permute(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    if len(args.positional) == 1 and isinstance(args.positional[0], Order):
        return _put_last(x, t, args.positional[0])
    axes = constants(x, args)
    return known(T.permuted(x.has_rank(t, len(axes)), axes))


def _put_last(x: HostExecutor, t: Tensor, order: Order) -> Tensor:
    """`t.permute(order)` where one axis comes last: torch raises unless `order` has each axis once."""
    parts = unknown_ranks.parts_of(x, HostShape(t.shape_of)) if t.shape is None and t.shape_of else t.shape
    whole = parts is not None and E.sub(unknown_ranks.rank(parts), order.count) is E.ZERO
    if parts is None or not whole or not order.last or not unknown_ranks.is_read(order.axis):
        raise unsupported("order of axes")
    x.assume(E.all_of(E.le(0, order.axis), E.lt(order.axis, order.count)))
    ways = unknown_ranks.divided(x, parts, order.axis)
    axis = None if ways is None else unknown_ranks.item(ways[1], 0)
    after = None if ways is None else unknown_ranks.sliced(ways[1], 1, None)
    if ways is None or axis is None or after is None:
        raise unsupported("order of axes")
    return x.shaped(reordered(x, t, f"{t.name}.permute()"), (*ways[0], *after, axis))


def _movedim(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    given = args.bind(("source", "destination"), "movedim")
    ends = [_axes(x, given[name]) for name in ("source", "destination")]
    if t.shape is None or len(ends[0]) != len(ends[1]):
        raise unsupported("movedim")
    rank = len(t.shape)
    if not all(-rank <= axis < rank for axis in (*ends[0], *ends[1])):
        raise unsupported("movedim")
    moved = dict(zip((axis % rank for axis in ends[1]), (axis % rank for axis in ends[0]), strict=True))
    left = iter(axis for axis in range(rank) if axis not in moved.values())
    return known(T.permuted(t, [moved[k] if k in moved else next(left) for k in range(rank)]))


def _axes(x: HostExecutor, value: Any) -> list[int]:
    items = value.items if isinstance(value, Seq) else (value,)
    found = [x.scalar(item, "axis").value for item in items]
    if any(axis is None for axis in found):
        raise unsupported("symbolic axis")
    return [axis for axis in found if axis is not None]


# ---- other axes --------------------------------------------------------------------------------------------


def _expand(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return _expanded(x, t, sizes(x, args))


def _expand_as(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return _expanded(x, t, _parts_of_other(x, args))


def _expanded(x: HostExecutor, t: Tensor, parts: unknown_ranks.Parts) -> Tensor:
    plain = tuple(part for part in parts if isinstance(part, Expr))
    if len(plain) == len(parts):
        found = T.expanded(t, plain)
        return found or replace(x.unread_view(t, f"{t.name}.expand()"), expanded=True)
    if any(part.value == -1 for part in plain):
        raise unsupported("expand of some axes of unknown rank")
    other = replace(t, strides=None, strides_of="", expanded=True, contiguous=False, dense=False, span_of="")
    return x.shaped(other, parts)


def _unsqueeze(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return known(T.unsqueezed(t, constant_axis(x, args, 0)))


def _squeeze(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    if args.positional or args.keywords:
        return known(T.squeezed(t, constant_axis(x, args, 0)))
    if t.shape is None or any(size.value is None for size in t.shape):
        raise unsupported("squeeze of every axis")
    for axis in reversed([k for k, size in enumerate(t.shape) if size is E.ONE]):
        t = known(T.squeezed(t, axis))
    return t


def _select(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    given = args.bind(("dim", "index"), "select")
    axis, index = (x.scalar(given[k], k) for k in ("dim", "index"))
    if axis.value is None or t.shape is None or not -len(t.shape) <= axis.value < len(t.shape):
        raise unsupported("select")
    size = t.shape[axis.value]
    x.assume(E.all_of(E.le(E.neg(size), index), E.lt(index, size)))  # else it raises
    return known(T.selected(t, axis.value % len(t.shape), index))


def _unfold(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    given = args.bind(("dimension", "size", "step"), "unfold")
    axis, size, step = (x.scalar(given[k], k) for k in ("dimension", "size", "step"))
    found = None if axis.value is None else T.unfolded(t, axis.value, size, step)
    if found is None:
        raise unsupported("unfold")
    x.assume(found[1])
    return found[0]


def _as_strided(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    given = args.bind(("size", "stride", "storage_offset?"), "as_strided")
    shape, strides = (unknown_ranks.parts_of(x, given[name]) for name in ("size", "stride"))
    plain = tuple(part for part in shape or () if isinstance(part, Expr))
    steps = tuple(part for part in strides or () if isinstance(part, Expr))
    if not plain or len(plain) != len(shape or ()) or len(steps) != len(plain) != len(strides or ()):
        raise unsupported("as_strided")
    for value in (*plain, *steps):
        x.assume(E.le(0, value))  # else it raises
    start = x.scalar(given["storage_offset"], "offset") if "storage_offset" in given else t.offset
    if t.room is not None and start is not None and not t.copied:
        last = E.add(start, *(E.mul(E.sub(size, 1), step) for size, step in zip(plain, steps, strict=True)))
        x.assume(E.any_of(*(E.eq(size, 0) for size in plain), E.lt(last, t.room)))
    return T.windowed(t, plain, steps, start)


# ---- parts -------------------------------------------------------------------------------------------------


def narrowed(x: HostExecutor, t: Tensor, axis: int, start: Expr, length: Expr) -> Tensor:
    """`t.narrow(axis, start, length)`."""
    part = T.sliced(t, axis, (start, E.add(start, length), None))
    if part is None or t.shape is None:
        raise unsupported("narrow")
    # What does not lie inside is an error, so it is exactly as long as asked for; a start below 0 counts from
    # the end.
    at = axis % len(t.shape)
    size = t.shape[at]
    first = E.ite(E.lt(start, 0), E.add(start, size), start)
    x.assume(E.all_of(E.le(0, first), E.le(0, length), E.le(E.add(first, length), size)))
    low = start if T.nonnegative(start) else first
    whole = low is E.ZERO and length is size
    own = t.part if whole else T.part_of(t, at, low, E.add(low, length), 1)
    offset = T.moved(t, low, T.stride(t, at))
    return replace(part, shape=(*t.shape[:at], length, *t.shape[at + 1 :]), part=own, offset=offset)


def _narrow(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    given = args.bind(("dim", "start", "length"), "narrow")
    axis, start, length = (x.scalar(given[k], k) for k in ("dim", "start", "length"))
    if axis.value is None:
        raise unsupported("symbolic axis")
    return narrowed(x, t, axis.value, start, length)


def _chunk(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    given = args.bind(("chunks", "dim?"), "chunk")
    pieces = x.scalar(given["chunks"], "chunks").value
    axis = x.scalar(given.get("dim", integer(0)), "dim").value
    if pieces is None or not 0 < pieces <= _MOST_CHUNKS:
        raise unsupported("chunk")
    items = tuple(_one_chunk(x, t, axis, k, pieces) for k in range(pieces))
    size = None if axis is None else T.extent(t, axis)
    exact = size is not None and E.mod(size, pieces).value == 0 and E.floordiv(size, pieces).value != 0
    return Seq(items) if exact else Pieces(items)


def _one_chunk(x: HostExecutor, t: Tensor, axis: int | None, k: int, pieces: int) -> Tensor:
    size = None if axis is None else T.extent(t, axis)
    found = None
    if axis is not None and size is not None:
        step = E.cdiv(size, pieces)
        found = T.sliced(t, axis, (E.mul(k, step), E.mul(k + 1, step), None))
    return found or x.unread_view(t, f"{t.name}.chunk()[{k}]")


def _split(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    """`t.split(n)`, and `t.split([a, b, c])`, whose lengths are those of the axis together."""
    name = "split_sizes" if "split_sizes" in dict(args.keywords) else "split_size"
    given = args.bind((name, "dim?"), "split")
    axis = x.scalar(given.get("dim", integer(0)), "dim").value
    asked = given[name]
    if axis is None or t.shape is None or not -len(t.shape) <= axis < len(t.shape):
        raise unsupported("split")
    if not isinstance(asked, Seq):
        step = x.scalar(asked, "split_size")
        x.assume(E.le(0, step))
        return Split(t, axis % len(t.shape), step)
    lengths = [x.scalar(item, "length") for item in asked.items]
    x.assume(E.eq(E.add(E.ZERO, *lengths), t.shape[axis]))
    starts = [E.add(E.ZERO, *lengths[:k]) for k in range(len(lengths))]
    pieces = zip(starts, lengths, strict=True)
    return Seq(tuple(narrowed(x, t, axis, start, length) for start, length in pieces))


def _unbind(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    axis = constant_axis(x, args, 0)
    if t.shape is None or not -len(t.shape) <= axis < len(t.shape):
        raise unsupported("unbind")
    return Split(t, axis % len(t.shape), None)


def split_piece(x: HostExecutor, split: Split, k: int) -> Tensor:
    """A piece of a split tensor; Python raises where there are not so many."""
    t, size = split.tensor, (split.tensor.shape or ())[split.axis]
    if split.step is None:
        x.assume(E.lt(k, size))
        return known(T.selected(t, split.axis, E.const(k)))
    start = E.mul(k, split.step)
    if k:
        x.assume(E.lt(start, size))
    return known(T.sliced(t, split.axis, (start, E.add(start, split.step), None)))


def split_pieces(x: HostExecutor, split: Split, count: int) -> Seq:
    """All pieces of a split tensor that is assigned to so many targets."""
    size = (split.tensor.shape or ())[split.axis]
    if split.step is None:
        x.assume(E.eq(size, count))
    else:  # of an empty axis there is one piece
        x.assume(E.any_of(E.eq(size, 0), E.eq(E.cdiv(size, split.step), count)))
    return Seq(tuple(split_piece(x, split, k) for k in range(count)))


# ---- sizes along an axis -----------------------------------------------------------------------------------


SIZE, STRIDE = "size(...)", "stride(...)"


def along(x: HostExecutor, t: Tensor, args: Arguments, text: str, values: tuple[Expr, ...] | None) -> Any:
    """`t.size(axis)` or `t.stride(axis)` where the axis is not a literal: one of these `values`."""
    axis = one_axis(x, args, 0)
    if not isinstance(axis, int) and values:
        x.assume(E.all_of(E.le(-len(values), axis), E.lt(axis, len(values))))
        found = values[-1]
        for k in reversed(range(len(values) - 1)):
            found = E.ite(E.any_of(E.eq(axis, k), E.eq(axis, k - len(values))), values[k], found)
        return number(found)
    if not isinstance(axis, int) and text == SIZE and t.shape is None and t.shape_of:
        own = unknown_ranks.item_somewhere(x, x.shapes.get(t.shape_of, (Axes(t.shape_of),)), axis)
        return x.natural(f"{t.name}.{text}") if own is None else number(own)
    return x.natural(f"{t.name}.{text}")


VIEWS: Mapping[str, Callable[[HostExecutor, Tensor, Arguments], Any]] = {
    "contiguous": _contiguous,
    "view": _view,
    "view_as_real": _view_as_real,
    "reshape": _reshape,
    "view_as": _view_as,
    "reshape_as": _reshape_as,
    "flatten": _flatten,
    "ravel": _ravel,
    "unflatten": _unflatten,
    "t": _t,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _transpose),
    "permute": _permute,
    **dict.fromkeys(("movedim", "moveaxis"), _movedim),
    **dict.fromkeys(("expand", "broadcast_to"), _expand),
    "expand_as": _expand_as,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "select": _select,
    "unfold": _unfold,
    "as_strided": _as_strided,
    "narrow": _narrow,
    "chunk": _chunk,
    **dict.fromkeys(("split", "split_with_sizes"), _split),
    "unbind": _unbind,
}
