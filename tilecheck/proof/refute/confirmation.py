"""Whether launch facts that are not derived could save a kernel from a claim.

A counterexample alone says that some launch goes wrong. The verdict is `violated` only if no launch facts
could have saved the kernel, and not all of them are derived: contracts about values in memory, relations
between scalars, sizes that follow from several others. So before a counterexample counts, ordinary launches
are replayed, with the compile-time flags of the counterexample, and the kernel is not called violated if

    memory   the claim depends on values read from memory, and a launch in which each array holds zeros, ones,
             or distinct, increasing values performs the accesses without it
    numbers  it is a race that depends on scalars, and for some values of them no launch shows it, whatever
             its shapes and grid
    room     it is about bounds, and a small grid over large arrays performs the access without it, or it is
             about the end of flat memory, which a launch can always put further away, or, in Triton, where the
             numbers that are passed follow from each other, or where memory decides the claim, no launch was
             found that performs the access

A race that depends on none of these is settled by the search for conditions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import lru_cache
from itertools import islice, product
from math import ceil, prod

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Kind, Symbol, symbols, walk
from tilecheck.ir.kernel import Effect, Kernel, extent_symbol, grid_symbol, made_of
from tilecheck.model import Site, Witness
from tilecheck.proof.goals.context import Context
from tilecheck.proof.obligation import Disjoint, Holds, Obligation
from tilecheck.proof.refute.concrete import (
    FILLS,
    ROWS,
    SPACED,
    Concrete,
    arguments,
    is_admitted_by_grid,
    is_admitted_by_shapes,
    kernel_expressions,
    launch_symbols,
    layouts,
)
from tilecheck.proof.refute.memory_claims import (
    deciding,
    depends_on_memory,
    is_between_blocks,
    is_memory,
    is_of_contents,
    terms_of,
)
from tilecheck.proof.refute.replay import at_site, seen
from tilecheck.proof.refute.small_launches import Mixture, meet_equalities, with_extents
from tilecheck.proof.solver.fuel import Fuel, OutOfFuel
from tilecheck.reference import Launch, Log, NotInterpretable, ReplayError

Flags = Mapping[str, int | list[int]]

_LAUNCHES = 10
_LAUNCHES_FOR_NUMBERS = 5
_CHOICES = 24
_MOST_NUMBERS = 3
_TRIALS = 120
_MOST_BLOCKS = 48
_FIRST_BLOCKS = 0.4  # of a launch: the share of them that run alone first
_GRIDS = (12, 6, 4, 3, 2)
_TILES = (2, 4)
_TILES_PER_AXIS = (4, 3, 8)
_SCALARS = (2, 4, 3, 8, 16, 64)
_SPACED_SCALARS = (1, 4, 2, 16, 64)  # strides that may be those of nested axes
_CONTENTS = (ROWS, "ones", SPACED, "zeros")
_LAUNCHES_FOR_CONTENTS = 60
_ROOMY_GRIDS = (3, 2)
_ROOMY_TILES_PER_AXIS = (64, 16, 8)
_ROOMY_FLAT = (1 << 14, 1 << 12, 1 << 16)  # elements of flat memory: all axes of a tensor share them
_ROOMY_SCALARS = (2, 1, 3, 4)
_MOST_ELEMENTS = 1 << 18  # of one array
_STEPS = 20_000
_STEPS_OF_WAITERS = 400  # where a block may wait for one that comes later, it would wait for ever


def may_be_saved(
    obligation: Obligation, context: Context, path: str, witness: Witness, fuel: Fuel, *, searched: bool
) -> bool:
    """Whether facts beyond the derived conditions may keep the claim from coming true.

    Args:
        obligation: the claim; a counterexample to it was seen.
        context: the conditions that launches must meet.
        path: the kernel's file.
        witness: the counterexample, of whose launch values the compile-time flags are used.
        fuel: what the replays may cost; where it does not last, nothing counts.
        searched: whether the search for conditions came to its end; if not, one clean launch is enough.
    """
    if _is_beyond_the_end(obligation, context.kernel, witness):
        return True
    try:
        return _may_be_saved(_Trial(obligation, context, path, witness.values, fuel), searched=searched)
    except OutOfFuel:
        return True


def _may_be_saved(trial: _Trial, *, searched: bool) -> bool:
    obligation, context = trial.obligation, trial.context
    if isinstance(obligation.goal, Holds):
        is_divisor = obligation.goal.access is None and obligation.kind == "undefined"
        if is_divisor and any(map(is_memory, walk(obligation.goal.goal))):
            return True  # a contract may say that it is not 0
        answers = {*trial.in_roomy_launches(), *trial.at_its_flags()}
        free = context.kernel.language == "triton" or any(map(is_memory, walk(obligation.goal.goal)))
        unseen = False not in answers and free and obligation.kind != "overflow"
        return True in answers or unseen
    if not searched and trial.some_launch_is_clean():
        return True
    terms = terms_of(obligation)
    if any(is_memory(node) for node in walk(*terms)):
        same = any(trial.some_launch_is_clean(fill=fill) for fill in (*FILLS, ROWS))
        return same or (is_of_contents(obligation) and trial.some_contents_are_clean())
    tiles = frozenset(symbols(*context.kernel.powers_of_two))
    numbers = _made_of(s for s in symbols(*terms) if s not in tiles)
    numbers = [s for s in numbers if s.kind in (Kind.SCALAR, Kind.CONSTANT)]
    numbers = [s for s in numbers if s not in _booleans(context)]
    if len(numbers) > _MOST_NUMBERS:
        return True  # too many to try: how they are related is not known
    return bool(numbers) and trial.some_numbers_are_clean(tuple(numbers))


def _made_of(found: Iterable[Symbol]) -> list[Symbol]:
    """The numbers, each once, with what powers of two are made of in place of these."""
    made = ((s, made_of(s)) for s in found)
    return [*dict.fromkeys(s if m is None else Symbol(m.name, s.kind, origin="untyped") for s, m in made)]


def _is_beyond_the_end(obligation: Obligation, kernel: Kernel, witness: Witness) -> bool:
    """Whether a launch could do without the claim: where flat memory ends is for launches to decide. That an
    index which is read from memory is not negative is for a contract, as is where memory allows an access."""
    goal = obligation.goal
    if kernel.language != "triton" or not isinstance(goal, Holds) or witness.kind != "bounds":
        return False
    if goal.access is None or goal.access.checked or witness.element is None:
        return False
    return witness.element[0] >= 0 or depends_on_memory(goal.access.axes[0].coordinate, goal.given)


@dataclass(frozen=True, slots=True)
class _Trial:
    """One claim, ready to be replayed."""

    obligation: Obligation
    context: Context
    path: str
    flags: Flags
    fuel: Fuel
    answers: set[bool | None] = field(default_factory=set)  # of the launches that were run

    def some_launch_is_clean(self, *, fill: str = FILLS[0]) -> bool:
        """Of launches over large arrays where numbers decide it through unknowns: how much room they need is
        not known."""
        numbers = {p.name for p in self.context.kernel.params if not p.is_array}
        wide = bool(deciding(self.obligation) & numbers)
        launches = ordinary_launches(self.context, self.flags, wide=wide, long=self._deciding_extents())
        return any(self._is_clean(replace(launch, fill=fill)) for launch in islice(launches, _LAUNCHES))

    def some_contents_are_clean(self) -> bool:
        """The same where each array holds something of its own: lengths beside starts, say, or indices of rows
        that are as far apart as they are long. Of what the kernel itself writes no contract speaks, and one
        that speaks of an array is kept."""
        arrays = self.readable()
        if not deciding(self.obligation) & set(arrays):
            return False
        launches = ordinary_launches(self.context, self.flags, wide=True, scalars=_SPACED_SCALARS)
        mixture = Mixture()
        for launch in islice(launches, _LAUNCHES_FOR_CONTENTS):
            fills = {name: _CONTENTS[mixture.below(len(_CONTENTS))] for name in arrays}
            if self._is_clean(replace(launch, fills=fills), apart=True):
                return True
        return False not in self.answers and is_between_blocks(self.obligation)  # only rare contents reach it

    def readable(self) -> list[str]:
        """The arrays that a contract may still speak of."""
        kernel = self.context.kernel
        written = {access.array for access in kernel.accesses if access.effect is not Effect.READ}
        said = {name for contract in kernel.contracts for name in contract.arrays}
        return [p.name for p in kernel.params if p.is_array and p.name not in written | said]

    def in_roomy_launches(self) -> Iterator[bool | None]:
        """Whether the claim is absent, launch by launch, up to the first that is clean."""
        return self._up_to_clean(ordinary_launches(self.context, self.flags, roomy=True))

    def at_its_flags(self) -> Iterator[bool | None]:
        """The same at the counterexample's own compile-time numbers: an access under a flag such as
        `LATENCY < 1` is reached at few values of it."""
        tiles = frozenset(symbols(*self.context.kernel.powers_of_two))
        constants = [s for s in launch_symbols(self.context) if s.kind is Kind.CONSTANT and s not in tiles]
        given = {s: self.flags.get(s.name) for s in constants}
        fixed = {s: value for s, value in given.items() if isinstance(value, int)}
        return self._up_to_clean(ordinary_launches(self.context, self.flags, roomy=True, fixed=fixed))

    def _up_to_clean(self, launches: Iterator[Concrete]) -> Iterator[bool | None]:
        for launch in islice(launches, _LAUNCHES):
            answer = self._is_clean(launch)
            yield answer
            if answer:
                return

    def some_numbers_are_clean(self, numbers: tuple[Symbol, ...]) -> bool:
        """Whether for some values of `numbers` every launch that performs the accesses is clean."""
        for values in self._choices(len(numbers)):
            fixed = dict(zip(numbers, values, strict=True))
            long = self._deciding_extents()
            launches = ordinary_launches(self.context, self.flags, fixed=fixed, long=long)
            clean = False
            for launch in islice(launches, _LAUNCHES_FOR_NUMBERS):
                answer = self._is_clean(launch)
                if answer is False:
                    clean = False
                    break
                clean |= answer is True
            if clean:
                return True
        return False

    def _deciding_extents(self) -> frozenset[Symbol] | None:
        """The extents that a race speaks of, and those that conditions tie to these; None for other claims, and
        where memory tells, of which there has to be enough."""
        terms = terms_of(self.obligation)
        found = {s for s in symbols(*terms) if s.kind is Kind.EXTENT}
        if not found or depends_on_memory(*terms):
            return None
        facts = [{s for s in symbols(f) if s.kind is Kind.EXTENT} for f in self.context.uniform_facts]
        while tied := [fact for fact in facts if fact & found and not fact <= found]:
            found.update(*tied)
        return frozenset(found)

    def _choices(self, count: int) -> Iterator[tuple[int, ...]]:
        """Values for some numbers: the smallest first, and if no launch performs the accesses there, others."""
        yield from islice(product(_SCALARS, repeat=count), _CHOICES)
        if self.answers <= {None}:
            every = max(1, len(_SCALARS) ** count // _CHOICES)
            yield from islice(product(_SCALARS, repeat=count), every // 2, None, every)

    def _is_clean(self, concrete: Concrete, *, apart: bool = False) -> bool | None:
        """Whether the claim is absent; None if the accesses are not performed or nothing can be run.

        Which arrays hold integers is a guess: where it is wrong, all of them do. With `apart` it is enough that
        the two accesses of a race are performed by two blocks between them.
        """
        answer = None
        for integers in (concrete.integers, True):
            with suppress(NotInterpretable):
                answer = self._ran_clean(replace(concrete, integers=integers), apart=apart)
                break
        self.answers.add(answer)
        return answer

    def _ran_clean(self, concrete: Concrete, *, apart: bool) -> bool | None:
        """The same of one guess.

        The first blocks run alone first: what they do they do in the whole launch as well, where they run
        first too, so harm that they show needs no more of it.
        """
        kernel = self.context.kernel
        grid = concrete.grid(kernel)
        first = tuple(islice(_in_order(grid), ceil(_FIRST_BLOCKS * prod(grid))))
        for blocks in (first, None) if len(first) > 1 else (None,):
            given = arguments(concrete, kernel)
            if given is None:
                return None
            try:
                steps = _STEPS_OF_WAITERS if kernel.waits else _STEPS
                log = self.fuel.run(Launch(self.path, kernel.name, grid, given, blocks, steps))
            except NotInterpretable:
                raise
            except ReplayError:
                return None
            if seen(self.obligation, log, layouts(given)) is not None:
                return False
        return True if is_performed(self.obligation, log, kernel, apart=apart) else None


def _in_order(grid: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
    """The blocks in the order in which a launch runs them."""
    for k, j, i in product(*map(range, reversed(grid))):
        yield i, j, k


def is_performed(obligation: Obligation, log: Log, kernel: Kernel, *, apart: bool = False) -> bool:
    """Whether the accesses were reached: by two blocks for a race, if there can be two; else by one.

    With `apart` it is enough that of two blocks one reaches the first access and one the second.
    """
    least = 2 if kernel.grid_axes else 1
    goal = obligation.goal
    if isinstance(goal, Disjoint):
        first, second = (_blocks_at(a.site, log) for a in (goal.first, goal.second))
        if apart:
            return min(len(first), len(second)) >= 1 and len(first | second) >= least
        return min(len(first), len(second)) >= least
    if isinstance(goal, Holds) and goal.access is not None:
        return len(_blocks_at(goal.access.site, log)) >= 1
    return len({r.block for r in log.accesses if len(r.elements)}) >= least


def _blocks_at(site: Site, log: Log) -> set[tuple[int, int, int]]:
    return {r.block for r in at_site(site, log.accesses) if len(r.elements)}


def ordinary_launches(
    context: Context,
    flags: Flags,
    *,
    roomy: bool = False,
    wide: bool = False,
    fixed: Mapping[Symbol, int] | None = None,
    scalars: Sequence[int] | None = None,
    long: frozenset[Symbol] | None = None,
) -> Iterator[Concrete]:
    """Launches with several blocks and tiles on every axis.

    Args:
        context: the conditions to meet.
        flags: values of compile-time flags, by name.
        roomy: small grids over large arrays, instead of the largest grids that are admitted.
        wide: the largest grids, over large arrays.
        fixed: launch values that are not varied.
        scalars: what others are, if not the usual numbers.
        long: the extents of several tiles, if the others are to be of one: they take fewer steps.
    """
    scalars = scalars or (_ROOMY_SCALARS if roomy else _SCALARS)
    kernel = context.kernel
    room = _ROOMY_FLAT if kernel.language == "triton" else _ROOMY_TILES_PER_AXIS
    counts = room if roomy or wide else _TILES_PER_AXIS
    launch = launch_symbols(context)
    booleans = _booleans(context)
    tiles = frozenset(symbols(*kernel.powers_of_two))
    mixture = Mixture()
    for trial in range(_TRIALS):
        values: dict[Symbol, int | bool] = {}
        for symbol in launch:
            if symbol in booleans:
                values[symbol] = bool(flags[symbol.name]) if symbol.name in flags else mixture.below(2) == 1
            elif fixed is not None and symbol in fixed:
                values[symbol] = fixed[symbol]
            elif symbol in tiles:
                values[symbol] = _TILES[mixture.below(len(_TILES))]
            else:
                values[symbol] = scalars[mixture.below(len(scalars))]
        one = with_extents(dict(values), launch, kernel, int)
        values = with_extents(values, launch, kernel, counts[trial % len(counts)].__mul__)
        if long is not None:
            values |= {s: size for s, size in one.items() if s.kind is Kind.EXTENT and s not in long}
        meet_equalities(values, context)
        if _largest_array(values, kernel) > _MOST_ELEMENTS:
            continue
        found = _with_smallest_grid(values, context) if roomy else _with_largest_grid(values, context)
        if found is not None:
            yield found


@lru_cache(maxsize=8)
def _booleans(context: Context) -> frozenset[Symbol]:
    return frozenset(n.args[0] for n in walk(*kernel_expressions(context.kernel)) if n.op == "bsym")


def _largest_array(values: dict[Symbol, int | bool], kernel: Kernel) -> int:
    sizes: dict[str, int] = {}
    for param in kernel.params:
        for axis in range(param.rank or 0):
            extent = int(values.get(extent_symbol(param.name, axis), 1))
            sizes[param.name] = sizes.get(param.name, 1) * extent
    return max(sizes.values(), default=0)


def _with_smallest_grid(values: dict[Symbol, int | bool], context: Context) -> Concrete | None:
    axes = [grid_symbol(k) for k in context.kernel.grid_axes]
    settled = Concrete(values).settled(context.kernel)
    if not is_admitted_by_shapes(settled, context):
        return None
    for size in _ROOMY_GRIDS:
        concrete = Concrete({**settled.values, **dict.fromkeys(axes, size)})
        if is_admitted_by_grid(concrete, context):
            return concrete
    return None


def _with_largest_grid(values: dict[Symbol, int | bool], context: Context) -> Concrete | None:
    """The launch with as many blocks as its conditions admit, at least two on each axis that is read."""
    kernel = context.kernel
    axes = [grid_symbol(k) for k in kernel.grid_axes]
    settled = Concrete(values).settled(kernel)
    if not is_admitted_by_shapes(settled, context):
        return None

    def admitted(grid: dict[Symbol, int]) -> Concrete | None:
        if prod(grid.values()) > _MOST_BLOCKS:
            return None
        concrete = Concrete({**settled.values, **grid})
        return concrete if is_admitted_by_grid(concrete, context) else None

    for size in _GRIDS:
        grid = dict.fromkeys(axes, size)
        found = admitted(grid)
        if found is not None:
            return _raise_each(grid, found, admitted)
    return None


def _raise_each(
    grid: dict[Symbol, int], found: Concrete, admitted: Callable[[dict[Symbol, int]], Concrete | None]
) -> Concrete:
    """Give each axis in turn the largest size that is still admitted."""
    for axis, current in list(grid.items()):
        for size in _GRIDS:
            if size <= current:
                break
            larger = admitted({**grid, axis: size})
            if larger is not None:
                grid, found = {**grid, axis: size}, larger
                break
    return found
