"""The order of accesses inside one Triton program: what a barrier separates.

A program is many threads. Two of its accesses have an order if every thread passes a barrier between them.

Or one thread alone matters (`_made_by_one_thread`).

There is one more case, a store over what was just loaded. What it stores must be computed from what was loaded,
lane for lane: a load and a store of one tile may be laid out differently over the threads, and only the value
orders the two. Or what was loaded goes nowhere else: where the value does not order the two, it is not needed.
Several threads may load an element and one of them stores it, so a load of another thread may see the new
value. That does no harm where the thread that stores an element is the only one whose loaded value counts. (A
reduction before the store is no barrier: where each warp holds the whole tile, it has none.) Where a tile has
as many elements as there are threads, one thread alone loads each (S8), and none of that is asked.

What orders two accesses may hang on the launch: `order_of` says on what.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import (
    ONE,
    Expr,
    Kind,
    Symbol,
    conjuncts,
    mul,
    negate,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.kernel import Access, Barrier, Effect, Exchange, Kernel, common_loops

WARP = 32  # threads, on NVIDIA's GPUs


@dataclass(frozen=True, slots=True)
class Order:
    """What orders the threads of a program that make two accesses, wherever they touch one element.

    With `equal_lanes` it orders them only where they touch it in equal lanes, in one iteration of the loops
    around both. `alike` says that the order rests on S7; `large` are the numbers of elements of tiles that have
    to be as large as the program has threads (S8).
    """

    equal_lanes: bool = True
    alike: bool = False
    large: tuple[Expr, ...] = ()


def order_of(kernel: Kernel, first: Access, second: Access) -> Order | None:
    """What orders two accesses of one array in one program, one of them a store; None if it is not known.

    Nothing is known where a loop may be dealt out to groups of warps (`warp_specialize=True`): each may make
    all loads and stores, in and behind the loop (on Hopper two groups do), and a barrier is one of a group.
    """
    if {first.effect, second.effect} in ({Effect.READ}, {Effect.ATOMIC}) or _are_of_two_launches(first, second):
        return Order(equal_lanes=False)
    if kernel.splits_warps:
        return Order() if first is second else None
    if not _needs_order(kernel, first, second):
        return Order(equal_lanes=False)
    if first is second or _overwrites_its_own(kernel, first, second):  # equal lanes of it are that access once
        return Order()
    one_layout = _in_one_layout(kernel, first, second)
    if one_layout and _are_used_in_time(kernel, first, second):
        return Order(alike=True)
    large = _if_large(kernel, [a for a in (first, second) if a.effect is Effect.READ])
    if not large:
        return None
    if _is_stored_after(kernel, first, second):
        return Order(equal_lanes=False, large=large)
    if _takes_its_own(kernel, first, second):
        return Order(large=large)
    return Order(alike=True, large=large) if one_layout else None


def orders_of_tiles(kernel: Kernel) -> Iterator[Order]:
    """What orders a kernel's loads and stores, array by array, where one of the two is of a tile: the other may
    be of a single element."""
    for first, second in combinations(kernel.accesses, 2):
        if not (first.lanes or second.lanes):
            continue
        if first.array == second.array and Effect.WRITE in (first.effect, second.effect):
            order = order_of(kernel, first, second)
            if order is not None:
                yield order


def laid_out_alike(kernel: Kernel) -> tuple[str, ...]:
    """The arrays of which S7 speaks, if an order rests on it: those that tiles are loaded from or stored to."""
    if not any(order.alike for order in orders_of_tiles(kernel)):
        return ()
    return tuple(sorted({a.array for a in kernel.accesses if a.lanes}))


def large_tiles(kernel: Kernel) -> tuple[Expr, ...]:
    """The numbers of elements of which S8 speaks: each is at least the number of a program's threads."""
    return tuple(dict.fromkeys(size for order in orders_of_tiles(kernel) for size in order.large))


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


def _made_by_one_thread(kernel: Kernel, first: Access, second: Access) -> bool:
    """Whether both are accesses of single elements of which the first thread's alone matter: its own are in
    the order of the text, as all accesses of one thread to one element are.

    It alone stores single elements, and it loads them, as every thread does. What the others load they may
    load too late. It reaches the values and masks of stores of single elements, which they do not make, and
    nothing else: no branch, no address, no other lane. So neither memory nor what a thread does changes.
    """
    return all(_is_of_one_thread(kernel, access) for access in (first, second))


