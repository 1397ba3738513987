"""Whether a kernel has ordinary launches in which a claim does not come true.

A counterexample alone says that some launch goes wrong. Its verdict is `violated` only if no launch facts
could have saved the kernel; conditions are derived for the kinds that are understood, and a contract about
values in memory or a relation between scalars may be beyond them. So before a counterexample counts,
ordinary launches are replayed: several blocks on every grid axis that the kernel reads, several tiles on
every axis of every array, memory that holds distinct, increasing values. If the accesses run in at least two
blocks of one of them and the claim is not seen, some launch fact tells the two cases apart, and the kernel
is not called violated.

A race needs blocks to meet, so grids are as large as the conditions admit; what leaves an array may fit into
a larger one, so for bounds the arrays are large and the grids and numbers small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from tilecheck.ir.expr import Symbol, symbols, walk
from tilecheck.ir.kernel import Kernel, extent_symbol, grid_symbol
from tilecheck.jit.reference import Launch, Log, ReplayError, run
from tilecheck.model import Site
from tilecheck.proof.concrete import Concrete, arguments, is_admitted, kernel_expressions, launch_symbols, layouts
from tilecheck.proof.context import Context
from tilecheck.proof.obligation import Disjoint, Holds, Obligation
from tilecheck.proof.replay import at_site, seen
from tilecheck.proof.scope import Mixture, with_extents

_LAUNCHES = 10
_TRIALS = 120
_MOST_BLOCKS = 48
_GRIDS = (12, 6, 4, 3, 2)
_TILES = (2, 4)
_TILES_PER_AXIS = (4, 3, 8)
_SCALARS = (2, 4, 3, 8, 16, 64)
_ROOMY_GRIDS = (2, 3)
_ROOMY_TILES_PER_AXIS = (64, 16, 8)
_ROOMY_SCALARS = (2, 1, 3, 4)
_MOST_ELEMENTS = 1 << 18  # of one array
_STEPS = 20_000


def has_benign_launch(obligation: Obligation, context: Context, path: str) -> bool:
    """Whether an ordinary launch performs the accesses of `obligation` and does not break it."""
    roomy = isinstance(obligation.goal, Holds)
    for number, concrete in enumerate(ordinary_launches(context, roomy=roomy)):
        if number >= _LAUNCHES:
            return False
        given = arguments(concrete, context.kernel)
        if given is None:
            continue
        try:
            launch = Launch(path, context.kernel.name, concrete.grid(context.kernel), given, None, _STEPS)
            log = run(launch)
        except ReplayError:
            continue
        if _is_performed(obligation, log, context.kernel) and seen(obligation, log, layouts(given)) is None:
            return True
    return False


def _is_performed(obligation: Obligation, log: Log, kernel: Kernel) -> bool:
    """Whether at least two blocks reached elements at each site (one, where the kernel reads no grid axis)."""
    least = 2 if kernel.grid_axes else 1
    goal = obligation.goal
    if isinstance(goal, Disjoint):
        return all(_blocks_at(a.site, log) >= least for a in (goal.first, goal.second))
    if isinstance(goal, Holds) and goal.access is not None:
        return _blocks_at(goal.access.site, log) >= least
    return len({r.block for r in log.accesses if len(r.elements)}) >= least


def _blocks_at(site: Site, log: Log) -> int:
    return len({r.block for r in at_site(site, log.accesses) if len(r.elements)})


def ordinary_launches(context: Context, *, roomy: bool = False) -> Iterator[Concrete]:
    """Launches with several blocks and tiles on every axis; `roomy`: small grids over large arrays."""
    scalars = _ROOMY_SCALARS if roomy else _SCALARS
    counts = _ROOMY_TILES_PER_AXIS if roomy else _TILES_PER_AXIS
    kernel = context.kernel
    launch = launch_symbols(context)
    booleans = frozenset(n.args[0] for n in walk(*kernel_expressions(kernel)) if n.op == "bsym")
    tiles = frozenset(symbols(*kernel.powers_of_two))
    mixture = Mixture()
    for trial in range(_TRIALS):
        values: dict[Symbol, int | bool] = {}
        for symbol in launch:
            if symbol in booleans:
                values[symbol] = mixture.below(2) == 1
            elif symbol in tiles:
                values[symbol] = _TILES[mixture.below(len(_TILES))]
            else:
                values[symbol] = scalars[mixture.below(len(scalars))]
        values = with_extents(values, launch, kernel, counts[trial % len(counts)].__mul__)
        if _largest_array(values, kernel) > _MOST_ELEMENTS:
            continue
        found = _with_smallest_grid(values, context) if roomy else _with_largest_grid(values, context)
        if found is not None:
            yield found


def _largest_array(values: dict[Symbol, int | bool], kernel: Kernel) -> int:
    sizes: dict[str, int] = {}
    for param in kernel.params:
        for axis in range(param.rank or 0):
            extent = int(values.get(extent_symbol(param.name, axis), 1))
            sizes[param.name] = sizes.get(param.name, 1) * extent
    return max(sizes.values(), default=0)


def _with_smallest_grid(values: dict[Symbol, int | bool], context: Context) -> Concrete | None:
    axes = [grid_symbol(k) for k in context.kernel.grid_axes]
    for size in _ROOMY_GRIDS:
        concrete = Concrete({**values, **dict.fromkeys(axes, size)}).settled(context.kernel)
        if is_admitted(concrete, context):
            return concrete
    return None


def _with_largest_grid(values: dict[Symbol, int | bool], context: Context) -> Concrete | None:
    """The launch with as many blocks as its conditions admit, at least two on each axis that is read."""
    kernel = context.kernel
    axes = [grid_symbol(k) for k in kernel.grid_axes]

    def admitted(grid: dict[Symbol, int]) -> Concrete | None:
        if prod(grid.values()) > _MOST_BLOCKS:
            return None
        concrete = Concrete({**values, **grid}).settled(kernel)
        return concrete if is_admitted(concrete, context) else None

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
    for axis in grid:
        for size in _GRIDS:
            if size <= grid[axis]:
                break
            larger = admitted({**grid, axis: size})
            if larger is not None:
                grid, found = {**grid, axis: size}, larger
                break
    return found

