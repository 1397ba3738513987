"""What the 32-bit values of a kernel feed: tests that every lane computes, or indices of accesses alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilecheck.analysis.facts import Facts
from tilecheck.ir.expr import Expr, Kind, Symbol, all_of, conjuncts, symbols, walk
from tilecheck.ir.kernel import Access, Arithmetic
from tilecheck.ir.terms import Terms, has_multiple, parts_of, sums_in, without_lanes


@dataclass(frozen=True, slots=True)
class Uses:
    """What a kernel's 32-bit values feed. Lanes of an operation and of the access that it feeds have names of
    their own, so values are looked up without them.

    `tests` are in guards, masks and checks, with the `sums` there: every lane computes them. `indices` are in
    the axes of accesses, each with the same value in the lanes of the access; where a lane is masked off, these
    do no harm.
    """

    accesses: tuple[Access, ...]
    tests: frozenset[Expr]
    sums: tuple[Terms, ...]
    used: frozenset[Symbol]
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
                        indices.setdefault(without_lanes(node), []).append((access, number, node))
        every = frozenset(walk(*map(without_lanes, tests)))
        sums = tuple(own for test in dict.fromkeys(tests) for own in sums_in(test))
        used = frozenset(symbols(*tests, *(axis.index for a in facts.kernel.accesses for axis in a.axes)))
        return cls(facts.kernel.accesses, every, sums, used, {v: tuple(found) for v, found in indices.items()})

    def feeds(self, operation: Arithmetic) -> bool:
        """Whether an access or a check may depend on a value."""
        if self._is_tested(operation) or operation.into is not None:
            return True
        if without_lanes(operation.value) in self.indices:
            return True
        return operation.widened and any(True for _ in self._parts(operation.value))

    def _is_tested(self, operation: Arithmetic) -> bool:
        """Whether every lane may use a value. One that is `widened` may be a part of what is tested, but no
        offset is."""
        if not operation.named or without_lanes(operation.value) in self.tests:
            return True
        if not operation.behind.isdisjoint(self.used):
            return True
        return operation.widened and operation.into is None and has_multiple(self.sums, operation.value)

    def places(self, operation: Arithmetic) -> Iterator[tuple[Expr, Expr]]:
        """A value as it is used, and where: in all lanes that get there, or in those that access something.
        What the launch decides of where it is computed, such as which branch it is, holds there too."""
        if self._is_tested(operation):
            yield operation.value, operation.guard
            return
        key = without_lanes(operation.value)
        decided = [t for t in conjuncts(operation.guard) if all(s.kind < Kind.BLOCK for s in symbols(t))]
        found = list(self.indices.get(key, ()))
        if operation.widened:
            exact = {(id(access), number) for access, number, _ in found}
            found += [part for part in self._parts(operation.value) if (id(part[0]), part[1]) not in exact]
        if not found:  # all that tells where it is used has cancelled out, or was given other lanes
            yield operation.value, operation.guard
        for access, _, value in found:
            yield value, all_of(access.guard, access.lane_facts, access.mask, *decided)

    def _parts(self, value: Expr) -> Iterator[tuple[Access, int, Expr]]:
        """The accesses to which a value comes as a part of a sum or product, and the value with their lanes."""
        for access in self.accesses:
            for number, axis in enumerate(access.axes):
                for part in parts_of(sums_in(axis.index), value):
                    yield access, number, part

    def limit(self, value: Expr) -> str:
        """What values in memory that make up this one are likely to be at most."""
        key = without_lanes(value)
        for access, number, _ in self.indices.get(key, ()):
            return f"{access.array}.shape[{number}] + 1"
        for access in self.accesses:
            if key in walk(without_lanes(access.guard), without_lanes(access.mask)):
                return f"{access.array}.shape[0] + 1"
        return ""
