"""What two blocks know of each other when nothing orders their accesses: values that atomics returned.

A race needs two accesses that no release and acquire order. If a block's acquire came after another's release
in the order of changes of a flag (`analysis/flags.py`), they would order the accesses: so it came before, and
the value that it saw is one from before. Which values these are is stated here, as premises of a goal about
two blocks. `docs/soundness.md` has the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count

from tilecheck.analysis.flags import acquires, cell, changes, flags, follows, observed, releases
from tilecheck.ir.expr import (
    FALSE,
    TRUE,
    ZERO,
    Expr,
    Kind,
    add,
    all_of,
    any_of,
    conjuncts,
    const,
    eq,
    ite,
    le,
    maximum,
    minimum,
    mul,
    ne,
    negate,
    read,
    sub,
    sym,
    symbols,
)
from tilecheck.ir.kernel import Access, Kernel, block_symbol, grid_symbol
from tilecheck.proof.goals.instances import in_instance
from tilecheck.proof.obligation import Disjoint

_LARGEST = 127  # literals up to here are themselves in every type of integer


def unordered(goal: Disjoint, kernel: Kernel) -> tuple[Expr, ...]:
    """What holds of blocks 1 and 2 if no atomics of flags order their accesses. Empty where none could."""
    names = flags(kernel)
    if not names or not kernel.grid_axes:
        return ()
    facts = _Facts(kernel, names, count(3))
    found = dict.fromkeys(facts.values(goal))
    for (early, i), (late, k) in (((goal.first, 1), (goal.second, 2)), ((goal.second, 2), (goal.first, 1))):
        for release in releases(kernel, early):
            for acquire in acquires(kernel, late):
                if release.array == acquire.array:
                    found.update(dict.fromkeys(facts.seen_before(acquire, k, release, i)))
    found.update(dict.fromkeys(facts.locks(goal)))
    found.update(dict.fromkeys(facts.turns(goal)))
    found.pop(TRUE, None)
    return tuple(found)


class _Facts:
    """Builds the premises of one goal. `numbers` gives each further block that is spoken of a number."""

    def __init__(self, kernel: Kernel, names: dict[str, tuple[Access, ...]], numbers: Iterator[int]) -> None:
        self.kernel = kernel
        self.names = names
        self.numbers = numbers

    # ---- before a release -------------------------------------------------------------------------------

    def seen_before(self, acquire: Access, block: int, release: Access, other: int) -> Iterator[Expr]:
        """`acquire`, made by `block`, came before `release` of the other block, or that was never made."""
        same = _same_cell(acquire, block, release, other)
        excluded = [(release, other)]
        yield _implies(same, self._origin(acquire, block, excluded, initial=True))
        if self._direction(acquire.array):
            yield _implies(same, self._counted(acquire, block, release, other))
        yield self._inside(acquire, block)

    def _origin(
        self, acquire: Access, block: int, excluded: Sequence[tuple[Access, int]], *, initial: bool
    ) -> Expr:
        """The value that `acquire` saw: the initial one, or what one of the changes left that came before."""
        seen = _of(acquire.result, block)
        sources = [eq(seen, read(acquire.array, *_cell(acquire, block)))] if initial else []
        for change in self.names[acquire.array]:
            if not changes(change):
                continue
            left = _left_by(change)
            if left is None:
                return TRUE
            maker = next(self.numbers)
            made = all_of(_of(change.guard, maker), _of(change.mask, maker), _inside_if_checked(change, maker))
            apart = [self._differ(maker, b) for a, b in excluded if a is change and not change.loops]
            if self._comes_later(acquire, change):
                apart.append(self._differ(maker, block))
            same = _same_cell(change, maker, acquire, block)
            sources.append(
                all_of(made, same, _of(_succeeds(change), maker), eq(seen, _of(left, maker)), *apart)
            )
        return any_of(*sources)

    def _comes_later(self, early: Access, late: Access) -> bool:
        """Whether a block's own `late` cannot be what its own `early` saw."""
        return (early is late and not early.loops) or follows(self.kernel, early, late)

    def _counted(self, acquire: Access, block: int, release: Access, other: int) -> Expr:
        """A counter that only grows, or only falls: how often at most it was changed before `acquire`."""
        bound = read(acquire.array, *_cell(acquire, block))
        for change in self.names[acquire.array]:
            if not changes(change):
                continue
            if change.loops:
                return TRUE
            own, others = ZERO, ZERO
            if not self._comes_later(acquire, change):
                own = ite(_of(change.guard, block), 1, 0)
            if change is not release:
                others = ite(_of(change.guard, other), 1, 0)
            rest = self._rest(change, block, other)
            bound = add(bound, mul(change.operands[0] or ZERO, add(own, others, rest)))
        seen = _of(acquire.result, block)
        return le(seen, bound) if self._direction(acquire.array) > 0 else le(bound, seen)

    def _rest(self, change: Access, block: int, other: int) -> Expr:
        """How many further blocks at most make a change: one if its guard names the block, else all."""
        named = _named_block(change, self.kernel)
        if named is None:
            return sub(mul(*(sym(grid_symbol(axis)) for axis in self.kernel.grid_axes)), 2)
        apart = [any_of(*(ne(at, _of(own, b)) for own, at in named)) for b in (block, other)]
        return ite(all_of(*apart), 1, 0)

    def _direction(self, array: str) -> int:
        """1 where every change of a flag adds a small positive number, -1 where each adds a small negative one,
        else 0."""
        return direction(self._changes(array))

    def _changes(self, array: str) -> list[Access]:
        return [a for a in self.names[array] if changes(a)]

    # ---- values of two blocks -----------------------------------------------------------------------------

    def values(self, goal: Disjoint) -> Iterator[Expr]:
        """Two blocks that changed one element: one came first, and the other saw what was there since."""
        mentioned = set(symbols(*_terms(goal.first), *_terms(goal.second)))
        for one in observed(self.kernel, goal.first):
            for two in observed(self.kernel, goal.second):
                if one.array != two.array or not (changes(one) and changes(two)):
                    continue
                if not set(symbols(one.result or ZERO, two.result or ZERO)) <= mentioned:
                    continue
                same = _same_cell(one, 1, two, 2)
                a, b = _of(one.result, 1), _of(two.result, 2)
                if self._direction(one.array):
                    up = self._direction(one.array) > 0
                    ends = add(a, one.operands[0] or ZERO), add(b, two.operands[0] or ZERO)
                    first = le(ends[0], b) if up else le(b, ends[0])
                    second = le(ends[1], a) if up else le(a, ends[1])
                    yield _implies(same, any_of(first, second))
                    continue
                changed = all_of(_of(_succeeds(one), 1), _of(_succeeds(two), 2))
                orders = any_of(
                    self._origin(two, 2, (), initial=False), self._origin(one, 1, (), initial=False)
                )
                yield _implies(all_of(same, changed), orders)

    def _inside(self, access: Access, block: int) -> Expr:
        """An unchecked atomic is inside its array: that is an obligation of its own."""
        return TRUE if access.checked else _of(access.inside, block)

    def _differ(self, one: int, two: int) -> Expr:
        blocks = [sym(block_symbol(axis)) for axis in self.kernel.grid_axes]
        return any_of(*(ne(_of(b, one), _of(b, two)) for b in blocks))

    # ---- locks and turns ------------------------------------------------------------------------------------

    def locks(self, goal: Disjoint) -> Iterator[Expr]:
        """Two blocks between taking and giving back one lock are ordered: unordered ones hold two locks."""
        for array, all_ in self.names.items():
            taken, given = _lock(self.kernel, all_)
            if taken is None or given is None:
                continue
            held = all(
                taken in acquires(self.kernel, a) and given in releases(self.kernel, a)
                for a in (goal.first, goal.second)
            )
            if held:
                start = read(array, *_cell(taken, 1))
                fair = all_of(le(0, start), le(start, 1))
                yield self._inside(taken, 1)
                yield _implies(
                    all_of(fair, _inside_if_checked(taken, 1)), negate(_same_cell(taken, 1, taken, 2))
                )

    def turns(self, goal: Disjoint) -> Iterator[Expr]:
        """Blocks that wait for a counter to reach their own number and then increase it take turns."""
        for array, all_ in self.names.items():
            awaited, passed, turn = _turn(self.kernel, all_)
            if awaited is None or passed is None or turn is None:
                continue
            for (early, i), (late, k) in (
                ((goal.first, 1), (goal.second, 2)),
                ((goal.second, 2), (goal.first, 1)),
            ):
                if passed in releases(self.kernel, early) and awaited in acquires(self.kernel, late):
                    start = eq(read(array, *_cell(awaited, 1)), 0)
                    yield self._inside(awaited, 1)
                    yield _implies(
                        all_of(start, _inside_if_checked(awaited, 1)), le(_of(turn, k), _of(turn, i))
                    )


