"""A block reads an element that another block writes.

## What it does

Asks that no block reads an element of an array that a different block of the same launch writes. It
concerns arrays that a kernel both reads and writes: in-place kernels, and blocks that hand values
to one another.

## Why is this bad?

The reader gets the old value in one run and the new one in the next: nothing says which of the two
blocks runs first. Unless both sides ask for a memory order and a scope that covers the other block,
this is a data race, and the compiler may assume that there is none.

## How it is proved

For any two different blocks A and B, any loop iterations and any lanes:

    A != B  and  writes(A)  and  reads(B)   =>   element(A) != element(B)

Elements, branches, loop bounds and masks are those of TC201. A block may read what it wrote itself:
accesses of one array within a block follow the order of the program (TC204). A pair is exempt if
both accesses are atomic or give a `memory_order` other than WEAK, and both have DEVICE or SYS
scope. Accesses that a release and an acquire of one element certainly order do not race: counters
whose last visitor reads what all wrote, flags, locks and turns are understood, where only atomics
touch them, and where `requires within(flag, 0, 1)` says that they are zero at the beginning.

## Example

Every lane reads its left neighbour; at the edge of a tile that neighbour belongs to the block
before:

```python
import cuda.tile as ct


@ct.kernel
def smooth(x, T: ct.Constant[int]):  # verdict: violated
    i = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)
    left = ct.gather(x, i - 1)  # site: read
    ct.scatter(x, i, left * 0.5)  # expect: TC202 with=read
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def smooth(x_ptr, n, BLOCK: tl.constexpr):  # verdict: violated
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) + 1
    left = tl.load(x_ptr + i - 1, mask=i < n)  # site: read
    tl.store(x_ptr + i, left * 0.5, mask=i < n)  # expect: TC202 with=read, TC204 with=read
```

## Use instead

Write to another array:

```python
import cuda.tile as ct


@ct.kernel
def smooth(x, out, T: ct.Constant[int]):  # verdict: proved
    i = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)
    left = ct.gather(x, i - 1)
    ct.scatter(out, i, left * 0.5)
```

In place is fine as long as a block reads only what it writes:

```python
import cuda.tile as ct


@ct.kernel
def relu(x, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.store(x, index=(i,), tile=ct.maximum(tile, 0.0))
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def smooth(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) + 1
    left = tl.load(x_ptr + i - 1, mask=i < n)
    tl.store(out_ptr + i, left * 0.5, mask=i < n)
```

## When it says unknown

For the reasons of TC201. The most common one: the read stands behind a lock, a flag or a counter of
finished blocks, and the order that it establishes is not one of those above, or nothing says what
is in it at the beginning. Two launches in a row need no such order, and an `unsafe` block with a
reason makes the kernel `trusted`.

## References

- Memory order across blocks: https://docs.nvidia.com/cuda/cutile-python/memory_model.html
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
    """Yield one obligation for each pair of a write and a read of one array."""
    for conflict in facts.graph.conflicts():
        first, second = conflict.first, conflict.second
        if {first.effect, second.effect} != {Effect.READ, Effect.WRITE} or both_atomic_enough(first, second):
            continue
        if first.effect is Effect.READ:
            first, second = second, first
        yield Obligation(
            rule=RULE.code,
            goal=Disjoint(first, second, Between.BLOCKS),
            sites=sites_of(first, second),
            cause=f"a block reads an element of `{conflict.array}` that another block writes",
            stage=2,
            kind="overlap",
            unsafe=unsafe_of(first, second),
            array=conflict.array,
        )


RULE = Rule(
    code="TC202",
    name="write-read-overlap",
    level=Severity.ERROR,
    summary="a block reads an element that another block writes",
    since="0.1.0",
    check=check,
)
