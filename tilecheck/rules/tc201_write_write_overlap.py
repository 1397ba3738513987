"""Two blocks write the same element of an array.

## What it does

Asks that no element of an array is written by two different blocks of one launch. Every write is
compared with every other write of the array and with itself: `ct.store` and `ct.scatter`, stores
through slices, tiled views, members of a list, and raw memory. Atomic updates are compared by
TC205.

## Why is this bad?

Blocks run in any order and many at once. Which value stays is decided anew in every run, a tile may
end up with some elements of one block and some of the other, and the Tile IR memory model leaves
the behaviour of the program undefined. It tends to pass small tests, where one block finishes
before the next one starts.

## How it is proved

Take any launch, any two different blocks A and B of it, and any loop iterations and lanes of each:

    A != B  and  writes(A)  and  writes(B)   =>   element(A) != element(B)

`element` is a tuple of array indices. For a tile store, axis k of it is
`index[k] * tile[k] + lane[k]` with `0 <= lane[k] < tile[k]`; for a scatter it is the index itself.
`writes` collects the branches and loop bounds around the store, its mask, and
`0 <= element[k] < shape[k]`. Grid, shapes, scalars and constants are free, and A and B may differ
along any grid axis that the kernel reads. For raw memory offsets are compared, with strides free as
well.

If that fails for some launches only, a condition is derived that excludes them and leaves the
kernel usable, for example `grid[0] <= cdiv(out.shape[0], T)`; the kernel is then `conditional`.

## Example

Half the block ids are lost in the division, so blocks 0 and 1 store to tile 0:

```python
import cuda.tile as ct


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: violated
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i // 2,), tile=tile * 2.0)  # expect: TC201
```

A grid axis that is read, but not for the place of the store, repeats the store:

```python
import cuda.tile as ct


@ct.kernel
def row_sums(x, out, T: ct.Constant[int]):  # verdict: violated
    row, part = ct.bid(0), ct.bid(1)
    tile = ct.load(x, index=(row, part), shape=(1, T), padding_mode=ct.PaddingMode.ZERO)
    ct.scatter(out, row, ct.sum(tile))  # expect: TC201
```

In Triton a block that begins before the last one ends:

```python
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: violated
    i = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2.0, mask=i < n)  # expect: TC201
```

## Use instead

Let the index depend on every block id, one to one:

```python
import cuda.tile as ct


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=tile * 2.0)
```

Walking the tiles in steps of the grid keeps blocks apart for every grid:

```python
import cuda.tile as ct


@ct.kernel
def double(x, T: ct.Constant[int]):  # verdict: proved
    for i in range(ct.bid(0), ct.num_tiles(x, axis=0, shape=(T,)), ct.num_blocks(0)):
        ct.store(x, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)
```

Where several blocks are meant to add to one element, update it atomically:

```python
import cuda.tile as ct


@ct.kernel
def row_sums(x, out, T: ct.Constant[int]):  # verdict: conditional
    row, part = ct.bid(0), ct.bid(1)
    tile = ct.load(x, index=(row, part), shape=(1, T), padding_mode=ct.PaddingMode.ZERO)
    ct.atomic_add(out, row, ct.sum(tile))
```

A table that names each place once says so in a contract:

```python
import cuda.tile as ct


# tilecheck: requires distinct(slots) -- the allocator hands out each row once
@ct.kernel
def write_rows(x, slots, cache, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    slot = ct.load(slots, index=(i,), shape=(1,)).item()
    row = ct.reshape(ct.load(x, index=(i, 0), shape=(1, T)), (T,))
    ct.scatter(cache, (slot, ct.arange(T, dtype=ct.int32)), row)
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2.0, mask=i < n)
```

## When it says unknown

When the index multiplies or divides launch values in a way that no proof covers (`nonlinear`), when
the solver's steps run out (`budget`), when the place is read from memory and no contract says that
the values differ, or when a branch depends on the result of an atomic, so that blocks may wait for
one another (`needs-contract`).

A table could always be filled so that two blocks collide. That alone makes no kernel violated: as
long as a table of distinct values keeps the blocks apart, a contract is what is missing.

## References

- Data races in Tile IR: https://docs.nvidia.com/cuda/tile-ir/13.2/sections/memory_model.html
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import both_atomic_enough, sites_of, unsafe_of
from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import Effect
from tilecheck.model import Severity
from tilecheck.proof.obligation import Between, Disjoint, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each pair of writes of one array, the pair of a write with itself included."""
    for conflict in facts.graph.conflicts():
        first, second = conflict.first, conflict.second
        if (
            first.effect is Effect.WRITE
            and second.effect is Effect.WRITE
            and not both_atomic_enough(first, second)
        ):
            yield Obligation(
                rule=RULE.code,
                goal=Disjoint(first, second, Between.BLOCKS),
                sites=sites_of(first, second),
                cause=f"two blocks write the same element of `{conflict.array}`",
                stage=2,
                kind="overlap",
                unsafe=unsafe_of(first, second),
                array=conflict.array,
            )


RULE = Rule(
    code="TC201",
    name="write-write-overlap",
    level=Severity.ERROR,
    summary="two blocks write the same element of an array",
    since="0.1.0",
    check=check,
)
