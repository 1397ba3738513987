"""Contracts about values in memory, instantiated at the elements that a query mentions.

Sound because a contract speaks of elements inside its array only: every instance is guarded by that, so that
an index outside, which means nothing, is never constrained. Instances at the mentioned elements follow from
the contract as a whole, and the contract is a premise that the author answers for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from tilecheck.ir.expr import Expr, all_of, any_of, eq, le, lt, ne, negate, sym, walk
from tilecheck.ir.kernel import Contract, extent_symbol


def instances(contracts: Sequence[Contract], assertions: Sequence[Expr]) -> tuple[Expr, ...]:
    """What the contracts say of the elements that occur in `assertions`."""
    if not contracts:
        return ()
    reads = [node for node in walk(*assertions) if node.op == "read"]
    found: dict[Expr, None] = {}
    for contract in contracts:
        mine = [node for node in reads if node.args[0] == contract.array]
        found.update(dict.fromkeys(_instances(contract, mine)))
    return tuple(found)


def _instances(contract: Contract, reads: Sequence[Expr]) -> Iterator[Expr]:
    match contract.kind:
        case "within":
            low, high = contract.bounds
            for node in reads:
                yield _implies(_inside(contract.array, node), all_of(le(low, node), lt(node, high)))
        case "distinct":
            for a, b in combinations(reads, 2):
                same = all_of(*(eq(i, j) for i, j in zip(a.args[1:], b.args[1:], strict=True)))
                skipped = [eq(a, skip) for skip in contract.bounds]
                yield _implies(_both(contract.array, a, b), any_of(ne(a, b), same, *skipped))
        case "increasing":
            for a, b in combinations(reads, 2):
                i, j = a.args[1], b.args[1]
                inside = _both(contract.array, a, b)
                yield _implies(all_of(inside, le(i, j)), le(a, b))
                yield _implies(all_of(inside, le(j, i)), le(b, a))
        case _:
            raise ValueError(contract.kind)


def _inside(array: str, node: Expr) -> Expr:
    """The element that `node` reads exists."""
    return all_of(
        *(all_of(le(0, i), lt(i, sym(extent_symbol(array, axis)))) for axis, i in enumerate(node.args[1:]))
    )


def _both(array: str, a: Expr, b: Expr) -> Expr:
    return all_of(_inside(array, a), _inside(array, b))


def _implies(a: Expr, b: Expr) -> Expr:
    return any_of(negate(a), b)
