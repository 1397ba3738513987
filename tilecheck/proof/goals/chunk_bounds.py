"""How far the places reach that tables hand out: `chunk_sums(t, of=c, size=n)` with `within(t, 0, x // d + 1)`.

The first contract says that sequence i has the places from `t[i]` to `t[i] + k`, k its number of chunks, and
the second that memory of x elements has room for all of them, d elements each. Together:
`(t[i] + k) * d <= x`.

Sound because with all elements inside their arrays, 1 <= d and 1 <= n, the next element is
`t[i + 1] = t[i] + k`, which is less than `x // d + 1`; and `y <= x // d` gives `y * d <= x` for d >= 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tilecheck.ir.expr import ONE, Expr, add, all_of, any_of, cdiv, le, mul, negate, read, sub
from tilecheck.ir.kernel import Contract, extents_of
from tilecheck.ir.parts import lies_in


def rooms(
    contracts: Sequence[Contract], reads: dict[str, list[Expr]], inside: Callable[..., Expr]
) -> Iterator[Expr]:
    """For the elements of tables of both kinds that are read; `inside(*elements)` says that these exist."""
    for contract in contracts:
        if contract.kind != "chunk_sums":
            continue
        for x, d, bound in _rooms(contract, contracts):
            for element in reads[contract.array]:
                yield from _room(contract, bound, element, (x, d), inside)


def _rooms(sums: Contract, contracts: Sequence[Contract]) -> Iterator[tuple[Expr, Expr, Contract]]:
    """x and d of each `within(t, _, x // d + 1)` of one table."""
    for contract in contracts:
        if contract.kind != "within" or contract.array != sums.array:
            continue
        quotient = sub(contract.bounds[1], ONE)
        if quotient.op == "floordiv":
            yield (*quotient.args, contract)


def _room(
    sums: Contract,
    bound: Contract,
    element: Expr,
    room: tuple[Expr, Expr],
    inside: Callable[..., Expr],
) -> Iterator[Expr]:
    (starts,), (size,), (x, d) = sums.others, sums.bounds, room
    i = element.args[1]
    first, end, then = read(starts, i), read(starts, add(i, 1)), read(sums.array, add(i, 1))
    number = cdiv(sub(end, first), size)
    taken = lies_in(then.args[1:], bound.part, extents_of(sums.array))
    given = all_of(inside(element, first, end, then), le(1, size), le(1, d), taken)
    yield any_of(negate(given), le(mul(add(element, number), d), x))
