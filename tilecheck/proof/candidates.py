"""Launch conditions that an obligation may need, made from the kernel's own terms, weak and plain ones first.

    bounds   a + v <= P          grid[k] <= cdiv(x.shape[0], T), cdiv(x.shape[i], T) >= U, n >= 1
    decodes  bid // d, bid % d   grid[k] <= d * tiles, tiles >= d, grid[k] <= num_m * num_n
    radix    a*u + v, v < a      grid[k] <= radix, x.stride(0) >= x.shape[1]
    wholes   e // c, e % c       e % c == 0

Nothing here is trusted. The search keeps a set of conditions only if the obligation is proved under it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.ir.expr import (
    ONE,
    ZERO,
    Expr,
    Kind,
    Symbol,
    add,
    children,
    eq,
    le,
    mod,
    mul,
    negate,
    render,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.kernel import Access, Axis, Kernel, grid_symbol
from tilecheck.proof.conditions_ranges import Ranges
from tilecheck.proof.conditions_terms import Terms
from tilecheck.proof.obligation import Disjoint, Holds, Obligation
from tilecheck.proof.polynomial import UNIT, combine, constant, times

LIMIT = 32
_LONGEST = 100  # characters: what is longer than a line helps nobody
_FACTORS = 5  # counts of tiles that products are made of
_NO_COUNT = 3
_FREE = (Kind.EXTENT, Kind.SCALAR, Kind.STRIDE, Kind.HOST)


def candidates(obligation: Obligation, kernel: Kernel) -> tuple[Expr, ...]:
    """The conditions worth trying, in the order in which to try them."""
    tiles = tile_symbols(kernel)
    found: dict[Expr, None] = {}
    for condition in _Maker(kernel, Terms(tiles)).conditions(obligation):
        if len(found) < LIMIT and admissible(condition, tiles):
            found[condition] = None
    return tuple(found)


def tile_symbols(kernel: Kernel) -> frozenset[Symbol]:
    """The constants that are tile sizes: a condition may not cap anything by them alone."""
    sizes = list(kernel.powers_of_two)
    for access in kernel.accesses:
        sizes += [axis.size for axis in access.axes]
        sizes += [lane.bound for lane in access.lanes if lane.bound is not None]
    return frozenset(s for s in symbols(*sizes) if s.kind is Kind.CONSTANT)


def admissible(condition: Expr, tiles: frozenset[Symbol]) -> bool:
    """Whether a condition is of one of the kinds (a) to (d) and caps nothing by a constant or a tile size.

    `grid[k] <= NUM_SMS` is admissible, NUM_SMS being a constant that is no tile size; an extent may be
    bounded by other extents, scalars and strides only.
    """
    found = symbols(condition)
    if not found or any(s.kind > Kind.HOST for s in found) or any(n.op == "read" for n in walk(condition)):
        return False
    return len(render(condition)) <= _LONGEST and _caps_nothing(condition, found, tiles)


def _caps_nothing(condition: Expr, found: tuple[Symbol, ...], tiles: frozenset[Symbol]) -> bool:
    if condition.op != "le":
        return condition.op in ("eq", "not") or (condition.op == "all" and all(map(_positive, condition.args)))
    low, high = condition.args
    low_kinds = {s.kind for s in symbols(low)}
    if low.value is None and all(s.kind is Kind.CONSTANT for s in found):
        return False
    ceiling = [s for s in symbols(high) if s.kind in _FREE or (s.kind is Kind.CONSTANT and s not in tiles)]
    if Kind.EXTENT in low_kinds:
        # An extent against itself (`x.shape[0] <= cdiv(x.shape[0], T)`) is a limit on the tile size.
        own = [s for s in symbols(low) if s.kind is Kind.EXTENT]
        return any(s.kind in _FREE for s in ceiling) and not any(s in own for s in ceiling)
    if Kind.GRID in low_kinds or Kind.SCALAR in low_kinds:
        return bool(ceiling)
    return True


def _positive(condition: Expr) -> bool:
    return condition.op == "le" and condition.args[0].value is not None


class _Maker:
    """Candidates of one obligation. Mutable only in its table of terms."""

    def __init__(self, kernel: Kernel, terms: Terms) -> None:
        self.kernel = kernel
        self.terms = terms

    def conditions(self, obligation: Obligation) -> Iterator[Expr]:
        match obligation.goal:
            case Holds(goal=goal, given=given, access=access):
                yield from self._bounds(goal, given, access)
            case Disjoint(first=first, second=second):
                yield from self._races(first, second)
            case _:
                return

    # ---- bounds and definedness ---------------------------------------------------------------------

    def _bounds(self, goal: Expr, given: Expr, access: Access | None) -> Iterator[Expr]:
        terms = self.terms
        ranges = Ranges(terms, (given,))
        if terms.uniform(goal) and goal.op in ("le", "lt", "not", "eq"):
            yield from self._uniform_goal(goal)
        cone = (goal, given)
        clamped = any(node.op == "min" and not terms.uniform(node) for node in walk(*cone))
        if clamped:
            yield from self._products(cone)
        inequalities = list(_inequalities(goal))
        counts = self._counts((goal,), (given,))
        # The largest value of a clamped decode is a poor guess, the counts of its tiles are good ones.
        attempts = [self._largest, self._agreements]
        for attempt in (*(reversed(attempts) if clamped else attempts), self._one_each):
            for a, b in inequalities:
                yield from attempt(ranges, a, b, counts)
        yield from self._signs(goal)
        if not clamped:
            yield from self._products(cone)
        axes = access.axes if access is not None else ()
        yield from self._wholes(cone, axes)

    def _uniform_goal(self, goal: Expr) -> Iterator[Expr]:
        if goal.op == "not" and goal.args[0].op == "eq" and ZERO in goal.args[0].args:
            yield from (le(ONE, x) for x in goal.args[0].args if x is not ZERO)
        elif goal.op in ("le", "lt"):
            for a, b in _inequalities(goal):
                yield from self.terms.at_most(self.terms.poly(a), self.terms.poly(b))
        elif goal.op == "eq" and goal.args[0].op == "mod":
            yield goal

    def _largest(self, ranges: Ranges, a: Expr, b: Expr, _: tuple[Expr, ...]) -> Iterator[Expr]:
        """Conditions for a <= b from the largest values of what varies in it."""
        terms = self.terms
        shared, moving, still = ranges.split(combine(terms.poly(a), terms.poly(b), -1))
        if not moving:
            if still and any(m != UNIT for m in still):
                yield from terms.at_most(still, {})
            return
        for top in ranges.highest(terms.expr(moving)):
            yield from terms.limited(shared, terms.poly(top), still)

    def _agreements(self, ranges: Ranges, a: Expr, b: Expr, counts: tuple[Expr, ...]) -> Iterator[Expr]:
        """`tiles of this array >= U` for the counts U that the kernel runs over."""
        terms = self.terms
        shared, moving, still = ranges.split(combine(terms.poly(a), terms.poly(b), -1))
        if not moving:
            return
        own = symbols(*(terms.expr({m: c}) for m, c in still.items()))
        for count in counts:
            if any(s.kind is Kind.EXTENT and s in own for s in symbols(count)):
                continue
            top = combine(terms.poly(count), constant(1), -1)
            yield from terms.at_most(combine(times(shared, top), still), {})

    def _one_each(self, ranges: Ranges, a: Expr, b: Expr, _: tuple[Expr, ...]) -> Iterator[Expr]:
        """No more blocks than tiles, whatever the kernel does to the block index."""
        terms = self.terms
        shared, moving, still = ranges.split(combine(terms.poly(a), terms.poly(b), -1))
        for symbol in symbols(terms.expr(moving)):
            if symbol.kind is Kind.BLOCK and symbol.bound is not None:
                top = combine(terms.poly(symbol.bound), constant(1), -1)
                yield from terms.at_most(combine(times(shared, top), still), {})

    def _signs(self, goal: Expr) -> Iterator[Expr]:
        """Scalars that an index is made of are not negative."""
        for symbol in symbols(goal):
            if symbol.kind is Kind.SCALAR:
                yield le(ZERO, sym(symbol))
        for symbol in symbols(goal):
            if symbol.kind in (Kind.SCALAR, Kind.EXTENT):
                yield le(ONE, sym(symbol))

    # ---- decodes of a block index -------------------------------------------------------------------

    def _counts(self, numbers: tuple[Expr, ...], paths: tuple[Expr, ...] = ()) -> tuple[Expr, ...]:
        """Launch values that stand beside varying ones: numbers of tiles, extents, scalars, radixes.

        Those that a value of `numbers` is computed with, and those that one of `paths` compares with.
        """
        terms = self.terms
        found: dict[Expr, None] = {}
        for node in walk(*paths):
            if node.op in ("lt", "le", "eq") and not terms.uniform(node):
                limits = [child for child in children(node) if terms.uniform(child)]
                found.update((factor, None) for limit in limits for factor in self._factors(limit))
        for node in walk(*numbers, *paths):
            if node.is_bool or terms.uniform(node):
                continue
            for child in children(node):
                if terms.uniform(child) and not child.is_bool:
                    found.update(dict.fromkeys(self._factors(child)))
        ranked = sorted(found, key=self._rank)  # stable: order of appearance within a rank
        return tuple(e for e in ranked if self._rank(e) < _NO_COUNT)

    def _factors(self, e: Expr) -> Iterator[Expr]:
        for m, coefficient in self.terms.poly(e).items():
            if abs(coefficient) == 1 or m:
                yield from (self.terms.atom(number) for number in m)

    def _rank(self, e: Expr) -> int:
        """0 tile counts, 1 extents and scalars, 2 other constants, 3 what is no count (grids, tiles)."""
        found = symbols(e)
        kinds = {s.kind for s in found}
        if Kind.GRID in kinds or Kind.STRIDE in kinds or all(s in self.terms.tiles for s in found):
            return _NO_COUNT
        if e.op == "sym":
            return 1 if kinds & {Kind.EXTENT, Kind.SCALAR} else 2
        return 0

    def _products(self, cone: tuple[Expr, ...]) -> Iterator[Expr]:
        """`grid[k] <= u * v` where block k is decoded by // and % and u, v are counts in the decode."""
        axes = self._decoded_axes(cone)
        counts = sorted(self._counts(cone)[:_FACTORS], key=self._position)
        pairs = [(i, j) for i in range(len(counts)) for j in range(i + 1, len(counts))]
        products = [mul(counts[i], counts[j]) for i, j in pairs]
        products += [
            mul(counts[i], counts[j], counts[k]) for i, j in pairs for k in range(j + 1, len(counts))
        ]
        for axis in axes:
            for product in products:
                yield le(sym(grid_symbol(axis)), product)

    def _position(self, count: Expr) -> tuple[int, str]:
        """Where a count comes in the order of the kernel's parameters."""
        names = [param.name for param in self.kernel.params]
        owners = [s.name.partition(".")[0] for s in symbols(count)]
        found = [names.index(owner) for owner in owners if owner in names]
        return min(found, default=len(names)), render(count)

    def _decoded_axes(self, cone: tuple[Expr, ...]) -> tuple[int, ...]:
        names: dict[Symbol, None] = {}
        for node in walk(*cone):
            if node.op in ("floordiv", "mod"):
                for symbol in symbols(node.args[0]):
                    if symbol.kind is Kind.BLOCK and symbol.bound is not None:
                        names.update(dict.fromkeys(symbols(symbol.bound)))
        grids = {grid_symbol(axis): axis for axis in self.kernel.grid_axes}
        return tuple(grids[s] for s in names if s in grids)

    # ---- races --------------------------------------------------------------------------------------

    def _races(self, first: Access, second: Access) -> Iterator[Expr]:
        accesses = (first,) if first is second else (first, second)
        late: list[Expr] = []
        cones: list[Expr] = []
        for access in accesses:
            ranges = Ranges(self.terms, (access.guard, access.mask, access.lane_facts))
            for axis in access.axes:
                cone = axis.coordinate
                cones.append(cone)
                for node in self._sums(cone):
                    yield from self._radix(ranges, node, late)
                for node in walk(cone):
                    if node.op == "mod" and not self.terms.uniform(node):
                        for top in ranges.highest(node.args[0]):
                            late += self.terms.at_most(
                                combine(self.terms.poly(top), constant(1)), self.terms.poly(node.args[1])
                            )
        for access in accesses:
            yield from self._real_elements(access)
        if first is not second and len(first.axes) == len(second.axes):
            for one, other in zip(first.axes, second.axes, strict=True):
                yield from self._apart(first, second, one, other)
        yield from late
        yield from self._wholes(tuple(cones), ())
        guards = tuple(a.guard for a in accesses)
        yield from self._products((*cones, *guards))

    def _real_elements(self, access: Access) -> Iterator[Expr]:
        """Indices that are read from memory come from elements of their array, not from padding."""
        ranges = Ranges(self.terms, (access.guard, access.mask, access.lane_facts))
        for node in walk(*(axis.coordinate for axis in access.axes)):
            if node.op != "ite" or self.terms.uniform(node.args[0]):
                continue
            for a, b in _inequalities(node.args[0]):
                yield from self._largest(ranges, a, b, ())
                sizes = [s for s in symbols(a) if s in self.terms.tiles]
                if self.terms.uniform(b):
                    yield from (eq(mod(b, sym(size)), 0) for size in sizes)

    def _sums(self, cone: Expr) -> Iterator[Expr]:
        """Every varying sum in an index, the whole index first."""
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
                yield from self._below(ranges, part, coefficient)
            for _, part in parts[:i]:
                late += self._below(ranges, part, coefficient)
        for coefficient, _ in parts:
            if coefficient.op == "sym":
                late += terms.at_most(constant(1), terms.poly(coefficient))

    def _parts(self, node: Expr) -> list[tuple[Expr, Expr]]:
        """The varying terms of a sum with their uniform coefficients, the largest coefficients first.

        Terms are taken as written: distributing (b*T + l)*s would hide that b*T + l is one coordinate.
        """
        parts: list[tuple[Expr, Expr]] = []
        for term in node.args:
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
        for top in ranges.highest(self._unit(rest, terms.expr(moving))):
            if dict(shared) == {UNIT: 1}:
                found += terms.limited(shared, terms.poly(top), combine(below, constant(1)))
            else:
                found += terms.limited(shared, combine(terms.poly(top), constant(1)), below)
        return found

    def _unit(self, rest: Expr, moving: Expr) -> Expr:
        """The varying factor of a product as written, so that masks on it are recognised."""
        if rest.op != "mul":
            return moving
        return mul(*(f for f in rest.args if not self.terms.uniform(f)))

    def _apart(self, first: Access, second: Access, one: Axis, other: Axis) -> Iterator[Expr]:
        """Two accesses a launch value apart (out[i] and out[i + n]): the first stays below that distance."""
        terms = self.terms
        p, q = terms.poly(one.coordinate), terms.poly(other.coordinate)
        for access, near, far in ((first, p, q), (second, q, p)):
            distance = {m: c for m, c in combine(far, near, -1).items() if not terms.varies(m)}
            if not any(m for m in distance):
                continue
            ranges = Ranges(terms, (access.guard, access.mask, access.lane_facts))
            moving = terms.expr({m: c for m, c in near.items() if terms.varies(m)})
            yield from self._below(ranges, moving, terms.expr(distance))

    # ---- divisibility -------------------------------------------------------------------------------

    def _wholes(self, cone: tuple[Expr, ...], axes: tuple[Axis, ...]) -> Iterator[Expr]:
        """`e % c == 0` for the compile-time constants c that the kernel divides by."""
        terms = self.terms
        for axis in axes:
            if _is_constant(axis.step) and axis.step is not ONE and terms.uniform(axis.extent):
                yield eq(mod(axis.extent, axis.step), 0)
        counts = [count for count in self._counts(cone) if self._rank(count) <= 1]
        for node in walk(*cone):
            if node.op not in ("floordiv", "mod") or terms.uniform(node) or not _is_constant(node.args[1]):
                continue
            top, divisor = node.args
            for symbol in symbols(top):
                if symbol.kind is Kind.GRID:
                    yield eq(mod(sym(symbol), divisor), 0)
                elif symbol.kind is Kind.BLOCK and symbol.bound is not None:
                    yield eq(mod(symbol.bound, divisor), 0)
            for count in counts:
                if count is not divisor:
                    yield eq(mod(count, divisor), 0)


