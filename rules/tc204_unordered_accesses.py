"""Two accesses of one block are not ordered.

## What it does

Asks that two accesses of one element by the same block, at least one of them a store, are ordered
by the language.

## Why is this bad?

A block is not a sequence of instructions: the compiler may overlap and reorder its loads and stores
as far as the order that cuTile records allows. Two stores of one element without an order leave
either value, and a load without an order sees the old or the new one.

## How it is proved

cuTile orders the accesses of one array in one block as the program does, through slices, views and
raw memory alike; accesses of different arrays are not ordered and need not be, since a written
array overlaps no other (S1). One case is left out: a `for` loop that touches an array by a single
tile store, and by nothing else, and whose tile index has the loop variable itself on some axis. The
compiler takes such stores for disjoint and lets the iterations overlap (scatters, and tiled views
whose tiles overlap, keep the order of the program). So for two different iterations i and j of one
block:

    i != j  and  writes(i)  and  writes(j)   =>   element(i) != element(j)

For a store to the array itself, or to a slice that stays where it is, that always holds: the tile
index differs. It can fail where the store goes to a slice that moves with the loop.

Triton orders the threads of a program only at `tl.debug_barrier()`. Two accesses of one program,
one of them a store, with no barrier between on every path, must not touch one element. Two cases
are left out, of a store over the tile that was just loaded, lane for lane: what was loaded goes
into that store and nowhere else; or the stored value is computed from what was loaded, and from the
load on nothing that was loaded is reduced, multiplied as a matrix, reshaped or broadcast, but for
sums, minima and maxima of a whole row that the stored value needs, or where it is a scan of the
row. Nor is anything asked of single elements whose loaded values reach the stores of single
elements alone: one thread makes all of these.
And a load and a store of equal lanes are made by one thread where all tiles have one axis, all
addresses are computed in one way, and all arrays have elements of one size and are aligned alike:
`tilecheck explain S7`, which the guard checks. Where a tile has at least as many elements as the
program has threads (`tilecheck explain S8`), one thread alone loads each: then it is enough that
the store needs what was loaded, whatever else is done with that.
(Where a program has more threads than a tile has elements, several of them load an element and one
stores it; and a load and a store of one tile may be laid out differently over the threads.)

## Example

The slice moves down by a tile while the index moves up, so that every iteration writes the same
elements:

```python
import cuda.tile as ct


@ct.kernel
def last_one_wins(out, T: ct.Constant[int]):  # verdict: violated
    if out.shape[0] >= 8 * T:
        for i in range(4):
            window = out.slice(axis=0, start=(4 - i) * T, stop=8 * T)
            ct.store(window, index=(i,), tile=ct.full((T,), i * 1.0, dtype=ct.float32))  # expect: TC204
```

In Triton the threads of a program are not ordered either. Each stores what another one reads:

```python
import triton
import triton.language as tl


@triton.jit
def reverse(x_ptr, BLOCK: tl.constexpr):  # verdict: violated
    lane = tl.arange(0, BLOCK)
    block = x_ptr + tl.program_id(0) * BLOCK
    x = tl.load(block + lane)  # site: read
    tl.store(block + BLOCK - 1 - lane, x)  # expect: TC204 with=read
```

## Use instead

Store what is meant to stay, once:

```python
import cuda.tile as ct


@ct.kernel
def last_one_wins(out, T: ct.Constant[int]):  # verdict: proved
    if out.shape[0] >= 8 * T:
        window = out.slice(axis=0, start=4 * T, stop=8 * T)
        ct.store(window, index=(0,), tile=ct.full((T,), 3.0, dtype=ct.float32))
```

Several accesses of the array in the loop body restore the order of the program:

```python
import cuda.tile as ct


@ct.kernel
def running_sum(x, out, T: ct.Constant[int]):  # verdict: conditional
    for i in range(ct.num_tiles(x, axis=0, shape=(T,))):
        tile = ct.load(x, index=(i,), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
        ct.store(out, index=(0,), tile=ct.load(out, index=(0,), shape=(T,)) + tile)
```

A barrier orders the threads of a program:

```python
import triton
import triton.language as tl


@triton.jit
def reverse(x_ptr, BLOCK: tl.constexpr):  # verdict: conditional
    lane = tl.arange(0, BLOCK)
    block = x_ptr + tl.program_id(0) * BLOCK
    x = tl.load(block + lane)
    tl.debug_barrier()
    tl.store(block + BLOCK - 1 - lane, x)
```

## When it says unknown

When the start of the slice multiplies or divides launch values, or is read from memory, in a way
that no proof covers, and no launch in which two iterations meet could be found.

## References

- Token order: https://docs.nvidia.com/cuda/tile-ir/13.2/sections/memory_model.html
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import sites_of, unsafe_of
from tilecheck.analysis.facts import Facts
from tilecheck.analysis.ordering import order_of
from tilecheck.ir.kernel import Access, Effect, Space
from tilecheck.model import Severity
from tilecheck.proof.obligation import Between, Disjoint, Obligation, Ordered
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each pair that the language orders, and for each that it does not."""
    yield from _between_tokens(facts) if facts.kernel.language == "cutile" else _between_threads(facts)


