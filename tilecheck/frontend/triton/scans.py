"""What Triton's scans mean, and what the functions do that scans and reductions are given.

The compiler scans a tile that lies in several warps as it reduces one: each warp by itself, then a barrier of
the program, then what the warps before it came to. Inside a warp each element is combined with what other
threads pass on. So a forward scan along the only axis of a tile is an exchange like a reduction: what needs its
result comes after every thread has loaded what is scanned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.dataflow.prefix_sums import summed
from tilecheck.frontend.execute.expressions import call
from tilecheck.frontend.execute.state import Arguments, Executor
from tilecheck.frontend.execute.tiles import as_tuple, computed, reduced, scanned
from tilecheck.frontend.values.values import NOTHING, Const, Made, Num, Seq
from tilecheck.ir import expr as E


def reduce_by(x: Executor, args: Arguments) -> Any:
    """`tl.reduce(input, axis, combine_fn)` of a tile or of several."""
    given = args.bind(("input", "axis", "combine_fn", "keep_dims?"), "reduce")
    value = given["input"]
    tiles = [x.number_of(v, "reduce") for v in as_tuple(value)]
    combined(x, args, given["combine_fn"], tiles)
    keep = given.get("keep_dims", Const(False))
    found = tuple(reduced(x, t, given["axis"], keep, widens=False) for t in tiles)
    shape = tiles[0].shape if tiles else ()
    x.exchanged(*tiles, whole=all(s is E.ONE for num in found for s in num.shape), shape=shape)
    return Seq(found) if isinstance(value, Seq) else found[0]


def scan_by(x: Executor, args: Arguments) -> Any:
    """`tl.associative_scan(input, axis, combine_fn)` of a tile or of several."""
    given = args.bind(("input", "axis", "combine_fn", "reverse?"), "associative_scan")
    value = given["input"]
    tiles = [x.number_of(v, "associative_scan") for v in as_tuple(value)]
    combined(x, args, given["combine_fn"], tiles)
    found = tuple(_scanned(x, tiles, _uses(x, args, given["combine_fn"], tiles), given.get("reverse")))
    return Seq(found) if isinstance(value, Seq) else found[0]


def running_sum(x: Executor, args: Arguments) -> Num:
    """`tl.cumsum(input, axis)`. Each element is added to sums that other threads pass on, which the compiler
    knows nothing of: it cannot leave it out, be they integers or floats."""
    given = args.bind(("input", "axis?", "reverse?", "dtype?"), "cumsum")
    num = x.number_of(given["input"], "cumsum")
    reverse = given.get("reverse")
    (result,) = _scanned(x, [num], [True], reverse, widens=True)
    forward = reverse is None or x.truth(reverse) is E.FALSE
    return summed(x, num, result, given.get("axis"), given.get("dtype")) if forward else result


def combined(
    x: Executor, args: Arguments, function: Any, tiles: Sequence[Num], *, marked: bool = False
) -> tuple[Any, ...]:
    """Execute the function of a reduction or scan, for what it may do: on two unknown elements of each tile.

    Gives the results, one for each tile. Where the elements are `marked`, the first one of tile k is computed
    from "load" -1 - k alone, and the second one from -1 - k - (number of tiles)."""
    elements = []
    for number, tile in enumerate((*tiles, *tiles)):
        side = Made(frozenset({-1 - number}), closed=True) if marked else NOTHING
        boolean = tile.kind == "bool"
        elem = x.fresh("data", per_lane=True, boolean=True) if boolean else None
        if not boolean and tile.elem is not None:
            elem = computed(x, tile, per_lane=True)
        elements.append(Num((), elem, tile.kind, tile.bits, side))
    waits = len(x.launch_waits)
    results = as_tuple(call(x, function, Arguments(tuple(elements), (), args.node, args.table)))
    if len(x.launch_waits) > waits:  # it does not run for a tile of one element
        raise UnsupportedConstruct("wait for launches in the function of a reduction or scan")
    return results


def _uses(x: Executor, args: Arguments, function: Any, tiles: Sequence[Num]) -> list[bool]:
    """Whether each result takes both of the elements of its own tile that are combined."""
    with x.dry_run():
        results = combined(x, args, function, tiles, marked=True)
    wanted = [{-1 - k, -1 - k - len(tiles)} for k in range(len(tiles))]
    return [isinstance(r, Num) and w <= r.made.loads for r, w in zip(results, wanted, strict=False)]


def _scanned(
    x: Executor, tiles: Sequence[Num], uses: Sequence[bool], reverse: Any, *, widens: bool = False
) -> Iterator[Num]:
    """The results of a scan of `tiles`. One that `uses` the elements takes what its lane of the tile takes; any
    of them needs the scan, which the compiler keeps whole, whatever its function makes of the elements."""
    forward = reverse is None or x.truth(reverse) is E.FALSE
    along = forward and all(len(tile.shape) == 1 for tile in tiles)
    every = frozenset[int]().union(*(tile.made.loads for tile in tiles)) if along else frozenset()
    shape = tiles[0].shape if along else ()
    exchanged = x.exchanged(*tiles, whole=along, loads=every, shape=shape, scans=True)
    for tile, used in zip(tiles, uses, strict=True):
        result = scanned(x, tile, widens=widens)
        if along:
            before = tile.made if used else NOTHING
            typed = tile.made.typed
            made = Made(exchanges=exchanged, scans=exchanged, free=False, closed=True, typed=typed)
            result = replace(result, made=replace(before, closed=True) | made)
        yield result
