"""What contracts say of chunks, as conditions on a bound: `start[n] + k * B` is below `start[n + 1]`.

The bound of an access that no mask keeps inside its sequence is read off these. As for all candidates nothing
here is trusted: that the elements exist of which a contract speaks is asked by the proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilecheck.ir.expr import Expr, add, all_of, lt, mul, read, sub, walk
from tilecheck.ir.kernel import Kernel
from tilecheck.ir.parts import residue
from tilecheck.proof.obligation import Holds, Obligation


def with_chunks(obligation: Obligation, kernel: Kernel) -> Obligation:
    """The obligation, given besides that the chunks of which it speaks begin inside their sequences."""
    goal = obligation.goal
    if not isinstance(goal, Holds) or not any(contract.kind == "chunks" for contract in kernel.contracts):
        return obligation
    facts = all_of(*_begin_inside(goal, kernel))
    access = goal.access and replace(goal.access, mask=all_of(goal.access.mask, facts))
    return replace(obligation, goal=replace(goal, given=all_of(goal.given, facts), access=access))


def _begin_inside(goal: Holds, kernel: Kernel) -> Iterator[Expr]:
    chunks = {contract.array: contract for contract in kernel.contracts if contract.kind == "chunks"}
    for node in walk(goal.goal, goal.given):
        is_chunk = node.op == "read" and node.args[0] in chunks and len(node.args) == 2
        if is_chunk and residue(node.args[1], 2) == 1:
            contract = chunks[node.args[0]]
            (starts,), (size,) = contract.others, contract.bounds
            sequence = read(contract.array, sub(node.args[1], 1))
            length = sub(read(starts, add(sequence, 1)), read(starts, sequence))
            yield lt(mul(node, size), length)
