"""As many blocks as a branch for the last of them, one under a flag, or one for each of a group asks for.

    if i_t >= n - 1: ...        grid[0] <= n: then it is block n - 1 alone that is in the branch
    if i_t >= n - 2: ...        none: a launch of n blocks is what is meant, and two of them are in the branch
    if SPLIT_K == 1: ...        grid[1] <= 1, where the element does not name that axis
    x[i_head // GROUP]          GROUP <= 1: where the element does not name which of a group a block is
    sums[i // cdiv(V, BV)]      cdiv(V, BV) <= 1: where each tile of V stores what is no part of it
    x[i + n], n < r             r <= 1: where the next block's window of rows begins one row further

Nothing here is trusted: the search asks for a proof under the conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr, Kind, Symbol, all_of, children, conjuncts, le, mod, sub, sym, symbols, walk
from tilecheck.ir.kernel import Access, Kernel, block_symbol, grid_symbol
from tilecheck.proof.conditions.generators.counts import is_flag
from tilecheck.proof.conditions.generators.layout import is_layout
from tilecheck.proof.conditions.ranges import Ranges, largest
from tilecheck.proof.conditions.terms import Terms


def last_blocks(accesses: Iterable[Access], terms: Terms) -> tuple[Expr, ...]:
    """`grid[k] <= n` for the guards `n - 1 <= i` where i is taken from a block index."""
    found: dict[Expr, None] = {}
    for access in accesses:
        guards = conjuncts(access.guard)
        for term in guards:
            low, high = term.args if term.op in ("le", "lt") else (term, term)
            if term.op not in ("le", "lt") or not terms.uniform(low) or low.value is not None:
                continue
            if not any(s.kind is Kind.BLOCK for s in symbols(high)):
                continue
            ranges = Ranges(terms, tuple(other for other in guards if other is not term))
            most = low if term.op == "le" else sub(low, -1)
            asked = (c for c in largest(ranges, high, most) if is_layout(c, terms))
            found.update((c, None) for c in asked if c.args[1].op != "add")
    return tuple(found)


def lone_blocks(accesses: Iterable[Access], kernel: Kernel) -> tuple[Expr, ...]:
    """`grid[k] <= 1` for the axes that no access under a compile-time flag names, none if one is under no flag:
    blocks that differ along such an axis alone touch the same elements."""
    accesses = tuple(accesses)
    if not all(any(map(is_flag, conjuncts(access.guard))) for access in accesses):
        return ()
    named = symbols(*(all_of(a.guard, a.mask) for a in accesses), *(x.index for a in accesses for x in a.axes))
    return tuple(le(sym(grid_symbol(k)), 1) for k in kernel.grid_axes if block_symbol(k) not in named)


def lone_groups(accesses: Iterable[Access], kernel: Kernel, terms: Terms) -> tuple[Expr, ...]:
    """`d <= 1` for the quotients `x // d` of a digit of a block index, where nothing in the kernel says which
    of d blocks with one quotient it is, but for x itself in another element: the head of a group of heads.

    Of a quotient of the block index itself, `i // H`, the digit `i % H` may have been forgotten, or all blocks
    of a row may store its sum: then no launch is right for which the kernel was written.
    """
    found: dict[Expr, None] = {}
    everywhere = tuple(walk(*(axis.coordinate for access in kernel.accesses for axis in access.axes)))
    own = {child for node in everywhere if node.op in ("add", "mul") for child in children(node)}
    for access in accesses:
        for node in walk(access.guard, access.mask, *(axis.coordinate for axis in access.axes)):
            x, d = node.args if node.op == "floordiv" else (node, node)
            if x.op != "mod" or own.isdisjoint((x, x.args[0])):
                continue
            if mod(x, d) in everywhere or not _is_group(d, terms):
                continue
            if all(s.kind is Kind.BLOCK for s in symbols(x) if s.varies):
                found[le(d, 1)] = None
    return (*found, *_lone_tiles(tuple(accesses), everywhere, terms), *lone_windows(accesses, kernel, terms))


def lone_windows(accesses: Iterable[Access], kernel: Kernel, terms: Terms) -> tuple[Expr, ...]:
    """`r <= 1` where each block walks a window of r rows that begins at its own index, up to the last row
    (`range(i, min(i + r, R))`, or with a mask), so that with more rows the windows of neighbours overlap. Of a
    number that says more than how many rows a block walks nothing is asked."""
    own = {window.rows: window for access in accesses for window in _windows(access, terms)}
    if not own:
        return ()
    told = {window.test for access in kernel.accesses for window in _windows(access, terms)}
    said = [e for a in kernel.accesses for e in (a.mask, a.lane_facts, *(axis.coordinate for axis in a.axes))]
    said += [term for a in kernel.accesses for term in conjuncts(a.guard) if term not in told]
    elsewhere = symbols(*said)
    return tuple(le(rows, 1) for rows in own if not any(s in elsewhere for s in symbols(rows)))


def windows_begin_at(accesses: Iterable[Access], terms: Terms) -> frozenset[Symbol]:
    """The block indices at which windows of rows begin: how many rows they have is what keeps these apart."""
    return frozenset(window.block for access in accesses for window in _windows(access, terms))


@dataclass(frozen=True, slots=True)
class _Window:
    """`test` says that a round of a loop is one of `rows` from the index of `block` on."""

    test: Expr
    rows: Expr
    block: Symbol


def _windows(access: Access, terms: Terms) -> Iterator[_Window]:
    """The tests `i + n < min(i + r, R)` around an access, n a round of a loop and i a block index, and `n < r`
    beside `i + n < R`."""
    tests = conjuncts(access.guard)
    ends = {_start(t.args[0]): t.args[1] for t in (*tests, *conjuncts(access.mask)) if t.op in ("lt", "le")}
    for test in tests:
        if test.op != "lt":
            continue
        row, end = test.args
        start = _start(row)
        if start is not None and end.op == "min":
            rows = (sub(limit, sym(start[0])) for limit in end.args)
            yield from (_Window(test, r, start[0]) for r in rows if _is_group(r, terms))
        elif row.op == "sym" and row.args[0].kind is Kind.LOOP and _is_group(end, terms):
            limited = (at for at, most in ends.items() if at is not None and terms.uniform(most))
            yield from (_Window(test, end, block) for block, loop in limited if loop is row.args[0])


def _start(row: Expr) -> tuple[Symbol, Symbol] | None:
    """The block index and the round of a loop of which a row is the sum."""
    parts = row.args if row.op == "add" else ()
    found = sorted((p.args[0] for p in parts if p.op == "sym"), key=lambda s: s.kind)
    if len(parts) != 2 or [s.kind for s in found] != [Kind.BLOCK, Kind.LOOP]:
        return None
    return found[0], found[1]


def _lone_tiles(accesses: Sequence[Access], everywhere: Sequence[Expr], terms: Terms) -> Iterator[Expr]:
    """`cdiv(V, BV) <= 1` where blocks that differ in the tile of V store one element, `x // cdiv(V, BV)`, and
    other elements of the kernel name the tile: what is no part of a tile of V, each of the tiles stores.

    x is a digit of a block index, or the index itself, from the first of the blocks that a launch is for.
    """
    terms_of = ((a.guard, a.mask, *(axis.coordinate for axis in a.axes)) for a in accesses)
    own = dict.fromkeys(walk(*(e for said in terms_of for e in said)))
    for node in own:
        x, d = node.args if node.op == "floordiv" else (node, node)
        if x.op not in ("mod", "sym", "add") or d.op != "floordiv" or not terms.uniform(d):
            continue
        digits = {mod(x, d), mod(x.args[0], d)} if x.op == "mod" else {mod(x, d)}
        tiles = any(s in terms.tiles for s in symbols(d))
        told = digits.isdisjoint(own) and not digits.isdisjoint(everywhere)
        if tiles and told and all(s.kind is Kind.BLOCK for s in symbols(x) if s.varies):
            yield le(d, 1)


def _is_group(d: Expr, terms: Terms) -> bool:
    """Whether it is a number of the launch, or a quotient of two: `NUM_HEADS // NUM_KV_HEADS`."""
    numbers = d.args if d.op == "floordiv" else (d,)
    kinds = (Kind.SCALAR, Kind.CONSTANT)
    return all(e.op == "sym" and e.args[0].kind in kinds and e.args[0] not in terms.tiles for e in numbers)