def direction(changed: Sequence[Access]) -> int:
    """1 where all changes add small positive numbers, -1 where all add small negative ones, else 0."""
    steps = [a.operands[0].value if a.atomic_kind == "add" and a.operands[0] else None for a in changed]
    if None in steps or not steps:
        return 0
    rises, falls = (all(1 <= sign * step <= _LARGEST for step in steps if step) for sign in (1, -1))
    return (1 if rises else -1 if falls else 0) if all(steps) else 0


# ---- the forms of locks and turns ----------------------------------------------------------------------------


def _lock(kernel: Kernel, all_: Sequence[Access]) -> tuple[Access | None, Access | None]:
    """Where a lock is taken and given back, where that is all that happens to it: a loop waits until a swap of
    0 for 1 sees no 1; later, once, 0 takes the place of 1."""
    waits = [w for w in kernel.waits if w.array == all_[0].array]
    if len(waits) != 1 or len(all_) != 2:
        return None, None
    taken = waits[0]
    given = next((a for a in all_ if a.site != taken.site), None)
    if given is None or taken.atomic_kind != "cas" or taken.operands != _literals(0, 1) or taken.loops:
        return None, None
    back = (given.atomic_kind, given.operands) in (("xchg", _literals(0)), ("cas", _literals(1, 0)))
    fails = (eq(taken.result or ZERO, 1), ne(taken.result or ZERO, 0))
    ends = {negate(test) for test in fails} & set(conjuncts(given.guard))
    ordered = follows(kernel, taken, given) and set(conjuncts(taken.guard)) <= set(conjuncts(given.guard))
    if not (back and ends and ordered and given.mask is TRUE and taken.mask is TRUE):
        return None, None
    same = cell(taken) == cell(given) and not any(_varies_in_block(e) for e in cell(taken))
    return (taken, given) if same else (None, None)