def _is_of_one_thread(kernel: Kernel, access: Access) -> bool:
    if access.lanes or access.copied or access.order != "WEAK":
        return False
    if access.effect is Effect.READ:
        fed = access.feeds
        return fed is not None and all(
            not a.lanes and not a.copied and a.effect is Effect.WRITE for a in kernel.accesses if a.site in fed
        )
    return access.effect is Effect.WRITE


def _reduced_before(kernel: Kernel, first: Access, second: Access) -> bool:
    """Whether `second` stores after all rounds of the loops in which `first` loads, and needs a reduction of
    what it loaded, which is in the same round: then the store comes after every thread's load, or, where the
    tile lies in one warp, after those of that warp, which alone stores (`_is_settled`)."""
    if first.effect is not Effect.READ or second.effect is not Effect.WRITE or first.order != "WEAK":
        return False
    if common_loops(first, second) or first.position > second.position or first.copied or second.copied:
        return False
    since = _exchanges_since(kernel, first)
    reduced = _is_gathered(first, second, [e for e in since if not e.scans])
    return reduced and _is_settled(kernel, first, second, since)


def _overwrites_its_own(kernel: Kernel, first: Access, second: Access) -> bool:
    """Whether `second` stores over what `first` loaded before it, each element after it was loaded, and no
    thread puts to use what it loaded too late.

    What is stored in a lane takes what was loaded in it, so it comes after the load of the thread that it has
    this from. Or it needs a reduction or scan of all that was loaded. Other threads may have copies of the
    element. They matter nowhere if, from the load on, nothing that was loaded is reduced, multiplied, reshaped
    or broadcast, and no other store has the compiler load it once more, in another layout (`_is_alike`);
    or as `_is_settled` says. A value without lanes is used by every thread as it is.
    """
    if first.effect is not Effect.READ or second.effect is not Effect.WRITE:
        return False
    if _takes_all(kernel, first, second):
        return True
    if not first.lanes or first.position > second.position:
        return False
    since = _exchanges_since(kernel, first)
    if first.position not in second.takes and (first.copied or not _is_gathered(first, second, since)):
        return False
    if not since:
        return _is_alike(kernel)
    return _is_settled(kernel, first, second, since)


def _needs_order(kernel: Kernel, first: Access, second: Access) -> bool:
    """Whether two accesses of one array, in one program, have no order yet where they touch one element."""
    if (first is second and not first.loops) or separated(kernel, first, second):  # lanes of one store: TC203
        return False
    return not _made_by_one_thread(kernel, first, second) and not _reduced_before(kernel, first, second)


def _in_one_layout(kernel: Kernel, first: Access, second: Access) -> bool:
    """Whether one thread makes both accesses of a lane, if the arrays of the kernel's tiles have elements of
    one size and begin at addresses aligned alike (S7).

    Triton's compiler lays out a load or store by the size of an element, by what it knows of the address, and
    by other accesses of the same sizes. Where all tiles have one axis and all addresses are computed in one
    way, all of these are equal: all tiles are laid out alike, and no value moves from one layout to another.
    In a loop the load has to come first, as the compiler may load for later iterations early.
    """
    if not (first.lanes and second.lanes and _has_one_layout(kernel)):
        return False
    early, late = sorted((first, second), key=lambda a: a.position)
    return late.effect is not Effect.READ or not common_loops(early, late)


def _are_used_in_time(kernel: Kernel, first: Access, second: Access) -> bool:
    """Whether of two accesses in one layout no thread puts to use what it loaded too late."""
    early, late = sorted((first, second), key=lambda a: a.position)
    return all(_is_used_in_time(kernel, a, late) for a in (early, late) if a.effect is Effect.READ)


def _has_one_layout(kernel: Kernel) -> bool:
    """Whether all tiles that the kernel loads and stores are laid out alike, if S7 holds."""
    tiles = [a for a in kernel.accesses if a.lanes]
    if kernel.folds_planes or not all(_is_plain(a) and a.way == tiles[0].way for a in tiles):
        return False
    return all(e.whole for e in kernel.exchanges)


def _is_plain(access: Access) -> bool:
    """Whether a tile of one axis is loaded or stored, and how its addresses are computed is known."""
    return (
        len(access.lanes) == 1
        and access.way is not None
        and access.effect is not Effect.ATOMIC
        and not access.copied
        and access.order == "WEAK"
    )