def _is_constant(e: Expr) -> bool:
    return e.value is not None or (e.op == "sym" and e.args[0].kind is Kind.CONSTANT)


def _inequalities(goal: Expr) -> Iterator[tuple[Expr, Expr]]:
    """`goal` as inequalities a <= b that have to do with it, clamps taken apart."""
    match goal.op:
        case "all":
            for part in goal.args:
                yield from _inequalities(part)
        case "lt":
            yield from _apart(add(goal.args[0], 1), goal.args[1])
        case "le":
            yield from _apart(goal.args[0], goal.args[1])
        case "not" if goal.args[0].op in ("lt", "le"):
            yield from _inequalities(negate(goal.args[0]))


def _apart(a: Expr, b: Expr) -> Iterator[tuple[Expr, Expr]]:
    if b.op in ("min", "max", "ite"):
        for branch in b.args[-2:]:
            yield from _apart(a, branch)
    elif a.op in ("max", "ite"):
        for branch in a.args[-2:]:
            yield from _apart(branch, b)
    elif b.op == "mul" and a in (ZERO, ONE) and all(f.value is None or f.value > 0 for f in b.args):
        for factor in b.args:
            if factor.value is None:
                yield from _apart(a, factor)
    elif b.op == "floordiv" and a is ONE:
        yield from _apart(b.args[1], b.args[0])
    else:
        yield a, b
