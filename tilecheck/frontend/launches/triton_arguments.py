"""Arguments of `kernel[grid](...)`: what a launch of a Triton kernel passes, its decorators included.

A parameter that the call leaves out gets its value from `triton.autotune`, from `triton.heuristics`, or from
its default. Names that are no parameters are options of the launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.expressions import MODULE, evaluate
from tilecheck.frontend.execute.state import Arguments
from tilecheck.frontend.host.arguments import number
from tilecheck.frontend.host.targets import UNKNOWN_KEYWORDS
from tilecheck.frontend.host.values import HostShape, Starred
from tilecheck.frontend.kernels.annotations import read_annotation
from tilecheck.frontend.launches import tuning
from tilecheck.frontend.values.values import Choice, Frame, Function, Method, Seq, integer
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr
from tilecheck.ir.host import host_extent, host_rank, host_stride
from tilecheck.ir.launch_ranks import fixed_ranks

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor

Caller = Callable[[Any, Arguments], Any]


@dataclass(frozen=True, slots=True)
class Bound:
    """The value of each parameter, and what a grid function is given: these and the options."""

    values: Mapping[str, Any]
    meta: Mapping[str | int, Any]
    warps: Any = None  # `num_warps` of the launch; None where it is not read


def is_tuple(grid: Any) -> bool:
    """Whether a grid is not a function, in any of its choices."""
    if isinstance(grid, Choice):
        return is_tuple(grid.first) and is_tuple(grid.second)
    return not isinstance(grid, Function | Method)


def bound(x: HostExecutor, kernel: Function, args: Arguments, call: Caller) -> Bound:
    """What a call of a gridded kernel passes; `call` calls a value of the host.

    Raises:
        UnsupportedConstruct: the arguments cannot be matched with the parameters.
    """
    params = _parameters(kernel)
    given = dict(zip(params, _positional(x, kernel, params, args), strict=False))
    options: dict[str | int, Any] = {}
    for name, value in args.keywords:
        if name in params and name not in given:
            given[name] = value
        elif name != UNKNOWN_KEYWORDS:
            options[name] = value
    constants = [name for name, param in params.items() if _is_constant(kernel, param)]
    given.update(tuning.tuned(x, kernel, given, constants, call, args))
    whole = UNKNOWN_KEYWORDS not in dict(args.keywords)
    values = {name: _value(x, kernel, param, given, whole=whole) for name, param in params.items()}
    warps = options.get("num_warps")
    if warps is None and whole:
        tuned = tuning.tuned_warps(x, kernel, given)
        warps = None if tuned is None else integer(tuned)
    options.update(values)
    return Bound(values, options, warps)


def _parameters(kernel: Function) -> dict[str, cst.Param]:
    params = kernel.node.params
    return {p.name.value: p for p in (*params.posonly_params, *params.params, *params.kwonly_params)}


def _positional(
    x: HostExecutor, kernel: Function, params: Mapping[str, cst.Param], args: Arguments
) -> list[Any]:
    """The arguments by position; how long `*x.stride()` is follows from how many parameters are left for it."""
    starred = [value for value in args.positional if isinstance(value, Starred)]
    if not starred and len(args.positional) > len(params):
        raise UnsupportedConstruct("launch with more arguments than parameters")
    if not starred:
        return list(args.positional)
    left = _left_to_position(kernel, params, args) - (len(args.positional) - len(starred))
    lengths = _lengths(x, starred, left)
    if lengths is None:
        return _one_after_another(x, args.positional, left)
    found: list[Any] = []
    for value in args.positional:
        if isinstance(value, Starred):
            unpack = Arguments((integer(next(lengths)),), (), args.node, args.table)
            items = x.dialect.method(x, value.value, "<unpack>", unpack)
            found += items.items if isinstance(items, Seq) else []
        else:
            found.append(value)
    return found


def _lengths(x: HostExecutor, starred: Sequence[Starred], left: int) -> Iterator[int] | None:
    """The lengths of lists that have so many items together; None if nothing fixes them.

    Of one list, and of lists of tensors that have one rank, they are fixed: any others are a TypeError.
    """
    of = [v.value.of if isinstance(v.value, HostShape) else None for v in starred]
    if len(of) == 1:
        return iter([left])
    known = fixed_ranks((x.guard,))
    if of[0] is not None and of[0] not in known and left % len(of) == 0:
        known = fixed_ranks((x.guard, E.eq(E.sym(host_rank(of[0])), left // len(of))))
    lengths = [known[name] for name in of if name in known]
    return iter(lengths) if len(lengths) == len(of) and sum(lengths) == left else None


def _one_after_another(x: HostExecutor, positional: Sequence[Any], left: int) -> list[Any]:
    """Arguments with lists beside each other of which only the length of all is known: an item of these is one
    of the first list, or the next one's, as the ranks of their tensors decide."""
    first = next(k for k, v in enumerate(positional) if isinstance(v, Starred))
    starred = [v.value for v in positional if isinstance(v, Starred)]
    lists = [value for value in starred if isinstance(value, HostShape)]
    behind = positional[first + len(lists) :]
    if len(lists) < len(starred) or any(isinstance(v, Starred) for v in behind):
        raise UnsupportedConstruct("launch with several lists of unknown length")
    starts = list(accumulate((E.sym(host_rank(v.of)) for v in lists), E.add))
    x.assume(E.eq(starts.pop(), left))
    items = []
    for position in range(left):
        item = _entry(lists[0], position)
        for of, start in zip(lists[1:], starts, strict=True):  # the last that begins here or before has it
            for axis in range(position + 1):
                item = E.ite(E.eq(E.add(start, E.const(axis)), position), _entry(of, axis), item)
        items.append(number(item))
    return [*positional[:first], *items, *behind]


def _entry(of: HostShape, axis: int) -> Expr:
    return E.sym((host_stride if of.strides else host_extent)(of.of, axis))


def _left_to_position(kernel: Function, params: Mapping[str, cst.Param], args: Arguments) -> int:
    """How many parameters are passed by position: those before the first that is passed another way."""
    named = {name for name, _ in args.keywords}
    if UNKNOWN_KEYWORDS in named:
        raise UnsupportedConstruct("launch with lists of unknown length and unknown keywords")
    for count, (name, param) in enumerate(params.items()):
        if name in named or _is_constant(kernel, param) or param.default is not None:
            return count
    return len(params)


def _is_constant(kernel: Function, param: cst.Param) -> bool:
    return param.annotation is not None and read_annotation(kernel.table, param.annotation.annotation).constant


def _value(
    x: HostExecutor, kernel: Function, param: cst.Param, given: Mapping[str, Any], *, whole: bool
) -> Any:
    """What a parameter is given; `whole` says that the call's text names all that it passes."""
    name = param.name.value
    if name in given:
        return given[name]
    if param.default is None or not whole:
        return x.unread(f"{kernel.name}.{name}")  # from a decorator or keywords that are not read
    if name in dict(kernel.defaults):
        return dict(kernel.defaults)[name]
    return evaluate(x, param.default, kernel.closure or Frame({}, None, kernel.table, MODULE, [], 0))
