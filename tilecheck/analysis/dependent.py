"""What a kernel touches before it waits for the launches before its own.

With programmatic dependent launch a kernel may start before the launches before it have ended. Until it waits
(`gdc_wait`, `grid_dependency_control_wait`) it may neither read what they write nor write what they touch.
An access counts as before the wait unless the text shows that its program has waited: earlier, in no other
loop, and under no other condition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilecheck.ir.expr import TRUE, Expr, Kind, all_of, conjuncts
from tilecheck.ir.kernel import Access, Effect, Kernel
from tilecheck.model import LaunchOrder, Touched


def launch_order(kernel: Kernel) -> LaunchOrder | None:
    """The accesses on either side of the waits of a kernel; None if it has none.

    Where parameters known at compile time decide by their truth whether it waits, as where one kernel serves
    launches of both kinds, it is what holds if they are true.
    """
    if not kernel.launch_waits:
        return None
    flags = tuple(
        dict.fromkeys(t for wait in kernel.launch_waits for t in conjuncts(wait.guard) if _is_flag(t))
    )
    waits = [replace(w, guard=_without(w.guard, flags)) for w in kernel.launch_waits]
    kernel = replace(kernel, launch_waits=tuple(waits))
    always = any(wait.guard is TRUE and not wait.loops for wait in kernel.launch_waits)
    early = before_wait(kernel)
    made = set(map(id, early))
    late = [access for access in kernel.accesses if id(access) not in made]
    needs = tuple(flag.args[0].name for flag in flags)
    return LaunchOrder(always, _touched(early), _touched(late), needs)


def _is_flag(term: Expr) -> bool:
    return term.op == "bsym" and term.args[0].kind is Kind.CONSTANT


def _without(guard: Expr, flags: tuple[Expr, ...]) -> Expr:
    return all_of(*(term for term in conjuncts(guard) if term not in flags))


def before_wait(kernel: Kernel) -> tuple[Access, ...]:
    """The accesses that some program may make before it has waited."""
    return tuple(access for access in kernel.accesses if not _has_waited(kernel, access))


def _has_waited(kernel: Kernel, access: Access) -> bool:
    given = set(conjuncts(access.guard))
    return any(
        wait.position < access.position
        and set(wait.loops) <= set(access.loops)  # the wait is in each round that makes the access, before it
        and set(conjuncts(wait.guard)) <= given
        for wait in kernel.launch_waits
    )


def _touched(accesses: Iterable[Access]) -> Touched:
    listed = list(accesses)
    reads = dict.fromkeys(a.array for a in listed if a.effect is not Effect.WRITE)
    writes = dict.fromkeys(a.array for a in listed if a.effect is not Effect.READ)
    return Touched(tuple(reads), tuple(writes))
