"""Flags: arrays that a kernel touches by atomics of single elements alone, and which accesses those order.

Every change of a flag is a read-modify-write in a scope that covers all blocks. So an acquire that comes
after a release in the order of a flag's changes sees it, directly or through the changes between: what the
releasing block did before happens before what the acquiring block does after.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import both_atomic_enough
from tilecheck.analysis.ordering import separated
from tilecheck.ir.expr import TRUE, ZERO, Expr, conjuncts, symbols
from tilecheck.ir.kernel import ACQUIRES, RELEASES, Access, Effect, Kernel, Space


def flags(kernel: Kernel) -> dict[str, tuple[Access, ...]]:
    """The flags of a kernel, with all accesses of each."""
    found: dict[str, list[Access]] = {}
    for access in kernel.accesses:
        found.setdefault(access.array, []).append(access)
    return {name: tuple(all_) for name, all_ in found.items() if all(map(_is_of_a_flag, all_))}


def _is_of_a_flag(access: Access) -> bool:
    return (
        access.effect is Effect.ATOMIC
        and access.result is not None
        and both_atomic_enough(access, access)
        and access.space is Space.ELEMENT
        and access.member is None
        and not access.copied
    )


def changes(access: Access) -> bool:
    """Whether an atomic may change the element: adding zero and swapping a value for itself do not."""
    if access.atomic_kind == "cas":
        return access.operands[:1] != access.operands[1:]
    return not (access.atomic_kind in ("add", "or", "xor") and access.operands == (ZERO,))


def releases(kernel: Kernel, access: Access) -> Iterator[Access]:
    """The releases that a block, if it makes them, makes after every `access` of its own, once each."""
    if access.copied:
        return
    for late in (a for all_ in flags(kernel).values() for a in all_):
        after = late.position > access.position and not late.loops and late.order in RELEASES
        if after and changes(late) and _threads_meet(kernel, access, late):
            yield late


def acquires(kernel: Kernel, access: Access) -> Iterator[Access]:
    """The acquires that a block has certainly made before each `access` of its own, once each."""
    if access.copied:
        return
    for early in observed(kernel, access):
        seen = early.order in ACQUIRES and not early.loops
        if seen and (depends_on(access, early) or _threads_meet(kernel, early, access)):
            yield early


def observed(kernel: Kernel, access: Access) -> Iterator[Access]:
    """The atomics of flags that a block has certainly made before `access`, in the same iteration of the loops
    around them: no branch stands around them that does not stand around the access. What a `while` loop
    waited for counts as made after the loop."""
    here = set(conjuncts(access.guard))
    names = flags(kernel)
    for early in (*(a for all_ in names.values() for a in all_), *kernel.waits):
        made = early.position < access.position and early.loops == access.loops[: len(early.loops)]
        if early.array in names and made and early.mask is TRUE and set(conjuncts(early.guard)) <= here:
            yield early


def follows(kernel: Kernel, early: Access, late: Access) -> bool:
    """Whether a block that makes both atomics of a flag makes `late` after `early`, if it makes each once."""
    after = late.position > early.position and not late.loops and not early.loops
    return after and (depends_on(late, early) or _threads_meet(kernel, early, late))


def depends_on(access: Access, atomic: Access) -> bool:
    """Whether the access stands behind a branch on the atomic's result: every thread has got that first."""
    return atomic.result is not None and set(symbols(atomic.result)) <= set(symbols(access.guard))


def _threads_meet(kernel: Kernel, early: Access, late: Access) -> bool:
    """Whether no thread is at `late` before all threads are through with `early`: cuTile orders what stands
    before a release and after an acquire, Triton's threads need a barrier."""
    return kernel.language == "cutile" or separated(kernel, early, late)


def cell(access: Access) -> tuple[Expr, ...]:
    """The coordinates of the element that an atomic of a flag touches."""
    return tuple(axis.coordinate for axis in access.axes)
