"""Candidates for races: radixes, strides, distances, and the ranges of decoded block indices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tilecheck.ir.expr import ONE, Expr, Kind, add, all_of, conjuncts, eq, le, mod, mul, sym, symbols, walk
from tilecheck.ir.kernel import Access, Axis, block_symbol, grid_symbol
from tilecheck.proof.algebra.polynomial import (
    UNIT,
    Monomial,
    Polynomial,
    combine,
    constant,
    divides,
    scaled,
    times,
    without,
)
from tilecheck.proof.conditions.generators.counts import Counts, inequalities, is_flag
from tilecheck.proof.conditions.generators.flags import flag_conditions
from tilecheck.proof.conditions.generators.flat import highest
from tilecheck.proof.conditions.generators.last_block import windows_begin_at
from tilecheck.proof.conditions.ranges import Ranges, largest
from tilecheck.proof.premises.divisibility import whole_parts, whole_pieces, whole_rounds
from tilecheck.proof.rewrite.block_dispatch import in_order, second_ids


class RaceCandidates:
    """Conditions under which two accesses may stay apart."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self.terms = counts.terms

    def conditions(self, first: Access, second: Access) -> Iterator[Expr]:
        accesses = (first,) if first is second else (first, second)
        late: list[Expr] = []
        cones: list[Expr] = []
        for access in accesses:
            yield from dict.fromkeys(flag_conditions(self.counts.kernel, access))
        yield from dict.fromkeys(w for access in accesses for w in whole_pieces(access))
        for access in accesses:
            if access.spare:  # lanes that are kept out of the array
                yield from (le(a.extent, a.index) for a in access.axes if self.terms.uniform(a.index))
        for access in accesses:
            ranges = Ranges(self.terms, (access.guard, access.mask, access.lane_facts))
            for axis in access.axes:
                cone = axis.coordinate
                cones.append(cone)
                for node in self._sums(cone):
                    if self.counts.kernel.language == "triton":
                        yield from self._flat_radix(ranges, node)
                        late += self._tiles(node)
                    yield from self._radix(ranges, node, late)
                for node in _digits(cone):
                    if not self.terms.uniform(node):
                        yield from whole_rounds(node, self.terms)
                        for top in ranges.highest(node.args[0]):
                            late += self.terms.at_most(
                                combine(self.terms.poly(top), constant(1)), self.terms.poly(node.args[1])
                            )
        for access in accesses:
            yield from self._real_elements(access)
        if first is not second and len(first.axes) == len(second.axes):
            for one, other in zip(first.axes, second.axes, strict=True):
                yield from self._beside(first, second, one, other)
                yield from self._apart(first, second, one, other)
        yield from self._branches(accesses)
        yield from self._whole_walks(accesses)
        yield from dict.fromkeys(w for cone in cones for w in whole_parts(cone, self.terms))
        yield from late
        yield from self.counts.wholes(tuple(cones), ())
        guards = tuple(a.guard for a in accesses)
        yield from self.counts.products((*cones, *guards))

    def _whole_walks(self, accesses: tuple[Access, ...]) -> Iterator[Expr]:
        """`BS % BT == 0` where a loop goes over BS elements in steps of BT: the last step does not reach into
        what another block goes over."""
        terms = self.terms
        for test in conjuncts(all_of(*(access.guard for access in accesses))):
            if test.op != "lt":
                continue
            left = combine(terms.poly(test.args[1]), terms.poly(test.args[0]), -1)
            whole = terms.expr({m: c for m, c in left.items() if not terms.varies(m)})
            moving = terms.expr({m: c for m, c in left.items() if terms.varies(m)})
            steps = moving.args if moving.op == "mul" else ()
            loops = [f for f in steps if f.op == "sym" and f.args[0].kind is Kind.LOOP]
            sizes = [f for f in steps if f.op == "sym" and f.args[0].kind is Kind.CONSTANT]
            if len(loops) == len(sizes) == 1 and whole.value is None:
                yield eq(mod(whole, sizes[0]), 0)

    def _branches(self, accesses: tuple[Access, ...]) -> Iterator[Expr]:
        """As many blocks as the branches that the accesses are in tell apart: `grid[1] <= 2` where `bid != 0`,
        and one under a compile-time flag that needs no more (`if SPLIT_K == 1`)."""
        guards = all_of(*(access.guard for access in accesses))
        if any(is_flag(term) for term in conjuncts(guards)):
            walked = windows_begin_at(accesses, self.terms)
            axes = (k for k in self.counts.kernel.grid_axes if block_symbol(k) not in walked)
            yield from (le(sym(grid_symbol(axis)), 1) for axis in axes)
        for block, most in second_ids(tuple(access.guard for access in accesses)):
            if block.bound is not None:
                yield le(block.bound, most)
        for node in walk(guards):
            block, literal = node.args if node.op == "eq" else (ONE, ONE)
            if block.op == "sym" and block.args[0].kind is Kind.BLOCK and block.args[0].bound is not None:
                yield le(block.args[0].bound, add(literal, 2))

    def _real_elements(self, access: Access) -> Iterator[Expr]:
        """Indices that are read from memory come from elements of their array, not from padding."""
        ranges = Ranges(self.terms, (access.guard, access.mask, access.lane_facts))
        for node in walk(*(axis.coordinate for axis in access.axes)):
            if node.op != "ite" or self.terms.uniform(node.args[0]):
                continue
            for a, b in inequalities(node.args[0]):
                yield from largest(ranges, a, b)
                sizes = [s for s in symbols(a) if s in self.terms.tiles]
                if self.terms.uniform(b):
                    yield from (eq(mod(b, sym(size)), 0) for size in sizes)

    def _sums(self, cone: Expr) -> Iterator[Expr]:
        """Every varying sum in an index, the whole index first: a product is a sum of one term."""
        if cone.op == "mul" and not self.terms.uniform(cone):
            yield cone
        for node in walk(cone):
            if node.op == "add" and not self.terms.uniform(node):
                yield node

    def _radix(self, ranges: Ranges, node: Expr, late: list[Expr]) -> Iterator[Expr]:
        """a*u + rest: the rest stays below a. Row-major order of the terms first, the other order late."""
        terms = self.terms
        parts = self._parts(node)
        for i, (coefficient, _) in enumerate(parts):
            if coefficient is ONE:
                continue
            rest = [part for _, part in parts[i + 1 :]]
            if len(rest) > 1:
                yield from self._below(ranges, add(*rest), coefficient)
            for part in rest:
                if not _is_lower_digit(part, coefficient, node):
                    yield from self._below(ranges, part, coefficient)
            for _, part in parts[:i]:
                late += self._below(ranges, part, coefficient)
        for coefficient, _ in parts:
            for factor in coefficient.args if coefficient.op == "mul" else (coefficient,):
                if factor.op == "sym":
                    late += terms.at_most(constant(1), terms.poly(factor))

    def _parts(self, node: Expr) -> list[tuple[Expr, Expr]]:
        """The varying terms of a sum with their uniform coefficients, the largest coefficients first.

        Terms are taken as written: distributing (b*T + l)*s would hide that b*T + l is one coordinate.
        """
        parts: list[tuple[Expr, Expr]] = []
        for term in node.args if node.op == "add" else (node,):
            if not self.terms.uniform(term):
                factors = term.args if term.op == "mul" else (term,)
                parts.append((mul(*(f for f in factors if self.terms.uniform(f))), term))

        def weight(part: tuple[Expr, Expr]) -> tuple[int, int, int]:
            found = symbols(part[0])
            literal = max((n.value or 0 for n in walk(part[0])), default=0)
            return len([s for s in found if s.kind is not Kind.CONSTANT]), len(found), literal

        return sorted(parts, key=weight, reverse=True)

    def _below(self, ranges: Ranges, rest: Expr, coefficient: Expr) -> list[Expr]:
        """`rest < coefficient`, the common factor of the rest kept whole: `s0 >= n * s1`."""
        terms = self.terms
        shared, moving, still = ranges.split(terms.poly(rest))
        below = combine(still, terms.poly(coefficient), -1)
        found: list[Expr] = []
        if still and rest.op == "mul":  # `(i + 1) * s0`: with what is added to the row
            factor = terms.poly(mul(*(f for f in rest.args if terms.uniform(f))))
            for top in ranges.highest(self._unit(rest, rest)):
                count = combine(terms.poly(top), constant(1))
                found += terms.limited(factor, count, scaled(terms.poly(coefficient), -1))
            return found
        for top in ranges.highest(self._unit(rest, terms.expr(moving))):
            if dict(shared) == {UNIT: 1}:
                found += terms.limited(shared, terms.poly(top), combine(below, constant(1)))
            else:
                found += terms.limited(shared, combine(terms.poly(top), constant(1)), below)
        return found

    def _flat_radix(self, ranges: Ranges, node: Expr) -> Iterator[Expr]:
        """Of offsets into flat memory, whose strides are plain numbers: `s0 >= n * s1`, and `s0 >= (n - 1) * s1
        + m` with all that is added to a row, what is one value of the launch too."""
        parts = self._parts(node)
        for i, (coefficient, _) in enumerate(parts):
            rest = [part for _, part in parts[i + 1 :]]
            if coefficient is ONE or not rest or any(s.kind is Kind.GRID for s in symbols(coefficient)):
                continue
            added = [t for t in node.args if self.terms.uniform(t)] if node.op == "add" else []
            for part in rest if len(rest) == 1 and not added else ():
                factors = [f for f in part.args if self.terms.uniform(f)] if part.op == "mul" else []
                moving = mul(*(f for f in part.args if not self.terms.uniform(f))) if factors else part
                for top in ranges.highest(moving)[: 1 if factors else 0]:
                    yield le(mul(add(top, 1), *factors), coefficient)
            for top in islice(highest(self.terms, ranges, add(*rest)), 1):
                yield le(add(top, *added, 1), coefficient)

    def _tiles(self, node: Expr) -> Iterator[Expr]:
        """`lane * s` beside `b * n * s`: all lanes of a tile fit, `T <= n`. A mask may let lanes through that
        belong to the next block: one that speaks of the whole array does."""
        parts = self._parts(node)
        for i, (coefficient, _) in enumerate(parts):
            for inner, part in parts[i + 1 :]:
                rest = list(coefficient.args if coefficient.op == "mul" else (coefficient,))
                own = inner.args if inner.op == "mul" else (inner,)
                if inner is not ONE and all(rest.count(f) >= own.count(f) for f in own):
                    for f in own:
                        rest.remove(f)
                    lane = self._unit(part, part)
                    if rest and lane.op == "sym" and lane.args[0].kind is Kind.LANE and lane.args[0].bound:
                        yield le(lane.args[0].bound, mul(*rest))

    def _unit(self, rest: Expr, moving: Expr) -> Expr:
        """The varying factor of a product as written, so that masks on it are recognised."""
        if rest.op != "mul":
            return moving
        return mul(*(f for f in rest.args if not self.terms.uniform(f)))

    def _literal(self, access: Access, distance: int) -> Iterator[Expr]:
        """A literal distance (out[i * s] and out[i * s + 2]) is less than the steps between blocks."""
        for axis in access.axes:
            for factor, _ in self._parts(axis.coordinate):
                if distance > 0 and factor.op == "sym":
                    yield le(distance + 1, factor)

    def _beside(self, first: Access, second: Access, one: Axis, other: Axis) -> Iterator[Expr]:
        """What blocks of one id write before what those of a larger one do, in each row or in all that there
        is: `start_a + n_a <= start_b`. What is multiplied by more than the starts are says which row it is."""
        terms = self.terms
        order = in_order(first.guard, second.guard)
        if not order:
            return
        access, near, far = (first, one, other) if order > 0 else (second, other, one)
        p, q = terms.poly(near.coordinate), terms.poly(far.coordinate)
        distance = {m: c for m, c in combine(q, p, -1).items() if not terms.varies(m)}
        shared = terms.common(distance)
        ranges = Ranges(terms, (access.guard, access.mask, access.lane_facts))
        moving = {m: c for m, c in p.items() if terms.varies(m)}
        inner = {m: c for m, c in moving.items() if not self._spans(m, shared)}
        for part in (inner, moving) if inner and len(inner) < len(moving) else (moving,):
            for top in islice(highest(terms, ranges, terms.expr(part)), 2):
                yield from self._least(combine(combine(terms.poly(top), constant(1)), distance, -1))
            yield from self._inside_rows(first if access is second else second, p, q, shared)

    def _inside_rows(self, access: Access, p: Polynomial, q: Polynomial, shared: Monomial) -> Iterator[Expr]:
        """What the last ones write ends with the row: `start_b + n_b <= length`."""
        terms = self.terms
        rows = [m for m in q if terms.varies(m) and self._spans(m, shared)]
        own = {m: c for m, c in q.items() if p.get(m) != c or terms.varies(m)}
        ranges = Ranges(terms, (access.guard, access.mask, access.lane_facts))
        inner = terms.expr({m: c for m, c in own.items() if m not in rows})
        for m in rows[:1]:
            length = {tuple(number for number in m if terms.uniform(terms.atom(number))): q[m]}
            for top in islice(highest(terms, ranges, inner), 2):
                yield from self._least(combine(combine(terms.poly(top), constant(1)), length, -1))

    def _least(self, excess: Polynomial) -> Iterator[Expr]:
        """`excess <= 0`, without the launch values in all of its terms, which are not negative then."""
        factors = self.terms.common(excess)
        yield from self.terms.at_most({without(m, *factors): c for m, c in excess.items()}, {})
        for factor in dict.fromkeys(map(self.terms.atom, factors)):
            if factor.op == "sym" and factor.args[0].kind is Kind.SCALAR:
                yield le(0, factor)

    def _spans(self, m: Monomial, shared: Monomial) -> bool:
        """Whether the uniform factors of a term are more than the shared ones."""
        own = tuple(number for number in m if self.terms.uniform(self.terms.atom(number)))
        return len(own) > len(shared) and divides(shared, own)

    def _apart(self, first: Access, second: Access, one: Axis, other: Axis) -> Iterator[Expr]:
        """Two accesses a launch value apart (out[i] and out[i + n]): the first stays below that distance, apart
        from the row that it is in."""
        terms = self.terms
        p, q = terms.poly(one.coordinate), terms.poly(other.coordinate)
        for access, near, far in ((first, p, q), (second, q, p)):
            distance = {m: c for m, c in combine(far, near, -1).items() if not terms.varies(m)}
            if not any(m for m in distance):
                yield from self._literal(access, distance.get(UNIT, 0))
                continue
            if not any(c > 0 for c in distance.values()):
                continue  # no index is below that
            ranges = Ranges(terms, (access.guard, access.mask, access.lane_facts))
            moving = terms.expr(self._in_row(near, distance))
            yield from self._below(ranges, moving, terms.expr(distance))

    def _in_row(self, p: Polynomial, distance: Polynomial) -> Polynomial:
        """What varies in p, without what is multiplied by the distance and more: `i * (n + m)` of the rows in
        which an element is n further."""
        kept: Polynomial = {}
        for value, stride in self.terms.strides(p).items():
            excess = combine(stride, distance, -1)
            if value and not (excess and all(c > 0 for c in excess.values())):
                kept = combine(kept, times({value: 1}, stride))
        return kept


def _digits(index: Expr) -> list[Expr]:
    """The remainders in an index, `x // n % m` before `x % n`: that x is below n * m leaves more blocks than
    that it is below n, and both are digits of x then."""
    found = [node for node in walk(index) if node.op == "mod"]
    return sorted(found, key=lambda node: node.args[0].op != "floordiv")


def _is_lower_digit(part: Expr, radix: Expr, index: Expr) -> bool:
    """Whether a part of an index is `x % radix`, and `x // radix` stands in it too: there is nothing to ask."""
    if part.op != "mod" or part.args[1] is not radix:
        return False
    return any(n.op == "floordiv" and n.args[0] is part.args[0] and n.args[1] is radix for n in walk(index))
