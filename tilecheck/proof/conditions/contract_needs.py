"""The contracts that undecided obligations of one kernel ask for, as one set: each array gets the bounds that
all of its uses need, and what keeps the places apart that are found through it.

Nothing here is believed: the kernel is decided once more with the whole set (`proposals`), and only what is
decided then is reported as such. So a poor guess costs a proposal and never a verdict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import (
    ONE,
    Expr,
    Kind,
    add,
    all_of,
    conjuncts,
    eq,
    le,
    lt,
    mul,
    negate,
    read,
    rebuild,
    render,
    sym,
    walk,
)
from tilecheck.ir.kernel import Kernel, extent_symbol
from tilecheck.ir.parts import residue
from tilecheck.proof.algebra.sum_terms import Leaf, leaves, shift
from tilecheck.proof.obligation import Disjoint, Holds, Obligation

_CAST = ":int"  # an element that is cast to an integer
_MOST = 12  # contracts, as more than that nobody reads


@dataclass(frozen=True, slots=True)
class _Place:
    """A coordinate of an access, what it must stay below, and what is given where the access happens."""

    coordinate: Expr
    end: Expr
    given: Expr


def needed(kernel: Kernel, open_: Sequence[Obligation]) -> tuple[str, ...]:
    """The texts of the contracts, in the words of the IR; none where there is nothing to ask for.

    They speak of arrays that are only read, name launch values alone, and repeat nothing that the author says.
    """
    known = {(c.kind, array) for c in kernel.contracts for array in c.arrays}
    found: dict[str, None] = {}
    found.update(dict.fromkeys(_bounds(kernel, open_, known)))
    found.update(dict.fromkeys(_orders(kernel, open_, known)))
    return tuple(found) if len(found) <= _MOST else ()


def tables_of(obligation: Obligation) -> frozenset[str]:
    """The arrays whose values decide an obligation."""
    return frozenset(node.args[0] for node in walk(*_terms(obligation)) if _is_element(node))


def _terms(obligation: Obligation) -> list[Expr]:
    """What an obligation speaks of, with elements as those of arrays that are known to hold integers."""
    goal = obligation.goal
    if isinstance(goal, Holds):
        return [_plain(goal.goal), _plain(goal.given)]
    if not isinstance(goal, Disjoint):
        return []
    accesses = (goal.first, goal.second)
    return [_plain(e) for a in accesses for e in (a.guard, a.mask, *(axis.coordinate for axis in a.axes))]


def _plain(e: Expr) -> Expr:
    def known(node: Expr) -> Expr | None:
        if node.op != "read" or not node.args[0].endswith(_CAST):
            return None
        return read(node.args[0].removesuffix(_CAST), *map(_plain, node.args[1:]))

    return rebuild(e, known)


def _is_element(node: Expr) -> bool:
    return node.op == "read" and "." not in node.args[0] and ":" not in node.args[0]


# ---- bounds ------------------------------------------------------------------------------------------------


def _bounds(kernel: Kernel, open_: Sequence[Obligation], known: set[tuple[str, str]]) -> Iterator[str]:
    limits: dict[Expr, dict[Expr, None]] = {}  # by the element that is bounded
    guarded: dict[Expr, bool] = {}  # whether negative values of it are left out wherever it is used
    skipped: dict[Expr, set[Expr]] = {}  # values of it with which nothing happens wherever it is used
    lows: dict[Expr, int] = {}  # what it is at least, where something is taken off it
    for obligation in open_:
        for place in _places(obligation):
            for element, room, low in _limits(place):
                cap = _cap(element, place.given)
                limit = room if cap is None else add(cap, 1)  # what lies at the cap is padding
                limits.setdefault(element, {})[limit] = None
                lows[element] = max(low, lows.get(element, 0))
                skips = _is_never_negative(element, place.given)
                guarded[element] = guarded.get(element, True) and skips
                own = set(_skipped(element, place.given))
                skipped[element] = skipped.get(element, own) & own
    for obligation in open_:
        for element in _unbounded(obligation, limits):
            places = list(_all_places(kernel, element))
            ends = [limit for place in places for e, limit, _ in _limits(place) if e is element]
            ends += [add(place.end, 1) for place in places]
            if ends:
                limits[element], guarded[element] = {ends[0]: None}, False
    yield from _stated(limits, lows, guarded, skipped, known)


def _stated(
    limits: dict[Expr, dict[Expr, None]],
    lows: dict[Expr, int],
    guarded: dict[Expr, bool],
    skipped: dict[Expr, set[Expr]],
    known: set[tuple[str, str]],
) -> Iterator[str]:
    """One `within` for each limit of each array, or of each half of an array of pairs that is read; of two that
    differ by a literal the smaller one. A value with which nothing happens may lie outside."""
    by_array: dict[str, list[Expr]] = {}
    for element in limits:
        by_array.setdefault(element.args[0], []).append(element)
    for array, elements in by_array.items():
        if known & {("within", array), ("within_or", array)}:
            continue
        halves = [_half(e) for e in elements]
        parts = (None,) if None in halves else sorted({h for h in halves if h is not None})
        for half in parts:
            own = [e for e, h in zip(elements, halves, strict=True) if half in (None, h)]
            low = "-1" if all(guarded[e] for e in own) else str(max(lows.get(e, 0) for e in own))
            skips = set.intersection(*(skipped.get(e, set()) for e in own)) if low != "-1" else ()
            skip = f", skip={min(map(render, skips))}" if skips else ""
            part = "" if half is None else f"[{half}::2]"
            for limit in _smallest(dict.fromkeys(limit for e in own for limit in limits[e])):
                yield f"within({array}{part}, {low}, {render(limit)}{skip})"


def _half(element: Expr) -> int | None:
    """Whether its index is even or odd, where the text of the index shows it."""
    return residue(element.args[1], 2) if len(element.args) == 2 and element.args[1].value is None else None


def _smallest(limits: Iterable[Expr]) -> list[Expr]:
    every = list(limits)
    return [e for e in every if not any(other is not e and _is_less(other, e) for other in every)]


def _is_less(a: Expr, b: Expr) -> bool:
    """a <= b for the look of it: `n` and `n + 1`, `n // d + 1` and `n + 1`."""
    gap = add(b, mul(-1, a)).value
    if gap is not None:
        return gap >= 0
    return any(n.op == "floordiv" and add(a, mul(-1, n), n.args[0]) is b for n in walk(a))


def _places(obligation: Obligation) -> Iterator[_Place]:
    """The coordinates that an obligation asks to stay below an extent."""
    goal = obligation.goal
    if isinstance(goal, Holds) and goal.access is not None:
        given = _plain(goal.given)
        for part in conjuncts(_plain(goal.goal)):
            if part.op == "lt" and part.args[1].op == "sym" and part.args[1].args[0].kind is Kind.EXTENT:
                yield _Place(part.args[0], part.args[1], given)


def _all_places(kernel: Kernel, element: Expr) -> Iterator[_Place]:
    """Those of all accesses of the kernel that depend on an element of the same array."""
    for access in kernel.accesses:
        terms = [access.guard, access.mask, *(axis.coordinate for axis in access.axes)]
        if any(_is_element(n) and n.args[0] == element.args[0] for n in walk(*map(_plain, terms))):
            given = _plain(all_of(access.guard, access.mask))
            for k, axis in enumerate(access.axes):
                yield _Place(_plain(axis.coordinate), sym(extent_symbol(access.array, k)), given)


def _unbounded(obligation: Obligation, limits: dict[Expr, dict[Expr, None]]) -> Iterator[Expr]:
    """Elements that 32-bit arithmetic is done with, of arrays that nothing else bounds."""
    goal = obligation.goal
    if obligation.kind != "overflow" or not isinstance(goal, Holds):
        return
    bounded = {element.args[0] for element in limits}
    for part in conjuncts(_plain(goal.goal)):
        for side in part.args if part.op in ("le", "lt") else ():
            for leaf in leaves(side):
                if _is_element(leaf.atom) and leaf.atom.args[0] not in bounded:
                    yield leaf.atom


def _limits(place: _Place) -> Iterator[tuple[Expr, Expr, int]]:
    """Elements that a coordinate is computed from, or that bound a number that it is computed from, what each
    must stay below, and what it must reach: of `t - 1` that is 1, unless nothing happens below."""
    own = leaves(place.coordinate)
    for leaf in own:
        room = _room(own, leaf, {leaf.atom}, place.end) if _is_element(leaf.atom) and not leaf.is_less else None
        if room is not None:
            # Of what begins at an element and ends before another, nothing may be left: it begins at the end.
            less = shift(place.coordinate, leaf)
            tests = (lt(less - 1, leaf.atom), le(less, leaf.atom))
            tested = any(part in tests for part in conjuncts(place.given))
            end = add(room, 1) if any(_ends(leaf, own, place.given)) else room
            yield leaf.atom, add(end, less), 0 if tested else less
    found: dict[Expr, Expr] = {}
    counts: dict[Expr, Expr] = {}
    for part in conjuncts(place.given):
        for leaf, end in _limits_of_ends(part, own, place.end):
            # Where a test of the number itself bounds it, how often a loop runs says no more.
            (found if leaf.is_counted else counts)[leaf.atom] = end
    yield from ((element, limit, 0) for element, limit in {**counts, **found}.items())


def _limits_of_ends(part: Expr, own: Sequence[Leaf], end: Expr) -> Iterator[tuple[Leaf, Expr]]:
    """Elements before which a test ends a number that a coordinate is computed from."""
    if part.op not in ("lt", "le"):
        return
    numbers, ends = map(leaves, part.args)
    starts = {leaf.atom for leaf in numbers if _is_element(leaf.atom)}
    starts |= {leaf.atom for leaf in ends if leaf.is_less}
    counted = {leaf.atom for leaf in numbers} - starts
    units = {leaf.atom for leaf in numbers if leaf.factor is ONE and leaf.is_counted} & counted
    unit = next((leaf for leaf in own if leaf.atom in units), None)
    if unit is None:
        return
    steps = {leaf.atom for leaf in own if leaf.steps == unit.steps}
    if not starts <= steps:  # only how far it is from its start is known
        return
    room = _room(own, unit, counted | starts, end)
    for leaf in ends if room is not None else ():
        if _is_element(leaf.atom) and not leaf.is_less and room is not None:
            yield leaf, add(leaf.room(room), 1)


def _ends(start: Leaf, own: Sequence[Leaf], given: Expr) -> Iterator[Expr]:
    """The elements that end what is counted from an element on, in steps of its own: `t[i] + k < t[i + 1]`,
    `k < t[i + 1] - t[i]`, `k < n[i]`."""
    steps = {leaf.atom for leaf in own if leaf.steps == start.steps}
    for part in conjuncts(given):
        if part.op in ("lt", "le"):
            numbers, ends = map(leaves, part.args)
            atoms = {leaf.atom for leaf in numbers}
            for leaf in ends if atoms & steps else ():
                end = leaf.atom
                is_near = start.atom in atoms or _is_beside(start.atom, end)
                if _is_element(end) and end is not start.atom and is_near:
                    yield end


def _is_beside(element: Expr, other: Expr) -> bool:
    """Whether both are elements at one index, or the second is the next one of the same array."""
    if len(element.args) != len(other.args):
        return False
    gaps = [add(j, mul(-1, i)).value for i, j in zip(element.args[1:], other.args[1:], strict=True)]
    total = sum(gap for gap in gaps if gap is not None)
    return None not in gaps and (total == 0 if element.args[0] != other.args[0] else total == 1)


def _room(own: Sequence[Leaf], leaf: Leaf, counted: Collection[Expr], end: Expr) -> Expr | None:
    """How many values the leaf may have: up to the end, or from one step of a leaf that takes larger steps to
    the next one. `counted` are parts of the same number."""
    wider = _wider(own, leaf, counted)
    room = leaf.room(wider[-1] if wider else end)
    return room if _is_sayable(room) and room.value is None else None


def _wider(own: Sequence[Leaf], leaf: Leaf, counted: Collection[Expr]) -> list[Expr]:
    """The larger steps that other numbers before a leaf take. A number of tiles only takes those of lanes."""
    before = own[: own.index(leaf)]
    tiles = {mul(lane.factor, bound) for lane in own for bound in _lanes_of(lane)}
    steps = [o.factor for o in before if o.atom not in counted and o.factor not in tiles]
    return [step for step in steps if _is_wider(step, leaf.factor)]


def _lanes_of(leaf: Leaf) -> Iterator[Expr]:
    """How many lanes a tile has, of which a leaf is one."""
    symbol = leaf.atom.args[0] if leaf.atom.op == "sym" else None
    if symbol is not None and symbol.kind is Kind.LANE and symbol.bound is not None:
        yield symbol.bound


def _is_wider(factor: Expr, than: Expr) -> bool:
    """Whether steps are larger, for the look of them."""
    if factor is than or factor is ONE:
        return False
    return than is ONE or factor not in than.args


def _is_sayable(e: Expr) -> bool:
    """Whether a contract may state it."""
    for node in walk(e):
        if node.op == "sym":
            symbol = node.args[0]
            if symbol.kind not in (Kind.CONSTANT, Kind.SCALAR, Kind.EXTENT, Kind.STRIDE):
                return False
        elif node.op not in ("const", "add", "mul", "floordiv"):
            return False
    return True


def _is_never_negative(element: Expr, given: Expr) -> bool:
    """Whether nothing happens where the element is -1, as padding is."""
    tests = (lt(-1, element), le(0, element), lt(0, element), le(1, element), negate(eq(element, -1)))
    return any(part in tests for part in conjuncts(given))


def _skipped(element: Expr, given: Expr) -> Iterator[Expr]:
    """The launch values and literals with which nothing happens: `t != ignore_index`."""
    parts = [p for part in conjuncts(given) for p in (part.args if part.op == "any" else (part,))]
    for part in parts:
        for a, b in (part.args[0].args, part.args[0].args[::-1]) if _is_inequality(part) else ():
            is_own = a is element or (a.op == "ite" and element in a.args[1:])  # what is read under a mask
            if is_own and _is_sayable(b):
                yield b


def _cap(element: Expr, given: Expr) -> Expr | None:
    """A launch value n that the element is tested to be less than, as where padding is n."""
    below = (part.args[1] for part in conjuncts(given) if part.op == "lt" and part.args[0] is element)
    return next((n for n in below if n.value is None and _is_sayable(n)), None)


def _is_inequality(e: Expr) -> bool:
    return e.op == "not" and e.args[0].op == "eq"


def _skip(element: Expr, given: Expr) -> Expr | int | None:
    """A value with which nothing happens: -1 or 0, or a launch value that others are less than."""
    for part in conjuncts(given):
        for skipped in (-1, 0):
            if part in (lt(skipped, element), le(skipped + 1, element), negate(eq(element, skipped))):
                return skipped
    return _cap(element, given)


# ---- what keeps places apart -------------------------------------------------------------------------------


def _orders(kernel: Kernel, open_: Sequence[Obligation], known: set[tuple[str, str]]) -> Iterator[str]:
    for obligation in open_:
        goal = obligation.goal
        if not isinstance(goal, Disjoint):
            continue
        terms = _terms(obligation)
        elements = [n for n in walk(*terms) if _is_element(n)]
        for access in (goal.first, goal.second):
            for axis in access.axes:
                own = leaves(_plain(axis.coordinate))
                yield from _orders_of(own, elements, terms, known)


def _orders_of(
    own: Sequence[Leaf], elements: Sequence[Expr], terms: Sequence[Expr], known: set[tuple[str, str]]
) -> Iterator[str]:
    """For the first element that a place is computed from; where that is itself looked up at places that tables
    tell, for these too."""
    first = next((leaf for leaf in own if _is_element(leaf.atom)), None)
    if first is None or len(first.atom.args) != 2 or _wider(own, first, {first.atom}):
        return
    kind, text = _order(first, own, elements, terms)
    if (kind, first.atom.args[0]) not in known:
        yield text
    yield from _orders_of(leaves(first.atom.args[1]), elements, terms, known)


def _order(
    first: Leaf, own: Sequence[Leaf], elements: Sequence[Expr], terms: Sequence[Expr]
) -> tuple[str, str]:
    """What tells places apart that begin at an element and lie in no larger row: rows one after the other, or
    all of them different."""
    array = first.atom.args[0]
    for other in elements:
        if other.args[0] == array and (_is_beside(first.atom, other) or _is_beside(other, first.atom)):
            return "increasing", f"increasing({array})"
    guards = [term for term in terms if term.is_bool]
    for end in (end for guard in guards for end in _ends(first, own, guard)):
        if end.args[0] != array:
            counts = end.args[0]
            return "prefix_sum", f"prefix_sum({array}, of={counts})"
    skips = [s for guard in guards for s in (_skip(first.atom, guard),) if s is not None]
    if not skips:
        return "distinct", f"distinct({array})"
    skip = skips[0] if isinstance(skips[0], int) else render(skips[0])
    return "distinct", f"distinct({array}, skip={skip})"
