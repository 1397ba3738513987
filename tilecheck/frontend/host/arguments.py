"""What methods and functions of host code read from their arguments: numbers, axes, sizes, formats."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.values import Axes, Dims, HostShape, Tensor, Unknown
from tilecheck.frontend.values.values import Choice, Const, Named, Num, Seq, Token
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, conjuncts
from tilecheck.ir.host import ranks_in

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor

_SIZES = ("size", "shape", "sizes", "dims")


def number(value: Expr) -> Num:
    return Num((), value, "int", None)


def unsupported(what: str) -> UnsupportedConstruct:
    return UnsupportedConstruct(what)


def literal(key: Any) -> str | int | None:
    match key:
        case Const(str() as text):
            return text
        case Num() if key.elem is not None and key.elem.value is not None:
            return key.elem.value
        case _:
            return None


def without(args: Arguments, positions: int) -> Arguments:
    """The arguments after the first few."""
    return replace(args, positional=args.positional[positions:])


def sizes(x: HostExecutor, args: Arguments) -> unknown_ranks.Parts:
    """Sizes given one by one, as a tuple, or by keyword; perhaps with those of a free tensor among them."""
    given = list(args.positional) or [v for k, v in args.keywords if k in _SIZES]
    if len(given) == 1:
        found = unknown_ranks.parts_of(x, given[0])
        if found is not None:
            return unknown_ranks.of_ranks(found, ranks_in(conjuncts(x.guard))) or found
        if isinstance(given[0], Unknown) and given[0].opaque and given[0].name not in x.integer_names:
            return (Axes(given[0].name),)  # sizes, or one: nothing in the text uses it as a number
    if not given or any(isinstance(value, HostShape | Dims) for value in given):
        raise unsupported("sizes that are not given")
    return tuple(x.scalar(value, "size") for value in given)


def iterable(x: HostExecutor, value: Any, unless: Expr = E.FALSE) -> Any:
    """A value that is iterated over, `unless` nothing is done: Python raises where it is a number."""
    match value:
        case Choice(first=Num(), second=other):
            x.assume(E.any_of(unless, E.negate(value.cond)))
            return other
        case Choice(first=other, second=Num()):
            x.assume(E.any_of(unless, value.cond))
            return other
        case _:
            return value


def integers(x: HostExecutor, args: Arguments, names: tuple[str, ...] = _SIZES) -> list[Expr]:
    """Numbers given one by one, as a tuple, or by keyword."""
    given = list(args.positional) or [v for k, v in args.keywords if k in names]
    if len(given) == 1 and isinstance(given[0], Seq):
        given = list(given[0].items)
    if not given:
        raise unsupported("sizes that are not given")
    return [x.scalar(value, "size") for value in given]


def constants(x: HostExecutor, args: Arguments) -> list[int]:
    """Axes that the text says."""
    found = [e.value for e in integers(x, args, ("dim", "dims", "axes"))]
    if any(v is None for v in found):
        raise unsupported("symbolic axis")
    return [v for v in found if v is not None]


def one_axis(x: HostExecutor, args: Arguments, default: int) -> Expr | int:
    """The axis that is asked for."""
    given = [*args.positional, *(v for k, v in args.keywords if k in ("dim", "axis"))]
    if not given:
        return default
    value = x.scalar(given[0], "axis")
    return value if value.value is None else value.value


def constant_axis(x: HostExecutor, args: Arguments, default: int) -> int:
    found = one_axis(x, args, default)
    if not isinstance(found, int):
        raise unsupported("symbolic axis")
    return found


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
