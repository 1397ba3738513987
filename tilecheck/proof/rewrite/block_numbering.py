"""Blocks of a grid that are numbered row by row, and whose number is taken apart in groups of rows.

    x = b0 + b1 * grid[0], w = grid[1] * G, first = x // w * G, size = min(grid[0] - first, G)
    row = first + x % w % size, column = x % w // size

Matrix products order their tiles so. Each row and column is that of exactly one block, so a goal that speaks of
them alone is stated of (b0, b1) in their place.

Sound because (b0, b1) -> (row, column) is one to one from the grid onto itself, for G >= 1. x numbers the
blocks from 0 to grid[0] * grid[1] - 1. The numbers from (x // w) * w on are those of the group's rows: w of
them where all G rows are left, and size * grid[1] of them in the last group, as grid[0] * grid[1] - first *
grid[1] are left. Counted from there they are below size * grid[1], and as quotient and remainder by size they
are each column and each row of the group once. With x % size in the place of x % w % size, the rows of each
column are turned round by the same number, which is one to one too.

So what holds of all blocks holds of all rows and columns, and the other way round; two blocks differ exactly
where their rows or columns differ. Nothing else in the goal may depend on the two ids: what else is assumed
with them is left out. Values from memory say nothing of ids, but what atomics return may: a kernel with
atomics is left as it is. Where a flag of compile time says that the ids are taken as they are, they are the
row and the column in the launches where it is set. That w is at least 1, and so G, has an obligation of its
own, as a divisor of what is no row or column yet.

Of other goals it is stated that x is below grid[0] * grid[1]: b1 <= grid[1] - 1 and grid[0] >= 1, so x is at
most grid[0] - 1 + (grid[1] - 1) * grid[0].

The size of a group is also spelled `n % G if n < first + G else G`, n = grid[0]. That is min(n - first, G)
for 1 <= G and first <= n: where n < first + G, n - first is at least 0 and below G, and first is a multiple
of G, so it is the remainder; elsewhere it is at least G. And first <= n, as first * grid[1] <= x < n *
grid[1].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import (
    TRUE,
    Expr,
    Kind,
    Symbol,
    add,
    all_of,
    conjuncts,
    floordiv,
    lt,
    minimum,
    mod,
    mul,
    neg,
    render,
    sub,
    substitute,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.kernel import Effect, Kernel
from tilecheck.proof.conditions.generators.counts import is_flag
from tilecheck.proof.obligation import Disjoint, Holds, Obligation


@dataclass(frozen=True, slots=True)
class Flat:
    """The number `x` of a block: the id `inner`, of which there are `rows`, and that many times the id `outer`,
    of which there are `columns`."""

    x: Expr
    inner: Symbol
    outer: Symbol
    rows: Expr
    columns: Expr


def flats(*terms: Expr) -> Iterator[Flat]:
    """The numbers of blocks in terms."""
    for node in walk(*terms):
        if node.op != "add" or len(node.args) != 2:
            continue
        for one, other in (node.args, node.args[::-1]):
            inner = _id(one)
            if inner is None or other.op != "mul" or len(other.args) != 2 or inner.bound not in other.args:
                continue
            outer = _id(other.args[0] if other.args[1] is inner.bound else other.args[1])
            if outer is not None and outer != inner and inner.bound is not None and outer.bound is not None:
                yield Flat(node, inner, outer, inner.bound, outer.bound)


def renumbered(obligation: Obligation, kernel: Kernel) -> Obligation:
    """The obligation with ids in place of rows and columns, where it speaks of these alone."""
    goal = obligation.goal
    if not isinstance(goal, Holds | Disjoint) or any(a.effect is Effect.ATOMIC for a in kernel.accesses):
        return obligation
    terms = tuple(_terms(goal))
    for flat in dict.fromkeys(flats(*terms)):
        ids = {flat.inner, flat.outer}
        for row, column in _tiles(flat, terms):
            plain = _plain(flat, row, column, terms)
            if plain is None:
                continue
            # Marks for the ids that stand for a row or a column: others that are left are the block's own.
            marks = {sym(s): sym(replace(s, uid=-1 - s.uid)) for s in (flat.inner, flat.outer)}
            marked = {node: marks[e] for node, e in plain.items()}
            if any(ids.intersection(symbols(substitute(term, marked))) for term in terms):
                continue
            assumed = [t for t in conjuncts(obligation.assume) if not ids & set(symbols(substitute(t, marked)))]
            return _rewritten(replace(obligation, assume=all_of(*assumed)), partial(_substituted, plain))
    return obligation


def numbered(obligation: Obligation, kernel: Kernel) -> Obligation:
    """The obligation with what is known of the numbers of blocks in it, in the plainest form."""
    goal = obligation.goal
    if not isinstance(goal, Holds | Disjoint):
        return obligation
    terms = tuple(_terms(goal))
    found = tuple(dict.fromkeys(flats(*terms)))
    if not found:
        return obligation
    plainer = dict(_last_groups((*terms, obligation.assume), found))
    if plainer:
        obligation = _rewritten(obligation, partial(_substituted, plainer))
    changed = renumbered(obligation, kernel)
    if changed is not obligation:
        return changed
    facts = [lt(flat.x, mul(flat.rows, flat.columns)) for flat in found]
    return replace(obligation, assume=all_of(obligation.assume, *facts))


def _last_groups(terms: tuple[Expr, ...], found: tuple[Flat, ...]) -> Iterator[tuple[Expr, Expr]]:
    """The sizes of groups that are spelled with a remainder, and their plainer form."""
    for node in walk(*terms):
        if node.op != "ite" or node.args[0].op != "lt" or node.args[1].op != "mod":
            continue
        test, rest, size = node.args
        n, end = test.args
        if rest is not mod(n, size) or end.op != "add" or len(end.args) != 2 or size not in end.args:
            continue
        first = end.args[0] if end.args[1] is size else end.args[1]
        if first.op != "mul" or len(first.args) != 2 or size not in first.args:
            continue
        group = first.args[0] if first.args[1] is size else first.args[1]
        if any(n is flat.rows and _group(group, flat) is size for flat in found):
            yield node, minimum(sub(n, first), size)


def _substituted(plain: dict[Expr, Expr], e: Expr) -> Expr:
    return substitute(e, plain)


def _id(e: Expr) -> Symbol | None:
    return e.args[0] if e.op == "sym" and e.args[0].kind is Kind.BLOCK and e.args[0].bound is not None else None


def _tiles(flat: Flat, terms: tuple[Expr, ...]) -> Iterator[tuple[tuple[Expr, ...], Expr]]:
    """The rows, in their spellings, and the columns that the number is taken apart into."""
    nodes = set(walk(*terms))
    for node in walk(*terms):
        group = _group(node, flat)
        if group is None or _varies(group):
            continue
        inside = mod(flat.x, node.args[1])
        firsts = mul(node, group), mul(group, node)
        lefts = [left for f in firsts for left in (sub(flat.rows, f), add(neg(f), flat.rows))]
        sizes = {size for left in lefts for size in (minimum(left, group), minimum(group, left))}
        for size in sorted(sizes & nodes, key=render):
            rests = mod(inside, size), mod(flat.x, size)
            rows = [row for f in firsts for rest in rests for row in (add(f, rest), add(rest, f))]
            yield tuple(rows), floordiv(inside, size)


def _group(node: Expr, flat: Flat) -> Expr | None:
    """G where the node is the number of a group, `x // (columns * G)`."""
    if node.op != "floordiv" or node.args[0] is not flat.x or node.args[1].op != "mul":
        return None
    width, columns = node.args[1].args, flat.columns
    if len(width) != 2 or columns not in width:
        return None
    group: Expr = width[0] if width[1] is columns else width[1]
    return group


def _varies(e: Expr) -> bool:
    return any(s.varies for s in symbols(e)) or any(node.op == "read" for node in walk(e))


def _plain(
    flat: Flat, rows: tuple[Expr, ...], column: Expr, terms: tuple[Expr, ...]
) -> dict[Expr, Expr] | None:
    """What the ids stand for; None if not all rows and columns in `terms` are spelled alike, and chosen by one
    flag if by any."""
    inner, outer = sym(flat.inner), sym(flat.outer)
    found: dict[Expr, Expr] = {}
    spelled: set[Expr] = set()
    flags: set[Expr] = set()
    for node in walk(*terms):
        if node.op == "ite" and is_flag(node.args[0]):
            test, own, other = node.args
            if (own is inner and other in rows) or (own is outer and other is column):
                found[node] = own
                flags.add(test)
        if node in rows:
            spelled.add(node)
    if len(spelled) > 1 or len(flags) > 1:
        return None
    if not flags:
        found = {column: outer} | dict.fromkeys(spelled, inner)
    return found


def _terms(goal: Holds | Disjoint) -> Iterator[Expr]:
    if isinstance(goal, Holds):
        yield from (goal.goal, goal.given)
    accesses = (goal.first, goal.second) if isinstance(goal, Disjoint) else (goal.access,)
    for access in accesses:
        if access is not None:
            yield from (access.guard, access.mask, TRUE if access.member is None else access.member)
            for axis in access.axes:
                yield from (axis.index, axis.step, axis.size, axis.extent, axis.base)


def _rewritten(obligation: Obligation, new: Callable[[Expr], Expr]) -> Obligation:
    goal = obligation.goal
    if isinstance(goal, Holds):
        access = None if goal.access is None else goal.access.mapped(new)
        goal = replace(goal, goal=new(goal.goal), given=new(goal.given), access=access)
    elif isinstance(goal, Disjoint):
        first = goal.first.mapped(new)
        second = first if goal.second is goal.first else goal.second.mapped(new)
        goal = replace(goal, first=first, second=second)
    return replace(obligation, goal=goal, assume=new(obligation.assume))
