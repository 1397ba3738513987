"""Lists of host code that change in place: `sizes.append(n)`, `sizes.pop(d)`, `del sizes[axis]`.

The text says which object it is, and where it changes: at a literal, at a position of a shape of any rank, or
at one of two (`axis = 0 if x.ndim == 1 else 1`). In loops that are run once for any iteration none is followed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host.arguments import number
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.targets import change
from tilecheck.frontend.host.values import Dims, Unknown
from tilecheck.frontend.values.values import Const, Frame, Num, Seq
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor

Change = tuple[Any, Any]  # the list after it, and what the method gives
METHODS = frozenset({"append", "insert", "pop", "extend"})


def is_list(value: Any) -> bool:
    return isinstance(value, Seq | Dims) and value.is_list


def changed(x: HostExecutor, held: Any, method: str, args: Arguments, frame: Frame) -> Any:
    """Call a method of a list that changes it."""
    if x.nest or args.keywords:
        raise UnsupportedConstruct(f"list method `.{method}`")
    given = args.positional
    match method, given:
        case "append", [item]:
            after: Change = _inserted(x, held, None, item), Const(None)
        case "extend", [Seq() as more]:
            after = _joined(x, held, more), Const(None)
        case "insert", [index, item]:
            after = _at(x, index, lambda k: (_inserted(x, held, k, item), Const(None)))
        case "pop", [] | [_]:
            last = number(E.const(-1))
            after = _at(x, given[0] if given else last, lambda k: _without(x, held, k))
        case _:
            raise UnsupportedConstruct(f"list method `.{method}`")
    change(x, held, after[0], frame)
    return after[1]


def delete_item(x: HostExecutor, held: Any, index: Any, frame: Frame) -> None:
    """`del held[index]`."""
    if x.nest or not isinstance(index, Num | Unknown):
        raise UnsupportedConstruct("deletion of an item")
    change(x, held, _at(x, index, lambda k: _without(x, held, k))[0], frame)


def _at(x: HostExecutor, index: Any, after: Callable[[Expr], Change]) -> Change:
    """A change at a position, or at one of two."""
    k = x.scalar(index, "index")
    if k.op != "ite":
        return after(k)
    cond, one, other = k.args
    first, second = after(one), after(other)
    return x.merge(cond, first[0], second[0]), x.merge(cond, first[1], second[1])


def _inserted(x: HostExecutor, held: Any, k: Expr | None, item: Any) -> Any:
    if isinstance(held, Seq) and (k is None or k.value is not None):
        at = len(held.items) if k is None else k.value
        return Seq((*held.items[:at], item, *held.items[at:]), is_list=True)
    parts = unknown_ranks.parts_of(x, held)
    size = x.scalar(item, "extent")
    ways = None if parts is None else (parts, ()) if k is None else unknown_ranks.divided(x, parts, k)
    if ways is None:
        raise UnsupportedConstruct("insertion into a list")
    return unknown_ranks.shape_of_parts((*ways[0], size, *ways[1]), is_list=True)


def _joined(x: HostExecutor, held: Any, more: Seq) -> Any:
    if isinstance(held, Seq):
        return Seq((*held.items, *more.items), is_list=True)
    sizes = tuple(x.scalar(item, "extent") for item in more.items)
    return unknown_ranks.shape_of_parts((*held.parts, *sizes), is_list=True)


def _without(x: HostExecutor, held: Any, k: Expr) -> Change:
    if isinstance(held, Seq) and k.value is not None and -len(held.items) <= k.value < len(held.items):
        items = list(held.items)
        item = items.pop(k.value)
        return Seq(tuple(items), is_list=True), item
    parts = unknown_ranks.parts_of(x, held)
    # What stands in the place of the item is left out again.
    here = x.natural("item").elem or E.ZERO
    if parts is None:
        marked = None
    elif k.value is not None:
        marked = unknown_ranks.replaced(parts, k.value, here)
    else:
        marked = unknown_ranks.replaced_somewhere(x, parts, k, here)
    size = None if parts is None else unknown_ranks.item_somewhere(x, parts, k)
    if marked is None or size is None:
        raise UnsupportedConstruct("removal from a list")
    rest = tuple(part for part in marked if part is not here)
    return unknown_ranks.shape_of_parts(rest, is_list=True), number(size)
