"""One store writes the same element twice.

## What it does

Asks that the lanes of one store, scatter or raw store write different elements. It looks at one
block and one execution of the statement; other blocks are the business of TC201.

## Why is this bad?

The lanes of a tile have no order. Which of the values stays is undetermined, even if only one block
runs, and the memory model counts two writes of one element by one store as a data race.

## How it is proved

For any block, any iteration of the loops around it and any two different lanes l and m of the
store:

    l != m  and  writes(l)  and  writes(m)   =>   element(l) != element(m)

`writes` is the mask of the lane and `0 <= element[k] < shape[k]`: lanes that are masked off or
outside the array write nothing. The lanes of a tile store differ by construction, so this concerns
index tiles. An index of fewer dimensions than the value is repeated for the others.

## Example

Two neighbouring lanes get one index:

```python
import cuda.tile as ct


@ct.kernel
def halve(x, out, T: ct.Constant[int]):  # verdict: violated
    lane = ct.arange(T, dtype=ct.int32)
    values = ct.gather(x, ct.bid(0) * T + lane)
    ct.scatter(out, ct.bid(0) * T + lane // 2, values)  # expect: TC203
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def halve(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: violated
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i // 2, x, mask=i < n)  # expect: TC203
```

## Use instead

Mask off all but one lane for each element:

```python
import cuda.tile as ct


@ct.kernel
def halve(x, out, T: ct.Constant[int]):  # verdict: proved
    lane = ct.arange(T, dtype=ct.int32)
    values = ct.gather(x, ct.bid(0) * T + lane)
    ct.scatter(out, ct.bid(0) * T + lane // 2, values, mask=lane % 2 == 0)
```

Where the values are to be combined, let `ct.atomic_add` or its siblings do it: the updates of one
element by several lanes are each atomic.

```python
import cuda.tile as ct


@ct.kernel
def pair_sums(x, out, T: ct.Constant[int]):  # verdict: proved
    lane = ct.arange(T, dtype=ct.int32)
    values = ct.gather(x, ct.bid(0) * T + lane, padding_value=0.0)
    ct.atomic_add(out, ct.bid(0) * T + lane // 2, values)
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def halve(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i // 2, x, mask=(i < n) & (i % 2 == 0))
```

## When it says unknown

When the index tile is read from memory and no contract says that its values differ
(`needs-contract`), when it is computed in a way that tilecheck does not follow (a sort, a scan, a
shift by an unknown amount), or when it divides by launch values beyond what is covered.

A gather gives lanes outside its array the padding value, the same for all of them. Mask these lanes
off in the scatter too, or the contract over the table does not speak of them.

## References

- Overlap within one store: https://docs.nvidia.com/cuda/tile-ir/13.2/sections/memory_model.html
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import unsafe_of
from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import Effect
from tilecheck.model import Severity
from tilecheck.proof.obligation import Between, Disjoint, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each write with several lanes."""
    for array in facts.graph.arrays():
        borrows = facts.graph.borrows(array)
        for access in borrows:
            if access.effect is not Effect.WRITE or not access.lanes:
                continue
            # Lanes that are sent elsewhere are an access of their own, of the same store.
            others = [b for b in borrows if b.spare and b.lanes == access.lanes and not access.spare]
            for other in (access, *others):
                yield Obligation(
                    rule=RULE.code,
                    goal=Disjoint(access, other, Between.LANES),
                    sites=(access.site,),
                    cause=f"one store writes an element of `{array}` twice",
                    stage=2,
                    kind="overlap",
                    unsafe=unsafe_of(access),
                    array=array,
                )


RULE = Rule(
    code="TC203",
    name="duplicate-element",
    level=Severity.ERROR,
    summary="one store writes the same element twice",
    since="0.1.0",
    check=check,
)