def _between_threads(facts: Facts) -> Iterator[Obligation]:
    """Triton: threads of one program, unless a barrier separates them or one thread makes both accesses."""
    for conflict in facts.graph.conflicts():
        first, second, kernel = conflict.first, conflict.second, facts.kernel
        order = order_of(kernel, first, second)
        if order is not None and not order.equal_lanes:
            continue
        yield Obligation(
            rule=RULE.code,
            goal=Disjoint(first, second, Between.THREADS if order is None else Between.PROGRAM),
            sites=sites_of(first, second),
            cause=f"two threads of one block touch an element of `{conflict.array}` in no order",
            stage=2,
            kind="overlap",
            unsafe=unsafe_of(first, second),
            array=conflict.array,
        )


def _between_tokens(facts: Facts) -> Iterator[Obligation]:
    for conflict in facts.graph.conflicts():
        first, second = conflict.first, conflict.second
        if first is second or Effect.WRITE not in (first.effect, second.effect):
            continue
        # Where the graph holds a happens-before edge, it discharges the obligation; without one nothing does.
        ordered = facts.graph.ordered(first, second)
        yield Obligation(
            rule=RULE.code,
            goal=Ordered(first, second, conflict.array if ordered else ""),
            sites=sites_of(first, second),
            cause=f"two accesses of `{conflict.array}` in one block are not ordered",
            stage=1,
            kind="overlap",
            unsafe=unsafe_of(first, second),
            array=conflict.array,
        )
    for array in facts.graph.arrays():
        borrows = facts.graph.borrows(array)
        for access in borrows:
            if access.effect is Effect.WRITE and _runs_parallel(access, borrows):
                yield Obligation(
                    rule=RULE.code,
                    goal=Disjoint(access, access, Between.ITERATIONS),
                    sites=(access.site,),
                    cause=f"two iterations of one block write the same element of `{array}`, in no order",
                    stage=2,
                    kind="overlap",
                    unsafe=unsafe_of(access),
                    array=array,
                )


def _runs_parallel(access: Access, borrows: tuple[Access, ...]) -> bool:
    """Whether the compiler drops the order between a store's iterations: it is the only access of its array
    in the loop body, and the loop variable itself is one of its tile indices."""
    loop = access.stepped_by
    whole_tiles = access.space is Space.TILE and all(axis.step is axis.size for axis in access.axes)
    return (
        loop is not None
        and whole_tiles
        and all(other.site == access.site for other in borrows if loop in other.loops)
    )


RULE = Rule(
    code="TC204",
    name="unordered-accesses",
    level=Severity.ERROR,
    summary="two accesses of one block are not ordered",
    since="0.1.0",
    check=check,
)
