"""Attributes, methods and subscripts of tensors, shapes and other host values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host.arguments import in_format, literal, number, one_axis, sizes, unsupported
from tilecheck.frontend.host.memory.contents import cast
from tilecheck.frontend.host.memory.mutations import read_attribute, read_item
from tilecheck.frontend.host.memory.rejections import parts
from tilecheck.frontend.host.memory.sharing import given_back, unread_of
from tilecheck.frontend.host.memory.uninitialised import blank
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.tensors.dtypes import keeps_type, other_type
from tilecheck.frontend.host.tensors.index_results import OF_ANY, RESULTS
from tilecheck.frontend.host.tensors.library import OF_UNKNOWN, OPERATIONS, operation
from tilecheck.frontend.host.tensors.views import (
    SIZE,
    STRIDE,
    VIEWS,
    along,
    of_all,
    reordered,
    reversed_axes,
    split_pieces,
    transposed,
)
from tilecheck.frontend.host.values import (
    Axes,
    BitLength,
    Device,
    Dims,
    HostShape,
    Pair,
    Pieces,
    Split,
    Table,
    Tensor,
    Unknown,
)
from tilecheck.frontend.values.values import Const, Named, Num, Seq, Token, integer
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Symbol
from tilecheck.ir.host import ARGUMENT, DEVICE, host_extent, host_rank, host_stride, host_test, is_contiguous

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor

# What drivers and libraries call how many processors of some kind a device has, as attribute or key.
DEVICE_COUNTS = {
    **dict.fromkeys(
        "multi_processor_count multiprocessor_count multiProcessorCount MULTIPROCESSOR_COUNT".split(),
        "multi_processor_count",
    ),
    **{name: name for name in "gpu_eu_count gpu_subslice_count num_vectorcore num_aicore".split()},
}
_CONVERSIONS = frozenset(
    "to type type_as float half bfloat16 double int long short char byte bool cuda cpu astype".split()
)
_SAME = frozenset("data detach requires_grad_ pin_memory record_stream".split())
_PARTS = ("data", "real", "imag")  # attributes of a tensor that are views of it
_COPIES = frozenset("clone copy".split())
_GATHERED = frozenset(
    "to_local full_tensor redistribute".split()
)  # of a distributed tensor, most in a shape of their own
# Views that a tensor has whatever its sizes are, if it has the axes.
_OF_RANK = frozenset(
    "permute transpose swapaxes swapdims movedim moveaxis t unsqueeze squeeze flatten ravel diagonal "
    "contiguous adjoint".split()
)
# What gives a tensor with the storage of another, or may give one.
_VIEWS = frozenset(
    "view reshape flatten ravel permute transpose swapaxes swapdims movedim moveaxis t expand expand_as "
    "broadcast_to unsqueeze squeeze narrow select diagonal unfold unflatten view_as reshape_as as_strided "
    "contiguous adjoint".split()
)
_COPYING = frozenset("reshape flatten ravel reshape_as contiguous".split())  # where no view does
_OF_PAIR = 2
_REORDERED = frozenset("permute transpose swapaxes swapdims movedim moveaxis t adjoint".split())
# These have all the elements of the tensor that they are views or copies of.
_OF_ALL = _REORDERED | frozenset("reshape flatten ravel unsqueeze squeeze unflatten view_as reshape_as".split())
_MOST_CHUNKS = 16
_OF_PAIRS = ("values", "indices")  # what `sort` and `topk` return
# What gives several views of a tensor.
_SPLITTING = frozenset(
    "split split_with_sizes chunk unbind tensor_split hsplit vsplit dsplit unsafe_chunk unsafe_split".split()
)
# What gives a tensor itself another shape, or other memory.
RESHAPING = frozenset(
    "resize_ resize_as_ swap_tensors set_ t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ "
    "as_strided_".split()
)


# ---- attributes --------------------------------------------------------------------------------------------


def attribute(x: HostExecutor, value: Any, name: str) -> Any:
    """`value.name` where it is not called."""
    match value:
        case Unknown() if name in DEVICE_COUNTS:
            return device_count(name)
        case Pair() if name in ("values", "indices"):
            return value.values if name == "values" else value.indices
        case Unknown() if name in ("shape", "ndim", "T", "mT", "H", "strides"):
            return attribute(x, x.tensor(value), name)
        case Unknown() if name == "device" and x.is_tensor(value):
            return Device(f"{value.name}.device")
        case Unknown() if name in ("dtype", "device", "is_cuda"):
            return Token(f"{value.name}.{name}")
        case Unknown() if name in _PARTS:
            found = read_attribute(x, value, name)
            given_back(x, found.name, value)
            return found
        case Unknown():
            return read_attribute(x, value, name)
        case Tensor():
            return _tensor_attribute(x, value, name)
        case Token():
            return Token(f"{value.name}.{name}")
        case Num() if name == "value":  # of a `tl.constexpr`
            return value
        case Seq() if name in _OF_PAIRS and len(value.items) == len(_OF_PAIRS):
            return value.items[_OF_PAIRS.index(name)]
        case _:
            raise unsupported(f"attribute `.{name}`")


def device_count(name: str) -> Num:
    """The number of multiprocessors: one device is used throughout a host function."""
    return number(E.sym(Symbol(DEVICE_COUNTS[name], E.Kind.HOST, origin=DEVICE)))


def _count_or(x: HostExecutor, name: str, defaults: Sequence[Any]) -> Num:
    """`properties.get("num_vectorcore", 20)`."""
    count = device_count(name)
    if not defaults:
        return count
    default = x.number_of(defaults[0], "default").elem
    if default is None or count.elem is None:
        raise unsupported("a default that is not known")
    return number(E.ite(host_test(f'"{name}" in properties'), count.elem, default))


def _tensor_attribute(x: HostExecutor, t: Tensor, name: str) -> Any:
    match name:
        case "shape":
            return shape(x, t)
        case "ndim":
            axes = T.rank(x.known_rank(t))
            return x.natural(f"{t.name}.ndim") if axes is None else number(unknown_ranks.meant(x, axes))
        case "T" | "mT" | "H":
            found = transposed(x, t, whole=name == "T")
            unsure = reversed_axes if name == "T" else reordered
            return unsure(x, t, f"{t.name}.{name}") if found is None else found
        case _ if name in _SAME:
            return t
        case "device":
            return Device(f"{t.name}.device")
        case _:
            return Token(f"{t.name}.{name}")


def shape(x: HostExecutor, t: Tensor) -> Any:
    t = x.known_rank(t)
    if t.shape is not None:
        return Seq(tuple(number(s) for s in t.shape))
    if not t.shape_of:
        return x.unread(f"{t.name}.shape")
    return unknown_ranks.shape_of_parts(x.shapes.get(t.shape_of, (Axes(t.shape_of),)))


# ---- methods -----------------------------------------------------------------------------------------------


def method(x: HostExecutor, value: Any, name: str, args: Arguments) -> Any:
    """`value.name(...)`."""
    match value:
        case _ if name == "<unpack>":
            return _unpack(x, value, args)
        case HostShape() | Dims() | Seq() if name == "numel":
            return product(x, value)
        case Unknown() if any(
            name in own
            for own in (_METHODS, OF_ANY, _CONVERSIONS, _COPIES, _VIEWS, _SPLITTING, _GATHERED, RESHAPING)
        ):
            return _tensor_method(x, x.tensor(value), name, args)
        case Unknown() if name in OF_UNKNOWN:
            return operation(x, x.tensor(value), name, args)
        case Tensor() if name in OPERATIONS:
            return operation(x, value, name, args)
        case Tensor():
            return _tensor_method(x, value, name, args)
        case Num() if name == "bit_length" and value.elem is not None:
            return BitLength(x.scalar(value, "number"))
        case Num() if name in ("item", "__int__", "__index__"):
            return value
        case Table() if name in ("items", "keys", "values") and not args.positional:
            return _entries(value, name)
        case Unknown() if name == "get" and args.positional and _text(args.at(0)) in DEVICE_COUNTS:
            return _count_or(x, _text(args.at(0)), args.positional[1:])
        case Table() if name == "get" and args.positional:
            return _lookup(x, value, args.at(0), args.positional[1:])
        case _:
            raise unsupported(f"method `.{name}`")


def _text(value: Any) -> str:
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else ""


def _unpack(x: HostExecutor, value: Any, args: Arguments) -> Any:
    """The items of a value that is assigned to so many targets."""
    count = x.scalar(args.at(0), "length").value or 0
    match value:
        case Pieces() if len(value.items) >= count:  # else Python raises
            return Seq(value.items[:count])
        case Split():
            return split_pieces(x, value, count)
        case Pair() if count == _OF_PAIR:
            return Seq((value.values, value.indices))
        case HostShape(strides=True):
            x.assume(E.eq(E.sym(host_rank(value.of)), count))
            return Seq(tuple(number(E.sym(host_stride(value.of, k))) for k in range(count)))
        case HostShape() | Dims():
            found = unknown_ranks.unpacked(x, unknown_ranks.parts_of(x, value) or (), count)
            if found is None:
                return Seq(tuple(x.natural("extent") for _ in range(count)))
            return Seq(tuple(map(number, found)))
        case Unknown():
            x.of_numbers |= {value.name}  # who unpacks a tensor does not use its elements as sizes
            return Seq(tuple(read_item(x, value, k) for k in range(count)))
        case _:
            name = unread_of(x, "unpacked value", value).name
            return Seq(tuple(Unknown(f"{name}[{k}]", opaque=True) for k in range(count)))


def _entries(table: Table, name: str) -> Seq:
    """`table.items()`, `.keys()` or `.values()`."""
    keys = [Const(key) if isinstance(key, str) else integer(key) for key in table.items]
    match name:
        case "keys":
            return Seq(tuple(keys))
        case "values":
            return Seq(tuple(table.items.values()))
        case _:
            return Seq(tuple(Seq(pair) for pair in zip(keys, table.items.values(), strict=True)))


def _lookup(x: HostExecutor, table: Table, key: Any, default: Sequence[Any]) -> Any:
    found = literal(key)
    if found is None and not default:
        return one_of(x, table, key)
    if found is None:
        raise unsupported("dictionary with a computed key")
    if found in table.items:
        return table.items[found]
    return default[0] if default else Const(None)


def one_of(x: HostExecutor, table: Table, key: Any) -> Num:
    """What a dictionary of numbers holds under a key that the caller chooses: `MODES[mode]`."""
    numbers = [literal(item) for item in table.items.values()]
    if not isinstance(key, Unknown) or not numbers or not all(type(n) is int for n in numbers):
        raise unsupported("dictionary with a computed key")
    symbol = Symbol(f"{key.name}[of {sorted(table.items, key=str)}]", E.Kind.HOST, origin=ARGUMENT)
    x.define(E.sym(symbol), E.any_of(*(E.eq(E.sym(symbol), n) for n in numbers if isinstance(n, int))))
    return number(E.sym(symbol))


def product(x: HostExecutor, value: Any) -> Num:
    """The product of all extents of a shape."""
    found = unknown_ranks.parts_of(x, value)
    if found is None:
        raise unsupported("product of this value")
    return number(unknown_ranks.meant(x, unknown_ranks.product(found)))


def _tensor_method(x: HostExecutor, t: Tensor, name: str, args: Arguments) -> Any:
    if name in RESHAPING:
        x.stop(f"`.{name}` changes a tensor's shape")
    t = x.known_rank(t)
    try:
        if name in _METHODS:
            return in_format(_METHODS[name](x, t, args), args)
    except UnsupportedConstruct:
        if name not in _VIEWS | _SPLITTING:
            raise
    if name in _VIEWS:
        if name not in _OF_RANK:  # not every shape has this view
            x.doubted |= parts(t, *args.positional, *(v for _, v in args.keywords))
        text = f"{t.name}.{name}()"
        if name in _OF_ALL:
            view = (reordered if name in _REORDERED else of_all)(x, t, text)
        else:
            view = x.unread_view(t, text)
        return replace(view, copied="perhaps", copy=0) if name in _COPYING else view
    if name in _SPLITTING:
        x.doubted |= parts(t, *args.positional, *(v for _, v in args.keywords))
        return unread_of(x, f"{t.name}.{name}()", t)
    if name in _CONVERSIONS:
        if keeps_type(t, name, args):
            return t
        if kind := other_type(t, name, args):
            text = f"{t.name}.{name}()"
            return in_format(replace(T.like(t, text, x.storage(text)), dtype=kind), args)
        asked = any(k == "memory_format" for k, _ in args.keywords)  # `t` itself may be kept, in its own order
        found = cast(x, T.converted(t), name, args)
        return T.in_any_order(found) if asked else found
    if name in _COPIES:
        return in_format(T.like(t, f"{t.name}.{name}()", x.storage(f"{t.name}.{name}()")), args)
    if name == "full_tensor":  # of all that is spread over devices: its shape is the one it says
        return T.converted(t)
    if name in _GATHERED:
        return unread_of(x, f"{t.name}.{name}()", t)
    if name == "pin_memory":
        return replace(t, copied="perhaps", copy=0)
    if name in _SAME or name.endswith("_"):
        return t  # `fill_`, `zero_`, `copy_`: the same tensor with other values
    if name in RESULTS:
        return RESULTS[name](x, t, args, name)
    raise unsupported(f"tensor method `.{name}`")


def _size(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    if not args.positional and not args.keywords:
        return shape(x, t)
    axis = one_axis(x, args, 0)
    found = T.extent(t, axis) if isinstance(axis, int) else None
    if found is None:
        return along(x, t, args, SIZE, t.shape)
    return number(unknown_ranks.meant(x, found))


def _stride(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    t = x.laid_out(t)
    if args.positional or args.keywords:
        axis = one_axis(x, args, 0)
        found = T.stride(t, axis) if isinstance(axis, int) else None
        if found is None and isinstance(axis, int) and t.contiguous and t.shape is None and t.shape_of:
            return _size_after(x, t, axis)
        return along(x, t, args, STRIDE, T.strides_of(t)) if found is None else number(found)
    strides = T.strides_of(t)
    if strides is not None:
        return Seq(tuple(number(s) for s in strides))
    return HostShape(t.strides_of, strides=True) if t.strides_of else x.unread(f"{t.name}.stride()")


def _size_after(x: HostExecutor, t: Tensor, axis: int) -> Num:
    """The stride of a contiguous tensor of unknown rank: as many elements as the axes after it have."""
    from tilecheck.frontend.host.tensors.subscripts import subscript  # the two modules need each other

    if axis < 0:
        return number(E.mul(E.ONE, *(E.sym(host_extent(t.shape_of, k)) for k in range(axis + 1, 0))))
    after = Seq((Named("slice"), integer(axis + 1), Const(None), Const(None)))
    return product(x, subscript(x, shape(x, t), after))


def _numel(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    found = x.count_of(t)
    return x.natural(f"{t.name}.numel()") if found is None else number(found)


def _dim(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return _tensor_attribute(x, t, "ndim")


def _is_contiguous(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    if x.laid_out(t).contiguous:
        return Num((), E.TRUE, "bool", None)
    if free := T.whole(t):
        return Num((), is_contiguous(free), "bool", None)
    return Num((), x.unread_test(f"{t.name}.is_contiguous()"), "bool", None)


def _new(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return allocated(x, "new", sizes(x, args))


def _new_full(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    return _new(x, t, replace(args, positional=args.positional[:1]))


def allocated(x: HostExecutor, name: str, parts: unknown_ranks.Parts) -> Tensor:
    """A new tensor in row-major order. Allocating one with a negative size raises."""
    x.assume(E.all_of(*(E.le(0, p) for p in parts if isinstance(p, Expr) and not T.nonnegative(p))))
    return x.with_room(x.shaped(T.fresh(name, x.storage(name), None), parts))


def _of_type(name: str) -> Callable[[HostExecutor, Tensor, Arguments], Num]:
    """A question about the elements' type or the device, which says nothing of sizes."""
    return lambda x, t, args: Num((), host_test(f"{t.name}.{name}()"), "bool", None)


_METHODS: Mapping[str, Callable[[HostExecutor, Tensor, Arguments], Any]] = {
    "size": _size,
    "stride": _stride,
    "numel": _numel,
    "nelement": _numel,
    **{
        name: _of_type(name)
        for name in (
            "is_complex",
            "is_floating_point",
            "is_signed",
            "is_conj",
            "is_neg",
            "is_pinned",
            "is_inference",
        )
    },
    "element_size": lambda x, t, args: x.natural(f"{t.name}.element_size()"),
    "dim": _dim,
    "ndimension": _dim,
    "is_contiguous": _is_contiguous,
    "new_empty": blank(_new),
    "new_zeros": _new,
    "new_ones": _new,
    "new_full": _new_full,
    **VIEWS,
}
# Methods that are followed: none of them changes its object.
FOLLOWED = frozenset(_METHODS) | _CONVERSIONS | _COPIES | _VIEWS | _SPLITTING | _GATHERED
