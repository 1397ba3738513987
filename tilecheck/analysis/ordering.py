"""The order of accesses inside one Triton program: what a barrier separates.

A program is many threads. Two of its accesses have an order if every thread passes a barrier between them.

There is one more case, a store over what was just loaded. Several threads may load an element and one of them
stores it, so a load of another thread may see the new value. That does no harm where the thread that stores an
element is the only one whose loaded value counts: where, from the load on, what was loaded is used element by
element. (A reduction before the store is no barrier: where each warp holds the whole tile, it has none.)
"""

from __future__ import annotations

from tilecheck.ir.expr import conjuncts
from tilecheck.ir.kernel import Access, Barrier, Effect, Kernel, common_loops


def separated(kernel: Kernel, first: Access, second: Access) -> bool:
    """Whether a barrier lies between every execution of the two accesses, in whichever order they come."""
    early, late = sorted((first, second), key=lambda a: a.position)
    reached = [b for b in kernel.barriers if _is_passed(b, early, late)]
    between = any(early.position < b.position < late.position and _loops_of(b, early, late) for b in reached)
    shared = common_loops(early, late)
    if not shared:
        return between and first is not second
    # In a loop the later access is also before the earlier one of the next iteration: the way round must
    # pass a barrier of that loop too.
    inner = shared[-1]
    around = any(
        inner in b.loops and not early.position <= b.position <= late.position
        for b in reached
        if set(b.loops) <= set(shared)
    )
    if first is second:
        return around or any(inner in b.loops and set(b.loops) <= set(shared) for b in reached)
    return between and around and len(shared) == 1


def _is_passed(barrier: Barrier, first: Access, second: Access) -> bool:
    """Whether the program passes the barrier wherever it makes one of the accesses: the barrier's conditions
    are among the access's."""
    wanted = set(conjuncts(barrier.guard))
    return any(wanted <= set(conjuncts(access.guard)) for access in (first, second))


def _loops_of(barrier: Barrier, first: Access, second: Access) -> bool:
    """Whether the barrier is in no loop that both accesses are not in: it is passed once for each pair."""
    return set(barrier.loops) <= set(common_loops(first, second))


def overwrites_its_own(kernel: Kernel, first: Access, second: Access) -> bool:
    """Whether `second` stores over what `first` loaded before it, and no thread uses, from then on, what
    another thread loaded: no reduction, product, change of shape or broadcast of something loaded follows the
    load, nor stands in a loop around it. A value without lanes is used by every thread as it is.
    """
    if first.effect is not Effect.READ or second.effect is not Effect.WRITE:
        return False
    if not first.lanes or first.position > second.position:
        return False
    return not any(e.position > first.position or set(e.loops) & set(first.loops) for e in kernel.exchanges)
