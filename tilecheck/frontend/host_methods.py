"""Attributes, methods and subscripts of tensors, shapes and other host values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend import host_tensors as T
from tilecheck.frontend.host_changes import read_attribute, read_item
from tilecheck.frontend.host_doubts import parts
from tilecheck.frontend.host_values import BitLength, HostShape, Pieces, Table, Tensor, Unknown
from tilecheck.frontend.values import Const, Named, Num, Seq, Token, integer
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Symbol
from tilecheck.ir.host import DEVICE, host_extent, host_numel, host_rank, host_stride, is_contiguous

if TYPE_CHECKING:
    from tilecheck.frontend.executor import Arguments
    from tilecheck.frontend.host import HostExecutor

_DEVICE_COUNTS = ("multi_processor_count", "multiProcessorCount", "MULTIPROCESSOR_COUNT")
_CONVERSIONS = frozenset(
    "to type type_as float half bfloat16 double int long short char byte bool cuda cpu astype".split()
)
_SAME = frozenset("data detach requires_grad_ pin_memory record_stream".split())
_COPIES = frozenset("clone copy".split())
# What gives a tensor with the storage of another, or may give one.
_VIEWS = frozenset(
    "view reshape flatten ravel permute transpose swapaxes swapdims movedim moveaxis t expand expand_as "
    "broadcast_to unsqueeze squeeze narrow select diagonal unfold unflatten view_as reshape_as as_strided "
    "contiguous adjoint".split()
)
_MOST_CHUNKS = 16
# What gives a tensor itself another shape, or other memory.
RESHAPING = frozenset(
    "resize_ resize_as_ swap_tensors set_ t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ "
    "as_strided_".split()
)


def number(value: Expr) -> Num:
    return Num((), value, "int", None)


def unsupported(what: str) -> UnsupportedConstruct:
    return UnsupportedConstruct(what)


# ---- attributes --------------------------------------------------------------------------------------------


def attribute(x: HostExecutor, value: Any, name: str) -> Any:
    """`value.name` where it is not called."""
    match value:
        case Unknown() if name in _DEVICE_COUNTS:
            return device_count()
        case Unknown() if name in ("shape", "ndim", "T", "mT", "H", "strides"):
            return attribute(x, x.tensor(value), name)
        case Unknown() if name in ("dtype", "device", "is_cuda"):
            return Token(f"{value.name}.{name}")
        case Unknown():
            return read_attribute(x, value, name)
        case Tensor():
            return _tensor_attribute(x, value, name)
        case Token():
            return Token(f"{value.name}.{name}")
        case _:
            raise unsupported(f"attribute `.{name}`")


def device_count() -> Num:
    """The number of multiprocessors: one device is used throughout a host function."""
    return number(E.sym(Symbol("multi_processor_count", E.Kind.HOST, origin=DEVICE)))


def _tensor_attribute(x: HostExecutor, t: Tensor, name: str) -> Any:
    match name:
        case "shape":
            return shape(x, t)
        case "ndim":
            found = T.rank(x.known_rank(t))
            return x.unread(f"{t.name}.ndim") if found is None else number(found)
        case "T" | "mT" | "H":
            return _transposed(x, t, whole=name == "T") or T.piece(t, x.unread(f"{t.name}.{name}").name)
        case _ if name in _SAME:
            return t
        case _:
            return Token(f"{t.name}.{name}")


def _transposed(x: HostExecutor, t: Tensor, *, whole: bool) -> Tensor | None:
    t = x.known_rank(t)
    if t.shape is None and whole:
        t = x.has_rank(t, 2)  # on other ranks `.T` is an error, or reverses the axes of a rank we never met
    if t.shape is None:
        return None
    axes = list(range(len(t.shape)))
    axes = axes[::-1] if whole else [*axes[:-2], axes[-1], axes[-2]]
    return T.permuted(t, axes) if len(axes) > 1 else t


def shape(x: HostExecutor, t: Tensor) -> Any:
    t = x.known_rank(t)
    if t.shape is not None:
        return Seq(tuple(number(s) for s in t.shape))
    return HostShape(t.shape_of) if t.shape_of else x.unread(f"{t.name}.shape")


# ---- methods -----------------------------------------------------------------------------------------------


def method(x: HostExecutor, value: Any, name: str, args: Arguments) -> Any:
    """`value.name(...)`."""
    match value:
        case _ if name == "<unpack>":
            return _unpack(x, value, args)
        case HostShape() if name == "numel":
            return number(E.sym(host_numel(value.of)))
        case Seq() if name == "numel":
            return product(x, value)
        case Unknown() if any(name in own for own in (_METHODS, _CONVERSIONS, _COPIES, _VIEWS, RESHAPING)):
            return _tensor_method(x, x.tensor(value), name, args)
        case Tensor():
            return _tensor_method(x, value, name, args)
        case Num() if name == "bit_length" and value.elem is not None:
            return BitLength(x.scalar(value, "number"))
        case Num() if name in ("item", "__int__", "__index__"):
            return value
        case Table() if name == "get" and args.positional:
            return _lookup(x, value, args.at(0), args.positional[1:])
        case _:
            raise unsupported(f"method `.{name}`")


def _unpack(x: HostExecutor, value: Any, args: Arguments) -> Any:
    """The items of a value that is assigned to so many targets."""
    count = x.scalar(args.at(0), "length").value or 0
    match value:
        case Pieces() if len(value.items) == count:
            return Seq(value.items)
        case HostShape():
            x.assume(E.eq(E.sym(host_rank(value.of)), count))
            make = host_stride if value.strides else host_extent
            return Seq(tuple(number(E.sym(make(value.of, k))) for k in range(count)))
        case Unknown():
            x.of_numbers |= {value.name}  # who unpacks a tensor does not use its elements as sizes
            return Seq(tuple(read_item(x, value, k) for k in range(count)))
        case _:
            name = x.unread("unpacked value").name
            return Seq(tuple(Unknown(f"{name}[{k}]", opaque=True) for k in range(count)))


def _lookup(x: HostExecutor, table: Table, key: Any, default: Sequence[Any]) -> Any:
    found = literal(key)
    if found is None:
        raise unsupported("dictionary with a computed key")
    if found in table.items:
        return table.items[found]
    return default[0] if default else Const(None)


def literal(key: Any) -> str | int | None:
    match key:
        case Const(str() as text):
            return text
        case Num() if key.elem is not None and key.elem.value is not None:
            return key.elem.value
        case _:
            return None


def product(x: HostExecutor, items: Seq) -> Num:
    return number(E.mul(E.ONE, *(x.scalar(i, "extent") for i in items.items)))


def _known(found: Tensor | None) -> Tensor:
    if found is None:
        raise unsupported("view of a tensor of unknown shape")
    return found


def _tensor_method(x: HostExecutor, t: Tensor, name: str, args: Arguments) -> Any:
    if name in RESHAPING:
        x.stop(f"`.{name}` changes a tensor's shape")
    t = x.known_rank(t)
    try:
        if name in _METHODS:
            return in_format(_METHODS[name](x, t, args), args)
    except UnsupportedConstruct:
        if name not in _VIEWS:
            raise
    if name in _VIEWS:
        x.doubted |= parts(t, *args.positional, *(v for _, v in args.keywords))  # not every shape has this view
        return replace(T.piece(t, x.unread(f"{t.name}.{name}()").name), copied="perhaps", copy=0)
    if name in _CONVERSIONS:
        asked = any(k == "memory_format" for k, _ in args.keywords)  # `t` itself may be kept, in its own order
        return T.in_any_order(T.converted(t)) if asked else T.converted(t)
    if name in _COPIES:
        return in_format(T.like(t, f"{t.name}.{name}()", x.storage(f"{t.name}.{name}()")), args)
    if name == "pin_memory":
        return replace(t, copied="perhaps", copy=0)
    if name in _SAME or name.endswith("_"):
        return t  # `fill_`, `zero_`, `copy_`: the same tensor with other values
    raise unsupported(f"tensor method `.{name}`")


def integers(
    x: HostExecutor, args: Arguments, names: tuple[str, ...] = ("size", "shape", "dims")
) -> list[Expr]:
    """Sizes given one by one, as a tuple, or by keyword."""
    given = list(args.positional) or [v for k, v in args.keywords if k in names]
    if len(given) == 1 and isinstance(given[0], Seq):
        given = list(given[0].items)
    if not given:
        raise unsupported("sizes that are not given")
    return [x.scalar(value, "size") for value in given]


def _constants(x: HostExecutor, args: Arguments) -> list[int]:
    found = [e.value for e in integers(x, args, ("dim", "dims", "axes"))]
    if any(v is None for v in found):
        raise unsupported("symbolic axis")
    return [v for v in found if v is not None]


def in_format(made: Any, args: Arguments) -> Any:
    """What a call made, in the order of elements that its `memory_format` (NumPy: `order`) asks for."""
    given = [v for k, v in args.keywords if k in ("memory_format", "order")]
    if not isinstance(made, Tensor) or not given:
        return made
    asked = given[0]
    name = asked.name if isinstance(asked, Named | Token) else asked.value if isinstance(asked, Const) else ""
    if name == "torch.preserve_format":
        return made
    return T.in_order(made, row_major=name in ("torch.contiguous_format", "C"))


def _optional_axis(x: HostExecutor, args: Arguments, default: int) -> int:
    given = [*args.positional, *(v for k, v in args.keywords if k in ("dim", "axis"))]
    if not given:
        return default
    value = x.scalar(given[0], "axis").value
    if value is None:
        raise unsupported("symbolic axis")
    return value


def _view(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    first = args.at(0) if args.positional else None
    if len(args.positional) == 1 and isinstance(first, Unknown) and first.name not in x.integer_names:
        raise unsupported("view as a size, or as another type")
    if isinstance(first, Named | Token):
        raise unsupported("view as another type")
    return _shaped(x, t, args)


def _shaped(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    first = args.at(0) if args.positional else None
    if isinstance(first, HostShape) and not first.strides and len(args.positional) == 1:
        kept = t.shape_of == first.of
        return t if kept else replace(t, shape=None, shape_of=first.of, strides=None, strides_of="")
    t = x.laid_out(t)
    found = T.reshaped(t, integers(x, args))
    if found is None:
        raise unsupported("reshape of an unknown number of elements")
    x.assume(found[1])
    return found[0]


def _reshape(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    found = _shaped(x, t, args)
    # Where no view exists, the result is a copy: it repeats nothing, and has a span of its own.
    return T.copied_unless_contiguous(found, t) if isinstance(found, Tensor) else found


def _size(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    if not args.positional and not args.keywords:
        return shape(x, t)
    found = T.extent(t, _optional_axis(x, args, 0))
    return x.unread(f"{t.name}.size()") if found is None else number(found)


def _stride(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    t = x.laid_out(t)
    if args.positional or args.keywords:
        axis = _optional_axis(x, args, 0)
        found = T.stride(t, axis)
        return x.unread(f"{t.name}.stride({axis})") if found is None else number(found)
    strides = T.strides_of(t)
    if strides is not None:
        return Seq(tuple(number(s) for s in strides))
    return HostShape(t.strides_of, strides=True) if t.strides_of else x.unread(f"{t.name}.stride()")


def _numel(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    found = T.numel(t)
    return x.stable(f"{t.name}.numel()") if found is None else number(found)


def _dim(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return _tensor_attribute(x, t, "ndim")


def _is_contiguous(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    if x.laid_out(t).contiguous:
        return Num((), E.TRUE, "bool", None)
    if t.strides_of and t.strides_of == t.shape_of:
        return Num((), is_contiguous(t.strides_of), "bool", None)
    return Num((), x.unread_test(f"{t.name}.is_contiguous()"), "bool", None)


def _contiguous(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    if args.positional:
        raise unsupported("memory format without its name")
    return T.dense(t)


def _t(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return _known(_transposed(x, t, whole=True))


def _transpose(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    axes = _constants(x, args)
    if len(axes) != 2:
        raise unsupported("transpose")
    return _known(T.swapped(t, *axes))


def _permute(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    axes = _constants(x, args)
    return _known(T.permuted(x.has_rank(t, len(axes)), axes))


def _expand(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    if args.positional and isinstance(args.at(0), HostShape):
        other = replace(t, shape=None, shape_of=args.at(0).of, strides=None, strides_of="")
        return replace(other, expanded=True, contiguous=False)
    found = T.expanded(t, integers(x, args))
    return found or replace(T.piece(t, x.unread(f"{t.name}.expand()").name), expanded=True)


def _expand_as(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    other = shape(x, x.tensor(args.at(0)))
    args = type(args)((other,), (), args.node, args.table)
    return _expand(x, t, args)


def _flatten(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    axes = _constants(x, args) if args.positional or args.keywords else []
    start, end = axes[0] if axes else 0, axes[1] if len(axes) > 1 else -1
    return _known(T.flattened(x.laid_out(t), start, end))


def _ravel(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return _known(T.flattened(x.laid_out(t), 0, -1))


def _unsqueeze(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return _known(T.unsqueezed(t, _optional_axis(x, args, 0)))


def _squeeze(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    if not args.positional and not args.keywords:
        raise unsupported("squeeze of every axis")
    return _known(T.squeezed(t, _optional_axis(x, args, 0)))


def _narrow(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    given = args.bind(("dim", "start", "length"), "narrow")
    axis, start, length = (x.scalar(given[k], k) for k in ("dim", "start", "length"))
    if axis.value is None:
        raise unsupported("symbolic axis")
    part = T.sliced(t, axis.value, (start, None, None))
    if part is None or part.shape is None:
        raise unsupported("narrow")
    # What does not lie inside is an error, so it is exactly as long as asked for; a start below 0 counts from
    # the end.
    at = axis.value % len(part.shape)
    size = (t.shape or part.shape)[at]
    first = E.ite(E.lt(start, 0), E.add(start, size), start)
    x.assume(E.all_of(E.le(0, first), E.le(0, length), E.le(E.add(first, length), size)))
    low = start if T.nonnegative(start) else first
    whole = low is E.ZERO and length is size
    own = t.part if whole else T.part_of(t, at, low, E.add(low, length), 1)
    return replace(part, shape=(*part.shape[:at], length, *part.shape[at + 1 :]), part=own)


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
    return found or T.piece(t, x.unread(f"{t.name}.chunk()[{k}]").name)


def _new(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    if args.positional and isinstance(args.at(0), HostShape):
        return T.fresh("new", x.storage("new"), None, args.at(0).of)
    return T.fresh("new", x.storage("new"), tuple(integers(x, args)))


def _new_full(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return _new(x, t, type(args)(args.positional[:1], args.keywords, args.node, args.table))


_METHODS: Mapping[str, Callable[[HostExecutor, Tensor, Arguments], Any]] = {
    "size": _size,
    "stride": _stride,
    "numel": _numel,
    "nelement": _numel,
    "dim": _dim,
    "ndimension": _dim,
    "is_contiguous": _is_contiguous,
    "contiguous": _contiguous,
    "view": _view,
    "reshape": _reshape,
    "flatten": _flatten,
    "ravel": _ravel,
    "t": _t,
    "transpose": _transpose,
    "swapaxes": _transpose,
    "permute": _permute,
    "expand": _expand,
    "expand_as": _expand_as,
    "broadcast_to": _expand,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "narrow": _narrow,
    "chunk": _chunk,
    "new_empty": _new,
    "new_zeros": _new,
    "new_ones": _new,
    "new_full": _new_full,
}
# Methods that are followed: none of them changes its object.
FOLLOWED = frozenset(_METHODS) | _CONVERSIONS | _COPIES | _VIEWS
