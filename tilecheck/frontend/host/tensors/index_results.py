"""Tensors of indices and counts that torch computes: their shapes, and what their elements are.

What a function computes of values of the caller is not the host's own: its range and its order may be known all
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.values import Tensor
from tilecheck.frontend.values.values import Const, Num, Seq
from tilecheck.ir import expr as E
from tilecheck.ir.contents import Contents, permuted, ranged
from tilecheck.ir.expr import Expr
from tilecheck.ir.host import host_scalar

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor

_MOST_LISTED = 4096  # numbers of a display that are looked at


# ---- shapes ------------------------------------------------------------------------------------------------


def _same(x: HostExecutor, t: Tensor, args: Arguments, name: str) -> Tensor:
    return T.like(x.known_rank(t), name, x.storage(name))


def _pair(x: HostExecutor, t: Tensor, args: Arguments, name: str) -> Seq:
    return Seq((_same(x, t, args, "values"), _same(x, t, args, "indices")))


def _topk(x: HostExecutor, t: Tensor, args: Arguments, name: str) -> Seq:
    t, given = x.known_rank(t), args.bind(("k", "dim?", "largest?", "sorted?"), "topk")
    if t.shape is None or not t.shape:
        raise UnsupportedConstruct("topk of a tensor of unknown rank")
    axis = -1 if given.get("dim") is None else x.scalar(given["dim"], "dim").value
    if axis is None or not -len(t.shape) <= axis < len(t.shape):
        raise UnsupportedConstruct("topk along an unknown axis")
    at, count = axis % len(t.shape), x.scalar(given["k"], "k")
    x.assume(E.all_of(E.le(0, count), E.le(count, t.shape[at])))  # else it raises
    shape = (*t.shape[:at], count, *t.shape[at + 1 :])
    return Seq(tuple(T.fresh(name, x.storage(name), shape) for name in ("values", "indices")))


def _found(x: HostExecutor, t: Tensor, args: Arguments, name: str) -> Tensor:
    """`nonzero` of one axis: as many rows as there are."""
    t = x.known_rank(t)
    if t.shape is None or len(t.shape) != 1 or args.keywords or args.positional:
        raise UnsupportedConstruct("nonzero of several axes")
    return T.fresh(name, x.storage(name), (_some(x, name), E.ONE))


def _counted(x: HostExecutor, t: Tensor, args: Arguments, name: str) -> Tensor:
    return T.fresh(name, x.storage(name), (_some(x, name),))


def _some(x: HostExecutor, name: str) -> Expr:
    """A number of elements that values decide."""
    found = E.sym(host_scalar(x.unread(f"len({name})").name, opaque=True))
    x.assume(E.le(0, found))
    return found


def _placed(x: HostExecutor, t: Tensor, args: Arguments, name: str) -> Tensor:
    """`searchsorted(boundaries, values)`: an index for each value."""
    return _same(x, x.tensor(args.at(0)), args, name)


RESULTS: Mapping[str, Callable[[HostExecutor, Tensor, Arguments, str], Any]] = {
    "cumsum": _same,
    "argsort": _same,
    "clamp": _same,
    "clip": _same,
    "sort": _pair,
    "topk": _topk,
    "nonzero": _found,
    "bincount": _counted,
    "searchsorted": _placed,
}

# Those of them that are no methods of lists, and mean the same of arrays of other libraries.
OF_ANY = ("argsort", "clamp")


def random_order(x: HostExecutor, args: Arguments) -> Tensor:
    """`torch.randperm(n)`."""
    return T.fresh("randperm", x.storage("randperm"), (x.scalar(args.at(0), "size"),))


def display(x: HostExecutor, args: Arguments) -> Tensor:
    """`torch.tensor([3, 1, 2])`: the numbers of a display."""
    shape = _shape_of(args.at(0))
    return T.fresh("tensor", x.storage("tensor"), tuple(map(E.const, shape)))


def _shape_of(value: Any) -> tuple[int, ...]:
    if not isinstance(value, Seq):
        if (
            not isinstance(value, Num | Const)
            or value == Const(None)
            or (isinstance(value, Num) and value.shape)
        ):
            raise UnsupportedConstruct("tensor of these values")
        return ()
    inner = {_shape_of(item) for item in value.items}
    if len(inner) > 1:
        raise UnsupportedConstruct("tensor of rows of several lengths")
    return (len(value.items), *(inner.pop() if inner else ()))


# ---- elements ----------------------------------------------------------------------------------------------


def elements(
    x: HostExecutor,
    name: str,
    source: Tensor,
    args: Sequence[Any],
    named: Mapping[str, Any],
    held: Contents | None,
) -> Contents | None:
    """What is in the result of a function of `source`, which holds `held`; of a pair, in the indices."""
    source = x.known_rank(source)
    is_line = source.shape is not None and len(source.shape) == 1
    count = T.numel(source)
    match name:
        case "cumsum":
            return _sums(held, count) if is_line else None
        case "argsort" | "sort" if count is not None and is_line:
            return replace(permuted(count), own=False)
        case "argsort" | "sort" | "topk":
            given = named.get("dim", args[int(name == "topk")] if len(args) > int(name == "topk") else None)
            axis = -1 if given is None else x.scalar(given, "dim").value
            size = None if axis is None else T.extent(source, axis)
            return None if size is None else _bounded(E.ZERO, size, distinct=is_line)
        case "nonzero" if is_line and count is not None:
            return replace(_bounded(E.ZERO, count, distinct=True), increasing=True)
        case "bincount":
            return _bounded(E.ZERO, None)
        case "searchsorted" if is_line and count is not None and "sorter" not in named:
            return _bounded(E.ZERO, E.add(count, 1))
        case "clamp" | "clip":
            return _clamped(x, args, named, held)
        case _:
            return None


def _sums(held: Contents | None, count: Expr | None) -> Contents | None:
    """Running sums rise where nothing negative is added."""
    if held is None or held.low is None or count is None:
        return None
    if held.kind == "fill":
        return ranged(held.start, held.start, count)
    if held.low.value is None or held.low.value < 0:
        return None
    distinct = held.low.value > 0
    return Contents("some", low=held.low, distinct=distinct, increasing=True, count=count, own=held.own)


def _clamped(
    x: HostExecutor, args: Sequence[Any], named: Mapping[str, Any], held: Contents | None
) -> Contents | None:
    given = dict(zip(("min", "max"), args, strict=False)) | dict(named)
    low, high = (None if given.get(k) is None else x.scalar(given[k], k) for k in ("min", "max"))
    if low is None or high is None:
        return None
    rises = held is not None and held.increasing
    end = E.maximum(low, high) if low.value is None or high.value is None else high
    own = held is not None and held.own
    return Contents("some", low=E.minimum(low, end), high=E.add(end, 1), increasing=rises, own=own)


def _bounded(low: Expr, high: Expr | None, *, distinct: bool = False) -> Contents:
    return Contents("some", low=low, high=high, distinct=distinct, own=False)


def listed(x: HostExecutor, value: Any) -> Contents | None:
    """The numbers of a display, where the text says them all."""
    numbers: list[int] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Seq):
            stack += reversed(item.items)
        elif (
            isinstance(item, Num)
            and item.kind == "int"
            and item.elem is not None
            and item.elem.value is not None
        ):
            numbers.append(item.elem.value)
        else:
            return None
        if len(numbers) > _MOST_LISTED:
            return None
    if any(not -(1 << 31) <= n < 1 << 31 for n in numbers):
        return None
    return Contents("listed", listed=tuple(numbers), count=E.const(len(numbers)))


def random_integers(low: Expr, high: Expr) -> Contents:
    """`torch.randint(low, high, size)`: any of these, as often as it happens."""
    return Contents("some", low=low, high=high)
