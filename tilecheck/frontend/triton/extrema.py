"""The smallest and the largest element of a tile of integers: `tl.min(tl.where(found, tl.arange(0, B), n))`.

It is one of the elements, as a tile has one at least, and it is an integer, which is never no number. Each
element is one of the branches of the choices that it is made of, whatever decides them. So where each branch is
the same for all lanes, or counts them from such a value on, the result lies between the smallest of what
branches begin with and the largest of what they end with. What is compared must not have wrapped, which is
asked for; so the branches are made of launch values and block ids alone, of which a launch shows that (S5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.values import arithmetic
from tilecheck.frontend.values.values import Num, lane
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind

_MOST = 8  # branches


def between(x: Executor, tile: Num, result: Num) -> Num:
    """The smallest or largest element of `tile`, `result` so far, with what its elements say of it."""
    if tile.elem is None or result.elem is None or len(tile.shape) != 1 or result.shape:
        return result
    if tile.kind != "int" and not (tile.kind == "any" and x.is_integer_memory(tile.elem)):
        return result
    ends = [_ends(branch, tile.shape[0]) for branch in _branches(tile.elem)]
    known = [end for end in ends if end is not None]
    if tile.unsigned is not None or len(known) < len(ends) or len(known) > _MOST:
        return result
    wraps = tile.bits == 32 and arithmetic.may_have_wrapped(tile.elem)
    if wraps and x.fits(tile.elem, tile.shape) is not tile.elem:
        return result
    low, high = known[0]
    for first, last in known[1:]:
        low, high = E.minimum(low, first), E.maximum(high, last)
    return replace(result, elem=E.maximum(low, E.minimum(result.elem, high)))


def _branches(e: Expr) -> Iterator[Expr]:
    if e.op == "ite":
        yield from _branches(e.args[1])
        yield from _branches(e.args[2])
    else:
        yield e


def _ends(e: Expr, size: Expr) -> tuple[Expr, Expr] | None:
    """The smallest and the largest value that a branch has in lanes 0 to `size - 1`."""
    if _is_uniform(e):
        return e, e
    rest = E.sub(e, lane(0))
    return (rest, E.add(rest, E.sub(size, 1))) if _is_uniform(rest) else None


def _is_uniform(e: Expr) -> bool:
    """Whether it is made of what a launch knows, and all lanes have the same."""
    return all(s.kind <= Kind.BLOCK for s in E.symbols(e)) and all(n.op != "read" for n in E.walk(e))
