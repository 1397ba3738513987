"""Launch conditions that an obligation may need, made from the kernel's own terms, weak and plain ones first.

    bounds   a + v <= P          grid[k] <= cdiv(x.shape[0], T), cdiv(x.shape[i], T) >= U, n >= 1
    decodes  bid // d, bid % d   grid[k] <= d * tiles, tiles >= d, grid[k] <= num_m * num_n
    radix    a*u + v, v < a      grid[k] <= radix, x.stride(0) >= x.shape[1]
    wholes   e // c, e % c       e % c == 0

Nothing here is trusted. The search keeps a set of conditions only if the obligation is proved under it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.limits import promised_ranges
from tilecheck.ir.expr import (
    ONE,
    ZERO,
    Expr,
    Kind,
    Symbol,
    add,
    all_of,
    conjuncts,
    const,
    floordiv,
    le,
    mul,
    number_symbols,
    render,
    substitute,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.kernel import Access, Kernel
from tilecheck.proof.algebra.polynomial import combine, constant, times
from tilecheck.proof.conditions.generators import flat as candidates_flat
from tilecheck.proof.conditions.generators import layout
from tilecheck.proof.conditions.generators import rows as candidates_rows
from tilecheck.proof.conditions.generators.counts import Counts, inequalities, is_flag
from tilecheck.proof.conditions.generators.races import RaceCandidates
from tilecheck.proof.conditions.generators.tables import with_chunks
from tilecheck.proof.conditions.ranges import Ranges, largest
from tilecheck.proof.conditions.terms import Terms, enlarging
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation
from tilecheck.proof.premises.divisibility import whole_parts, whole_steps
from tilecheck.proof.rewrite.block_dispatch import second_ids

LIMIT = 32
_LONGEST = 100  # characters: what is longer than a line helps nobody
_LONGEST_LENGTH = 400  # of a condition on the length of memory: one term for each axis that is walked
_HALF_OF_32_BITS = (1 << 31) - 1
_NUMBERS = (Kind.SCALAR, Kind.CONSTANT, Kind.EXTENT)
_FREE = (Kind.EXTENT, Kind.SCALAR, Kind.STRIDE, Kind.HOST)


def candidates(obligation: Obligation, kernel: Kernel, tiles: frozenset[Symbol]) -> Iterator[Expr]:
    """The conditions worth trying, in the order in which to try them. `tiles` are the symbols of tile sizes."""
    found: dict[Expr, None] = {}
    # How large a value in memory may be limits the length of memory, not how far blocks are apart.
    promised = promised_ranges(kernel) if isinstance(obligation.goal, Holds) else {}
    obligation = with_chunks(obligation, kernel)
    for stated in _conditions(obligation, Counts(kernel, Terms(tiles, promised))):
        if len(found) == LIMIT:
            break
        condition = _divided(stated)
        if any(map(_may_be_float, symbols(condition))) or _is_of_huge_arrays(condition):
            continue
        if condition not in found and (
            admissible(condition, tiles)
            or _fits_in_32_bits(condition, obligation)
            or _counts_branches(condition, obligation)
            or _is_layout(condition, kernel, tiles)
            or _divides(condition, obligation)
            or _is_of_literal_rows(condition, obligation, kernel)
            or _is_of_square(condition, obligation, tiles)
        ):
            found[condition] = None
            yield condition


def _may_be_float(symbol: Symbol) -> bool:
    """Whether it stands for a number in a limit on what floats come to, and nowhere else
    (`frontend.values.float_ranges`)."""
    return symbol.origin.startswith("size of ")


def _is_of_huge_arrays(condition: Expr) -> bool:
    """`numel(x) >= 1140850688`: as far as a float may reach, no array does."""
    at_least = condition.args[0] if condition.op == "le" else condition
    return any(2**30 <= abs(node.value or 0) < _HALF_OF_32_BITS for node in walk(at_least) if not node.is_bool)


def tile_symbols(kernel: Kernel) -> frozenset[Symbol]:
    """The constants that are tile sizes: a condition may not cap anything by them alone."""
    sizes = list(kernel.powers_of_two)
    for access in kernel.accesses:
        sizes += [axis.size for axis in access.axes]
        sizes += [lane.bound for lane in access.lanes if lane.bound is not None]
    return frozenset(s for size in sizes for s in enlarging(size) if s.kind is Kind.CONSTANT)


def admissible(condition: Expr, tiles: frozenset[Symbol]) -> bool:
    """Whether a condition is of one of the kinds (a) to (d) and caps nothing by a constant or a tile size.

    `grid[k] <= NUM_SMS` is admissible, NUM_SMS being a constant that is no tile size; an extent may be
    bounded by other extents, scalars and strides only.
    """
    found = symbols(condition)
    if not found or any(s.kind > Kind.HOST for s in found) or any(n.op == "read" for n in walk(condition)):
        return False
    longest = _LONGEST_LENGTH if is_length(condition) or is_product(condition) else _LONGEST
    return _is_readable(condition, longest) and _caps_nothing(condition, found, tiles)


def _is_readable(condition: Expr, longest: int) -> bool:
    """Whether it is no longer than that, or is none of the two that a conditional under a flag is made of."""
    if len(render(condition)) <= longest:
        return True
    chosen = next((node for node in walk(condition) if node.op == "ite" and is_flag(node.args[0])), None)
    return chosen is not None and all(
        len(render(substitute(condition, {chosen: way}))) <= longest for way in chosen.args[1:]
    )


def _fits_in_32_bits(condition: Expr, obligation: Obligation) -> bool:
    """`N * H * W <= 2147483647` where an offset is asked to fit: it does in arrays of no more elements (S4)."""
    if obligation.kind != "overflow" or condition.op != "le" or len(render(condition)) > _LONGEST:
        return False
    low, high = condition.args
    known = all(s.kind < Kind.GRID for s in symbols(low)) and all(n.op != "read" for n in walk(low))
    return known and low.op == "mul" and high.value is not None and high.value >= _HALF_OF_32_BITS


def _counts_branches(condition: Expr, obligation: Obligation) -> bool:
    """`grid[k] <= 2` where an access is in a branch on `bid(k) != 0`, `grid[k] <= 1` where it is under a flag.

    What is derived for a flag holds under it: the search keeps such a condition only if there are more blocks
    where the flag is off.
    """
    goal = obligation.goal
    if condition.op != "le" or not isinstance(goal, Disjoint):
        return False
    grid, most = condition.args
    guard = all_of(goal.first.guard, goal.second.guard)
    if most is ONE:
        return grid.op == "sym" and any(map(is_flag, conjuncts(guard)))
    if any(s.kind > Kind.HOST for s in symbols(most)) or any(n.op == "read" for n in walk(most)):
        return False  # it would be a condition on blocks, or on memory
    ids = second_ids((goal.first.guard, goal.second.guard))
    if any(block.bound is grid and most.value == second for block, second in ids):
        return True
    asked = [node.args for node in walk(guard) if node.op == "eq"]
    if any(a.op == "sym" and a.args[0].bound is grid and add(b, 2) is most for a, b in asked):
        return True
    return any(_is_counted(a) and add(b, 1) is most for pair in asked for a, b in (pair, pair[::-1]))


def _is_counted(e: Expr) -> bool:
    """Whether it is what an atomic returned: the last of `n` blocks to count is asked for by `n - 1`."""
    return e.op == "sym" and e.args[0].kind is Kind.OPAQUE


def _is_layout(condition: Expr, kernel: Kernel, tiles: frozenset[Symbol]) -> bool:
    """`N <= STRIDE`: flat memory has its strides as plain numbers, also as numbers of compile time."""
    if kernel.language != "triton" or condition.op != "le" or len(render(condition)) > _LONGEST:
        return False
    low, high = condition.args
    found = symbols(condition)
    constant = all(s.kind is Kind.CONSTANT and s not in tiles for s in found)
    return constant and low.value is None and high.op == "sym" and high.args[0] not in symbols(low)


def _divides(condition: Expr, obligation: Obligation) -> bool:
    """`T <= S` where `S // T` must not be 0, also between numbers of compile time."""
    goal = obligation.goal
    if condition.op != "le" or not isinstance(goal, Holds):
        return False
    low, high = condition.args
    return goal.goal is le(ONE, floordiv(high, low))


def is_length(condition: Expr) -> bool:
    """`x.shape[0] >= (grid[0] - 1) * stride + n`: how long memory must be for the launch."""
    if condition.op != "le":
        return False
    low, high = condition.args
    return bool(low.op == "add" and high.op == "sym" and high.args[0].kind is Kind.EXTENT)


def is_product(condition: Expr) -> bool:
    """`x.shape[0] >= (n * stride + m) * width`: a length too, whose terms have a common factor."""
    if condition.op != "le":
        return False
    low, high = condition.args
    return bool(low.op == "mul" and high.op == "sym" and high.args[0].kind is Kind.EXTENT)


def _caps_nothing(condition: Expr, found: tuple[Symbol, ...], tiles: frozenset[Symbol]) -> bool:
    if condition.op == "all":
        return all(map(_positive, condition.args))
    if condition.op != "le":
        return condition.op in ("eq", "not") or _asks_sign(condition)
    low, high = condition.args
    low_kinds = {s.kind for s in symbols(low)}
    if low.value is None and all(s.kind is Kind.CONSTANT for s in found):
        return False
    ceiling = [s for s in symbols(high) if s.kind in _FREE or (s.kind is Kind.CONSTANT and s not in tiles)]
    shared = {s for s in symbols(low) if s.kind is Kind.SCALAR} & set(symbols(high))
    of_32_bits = any((node.value or 0) >= _HALF_OF_32_BITS for node in walk(high))
    if shared and low.value is None and not of_32_bits:
        return False  # a number against itself (`n >= n * cdiv(n, T)`) limits something else
    if Kind.EXTENT in low_kinds:
        # An extent against itself (`x.shape[0] <= cdiv(x.shape[0], T)`) is a limit on the tile size.
        own = [s for s in symbols(low) if s.kind is Kind.EXTENT]
        return any(s.kind in _FREE for s in ceiling) and not any(s in own for s in ceiling)
    if Kind.GRID in low_kinds or Kind.SCALAR in low_kinds:
        return bool(ceiling)
    return True


def _asks_sign(condition: Expr) -> bool:
    """`0 <= scale` or, of a float that is divided by, `0 < scale`."""
    return condition.op in ("le", "lt") and condition.args[0] is ZERO and condition.args[1].op == "sym"


def _divided(condition: Expr) -> Expr:
    """`grid[1] <= 24` for `256 * grid[1] <= 6144`."""
    if condition.op != "le" or condition.args[0].op != "mul" or condition.args[1].value is None:
        return condition
    (scale, *rest), most = condition.args[0].args, condition.args[1].value
    return le(mul(*rest), most // scale.value) if scale.value is not None and scale.value > 0 else condition


def _is_of_literal_rows(condition: Expr, obligation: Obligation, kernel: Kernel) -> bool:
    """`256 * grid[1] <= 6144`: a text that says how long a row is says how many blocks have room."""
    if condition.op != "le" or len(kernel.grid_axes) < 2 or not isinstance(obligation.goal, Disjoint):
        return False
    low, high = condition.args
    [*found] = symbols(low)
    if high.value is None or [s.kind for s in found] != [Kind.GRID]:
        return False
    several = substitute(low, {sym(found[0]): const(2)}).value
    return several is not None and several <= high.value


def _is_of_square(condition: Expr, obligation: Obligation, tiles: frozenset[Symbol]) -> bool:
    """`grid[0] <= T` where each block has a column of T elements in rows of T: `x[(lane + 1) * T + bid]`. That
    is as many blocks as there are columns, in a square that the text spells out."""
    goal = obligation.goal
    if condition.op != "le" or not isinstance(goal, Disjoint):
        return False
    low, high = condition.args
    if low.op != "sym" or low.args[0].kind is not Kind.GRID or high.op != "sym" or high.args[0] not in tiles:
        return False
    for access in (goal.first, goal.second):
        lanes = [lane for lane in access.lanes if lane.bound is high]
        for axis in access.axes:
            place = axis.coordinate
            terms = place.args if place.op == "add" else ()
            blocks = [t for t in terms if t.op == "sym" and t.args[0].bound is low]
            rows = [t for t in terms if t.op == "mul" and high in t.args]
            if len(blocks) != 1 or not any(lane in symbols(t) for t in rows for lane in lanes):
                return False
    return True


def _positive(condition: Expr) -> bool:
    return condition.op == "le" and condition.args[0].value is not None


def _conditions(obligation: Obligation, counts: Counts) -> Iterator[Expr]:
    match obligation.goal:
        case Holds(goal=goal, given=given, access=access):
            yield from _BoundCandidates(counts).conditions(goal, given, access)
        case Disjoint(first=first, second=second, between=between):
            found = RaceCandidates(counts).conditions(first, second)
            yield from found if between is Between.BLOCKS else _without_grid_first(found)


def _without_grid_first(conditions: Iterator[Expr]) -> list[Expr]:
    """How many blocks there are is no matter of one block: `stride >= 1` comes before a limit on the grid."""
    return sorted(conditions, key=lambda c: any(s.kind is Kind.GRID for s in symbols(c)))


class _BoundCandidates:
    """Conditions under which operations are defined and indices stay inside."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self.terms = counts.terms

    def conditions(self, goal: Expr, given: Expr, access: Access | None) -> Iterator[Expr]:
        terms = self.terms
        ranges = Ranges(terms, (given,))
        if terms.uniform(goal) and goal.op in ("le", "lt", "not", "eq"):
            yield from self._uniform_goal(goal)
        flat = candidates_flat.conditions(terms, access) if access is not None and access.flat else ()
        # Triton's memory is always flat. An array of cuTile has extents, and conditions on tiles are plainer.
        if self.counts.kernel.language == "triton":
            yield from flat
            if access is not None and access.flat:
                yield from layout.lengths(access, self.counts.kernel, terms)
                yield from candidates_rows.rows_of_tables(terms, access, self.counts.kernel)
        cone = (goal, given)
        clamped = any(node.op == "min" and not terms.uniform(node) for node in walk(*cone))
        # How steps fit into blocks limits no launch: before what takes some blocks away.
        yield from whole_steps(given, terms)
        yield from whole_parts(goal, terms)
        if clamped:
            yield from self._signs(goal)  # first, as they say least
            yield from self.counts.products(cone)
        demands = list(inequalities(goal))
        counts = self.counts.of((goal,), (given,))
        # The largest value of a clamped decode is a poor guess, the counts of its tiles are good ones.
        attempts = [self._largest, self._agreements]
        for attempt in (*(reversed(attempts) if clamped else attempts), self._one_each):
            for a, b in demands:
                yield from attempt(ranges, a, b, counts)
        yield from self._branches(ranges, goal)
        yield from self._signs(goal)
        yield from self._steps(given)
        if not clamped:
            yield from self.counts.products(cone)
        axes = access.axes if access is not None else ()
        yield from self.counts.wholes(cone, axes)
        yield from flat

    def _uniform_goal(self, goal: Expr) -> Iterator[Expr]:
        if goal.op == "not" and goal.args[0].op == "eq" and ZERO in goal.args[0].args:
            yield from (le(ONE, x) for x in goal.args[0].args if x is not ZERO)
        elif goal.op in ("le", "lt"):
            for a, b in inequalities(goal):
                yield from self.terms.at_most(self.terms.poly(a), self.terms.poly(b))
            if goal.args[1].op == "floordiv":
                yield le(*reversed(goal.args[1].args))
        elif goal.op == "eq" and goal.args[0].op == "mod":
            yield goal

    def _largest(self, ranges: Ranges, a: Expr, b: Expr, _: tuple[Expr, ...]) -> Iterator[Expr]:
        """The largest value of the left side is at most the right side."""
        yield from largest(ranges, a, b)

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

    def _branches(self, ranges: Ranges, goal: Expr) -> Iterator[Expr]:
        """What is asked in the goal holds always: `0 <= i + n - shift`, where a remainder has a sign."""
        for node in walk(goal):
            if node.op == "ite" and not self.terms.uniform(node.args[0]):
                for a, b in inequalities(node.args[0]):
                    yield from largest(ranges, a, b)

    def _steps(self, given: Expr) -> Iterator[Expr]:
        """What moving values are multiplied with where they are bounded: `i * C < n` bounds i if C >= 1."""
        for term in conjuncts(given):
            if term.op not in ("lt", "le"):
                continue
            for node in walk(term.args[0]):
                if node.op != "mul" or self.terms.uniform(node):
                    continue
                sizes = [
                    e for e in node.args if e.op == "sym" and e.args[0].kind in (Kind.SCALAR, Kind.CONSTANT)
                ]
                yield from (le(ONE, e) for e in sizes if e.args[0] not in self.terms.tiles)

    def _signs(self, goal: Expr) -> Iterator[Expr]:
        """Numbers that an index is made of are not negative, and floats that are rounded to one are not. The
        size of a tile is positive, but two of its factors may both be negative."""
        for node in walk(goal):
            if node.op == "min":  # where an index is cut off, there is an element
                for branch in filter(self.terms.uniform, node.args):
                    yield from self.terms.at_most({}, self.terms.poly(branch))
            asked = conjuncts(node.args[0]) if node.op == "ite" and self.terms.uniform(node.args[0]) else ()
            yield from filter(_asks_sign, asked)
        known = self.counts.kernel.facts
        sizes = [s for s in number_symbols(goal) if s.kind in _NUMBERS and le(ONE, sym(s)) not in known]
        yield from (le(ZERO, sym(s)) for s in sizes if s.kind is not Kind.EXTENT)
        for symbol in sizes:
            # Of a number whose sign alone is asked, which may be a float between 0 and 1, nothing else is.
            if symbol.origin != "sign" and not _may_be_float(symbol):
                yield le(ONE, sym(symbol))
