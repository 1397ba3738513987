"""What the 32-bit values of a kernel feed: tests that every lane computes, or indices of accesses alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilecheck.analysis.facts import Facts
from tilecheck.ir.expr import Expr, Kind, Symbol, all_of, conjuncts, substitute, sym, symbols, walk
from tilecheck.ir.kernel import Access, Arithmetic


@dataclass(frozen=True, slots=True)
class Uses:
    """What a kernel's 32-bit values feed. Lanes of an operation and of the access that it feeds have names of
    their own, so values are looked up without them.

    `tests` are in guards, masks and checks: every lane computes them. `indices` are in the axes of accesses,
    each with the same value in the lanes of the access; where a lane is masked off, these do no harm.
    """

    accesses: tuple[Access, ...]
    tests: frozenset[Expr]
    indices: Mapping[Expr, tuple[tuple[Access, int, Expr], ...]]

    @classmethod
    def of(cls, facts: Facts) -> Uses:
        tests: list[Expr] = [part for check in facts.kernel.checks for part in (check.goal, check.guard)]
        indices: dict[Expr, list[tuple[Access, int, Expr]]] = {}
        for access in facts.kernel.accesses:
            tests += [access.guard, access.mask]
            tests += [] if access.member is None else [access.member]
            for number, axis in enumerate(access.axes):
                for node in walk(axis.index):
                    if not node.is_bool:
                        indices.setdefault(_without_lanes(node), []).append((access, number, node))
        every = frozenset(walk(*map(_without_lanes, tests)))
        return cls(facts.kernel.accesses, every, {value: tuple(found) for value, found in indices.items()})

    def feeds(self, operation: Arithmetic) -> bool:
        """Whether an access or a check may depend on a value."""
        key = _without_lanes(operation.value)
        return not operation.named or key in self.tests or key in self.indices

    def places(self, operation: Arithmetic) -> Iterator[tuple[Expr, Expr]]:
        """A value as it is used, and where: in all lanes that get there, or in those that access something.
        What the launch decides of where it is computed, such as which branch it is, holds there too."""
        key = _without_lanes(operation.value)
        if not operation.named or key in self.tests:
            yield operation.value, operation.guard
            return
        decided = [t for t in conjuncts(operation.guard) if all(s.kind < Kind.BLOCK for s in symbols(t))]
        for access, _, value in self.indices[key]:
            yield value, all_of(access.guard, access.lane_facts, access.mask, *decided)

    def limit(self, value: Expr) -> str:
        """What values in memory that make up this one are likely to be at most."""
        key = _without_lanes(value)
        for access, number, _ in self.indices.get(key, ()):
            return f"{access.array}.shape[{number}] + 1"
        for access in self.accesses:
            if key in walk(_without_lanes(access.guard), _without_lanes(access.mask)):
                return f"{access.array}.shape[0] + 1"
        return ""


def _without_lanes(value: Expr) -> Expr:
    """The lanes of an operation and of the access that it feeds have names of their own: forget them."""
    lanes = {sym(s): _LANE for s in symbols(value) if s.kind is Kind.LANE}
    return substitute(value, lanes)


_LANE = sym(Symbol("lane", Kind.LANE))
