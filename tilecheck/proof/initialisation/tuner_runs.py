"""Whether the runs of a tuner go on from what the last one left (TC502).

A kernel that reads an array it also writes does so only if it reads what it writes: where no read meets a
write, of any blocks, iterations and lanes, every run reads what the first one did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from tilecheck.ir.expr import Expr
from tilecheck.ir.kernel import Access, Effect, Kernel, Tuning
from tilecheck.model import Diagnostic, Related, Severity
from tilecheck.proof.goals.context import Context
from tilecheck.proof.obligation import Between, Disjoint, Obligation
from tilecheck.proof.rungs.ladder import prove
from tilecheck.proof.solver.session import Session

CODE, NAME = "TC502", "update-under-autotune"


def repeated(kernel: Kernel, tuning: Tuning, conditions: Sequence[Expr], budget: int) -> Iterator[Diagnostic]:
    """A finding for each array that the kernel updates and its tuner does not put back before each run."""
    for param in kernel.params:
        if not param.updated or param.name in tuning.kept:
            continue
        accesses = [a for a in kernel.accesses if a.array == param.name]
        if not _are_apart(kernel, accesses, conditions, budget):
            yield _finding(kernel, tuning, param.name, accesses)


def _are_apart(kernel: Kernel, accesses: Sequence[Access], conditions: Sequence[Expr], budget: int) -> bool:
    """Whether no read meets a write; atomics read what they write."""
    if any(access.effect is Effect.ATOMIC for access in accesses):
        return False
    reads = [a for a in accesses if a.effect is Effect.READ]
    writes = [a for a in accesses if a.effect is Effect.WRITE]
    with closing(Session(budget=budget)) as session:
        context = Context(kernel).under(*conditions)
        goals = (
            Disjoint(write, read, between)
            for read in reads
            for write in writes
            for between in (Between.BLOCKS, Between.THREADS)
        )
        obligations = (Obligation(CODE, goal, (kernel.site,), "", 2, "overlap") for goal in goals)
        return all(prove(obligation, context, session).proved for obligation in obligations)


def _finding(kernel: Kernel, tuning: Tuning, array: str, accesses: Sequence[Access]) -> Diagnostic:
    last = [access for access in accesses if access.effect is not Effect.READ][-1]
    how = "updates" if last.effect is Effect.ATOMIC else "works on"
    return Diagnostic(
        code=CODE,
        name=NAME,
        severity=Severity.WARNING,
        message=f"tuning runs `{kernel.name}` many times, and each run {how} what the one before left in "
        f"`{array}`",
        site=tuning.site,
        kernel=kernel.name,
        label=f"`{array}` is not put back before each run",
        related=(Related(last.site, "updated here"),),
        help=f'add `restore_value=["{array}"]`, or `reset_to_zero` if it starts as zeros',
    )
