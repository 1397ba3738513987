"""Running sums of small integers that are not negative: `tl.cumsum(tl.where(i > 0, a != b, 0))`.

Each element is the sum of the terms up to its place, of all lanes, whatever is masked off later. Where every
term is one of some literals from 0 to M, whichever choices pick it, the element in lane l

- is at least its own term, as no other is below 0;
- is at most `first + l * M`, the first term and l others, and at most its own term and l * M.

In one tile, an element that comes later is larger by its own term at least. That is said of pairs of lanes, by
`proof/goals/predicate.py`. Nothing wraps: tiles have fewer than 2**24 elements and M is at most 127. The terms
must have at least 32 bits, as numbers and truths beside each other do; so the truths alone are not summed up,
which some compilers do in one bit. A sum from the last lane on, and one of another type, is some integer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.values.values import Const, Named, Num, lane
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.kernel import RunningSum

_LARGEST = 127
_MOST = 8  # literals in a term
_INTEGERS = ("int32", "int64")


def summed(x: Executor, tile: Num, result: Num, axis: Any, dtype: Any = None) -> Num:
    """`result`, the sums of `tile` along `axis` from the first lane on, with what is known of them."""
    place = _place(axis, len(tile.shape))
    if place is None or tile.elem is None or result.elem is None or tile.kind != "int" or not _is_usual(dtype):
        return result
    if tile.unsigned is not None or tile.shape != result.shape:
        return result
    terms = list(_literals(tile.elem))
    if len(terms) > _MOST or not all(term is not None and 0 <= term <= _LARGEST for term in terms):
        return result
    largest = max(term for term in terms if term is not None)
    others = E.mul(largest, place)
    first = _largest(E.substitute(tile.elem, {place: E.ZERO}))
    elem = E.maximum(tile.elem, result.elem)
    elem = E.minimum(E.add(others, first), E.minimum(E.add(others, tile.elem), elem))
    if len(tile.shape) == 1 and not x.dry:
        own = Symbol("lane 0", Kind.LANE, x.number(), bound=tile.shape[0])
        value, term = (E.substitute(e, {place: E.sym(own)}) for e in (elem, tile.elem))
        x.sums.append(RunningSum(value, term, own, tuple(k for k, _ in x.nest)))
    return replace(result, elem=elem)


def with_moves(x: Executor, found: RunningSum) -> RunningSum:
    """The sum with the symbols that stand for its own where its tile was given another shape."""
    own = frozenset(s for s in E.symbols(found.value) if s.kind is Kind.OPAQUE)
    changes: dict[object, list[tuple[Symbol, Symbol]]] = {}
    for (symbol, positions), other in x.moves.items():
        if symbol in own:
            changes.setdefault(positions, []).append((other, symbol))
    return replace(found, moved=tuple(map(tuple, changes.values())))


def _place(axis: Any, rank: int) -> Expr | None:
    """The placeholder of the lanes along an axis, the first if none is given."""
    if isinstance(axis, Num):
        at = None if axis.elem is None else axis.elem.value
    else:
        at = 0 if axis is None else None
    return lane(rank - 1 - at % rank) if at is not None and -rank <= at < rank else None


def _is_usual(dtype: Any) -> bool:
    """Whether the type of the sums, if one is given, holds all of them."""
    if dtype is None or dtype == Const(None):
        return True
    return isinstance(dtype, Named) and dtype.name.rpartition(".")[2] in _INTEGERS


def _literals(e: Expr) -> Iterator[int | None]:
    """What a term may be: literals, and None for everything else."""
    stack = [e]
    seen = 0
    while stack and seen <= 2 * _MOST:
        node = stack.pop()
        seen += 1
        if node.op == "ite":
            stack += node.args[1:]
        else:
            yield node.value
    if stack:
        yield None


def _largest(e: Expr) -> Expr:
    """The largest that a term may be, where what is not known of a choice is left open."""
    if e.op != "ite":
        return e
    test, first, second = e.args[0], *map(_largest, e.args[1:])
    return E.maximum(first, second) if _is_open(test) else E.ite(test, first, second)


def _is_open(e: Expr) -> bool:
    """Whether it is made of what a launch does not know."""
    return any(n.op == "read" or (n.op in ("sym", "bsym") and n.args[0].kind is Kind.OPAQUE) for n in E.walk(e))
