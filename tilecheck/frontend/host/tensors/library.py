"""The shapes of what library functions compute: products, reductions, joins, sorts. All of it is new memory.

Only calls whose result is certainly another tensor than its operands stand here, each with the shape that torch
gives it. Where the order of the elements hangs on the operands' strides, it is left open.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilecheck.frontend.host.arguments import unsupported
from tilecheck.frontend.host.memory import rejections
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.tensors.elementwise import broadcast, computed, joined, parts_of, same, shape_of
from tilecheck.frontend.host.values import Axes, Dims, HostShape, Pair, Tensor, Unknown
from tilecheck.frontend.values.values import Choice, Const, Num, Seq, integer
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr
from tilecheck.ir.host import row_major

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor

Handler = Callable[["HostExecutor", Tensor, "Arguments"], Any]


# ---- products ----------------------------------------------------------------------------------------------


def _operand(x: HostExecutor, args: Arguments, position: int) -> Tensor:
    return x.known_rank(x.tensor(args.at(position)))


def _mm(x: HostExecutor, t: Tensor, args: Arguments) -> Tensor:
    a, b = x.has_rank(t, 2), x.has_rank(_operand(x, args, 0), 2)
    return _product(x, shape_of(x, a), shape_of(x, b), 2)


def _bmm(x: HostExecutor, t: Tensor, args: Arguments) -> Tensor:
    a, b = x.has_rank(t, 3), x.has_rank(_operand(x, args, 0), 3)
    first, second = shape_of(x, a), shape_of(x, b)
    if len(first) == len(second) == 3:
        x.assume(E.eq(first[0], second[0]))
    return _product(x, first, second, 3)


def _product(x: HostExecutor, a: Sequence[Expr], b: Sequence[Expr], rank: int) -> Tensor:
    if len(a) != rank or len(b) != rank:
        raise unsupported("product of tensors of these ranks")
    x.assume(E.eq(a[-1], b[-2]))
    return computed(x, (*a[:-1], b[-1]))


def _mv(x: HostExecutor, t: Tensor, args: Arguments) -> Tensor:
    a, b = shape_of(x, x.has_rank(t, 2)), shape_of(x, x.has_rank(_operand(x, args, 0), 1))
    if len(a) != 2 or len(b) != 1:
        raise unsupported("product of tensors of these ranks")
    x.assume(E.eq(a[1], b[0]))
    return computed(x, a[:1])


def matmul(x: HostExecutor, a: Tensor, b: Tensor) -> Tensor:
    """`a @ b`. Of tensors of unknown rank only products with a matrix on the right are followed."""
    b = x.known_rank(b)
    right = shape_of(x, b)
    left = parts_of(x, a)
    if all(isinstance(part, Expr) for part in left):
        return _matmul(x, shape_of(x, a), right)
    rows = unknown_ranks.sliced(left, None, -1)
    inner = unknown_ranks.item(left, -1)
    if len(right) != 2 or rows is None or inner is None:
        raise unsupported("product of tensors of unknown rank")
    x.assume(E.eq(inner, right[0]))
    return computed(x, (*rows, right[1]))


def _matmul(x: HostExecutor, a: tuple[Expr, ...], b: tuple[Expr, ...]) -> Tensor:
    if not a or not b:
        raise unsupported("product of a tensor without axes")
    x.assume(E.eq(a[-1], b[-2] if len(b) > 1 else b[0]))
    if len(b) == 1:
        return computed(x, a[:-1])
    if len(a) == 1:
        return computed(x, (*b[:-2], b[-1]), contiguous=len(b) == 2)
    batch = broadcast(x, a[:-2], b[:-2])
    # A matrix times a stack of matrices may be computed as the transposed product.
    return computed(x, (*batch, a[-2], b[-1]), contiguous=len(b) == 2 or len(a) > 2)


def _of_matmul(x: HostExecutor, t: Tensor, args: Arguments) -> Tensor:
    return matmul(x, t, _operand(x, args, 0))


def _linear(x: HostExecutor, t: Tensor, args: Arguments) -> Tensor:
    """`linear(x, weight, bias)`: `x @ weight.T`."""
    weight = dict(args.keywords).get("weight") if not args.positional else args.at(0)
    w, left = shape_of(x, x.tensor(weight)), parts_of(x, t)
    rows, inner = unknown_ranks.sliced(left, None, -1), unknown_ranks.item(left, -1)
    if len(w) != 2 or rows is None or inner is None:
        raise unsupported("linear map of tensors of unknown rank")
    x.assume(E.eq(inner, w[1]))
    return computed(x, (*rows, w[0]))


# ---- reductions --------------------------------------------------------------------------------------------


def _reduced(x: HostExecutor, t: Tensor, args: Arguments) -> Tensor:
    """`sum`, `mean` and their kin: along some axes, or along all."""
    given = {"dim" if k == "axis" else k: v for k, v in args.keywords if k != "dtype"}
    for name, value in zip(("dim", "keepdim"), args.positional, strict=False):
        if name in given:
            raise unsupported("reduction")
        given[name] = value
    if len(args.positional) > 2 or given.keys() - {"dim", "keepdim"}:
        raise unsupported("reduction")
    keeps = _flag(given.get("keepdim"))
    axes = _axes(x, given["dim"]) if "dim" in given else None
    laid = x.laid_out(x.known_rank(t))
    if axes is None:
        return computed(x, () if not keeps else tuple(E.ONE for _ in shape_of(x, t)))
    return computed(x, _left(parts_of(x, t), axes, keeps=keeps), contiguous=laid.contiguous)


def _flag(value: Any) -> bool:
    """A truth that the text says."""
    if value is None:
        return False
    if not isinstance(value, Num) or value.elem not in (E.TRUE, E.FALSE):
        raise unsupported("computed flag")
    return value.elem is E.TRUE


def _axes(x: HostExecutor, value: Any) -> tuple[int, ...] | None:
    """The axes that a reduction names; None for all."""
    if value == Const(None) or value == Seq(()):
        return None
    items = value.items if isinstance(value, Seq) else (value,)
    if any(isinstance(item, Num) and item.kind == "bool" for item in items):
        raise unsupported("reduction without an axis")
    found = [x.scalar(item, "axis").value for item in items]
    if any(axis is None for axis in found):
        raise unsupported("symbolic axis")
    return tuple(axis for axis in found if axis is not None)


def _left(parts: unknown_ranks.Parts, axes: tuple[int, ...], *, keeps: bool) -> unknown_ranks.Parts:
    """A shape after a reduction along some axes."""
    plain = tuple(part for part in parts if isinstance(part, Expr))
    if len(plain) == len(parts):
        if not all(-len(plain) <= axis < len(plain) for axis in axes):
            raise unsupported("reduction along an axis that is not there")
        gone = {axis % len(plain) for axis in axes}
        kept = (E.ONE if k in gone else size for k, size in enumerate(plain) if keeps or k not in gone)
        return tuple(kept)
    found = None
    if len(axes) == 1 and keeps:
        found = unknown_ranks.replaced(parts, axes[0], E.ONE)
    elif axes == (-1,):
        found = unknown_ranks.sliced(parts, None, -1)
    elif axes == (0,):
        found = unknown_ranks.sliced(parts, 1, None)
    if found is None:
        raise unsupported("reduction of a tensor of unknown rank")
    return found


def _extreme(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    """`max` and `min`: of all elements, or the largest along an axis and where they are."""
    if not args.positional and not args.keywords:
        return computed(x, ())
    first = args.positional[0] if args.positional else dict(args.keywords).get("dim")
    if not isinstance(first, Num) or first.kind != "int" or first.elem is None or first.elem.value is None:
        raise unsupported("extreme of two operands")
    return Pair(_reduced(x, t, args), _reduced(x, t, args))


# ---- joins, sorts, repetitions -----------------------------------------------------------------------------


def _tensors(x: HostExecutor, value: Any) -> list[Tensor]:
    if not isinstance(value, Seq) or not value.items:
        raise unsupported("list of tensors that is not known")
    return [x.laid_out(x.known_rank(x.tensor(item))) for item in value.items]


def _axis_of(x: HostExecutor, args: Arguments, position: int) -> int:
    given = [*args.positional[position:], *(v for k, v in args.keywords if k in ("dim", "axis"))]
    axis = x.scalar(given[0] if given else integer(0), "axis").value
    if axis is None or len(given) > 1:
        raise unsupported("symbolic axis")
    return axis


def cat(x: HostExecutor, args: Arguments) -> Tensor:
    """`torch.cat(tensors, dim)`. A tensor of shape (0,) may stand beside any others, so ranks must be known."""
    tensors, axis = _tensors(x, args.at(0)), _axis_of(x, args, 1)
    shapes = [shape_of(x, t) for t in tensors]
    rank = len(shapes[0])
    if any(len(s) != rank for s in shapes) or not -rank <= axis < rank:
        raise unsupported("cat of tensors of several ranks")
    at = axis % rank
    for other in shapes[1:]:
        for k in range(rank):
            if k != at:
                x.assume(E.eq(other[k], shapes[0][k]))
    whole = E.add(*(s[at] for s in shapes))
    joined = (*shapes[0][:at], whole, *shapes[0][at + 1 :])
    return computed(x, joined, contiguous=all(t.contiguous for t in tensors) or rank < _LEAST_CHANNELS)


_LEAST_CHANNELS = 4  # axes: with so many, joined tensors may have their channels last


def stack(x: HostExecutor, args: Arguments) -> Tensor:
    """`torch.stack(tensors, dim)`: all of one shape."""
    given = args.at(0)
    if isinstance(given, Unknown) and _axis_of(x, args, 1) == 0:  # a list of any length
        first = x.tensor(x.dialect.subscript(x, given, integer(0)))
        x.stacked.add(given.name)
        length = x.scalar(x.dialect.call(x, "len", replace(args, positional=(given,), keywords=())), "length")
        x.assume(E.le(1, length))
        return computed(x, (length, *parts_of(x, first)), contiguous=False)
    tensors, axis = _tensors(x, args.at(0)), _axis_of(x, args, 1)
    shapes = [parts_of(x, t) for t in tensors]
    for other in shapes[1:]:
        same = unknown_ranks.same_parts(shapes[0], other)
        if same is not None:
            x.assume(same)
        else:
            x.doubted |= rejections.parts(*tensors)
    plain = all(isinstance(part, Expr) for part in shapes[0])
    contiguous = all(t.contiguous for t in tensors)
    if axis == 0:
        return computed(x, (E.const(len(tensors)), *shapes[0]), contiguous=contiguous)
    if not plain or not -len(shapes[0]) - 1 <= axis <= len(shapes[0]):
        raise unsupported("stack of tensors of unknown rank")
    at = axis % (len(shapes[0]) + 1)
    joined = (*shapes[0][:at], E.const(len(tensors)), *shapes[0][at:])
    return computed(x, joined, contiguous=contiguous)


def _sorted(x: HostExecutor, t: Tensor, args: Arguments) -> Pair:
    return Pair(same(x, t, args), same(x, t, args))


def _topk(x: HostExecutor, t: Tensor, args: Arguments) -> Pair:
    given = args.bind(("k", "dim?", "largest?", "sorted?"), "topk")
    k, axis = x.scalar(given["k"], "k"), x.scalar(given.get("dim", integer(-1)), "dim").value
    parts = None if axis is None else unknown_ranks.replaced(parts_of(x, t), axis, k)
    if parts is None or axis is None:
        raise unsupported("topk along an axis that is not known")
    x.assume(E.le(0, k))
    size = unknown_ranks.item(parts_of(x, t), axis)
    if size is not None:
        x.assume(E.le(k, size))
    return Pair(computed(x, parts), computed(x, parts))


def _repeat(x: HostExecutor, t: Tensor, args: Arguments) -> Tensor:
    sizes = args.positional[0].items if isinstance(args.at(0), Seq) else args.positional
    times = [x.scalar(value, "times") for value in sizes]
    shape = shape_of(x, t)
    if len(times) < len(shape) or args.keywords:
        raise unsupported("repeat")
    for count in times:
        x.assume(E.le(0, count))
    whole = (*[E.ONE] * (len(times) - len(shape)), *shape)
    return computed(x, tuple(E.mul(n, count) for n, count in zip(whole, times, strict=True)))


def pad(x: HostExecutor, args: Arguments) -> Tensor:
    """`torch.nn.functional.pad(x, (left, right, top, bottom), value=0)`: the last axes come first."""
    t, widths = _operand(x, args, 0), args.at(1)
    modes = [*args.positional[2:3], *(v for k, v in args.keywords if k == "mode")]
    if not isinstance(widths, Seq) or len(widths.items) % 2 or any(m != Const("constant") for m in modes):
        raise unsupported("padding that is not known")
    amounts = [x.scalar(item, "padding") for item in widths.items]
    shape = list(shape_of(x, t))
    if len(amounts) > 2 * len(shape):
        raise unsupported("padding of more axes than there are")
    for k in range(len(amounts) // 2):
        at = len(shape) - 1 - k
        shape[at] = E.add(shape[at], amounts[2 * k], amounts[2 * k + 1])
        x.assume(E.le(0, shape[at]))  # else it raises
    found = computed(x, tuple(shape), contiguous=x.laid_out(t).contiguous)
    if found.contiguous:
        return found
    # Where nothing is added it is a copy in the order of the operand.
    adds = E.any_of(*(E.le(1, amount) for amount in amounts))
    copied = (x.natural("stride").elem or E.ZERO for _ in shape)
    steps = zip(row_major(tuple(shape)), copied, strict=True)
    return replace(found, strides=tuple(E.ite(adds, step, other) for step, other in steps))


def _gather(x: HostExecutor, t: Tensor, args: Arguments) -> Tensor:
    """`x.gather(dim, index)`: one element for each of the index."""
    index = args.at(1) if len(args.positional) > 1 else dict(args.keywords).get("index")
    if index is None:
        raise unsupported("gather")
    return computed(x, parts_of(x, x.tensor(index)), contiguous=False)


# ---- tensors from values -----------------------------------------------------------------------------------


def of_sizes(x: HostExecutor, args: Arguments) -> Tensor | None:
    """`torch.tensor(x.shape)`; None for what is no shape."""
    value = args.at(0)
    parts = unknown_ranks.parts_of(x, value) if isinstance(value, HostShape | Dims | Choice) else None
    return None if parts is None else _holding(x, computed(x, (unknown_ranks.rank(parts),)), parts)


def _holding(x: HostExecutor, t: Tensor, sizes: unknown_ranks.Parts) -> Tensor:
    """A new tensor, of which the elements are sizes, until the next change of anything."""
    x.sizes_in[t.storage] = (x.events.now, sizes)
    return t


def _sizes_in(x: HostExecutor, t: Tensor) -> unknown_ranks.Parts | None:
    made, sizes = x.sizes_in.get(t.storage, (-1, ()))
    return sizes if made == x.events.now else None


def only_size(x: HostExecutor, t: Tensor) -> Expr | None:
    """The size that is the only element of a tensor, if it is known."""
    sizes = _sizes_in(x, t)
    only = sizes[0] if sizes is not None and len(sizes) == 1 else None
    return only if isinstance(only, Expr) else None


def _product_of(x: HostExecutor, t: Tensor, args: Arguments) -> Tensor:
    """`torch.prod(t)`, also of sizes."""
    found = _reduced(x, t, args)
    sizes = _sizes_in(x, t)
    if sizes is None or args.positional or args.keywords:
        return found
    return _holding(x, found, (unknown_ranks.product(sizes),))


def empty_strided(x: HostExecutor, args: Arguments) -> Tensor:
    """`torch.empty_strided(size, stride)`."""
    whole, steps_of = args.at(0), args.at(1)
    if isinstance(whole, HostShape) and steps_of == HostShape(whole.of, strides=True):
        # Laid out as a tensor of any rank is: it spans as many elements as that one.
        name = x.storage("empty")
        return Tensor(name, name, fresh=True, shape_of=whole.of, strides_of=whole.of, span_of=whole.of)
    shape, strides = (unknown_ranks.parts_of(x, args.at(k)) for k in range(2))
    sizes = tuple(part for part in shape or () if isinstance(part, Expr))
    steps = tuple(part for part in strides or () if isinstance(part, Expr))
    if (
        shape is None
        or len(sizes) != len(shape)
        or len(steps) != len(sizes)
        or len(steps) != len(strides or ())
    ):
        raise unsupported("strides that are not known")
    for value in (*sizes, *steps):
        x.assume(E.le(0, value))  # else it raises
    found = T.fresh("empty", x.storage("empty"), sizes)
    shared = not T.is_apart(sizes, steps)
    last = E.add(E.ONE, *(E.mul(E.sub(size, 1), step) for size, step in zip(sizes, steps, strict=True)))
    room = E.ite(E.any_of(*(E.eq(size, 0) for size in sizes)), E.ZERO, last)
    return replace(found, strides=steps, contiguous=False, dense=False, expanded=shared, room=room)


def eye(x: HostExecutor, args: Arguments) -> Tensor:
    sizes = [x.scalar(value, "size") for value in args.positional]
    if not 1 <= len(sizes) <= 2:
        raise unsupported("eye")
    for size in sizes:
        x.assume(E.le(0, size))
    return computed(x, (sizes[0], sizes[-1]))


def meshgrid(x: HostExecutor, args: Arguments) -> Seq:
    """`torch.meshgrid(a, b)`: each operand repeated along the axes of the others, in its own memory."""
    given = args.at(0).items if len(args.positional) == 1 and isinstance(args.at(0), Seq) else args.positional
    order = dict(args.keywords).get("indexing", Const("ij"))
    if order not in (Const("ij"), Const("xy")) or not given:
        raise unsupported("meshgrid")
    tensors = [x.known_rank(x.tensor(value)) for value in given]
    shapes = [shape_of(x, t) if len(shape_of(x, t)) < 2 else None for t in tensors]
    if any(shape is None for shape in shapes):
        raise unsupported("meshgrid")
    sizes = [shape[0] if shape else E.ONE for shape in shapes]
    found = []
    for k, t in enumerate(tensors):
        step = (T.strides_of(t) or (None,))[0] if t.shape else E.ONE
        shape, strides = list(sizes), [E.ZERO] * len(sizes)
        strides[k] = step if step is not None else E.ZERO
        if order == Const("xy") and len(sizes) > 1:
            for items in (shape, strides):
                items[0], items[1] = items[1], items[0]
        repeats = any(size is not E.ONE for j, size in enumerate(sizes) if j != k)
        own = replace(T.piece(t, t.name), shape=tuple(shape), expanded=t.expanded or repeats)
        found.append(own if step is None else replace(own, strides=tuple(strides)))
    return Seq(tuple(found))


def broadcast_tensors(x: HostExecutor, args: Arguments) -> Seq:
    """`torch.broadcast_tensors(a, b)`: views of one shape."""
    given = args.at(0).items if len(args.positional) == 1 and isinstance(args.at(0), Seq) else args.positional
    tensors = [x.known_rank(_either(x, value)) for value in given]
    shapes = [t.shape for t in tensors if t.shape is not None]
    name = x.unread("broadcast shape").name
    x.computed.add(name)
    parts: unknown_ranks.Parts = (Axes(name),)
    if len(shapes) == len(tensors) > 0:
        parts = tuple(functools.reduce(functools.partial(broadcast, x), shapes))
    views = (replace(T.piece(t, f"{t.name}.expand()"), expanded=True) for t in tensors)
    return Seq(tuple(x.shaped(view, parts) for view in views))


def _either(x: HostExecutor, value: Any) -> Tensor:
    """A tensor, or one of several, of which the memory is said."""
    if not isinstance(value, Choice):
        return x.tensor(value)
    a, b = _either(x, value.first), _either(x, value.second)
    among = tuple(dict.fromkeys((*(a.among or (a.storage,)), *(b.among or (b.storage,)))))
    fresh = a.fresh and b.fresh
    return replace(T.free(x.unread("tensor").name), among=among, fresh=fresh, part=None, offset=None)


# ---- tables ------------------------------------------------------------------------------------------------

_ELEMENTWISE = (
    "relu relu6 sigmoid tanh exp exp2 expm1 abs neg negative sqrt rsqrt log log2 log10 log1p ceil "
    "round trunc sign square reciprocal sin cos tan erf gelu silu logsigmoid softplus elu leaky_relu selu "
    "isnan isinf isfinite logical_not cumsum cumprod triu tril flip nan_to_num softmax log_softmax argsort "
    "clamp clamp_min clamp_max floor"
).split()
# Of two operands or more, which are broadcast.
_JOINED = (
    "eq ne lt le gt ge add sub subtract mul multiply div divide true_divide floor_divide remainder fmod where "
    "maximum minimum fmax fmin logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor atan2 "
    "lerp xlogy"
).split()
_REDUCTIONS = "sum mean amax amin all any argmax argmin logsumexp nansum count_nonzero".split()
# Of a tensor: `t.relu()`, `torch.relu(t)`, `torch.nn.functional.relu(t)`.
OPERATIONS: Mapping[str, Handler] = {
    **dict.fromkeys(_ELEMENTWISE, same),
    **dict.fromkeys(_JOINED, joined),
    **dict.fromkeys(_REDUCTIONS, _reduced),
    **dict.fromkeys(("max", "min"), _extreme),
    "prod": _product_of,
    "mm": _mm,
    "bmm": _bmm,
    "mv": _mv,
    "matmul": _of_matmul,
    "linear": _linear,
    "sort": _sorted,
    "topk": _topk,
    "repeat": _repeat,
    "gather": _gather,
}
FUNCTIONS: Mapping[str, Callable[[HostExecutor, Arguments], Any]] = {
    **dict.fromkeys(("cat", "concat", "concatenate"), cat),
    "stack": stack,
    "pad": pad,
    "empty_strided": empty_strided,
    "eye": eye,
    "meshgrid": meshgrid,
    "broadcast_tensors": broadcast_tensors,
}
# Methods of values of which the text does not say that they are tensors: lists and texts have none of these.
_OF_OTHERS = frozenset("sort any all max min round trunc floor flip add sub div mul where remainder".split())
OF_UNKNOWN = frozenset(OPERATIONS) - _OF_OTHERS


def operation(x: HostExecutor, t: Tensor, name: str, args: Arguments) -> Any:
    """`t.name(...)`."""
    t = x.known_rank(t)
    if any(isinstance(v, Dims) for v in args.positional) or any(k == "out" for k, _ in args.keywords):
        raise unsupported(f"tensor method `.{name}`")
    found = OPERATIONS[name](x, t, args)
    return replace(found, name=args.table.text(args.node)) if isinstance(found, Tensor) else found