def _turn(kernel: Kernel, all_: Sequence[Access]) -> tuple[Access | None, Access | None, Expr | None]:
    """Where a turn is awaited and passed on, and its number, where that is all that happens to a counter: a
    loop waits until the counter is the block's own number; later, once, the counter is increased by 1."""
    nothing = None, None, None
    waits = [w for w in kernel.waits if w.array == all_[0].array]
    if len(waits) != 1 or len(all_) != 2 or len(kernel.grid_axes) != 1:
        return nothing
    awaited = waits[0]
    passed = next((a for a in all_ if a.site != awaited.site), None)
    if passed is None or changes(awaited) or awaited.loops or awaited.mask is not TRUE:
        return nothing
    turn = sym(block_symbol(kernel.grid_axes[0]))
    adds = passed.atomic_kind == "add" and passed.operands == _literals(1)
    ends = eq(awaited.result or ZERO, turn) in conjuncts(passed.guard)
    same = cell(awaited) == cell(passed) and not any(s.varies for s in symbols(*cell(awaited)))
    return (awaited, passed, turn) if adds and ends and same and follows(kernel, awaited, passed) else nothing


def _literals(*values: int) -> tuple[Expr, ...]:
    return tuple(const(v) for v in values)


def _varies_in_block(e: Expr) -> bool:
    return any(s.kind in (Kind.LOOP, Kind.LANE, Kind.OPAQUE) for s in symbols(e))


# ---- single atomics ------------------------------------------------------------------------------------------


def _left_by(change: Access) -> Expr | None:
    """What an atomic leaves in its element, in terms of what it saw; None where that is not known."""
    old = change.result or ZERO
    value = change.operands[-1] if change.operands else None
    if not _is_small(value, 0) or value is None:
        return None
    forms: dict[str, Callable[[], Expr]] = {
        "xchg": lambda: value,
        "cas": lambda: value,
        "add": lambda: add(old, value),
        "max": lambda: maximum(old, value),
        "min": lambda: minimum(old, value),
    }
    form = forms.get(change.atomic_kind or "")
    return None if form is None else form()


def _succeeds(change: Access) -> Expr:
    """When a compare-and-swap changes its element; the others always do."""
    if change.atomic_kind != "cas":
        return TRUE
    expected = change.operands[0]
    return TRUE if expected is None else eq(change.result or ZERO, expected)


def _is_small(value: Expr | None, least: int) -> bool:
    return value is not None and value.value is not None and least <= value.value <= _LARGEST


def _named_block(change: Access, kernel: Kernel) -> list[tuple[Expr, Expr]] | None:
    """The block that alone makes a change: for each axis its id and the launch value that it must equal."""
    found: list[tuple[Expr, Expr]] = []
    for axis in kernel.grid_axes:
        own = sym(block_symbol(axis))
        for term in conjuncts(change.guard):
            if term.op == "eq" and own in term.args:
                (other,) = [e for e in term.args if e is not own] or [own]
                if not any(s.varies for s in symbols(other)):
                    found.append((own, other))
                    break
        else:
            return None
    return found


def _terms(access: Access) -> Iterable[Expr]:
    return access.guard, access.mask, *(axis.coordinate for axis in access.axes)


def _of(e: Expr | None, block: int) -> Expr:
    return in_instance(e if e is not None else FALSE, block)


def _cell(access: Access, block: int) -> tuple[Expr, ...]:
    return tuple(_of(e, block) for e in cell(access))


def _same_cell(one: Access, i: int, two: Access, k: int) -> Expr:
    pairs = zip(_cell(one, i), _cell(two, k), strict=True)
    return all_of(*(eq(a, b) for a, b in pairs), _inside_if_checked(one, i), _inside_if_checked(two, k))


def _inside_if_checked(access: Access, block: int) -> Expr:
    """A checked atomic outside its array touches nothing."""
    return _of(access.inside, block) if access.checked else TRUE


def _implies(a: Expr, b: Expr) -> Expr:
    return any_of(negate(a), b)
