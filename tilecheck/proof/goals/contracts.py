"""Contracts about values in memory, instantiated at the elements that a query mentions.

Sound because a contract speaks of elements inside its array only: every instance is guarded by that, so that
an index outside, which means nothing, is never constrained. Instances at the mentioned elements follow from
the contract as a whole, and the contract is a premise that the author answers for. An instance may name an
element that the query does not (the other entry of a row): an element inside its array has some value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations

from tilecheck.ir.expr import (
    FALSE,
    Expr,
    add,
    all_of,
    any_of,
    cdiv,
    eq,
    le,
    lt,
    mul,
    ne,
    negate,
    read,
    sub,
    sym,
    walk,
)
from tilecheck.ir.kernel import Contract, Kernel, extent_symbol, extents_of
from tilecheck.ir.parts import lies_in, residue
from tilecheck.proof.goals.chunk_bounds import rooms

_Reads = dict[str, list[Expr]]  # by the array that is read


def instances(contracts: Sequence[Contract], assertions: Sequence[Expr]) -> tuple[Expr, ...]:
    """What the contracts say of the elements that occur in `assertions`."""
    reads: _Reads = {array: [] for contract in contracts for array in contract.arrays}
    if not reads:
        return ()
    for node in walk(*assertions):
        if node.op == "read" and node.args[0] in reads:
            reads[node.args[0]].append(node)
    found: dict[Expr, None] = {}
    for contract in contracts:
        if contract.is_about_values:  # what arrays share no memory is no matter of values
            found.update(dict.fromkeys(INSTANCES[contract.kind](contract, reads)))
    # Elements that instances name besides: how large they may be, and where the ends of chunks lie.
    named = {n for n in walk(*found) if n.op == "read" and n.args[0] in reads}.difference(*reads.values())
    more: _Reads = {array: [n for n in walk(*found) if n in named and n.args[0] == array] for array in reads}
    both: _Reads = {array: [*nodes, *more[array]] for array, nodes in reads.items()}
    for contract in contracts if named else ():
        if contract.kind in ("filled", "within", "within_or"):
            found.update(dict.fromkeys(INSTANCES[contract.kind](contract, more)))
        elif contract.kind == "increasing" and more[contract.array]:
            found.update(dict.fromkeys(_increasing(contract, both)))
    found.update(dict.fromkeys(rooms(contracts, reads, _inside)))
    return tuple(found)


def some_memory(kernel: Kernel) -> tuple[Expr, ...]:
    """The tables that contracts speak of are not empty, and what the contracts say of their first two elements
    along each axis and of the last ones. Together with the other premises this is unsatisfiable only if no
    memory keeps the contracts."""
    ranks = {p.name: p.rank or 1 for p in kernel.params}
    cells: dict[Expr, None] = {}
    exists: dict[Expr, None] = {}
    for contract in kernel.contracts:
        for array in contract.arrays if contract.is_about_values else ():
            pairs = contract.kind == "distinct_pairs" and kernel.language != "triton"
            rank = 2 if pairs else len(contract.part) or ranks.get(array, 1)
            lengths = [_extent(array, axis) for axis in range(rank)]
            exists.update((lt(0, length), None) for length in lengths)
            for first in (0, 1):
                cells[read(array, first, *[0] * (rank - 1))] = None
            cells[read(array, *(sub(length, 1) for length in lengths))] = None
    return (*exists, *instances(kernel.contracts, tuple(cells)))


# ---- what each kind of contract says -----------------------------------------------------------------------


def _taken(contract: Contract, reads: _Reads) -> Iterator[tuple[Expr, Expr]]:
    """The elements that the contract may speak of, each with the condition under which it does."""
    for node in reads[contract.array]:
        taken = lies_in(node.args[1:], contract.part, extents_of(contract.array))
        if taken is not FALSE:
            yield node, taken


def _filled(contract: Contract, reads: _Reads) -> Iterator[Expr]:
    (value,) = contract.bounds
    for node, taken in _taken(contract, reads):
        yield _implies(all_of(_inside(node), taken), eq(node, value))


def _within(contract: Contract, reads: _Reads) -> Iterator[Expr]:
    low, high = contract.bounds
    for node, taken in _taken(contract, reads):
        yield _implies(all_of(_inside(node), taken), all_of(le(low, node), lt(node, high)))


def _within_or(contract: Contract, reads: _Reads) -> Iterator[Expr]:
    low, high, skip = contract.bounds
    for node, taken in _taken(contract, reads):
        said = any_of(all_of(le(low, node), lt(node, high)), eq(node, skip))
        yield _implies(all_of(_inside(node), taken), said)


def _distinct(contract: Contract, reads: _Reads) -> Iterator[Expr]:
    for (a, is_in), (b, is_too) in combinations(_taken(contract, reads), 2):
        same = all_of(*(eq(i, j) for i, j in zip(a.args[1:], b.args[1:], strict=True)))
        skipped = [eq(a, skip) for skip in contract.bounds]
        yield _implies(all_of(_inside(a, b), is_in, is_too), any_of(ne(a, b), same, *skipped))


def _increasing(contract: Contract, reads: _Reads) -> Iterator[Expr]:
    axis = next(
        (k for k, (_, step) in enumerate(contract.part, start=1) if step), 1
    )  # that the elements lie along
    for (a, is_in), (b, is_too) in permutations(_taken(contract, reads), 2):
        ordered = _at_most(a.args[axis], b.args[axis])
        if ordered is not FALSE:
            yield _implies(all_of(_inside(a, b), is_in, is_too, ordered), le(a, b))


def _at_most(a: Expr, b: Expr) -> Expr:
    """a <= b, where their texts differ by a literal as true or false."""
    (base, offset), (other, more) = _with_offset(a), _with_offset(b)
    return le(offset, more) if base == other else le(a, b)


def _with_offset(e: Expr) -> tuple[tuple[Expr, ...], int]:
    terms = e.args if e.op == "add" else (e,)
    return tuple(t for t in terms if t.value is None), sum(t.value for t in terms if t.value is not None)


def _distinct_pairs(contract: Contract, reads: _Reads) -> Iterator[Expr]:
    """Rows that occur, whichever of their entries does. In flat memory row i is elements 2*i and 2*i + 1."""
    t = contract.array
    rows = dict.fromkeys(node.args[1] for node in reads[t] if len(node.args) == 3)
    starts = _starts(reads[t])
    pairs = [
        *combinations([(row, read(t, row, 0), read(t, row, 1)) for row in rows], 2),
        *combinations([(e, read(t, e), read(t, add(e, 1))) for e in starts], 2),
    ]
    for (i, a, b), (j, c, d) in pairs:
        yield _implies(_inside(a, b, c, d), any_of(eq(i, j), ne(a, c), ne(b, d)))


def _starts(reads: list[Expr]) -> dict[Expr, None]:
    """Where in flat memory pairs begin of which an entry is read."""
    flat = [node.args[1] for node in reads if len(node.args) == 2]
    return dict.fromkeys(e for index in flat for e in (index, sub(index, 1)) if residue(e, 2) == 0)


def _chunks(contract: Contract, reads: _Reads) -> Iterator[Expr]:
    """Chunk k of sequence n begins inside it."""
    t, (starts,), (size,) = contract.array, contract.others, contract.bounds
    for e in _starts(reads[t]):
        n, k = read(t, e), read(t, add(e, 1))
        first, end = read(starts, n), read(starts, add(n, 1))
        begins = all_of(le(1, size), le(0, k), lt(mul(k, size), sub(end, first)))
        yield _implies(_inside(n, k, first, end), begins)


def _prefix_sum(contract: Contract, reads: _Reads) -> Iterator[Expr]:
    """From t[0] = 0 and t[i + 1] = t[i] + c[i] with c[i] >= 0 follow by induction t[i] >= 0, t[i] <= t[j] for
    i <= j, and t[k] + c[k] <= t[j] for k < j."""
    (counts,) = contract.others
    sums, items = reads[contract.array], reads[counts]
    for item in items:
        yield _implies(_inside(item), le(0, item))
    for a in sums:
        yield _implies(_inside(a), le(0, a))
        yield _implies(all_of(_inside(a), eq(a.args[1], 0)), eq(a, 0))
    for a, b in permutations(sums, 2):
        i, j = a.args[1], b.args[1]
        yield _implies(all_of(_inside(a, b), le(i, j)), le(a, b))
        item = read(counts, i)
        step = all_of(le(0, item), eq(b, add(a, item)))
        yield _implies(all_of(_inside(a, b, item), eq(j, add(i, 1))), step)
    for item in items:
        k = item.args[1]
        start, then = read(contract.array, k), read(contract.array, add(k, 1))
        if start in sums and then not in sums:  # where the row ends, whether or not it is looked up
            yield _implies(_inside(item, start, then), eq(then, add(start, item)))
        for b in sums:
            j = b.args[1]
            here = _inside(item, start, b)
            yield _implies(all_of(here, lt(k, j)), all_of(le(0, start), le(add(start, item), b)))
            yield _implies(all_of(here, eq(j, add(k, 1))), eq(b, add(start, item)))


def _chunk_sums(contract: Contract, reads: _Reads) -> Iterator[Expr]:
    """From t[0] = 0 and t[i + 1] = t[i] + cdiv(c[i + 1] - c[i], size) with c[i] <= c[i + 1] follow by induction
    0 <= t[i], and t[i] + cdiv(c[i + 1] - c[i], size) <= t[j] for i < j."""
    (starts,), (size,) = contract.others, contract.bounds
    sums = reads[contract.array]
    for a in sums:
        i = a.args[1]
        yield _implies(_inside(a), le(0, a))
        yield _implies(all_of(_inside(a), eq(i, 0)), eq(a, 0))
        first, end, then = read(starts, i), read(starts, add(i, 1)), read(contract.array, add(i, 1))
        number = cdiv(sub(end, first), size)
        here = all_of(_inside(a, first, end), le(1, size))
        yield _implies(all_of(here, _inside(then)), eq(then, add(a, number)))
        for b in sums:
            if b is not a and b is not then:
                yield _implies(all_of(here, _inside(b), lt(i, b.args[1])), le(add(a, number), b))


INSTANCES: dict[str, Callable[[Contract, _Reads], Iterator[Expr]]] = {
    "filled": _filled,
    "within": _within,
    "within_or": _within_or,
    "distinct": _distinct,
    "increasing": _increasing,
    "distinct_pairs": _distinct_pairs,
    "prefix_sum": _prefix_sum,
    "chunks": _chunks,
    "chunk_sums": _chunk_sums,
}


def _inside(*reads: Expr) -> Expr:
    """The elements that are read exist."""
    found = []
    for node in reads:
        for axis, index in enumerate(node.args[1:]):
            found += [le(0, index), lt(index, _extent(node.args[0], axis))]
    return all_of(*found)


def _extent(array: str, axis: int) -> Expr:
    return sym(extent_symbol(array, axis))


def _implies(a: Expr, b: Expr) -> Expr:
    return any_of(negate(a), b)
