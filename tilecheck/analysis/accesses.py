"""Small questions about accesses that several rules ask."""

from __future__ import annotations

from tilecheck.ir.kernel import WIDE_SCOPES, Access, Effect
from tilecheck.model import Site


def sites_of(*accesses: Access) -> tuple[Site, ...]:
    """The sites of accesses, each once."""
    return tuple(dict.fromkeys(a.site for a in accesses))


def unsafe_of(*accesses: Access) -> tuple[int, ...]:
    """The unsafe blocks around accesses, each once."""
    return tuple(dict.fromkeys(a.unsafe for a in accesses if a.unsafe is not None))


def both_atomic_enough(first: Access, second: Access) -> bool:
    """Whether two conflicting accesses are no data race by their own order and scope.

    The memory model calls two conflicting accesses of different blocks a race unless both are strong
    (anything but WEAK) and the scope of each covers the other block.
    """
    return _is_strong(first) and _is_strong(second)


def _is_strong(access: Access) -> bool:
    return (access.effect is Effect.ATOMIC or access.order != "WEAK") and access.scope in WIDE_SCOPES
