"""Operations that torch computes element by element: they allocate what they give."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host.arguments import unsupported
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.values import HostShape, Ratio, Tensor, Unknown
from tilecheck.frontend.values.values import Const, Named, Num, Seq, Token
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr
from tilecheck.ir.host import STRIDE, axis_of, exact_quotient, owner

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor


def computed(x: HostExecutor, parts: unknown_ranks.Parts, *, contiguous: bool = True) -> Tensor:
    """A new tensor; one that is not row-major has its elements side by side in some order."""
    found = T.fresh("result", x.storage("result"), None)
    return x.with_room(x.shaped(replace(found, contiguous=contiguous), parts))


def parts_of(x: HostExecutor, t: Tensor) -> unknown_ranks.Parts:
    """The shape of a tensor."""
    t = x.known_rank(t)
    if t.shape is not None:
        return t.shape
    found = unknown_ranks.parts_of(x, HostShape(t.shape_of)) if t.shape_of else None
    if found is None:
        raise unsupported("tensor of unknown shape")
    return found


def shape_of(x: HostExecutor, t: Tensor) -> tuple[Expr, ...]:
    """The extents of a tensor whose rank is known."""
    t = x.known_rank(t)
    if t.shape is None:
        raise unsupported("tensor of unknown rank")
    return t.shape


def same(x: HostExecutor, t: Tensor, args: Arguments) -> Tensor:
    """As many elements as the operand, which nothing else may broadcast."""
    others = [*args.positional, *(v for _, v in args.keywords)]
    if not all(map(_is_plain, others)):
        raise unsupported("operand that may be a tensor")
    if any(isinstance(v, Num) and v.kind == "bool" for v in args.positional):
        raise unsupported("flag without its name")  # perhaps `inplace`
    if any(name in ("inplace", "out") for name, _ in args.keywords):
        raise unsupported("result that is an operand")
    laid = x.laid_out(x.known_rank(t))
    return _in_order_of(x, computed(x, parts_of(x, t), contiguous=laid.contiguous and not laid.expanded), t)


def _is_plain(value: Any) -> bool:
    """Whether an operand is certainly no tensor: a number, a name, or axes."""
    if isinstance(value, Seq):
        return all(map(_is_plain, value.items))
    return isinstance(value, Const | Named | Token) or (
        isinstance(value, Num) and value.kind in ("int", "bool")
    )


def joined(x: HostExecutor, t: Tensor, args: Arguments) -> Any:
    """`torch.where(t, a, b)`, `t.add(a)`: of several operands, which are broadcast."""
    if not args.positional or any(name not in ("alpha", "rounding_mode") for name, _ in args.keywords):
        raise unsupported("operands of a library function")
    found: Any = t
    for other in args.positional:
        found = elementwise(x, x.tensor(found), other)
    return found


def elementwise(x: HostExecutor, a: Any, b: Any) -> Any:
    """Arithmetic on tensors allocates its result; its shape is known where nothing is broadcast."""
    tensors = [t for t in (a, b) if isinstance(t, Tensor)]
    others = [v for v in (a, b) if not isinstance(v, Tensor)]
    one = tensors[0]
    same = all((t.shape, t.shape_of) == (one.shape, one.shape_of) for t in tensors)
    if any(isinstance(v, Unknown) and v.name in x.allocated for v in others):
        return x.new_object("result")  # a library's own types compute with tensors as tensors do
    if any(not isinstance(v, Num | Const | Ratio | Token) or _may_be_tensor(x, v) for v in others):
        raise UnsupportedConstruct("arithmetic on tensors")
    if not same:
        if any(x.known_rank(t).shape is None for t in tensors):
            return x.new_object("result")
        shapes = [shape_of(x, t) for t in tensors]
        found = _in_order_of(x, computed(x, broadcast(x, *shapes), contiguous=False), *tensors)
        return x.with_layout(found, "result")
    contiguous = all(t.contiguous for t in tensors)
    storage = x.storage("result")
    found = replace(
        one,
        name="result",
        storage=storage,
        fresh=True,
        strides=None,
        strides_of="",
        contiguous=contiguous,
        expanded=False,
        part=(),
        copied="",
        copy=0,
        among=(),
        dense=True,
        span_of="",
        offset=E.ZERO,
        dtype="",
        room=T.numel(one),
    )
    return x.with_layout(_in_order_of(x, found, *tensors), storage)


def _in_order_of(x: HostExecutor, found: Tensor, *operands: Tensor) -> Tensor:
    """A result, which torch lays out as its operands: where the text has exchanged axes of these, its strides
    are no more those of a contiguous tensor if what is handed in is one."""
    if found.shape is None or found.contiguous or not any(_is_turned(x, t) for t in operands):
        return found
    return replace(found, strides=tuple(x.natural("stride").elem or E.ZERO for _ in found.shape))


def _is_turned(x: HostExecutor, t: Tensor) -> bool:
    """Whether an axis has a longer stride than one before it, as its axes were exchanged."""
    t = x.laid_out(x.known_rank(t))
    strides = None if t.contiguous else T.strides_of(t)
    return any(_is_longer(later, earlier) for earlier, later in combinations(strides or (), 2))


def _is_longer(a: Expr, b: Expr) -> bool:
    if a.op == b.op == "sym" and a.args[0].origin == b.args[0].origin == STRIDE:
        return owner(a.args[0]) == owner(b.args[0]) and axis_of(a.args[0]) < axis_of(b.args[0])
    return a is not b and (b is E.ONE or exact_quotient(a, b) is not None)


def _may_be_tensor(x: HostExecutor, value: Any) -> bool:
    """Whether a number is made of values of which the text does not say that they are numbers: `x + w * 2`."""
    if isinstance(value, Ratio):
        return not all(map(x.is_integer_memory, (value.top, value.bottom)))
    if not isinstance(value, Num) or value.kind not in ("any", "bool"):
        return False
    if value.elem is None or not x.is_integer_memory(value.elem):
        return True
    return any(s.kind is E.Kind.OPAQUE for s in E.symbols(value.elem))  # what comparing them gives


def broadcast(x: HostExecutor, a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The shape of two operands: torch raises unless extents agree or one of them is 1."""
    rank = max(len(a), len(b))
    pairs = zip((*[E.ONE] * (rank - len(a)), *a), (*[E.ONE] * (rank - len(b)), *b), strict=True)
    found: list[Expr] = []
    for u, v in pairs:
        if u is v or v is E.ONE:
            found.append(u)
        elif u is E.ONE:
            found.append(v)
        else:
            x.assume(E.any_of(E.eq(u, v), E.eq(u, 1), E.eq(v, 1)))
            found.append(E.ite(E.eq(u, 1), v, u))
    return tuple(found)