def _is_used_in_time(kernel: Kernel, load: Access, store: Access) -> bool:
    since = _exchanges_since(kernel, load)
    return not since or (load is not store and _is_settled(kernel, load, store, since))


# ---- tiles with as many elements as there are threads (S8) -------------------------------------------------
#
# A compiler lays such a tile out so that one thread loads each element, and loads it once: it makes no second
# load of it for another layout. So what depends on an element depends on the one load of it, however it gets
# from thread to thread.


def _if_large(kernel: Kernel, loads: list[Access]) -> tuple[Expr, ...]:
    """How many elements loaded tiles have, if all may have as many as a program has threads. The kernel must
    not have a number called `num_warps`, or that of the launch could not be told from it."""
    sizes = []
    for load in loads:
        bounds = [lane.bound for lane in load.lanes if lane.bound is not None]
        if not bounds or len(bounds) < len(load.lanes) or load.copied:
            return ()
        sizes.append(mul(*bounds))
    if any(size.value is not None and size.value < WARP for size in sizes):
        return ()
    return () if any(p.name == "num_warps" for p in kernel.params) else tuple(sizes)


def _takes_its_own(kernel: Kernel, first: Access, second: Access) -> bool:
    """Whether what `second` stores in a lane needs what `first` loaded in it: the lane itself, or a reduction
    or scan along the only axis that has the lane in it."""
    if first.effect is not Effect.READ or second.effect is not Effect.WRITE or first.position > second.position:
        return False
    if first.copied or second.copied or first.order != "WEAK":
        return False
    return first.position in second.takes or _is_gathered_whole(kernel, first, second, scans=True)


def _is_stored_after(kernel: Kernel, first: Access, second: Access) -> bool:
    """Whether `second` stores after all rounds of the loops in which `first` loads, and needs a reduction of
    all that it loaded in each."""
    if first.effect is not Effect.READ or second.effect is not Effect.WRITE or first.position > second.position:
        return False
    if common_loops(first, second) or first.copied or second.copied or first.order != "WEAK":
        return False
    return _is_gathered_whole(kernel, first, second, scans=False)


def _is_gathered_whole(kernel: Kernel, first: Access, second: Access, *, scans: bool) -> bool:
    since = [e for e in _exchanges_since(kernel, first) if e.whole and (scans or not e.scans)]
    return len(first.lanes) == 1 and _is_gathered(first, second, since)


# ---- what else is laid out alike ---------------------------------------------------------------------------


def _is_alike(kernel: Kernel) -> bool:
    """Whether all tiles of one size are laid out alike, so that none that is loaded once is loaded once more,
    in another layout, for another store: a compiler does that with fewer elements than there are threads.

    Such tiles are laid out by the axis along which their elements are next to each other in memory, which has
    to be the same in all accesses; unless they are what is left of others.
    """
    if kernel.folds_planes:
        return False
    near = {_near(access) for access in kernel.accesses if len(access.lanes) > 1}
    return not near or (len(near) == 1 and any(next(iter(near))))


def _near(access: Access) -> tuple[bool, ...]:
    """Along which of its lanes neighbours are next to each other in memory."""
    index = access.axes[-1].coordinate
    return tuple(_is_unit(index, lane) for lane in access.lanes)


def _is_unit(index: Expr, lane: Symbol) -> bool:
    terms = index.args if index.op == "add" else (index,)
    return [term for term in terms if lane in symbols(term)] == [sym(lane)]


def _exchanges_since(kernel: Kernel, first: Access) -> list[Exchange]:
    return [e for e in kernel.exchanges if _may_follow(first, e)]


def _may_follow(first: Access, other: Access | Exchange) -> bool:
    """Whether `other` may happen after `first` in one block: not in the other branch of a condition that is one
    for the block."""
    if other.position <= first.position and not set(other.loops) & set(first.loops):
        return False
    given = set(conjuncts(first.guard))
    return not any(negate(c) in given and _is_of_block(c) for c in conjuncts(other.guard))


def _is_of_block(cond: Expr) -> bool:
    return all(s.kind <= Kind.BLOCK and s.kind is not Kind.HOST for s in symbols(cond)) and not any(
        node.op == "read" for node in walk(cond)
    )


