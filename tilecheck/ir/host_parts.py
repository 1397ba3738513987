"""How the products of parts of one shape go together, for tensors whose rank is not known.

`x.numel()` is `x.shape[:-1].numel() * x.shape[-1]`. An axis that a tensor is too short to have counts as one of
length 1: host code that asks for its extent has raised before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilecheck.ir.expr import ONE, Expr, any_of, eq, le, lt, mul, sym, symbols
from tilecheck.ir.host import EXTENT, NUMEL, host_extent, host_numel, host_part, host_rank, owner, part_of_shape

Cut = tuple[int, int]  # so many axes are left out at the start, and at the end


def in_pieces(
    said: Sequence[Expr], counts: Iterable[Expr], ranks: Mapping[str, int]
) -> tuple[dict[Expr, Expr], tuple[Expr, ...]]:
    """Products of parts of shapes as products of the smallest parts that occur, and what relates the others.

    `said` is what the launch's text says, `counts` how many elements its tensors have.
    """
    asked = {owner(s) for s in symbols(*said) if s.origin == NUMEL}
    cuts: dict[str, set[Cut]] = {}
    extents: dict[str, list[Expr]] = {}
    for symbol in symbols(*said, *counts):
        name = owner(symbol) or ""
        if name in ranks:
            continue
        if symbol.origin == EXTENT:
            extents.setdefault(name, []).append(sym(symbol))
        elif symbol.origin == NUMEL:
            start, stop = part_of_shape(symbol)
            own = cuts.setdefault(name, set())
            if start >= 0 and (stop is None or stop < 0):
                own.add((start, -(stop or 0)))
    meant: dict[Expr, Expr] = {}
    facts: dict[Expr, None] = {}
    for name, own in sorted(cuts.items()):
        firsts, lasts = {a for a, _ in own}, {b for _, b in own}
        if firsts == {0} or lasts == {0}:
            meant.update(_split(name, own, max(firsts), max(lasts)))
        else:
            facts.update(dict.fromkeys(_related(name, own)))
        if name in asked:
            facts.update(dict.fromkeys(_not_empty(name, extents.get(name, ()))))
    return meant, tuple(facts)


def _split(name: str, own: set[Cut], first: int, last: int) -> dict[Expr, Expr]:
    """Each part as the smallest one, times the axes that this leaves out and the part does not."""
    whole = _product(name, first, last)
    found = {}
    for a, b in own - {(first, last)}:
        before = (sym(host_extent(name, k)) for k in range(a, first))
        after = (sym(host_extent(name, -k)) for k in range(last, b, -1))
        found[_product(name, a, b)] = mul(*before, whole, *after)
    return found


def _related(name: str, own: set[Cut]) -> Iterable[Expr]:
    """Parts that are cut at both ends: of a tensor with fewer axes the ends would meet."""
    count = sym(host_numel(name))
    for a, b in sorted(own - {(0, 0)}):
        before = (sym(host_extent(name, k)) for k in range(a))
        after = (sym(host_extent(name, -k)) for k in range(b, 0, -1))
        short = lt(sym(host_rank(name)), a + b) if a and b else le(1, 0)
        yield any_of(short, eq(count, mul(*before, _product(name, a, b), *after)))


def _product(name: str, first: int, last: int) -> Expr:
    return sym(host_part(name, first, -last if last else None))


def _not_empty(name: str, extents: Iterable[Expr]) -> Iterable[Expr]:
    """A tensor with elements has some along every axis, and not more than it has."""
    count = sym(host_numel(name))
    for extent in extents:
        yield any_of(le(count, 0), le(ONE, extent))
        yield any_of(le(count, 0), le(extent, count))
