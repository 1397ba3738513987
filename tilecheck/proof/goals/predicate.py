"""The one place where goals become formulas.

`negation` turns a goal into premises and its own negation: the goal holds exactly where their conjunction is
unsatisfiable. Every rung, the search for counterexamples and the search for launch conditions read these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from tilecheck.ir.expr import (
    FALSE,
    TRUE,
    ZERO,
    Expr,
    Kind,
    Symbol,
    add,
    all_of,
    any_of,
    bool_sym,
    conjuncts,
    const,
    eq,
    le,
    lt,
    mul,
    ne,
    negate,
    sub,
    substitute,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.kernel import (
    Access,
    Axis,
    Kernel,
    RunningSum,
    Space,
    block_symbol,
    common_loops,
    grid_symbol,
    stride_symbol,
)
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.contracts import instances
from tilecheck.proof.goals.instances import Varies, in_instance, symbol_in_instance
from tilecheck.proof.goals.protocols import unordered
from tilecheck.proof.obligation import Between, Disjoint, Goal, Holds


def negation(goal: Goal, context: Context, assume: Expr = TRUE) -> tuple[Expr, ...]:
    """Premises and the negated goal; unsatisfiable exactly when the goal holds under them.

    `assume` is what the obligation may take for granted of each block, iteration and lane. An `Ordered` goal
    is about the language, not about numbers: its negation is `true`, which nothing refutes.
    """
    if isinstance(goal, Holds):
        return _closed(context, (*premises(goal, context, assume), negate(goal.goal)))
    if isinstance(goal, Disjoint):
        if goal.between is Between.LANES:
            return _closed(context, _lanes_meet(goal, context, assume))
        if goal.between in (Between.PROGRAM, Between.THREADS):
            return _closed(context, _threads_meet(goal, context, assume))
        if goal.between is Between.ITERATIONS:
            return _closed(context, _iterations_meet(goal, context, assume))
        return _closed(context, _blocks_meet(goal, context, assume))
    return (TRUE,)


def premises(goal: Holds, context: Context, assume: Expr = TRUE) -> tuple[Expr, ...]:
    """What a `Holds` goal may use, without the ranges of symbols."""
    return (*context.uniform_facts, *_own_blocks(context), assume, goal.given)


def inhabited(context: Context, accesses: Sequence[Access] = ()) -> tuple[Expr, ...]:
    """Satisfiable unless the assumptions contradict each other: some launch exists and, when `accesses` are
    given, some block performs one of them. Unsatisfiable means that proofs under `context` say nothing."""
    some = any_of(*(access.happens for access in accesses)) if accesses else TRUE
    return _closed(context, (*context.uniform_facts, *_own_blocks(context), some))


def both_perform(context: Context, first: Access, second: Access) -> tuple[Expr, ...]:
    """Every grid axis that the kernel reads is at least 2 if it may be, and two different blocks perform the
    accesses inside their arrays: what a set of launch conditions must leave possible."""
    several = several_blocks(context.kernel)
    one, two = in_instance(first.happens, 1), in_instance(second.happens, 2)
    return _closed(context, (*context.uniform_facts, *several, _different_blocks(context), one, two))


def several_blocks(kernel: Kernel) -> tuple[Expr, ...]:
    """Every grid axis that the kernel reads is at least 2, but for those that a `requires` fixes to 1."""
    axes = (sym(grid_symbol(axis)) for axis in kernel.grid_axes)
    return tuple(le(2, axis) for axis in axes if not _is_fixed_to_one(axis, kernel))


def _is_fixed_to_one(axis: Expr, kernel: Kernel) -> bool:
    """Whether a term of a requirement speaks of this axis alone and holds for 1 only, of a few numbers."""
    terms = [term for requirement in kernel.requires for term in conjuncts(requirement.condition)]
    return any(
        symbols(term) == symbols(axis)
        and [n for n in range(1, _A_FEW_BLOCKS) if substitute(term, {axis: const(n)}) is TRUE] == [1]
        for term in terms
    )


_A_FEW_BLOCKS = 9


def differs_between_lanes(symbol: Symbol) -> bool:
    """Whether two lanes of one operation, in one block and iteration, may see different values."""
    return symbol.kind is Kind.LANE or (symbol.kind is Kind.OPAQUE and symbol.per_lane)


def ranges(exprs: Iterable[Expr]) -> tuple[Expr, ...]:
    """What the kinds of the symbols in `exprs` say, in order of appearance, bounds included."""
    found: dict[Expr, None] = {}
    todo = list(symbols(*exprs))
    seen = dict.fromkeys(todo)
    for symbol in todo:
        for fact in _range(symbol):
            found[fact] = None
            fresh = [s for s in symbols(fact) if s not in seen]
            seen.update(dict.fromkeys(fresh))
            todo += fresh
    return tuple(found)


@lru_cache(maxsize=4096)
def _range(symbol: Symbol) -> tuple[Expr, ...]:
    if symbol.kind in (Kind.BLOCK, Kind.LANE) and symbol.bound is not None:
        return le(0, sym(symbol)), lt(sym(symbol), symbol.bound)
    if symbol.kind in (Kind.BLOCK, Kind.LANE, Kind.LOOP, Kind.EXTENT):
        return (le(0, sym(symbol)),)
    return (le(1, sym(symbol)),) if symbol.kind is Kind.GRID else ()


def _closed(context: Context, assertions: Sequence[Expr]) -> tuple[Expr, ...]:
    """The assertions with what contracts say of the elements that they read and with the ranges of all
    their symbols, duplicates and `true` removed."""
    axes = tuple(sym(grid_symbol(axis)) for axis in context.kernel.grid_axes)
    # What is to be refuted, a negated goal mostly, stays last.
    assertions = (*instances(context.kernel.contracts, assertions), *assertions)
    flat = all_of(*ranges((*assertions, *axes)), *assertions)
    return flat.args if flat.op == "all" else (flat,)


def _own_blocks(context: Context) -> tuple[Expr, ...]:
    return ranges(sym(block_symbol(axis)) for axis in context.kernel.grid_axes)


# -- two blocks -------------------------------------------------------------------------------------------


def _blocks_meet(goal: Disjoint, context: Context, assume: Expr) -> tuple[Expr, ...]:
    different = _different_blocks(context)
    if different is FALSE and not _names_a_block(goal):
        return (FALSE,)  # the grid has one block along every axis that matters (standing obligation S3)
    first, second = _renamed(goal.first, 1), _renamed(goal.second, 2)
    assumed = in_instance(assume, 1), in_instance(assume, 2)
    meeting = _same_element(first, second)
    if different is FALSE:
        different = TRUE  # a block index that the kernel claims not to read: refute without its help
    performed = _performed(first, second)
    return (*context.uniform_facts, different, *assumed, *performed, *meeting, *unordered(goal, context.kernel))


def _different_blocks(context: Context) -> Expr:
    """The two blocks differ along some grid axis that the kernel reads."""
    blocks = [sym(block_symbol(axis)) for axis in context.kernel.grid_axes]
    return any_of(*(ne(in_instance(b, 1), in_instance(b, 2)) for b in blocks))


def _names_a_block(goal: Disjoint) -> bool:
    mentioned = symbols(goal.first.happens, goal.second.happens, *_places(goal.first), *_places(goal.second))
    return any(s.kind is Kind.BLOCK for s in mentioned)


def _places(access: Access) -> tuple[Expr, ...]:
    own = () if access.member is None else (access.member,)
    return (*own, *(axis.coordinate for axis in access.axes))


# -- two lanes --------------------------------------------------------------------------------------------


def _lanes_meet(goal: Disjoint, context: Context, assume: Expr) -> tuple[Expr, ...]:
    """One block, one iteration, two different lanes of one operation."""
    varies = differs_between_lanes
    first, second = _renamed(goal.first, 1, varies), _renamed(goal.second, 2, varies)
    different = TRUE
    if goal.first.lanes == goal.second.lanes and has_lanes(goal.first):
        different = any_of(*(ne(sym(a), sym(b)) for a, b in zip(first.lanes, second.lanes, strict=True)))
    assumed = in_instance(assume, 1, varies), in_instance(assume, 2, varies)
    shared = (*context.uniform_facts, *_own_blocks(context), *_rising(goal, context.kernel, varies))
    return (*shared, different, *assumed, first.happens, second.happens, *_touched_equal(first, second))


def has_lanes(access: Access) -> bool:
    """Whether the elements of the access are told apart by `access.lanes`: if something differs between
    lanes that are not named, nothing says that two lanes are two."""
    unnamed = any(map(differs_between_lanes, symbols(access.mask, *_places(access))))
    return bool(access.lanes) or not unnamed


# -- two iterations -------------------------------------------------------------------------------------


def differs_between_iterations(access: Access) -> Varies:
    """Which symbols two iterations of the loop `access.stepped_by` may see differently: its number, what
    differs between lanes, and whatever was made inside it (symbols are numbered in the order of their
    making)."""
    loop = access.stepped_by
    if loop is None:
        return lambda s: s.varies

    def varies(symbol: Symbol) -> bool:
        inside = symbol.kind in (Kind.LOOP, Kind.OPAQUE) and symbol.uid >= loop.uid
        return inside or differs_between_lanes(symbol)

    return varies


def _iterations_meet(goal: Disjoint, context: Context, assume: Expr) -> tuple[Expr, ...]:
    """One block, two different iterations of one loop; the loops around it agree."""
    varies = differs_between_iterations(goal.first)
    first, second = _renamed(goal.first, 1, varies), _renamed(goal.second, 2, varies)
    loop = goal.first.stepped_by
    different = TRUE
    if loop is not None:
        different = ne(sym(symbol_in_instance(loop, 1, varies)), sym(symbol_in_instance(loop, 2, varies)))
    assumed = in_instance(assume, 1, varies), in_instance(assume, 2, varies)
    shared = (*context.uniform_facts, *_own_blocks(context))
    return (*shared, different, *assumed, first.happens, second.happens, *_touched_equal(first, second))


# -- two threads of one block ------------------------------------------------------------------------------


def differs_between_threads(first: Access, second: Access) -> Varies:
    """Which symbols two threads of one block may see differently: lanes, and what the loops around either
    access and what is in them give. What was made before those loops is one value of the block."""
    mark = min((s.uid for s in (*first.loops, *second.loops)), default=None)

    def varies(symbol: Symbol) -> bool:
        if symbol.kind in (Kind.LOOP, Kind.OPAQUE):
            inside = mark is not None and symbol.uid >= mark
            return inside or (symbol.kind is Kind.OPAQUE and symbol.per_lane)
        return symbol.kind is Kind.LANE

    return varies


def _threads_meet(goal: Disjoint, context: Context, assume: Expr) -> tuple[Expr, ...]:
    """One block, any iterations, any lanes; of a `PROGRAM` goal but for equal lanes in one iteration, where the
    two tiles have one shape and the elements are computed alike."""
    varies = differs_between_threads(goal.first, goal.second)
    first, second = _renamed(goal.first, 1, varies), _renamed(goal.second, 2, varies)
    assumed = in_instance(assume, 1, varies), in_instance(assume, 2, varies)
    shared = (*context.uniform_facts, *_own_blocks(context), *_rising(goal, context.kernel, varies))
    different = TRUE
    if goal.between is Between.PROGRAM and are_paired(goal.first, goal.second):
        lanes = (ne(sym(a), sym(b)) for a, b in zip(first.lanes, second.lanes, strict=True))
        rounds = (
            ne(sym(symbol_in_instance(k, 1, varies)), sym(symbol_in_instance(k, 2, varies)))
            for k in common_loops(goal.first, goal.second)
        )
        different = any_of(*lanes, *rounds)
    return (*shared, different, *assumed, first.happens, second.happens, *_touched_equal(first, second))


def are_paired(one: Access, two: Access) -> bool:
    """Whether the elements of two accesses are computed alike, lane for lane."""
    bounds = [(a.bound, b.bound) for a, b in zip(one.lanes, two.lanes, strict=False)]
    if len(one.lanes) != len(two.lanes) or any(a is not b for a, b in bounds):
        return False
    same = {sym(b): sym(a) for a, b in zip(one.lanes, two.lanes, strict=True)}
    for mine, theirs in zip(_places(one), _places(two), strict=True):
        difference = sub(substitute(theirs, same), mine)
        if difference is not ZERO and any(map(differs_between_lanes, symbols(_cancelled(difference)))):
            return False
    return True


def _cancelled(difference: Expr) -> Expr:
    """A difference without the terms that stand in it with both signs."""
    left: list[Expr] = []
    for term in difference.args if difference.op == "add" else (difference,):
        opposite = mul(-1, term)
        if opposite in left:
            left.remove(opposite)
        else:
            left.append(term)
    return add(ZERO, *left)


# -- running sums -------------------------------------------------------------------------------------------


def _rising(goal: Disjoint, kernel: Kernel, varies: Varies) -> Iterator[Expr]:
    """What two lanes of one block know of each other's elements of a running sum: the later one is larger by
    its own term at least, as it is the earlier one with the terms in between, none of which is negative.

    Both must be elements of one tile: the loops around the sum are around both accesses, and in one iteration.
    """
    for s in kernel.sums:
        if not set(s.loops) <= set(goal.first.loops) & set(goal.second.loops):
            continue
        found = [_summed(s, access) for access in (goal.first, goal.second)]
        if None in found:
            continue
        one, two = ([in_instance(e, k, varies) for e in f or ()] for k, f in enumerate(found, 1))
        rounds = (sym(k) for k in s.loops)
        same = all_of(*(eq(in_instance(k, 1, varies), in_instance(k, 2, varies)) for k in rounds))
        for (place, value, _), (later, larger, term) in ((one, two), (two, one)):
            yield any_of(negate(same), le(later, place), le(add(value, term), larger))
        if len(goal.first.lanes) > 1 or len(goal.second.lanes) > 1:  # others than the sum's may differ
            yield any_of(negate(same), ne(one[0], two[0]), eq(one[1], two[1]))


def _summed(s: RunningSum, access: Access) -> tuple[Expr, Expr, Expr] | None:
    """A lane of the access, the element of a sum that it uses, and its term; None if it uses none as it is.

    An element says itself at which place of its tile it stands. What is repeated has no lane of its own, and
    tiles that were given another shape have symbols of their own, all of one change.
    """
    nodes = set(walk(access.mask, *_places(access)))
    for own in access.lanes:
        for change in ((), *s.moved):
            names: dict[Expr, Expr] = {sym(s.lane): sym(own)}
            for new, old in change:
                names |= {sym(old): sym(new), bool_sym(old): bool_sym(new)}
            value = substitute(s.value, names)
            if value in nodes:
                return sym(own), value, substitute(s.term, names)
    return None


# -- the element ------------------------------------------------------------------------------------------


def _renamed(access: Access, instance: int, varies: Varies = lambda s: s.varies) -> Access:
    """The access as one of the two instances performs it."""

    def of(e: Expr) -> Expr:
        return in_instance(e, instance, varies)

    return access.mapped(of, lambda lane: symbol_in_instance(lane, instance, varies))


def _performed(first: Access, second: Access) -> tuple[Expr, ...]:
    """Guards and masks; ranges of lanes come with their symbols, bounds with `_same_element`."""
    return first.guard, second.guard, first.mask, second.mask


def _same_element(first: Access, second: Access) -> tuple[Expr, ...]:
    """Both instances touch one element inside their views, comparing whole tiles where that is exact."""
    if not _comparable(first, second):
        return (first.inside, second.inside, *_touched_equal(first, second))
    meeting: list[Expr] = list(_same_member(first, second))
    for one, two in zip(first.axes, second.axes, strict=True):
        if _is_whole_tile(one, two, first, second):
            meeting += _same_tile(one, two)
        else:
            meeting += (one.inside, two.inside, eq(one.coordinate, two.coordinate))
    return tuple(meeting)


def _touched_equal(first: Access, second: Access) -> tuple[Expr, ...]:
    same = _same_member(first, second)
    if _comparable(first, second):
        axes = zip(first.axes, second.axes, strict=True)
        return (*same, *(eq(one.coordinate, two.coordinate) for one, two in axes))
    if first.array == second.array and Space.RAW in (first.space, second.space):
        return (*same, eq(_offset(first), _offset(second)))
    return ()


def _comparable(first: Access, second: Access) -> bool:
    """Whether equal elements means equal coordinates, axis by axis."""
    by_axis = Space.RAW not in (first.space, second.space)
    return by_axis and first.array == second.array and len(first.axes) == len(second.axes)


def _same_member(first: Access, second: Access) -> tuple[Expr, ...]:
    if first.member is None or second.member is None:
        return ()
    return (eq(first.member, second.member),)


def _offset(access: Access) -> Expr:
    """The offset of the touched element from the base pointer, in elements."""
    if access.space is Space.RAW:
        return add(ZERO, *(axis.coordinate for axis in access.axes))
    strides = (sym(stride_symbol(access.array, k)) for k in range(len(access.axes)))
    return add(ZERO, *(mul(axis.coordinate, stride) for axis, stride in zip(access.axes, strides, strict=True)))


def _is_whole_tile(one: Axis, two: Axis, first: Access, second: Access) -> bool:
    """Whether tile indices can be compared instead of elements.

    With step = size = s, every lane from 0 to s-1 takes part and s >= 1. Elements i*s + l and j*s + m with
    0 <= l, m < s are equal exactly when i = j and l = m. The tile i has an element inside the view exactly
    when 0 <= i and i*s < extent: for i < 0 even its last element i*s + s-1 is negative, and for i >= 0 the
    first, i*s, is the smallest. So "some lanes of both meet inside" says no more than `_same_tile`, provided
    that no condition restricts the lane and that both views are one (base and extent).
    """
    if first.space is not Space.TILE or second.space is not Space.TILE or one.step is not one.size:
        return False
    if (one.step, one.size, one.base, one.extent) != (two.step, two.size, two.base, two.extent):
        return False
    if any(s.varies for s in symbols(one.step, one.base, one.extent)):
        return False
    return _is_free_lane(one, first) and _is_free_lane(two, second)


def _is_free_lane(axis: Axis, access: Access) -> bool:
    """Whether the lane of `axis` runs over the whole tile and occurs nowhere else in `access`."""
    if axis.lane is None or axis.lane.bound is not axis.size:
        return False
    others = [a.coordinate for a in access.axes if a is not axis]
    member = () if access.member is None else (access.member,)
    return axis.lane not in symbols(access.guard, access.mask, axis.index, *others, *member)


def _same_tile(one: Axis, two: Axis) -> tuple[Expr, ...]:
    inside = le(0, one.index), lt(mul(one.index, one.step), one.extent)
    return (le(1, one.size), eq(one.index, two.index), *inside)