def _takes_all(kernel: Kernel, first: Access, second: Access) -> bool:
    """Whether what `first` loads goes into what `second` stores, lane for lane and in the same iteration, and
    nowhere else.

    The thread that stores a lane has what is stored from one that has loaded it, or it does not need that; no
    other thread's loaded value reaches memory. Two tiles of the same sizes are alike lane for lane: only what
    moves elements between lanes takes an axis away, or puts it elsewhere.
    """
    if first.reaches is None or first.position > second.position:
        return False
    taking = (a for a in kernel.accesses if a.site in first.reaches and not _are_of_two_launches(first, a))
    if any(a.site != second.site for a in taking):
        return False
    if first.copied or second.copied or first.order != "WEAK" or first.loops != second.loops:
        return False
    once = all(_is_made_once(kernel, access) for access in (first, second))  # not in a loop that is unrolled
    bounds = [tuple(lane.bound for lane in access.lanes) for access in (first, second)]
    return once and bounds[0] == bounds[1]


def _is_made_once(kernel: Kernel, access: Access) -> bool:
    """Whether its statement makes no other access in one iteration: in other launches it may, through another
    pointer that numbers of the launch choose."""
    others = (a for a in kernel.accesses if a.site == access.site and a is not access)
    return all(_are_of_two_launches(access, other) for other in others)


def _are_of_two_launches(one: Access, other: Access) -> bool:
    """Whether no launch makes both: numbers of the launch say which."""
    terms = set(conjuncts(other.guard))
    return any(
        negate(term) in terms and all(s.kind in (Kind.CONSTANT, Kind.SCALAR) for s in symbols(term))
        for term in conjuncts(one.guard)
    )


def _is_settled(kernel: Kernel, first: Access, second: Access, since: list[Exchange]) -> bool:
    """Whether the store needs all that was exchanged since the load, which is reductions of whole tiles and
    their results, and scans; or it needs a reduction or scan of what was loaded, and all others are of tiles of
    this size. And what is stored since then are tiles of one axis and of one size, lane for lane computed from
    loaded ones, and single elements.

    A tile with as many elements as threads has no copies. A smaller one is laid out alike wherever it stands,
    with copies in the later warps, unless the kernel reduces tiles of several axes: what is left of one of
    these lies in several warps, and so does what stands beside it. A reduction over several warps has a
    barrier, which the store comes after.
    One inside a warp leaves copies with wrong results in other warps; they are not what is stored. One of the
    loaded tile alone is enough: where tiles of this size lie in several warps, it has the barrier, and what is
    reduced on the way is loaded in time; where they lie in one, each warp reduces and scans its own. (What is
    made of a larger tile goes through all warps, also those with wrong results.)
    """
    alike = len(first.lanes) == len(second.lanes) == 1 and first.lanes[0].bound is second.lanes[0].bound
    if kernel.folds_planes or not alike or not all(e.whole for e in since):
        return False
    sizes = (first.lanes[0].bound, ONE)
    small = all(len(e.shape) == 1 and any(e.shape[0] is size for size in sizes) for e in since)
    if not all(e.position in second.needs for e in since) and not (
        small and _is_gathered(first, second, since)
    ):
        return False
    after = [a for a in kernel.accesses if _may_follow(first, a)]
    return all(_is_harmless(kernel, first, a) for a in after)


def _is_gathered(first: Access, second: Access, since: list[Exchange]) -> bool:
    """Whether the store needs a reduction or scan of all that was loaded, which was certainly made in between:
    in the same rounds as the load, and wherever the load and the store are."""
    given = set(conjuncts(first.guard)) | set(conjuncts(second.guard))
    return any(
        first.position in e.loads
        and e.position in second.needs
        and e.position > first.position
        and e.loops == first.loops
        and set(conjuncts(e.guard)) <= given
        for e in since
    )


def _is_harmless(kernel: Kernel, first: Access, access: Access) -> bool:
    """Whether copies of what `first` loaded cannot reach memory through the access: a store takes loaded values
    lane for lane, or needs what is exchanged."""
    written = {a.array for a in kernel.accesses if a.effect is not Effect.READ}
    for symbol in symbols(access.guard, access.mask, *(axis.coordinate for axis in access.axes)):
        late = symbol.kind is Kind.OPAQUE and symbol.uid > first.position
        if late and (not symbol.origin.startswith("memory:") or not written.isdisjoint(symbol.memory)):
            return False
    if access.effect is Effect.READ or not access.lanes:
        return True
    same = len(access.lanes) == 1 and access.lanes[0].bound is first.lanes[0].bound
    return access.effect is Effect.WRITE and same and bool(access.takes or access.needs)
