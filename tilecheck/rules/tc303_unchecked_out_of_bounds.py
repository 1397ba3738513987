"""An unchecked access may leave its array.

## What it does

Asks that accesses without a bounds check stay inside the array by themselves: loads, stores,
gathers and scatters with `check_bounds=False`, and all accesses through `get_raw_memory()`.

## Why is this bad?

Without the check nothing is padded or dropped: the access reads or overwrites whatever lies next to
the array, which may be another tensor.

## How it is proved

For an unchecked tile, the whole tile is inside, on every axis k:

    path   =>   0 <= index[k]  and  (index[k] + 1) * tile[k] <= shape[k]

For the lanes of an unchecked gather or scatter that are not masked off:

    path  and  mask   =>   0 <= index[k] < shape[k]

For raw memory the offset of each such lane is compared with the size of the array's storage, in
elements. Launch conditions that help here are `x.shape[0] % T == 0` and bounds on the grid.

## Example

Lane 0 of block 0 reads the element before the array:

```python
import cuda.tile as ct


@ct.kernel
def difference(x, out, T: ct.Constant[int]):  # verdict: violated
    i = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)
    left = ct.gather(x, i - 1, check_bounds=False)  # expect: TC303
    ct.scatter(out, i, ct.gather(x, i) - left)
```

In Triton nothing is checked but by a mask:

```python
import triton
import triton.language as tl


@triton.jit
def difference(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: violated
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x_ptr + i - 1, mask=i < n)  # expect: TC303
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) - left, mask=i < n)
```

## Use instead

Leave the check on; lanes outside get the padding value:

```python
import cuda.tile as ct


@ct.kernel
def difference(x, out, T: ct.Constant[int]):  # verdict: proved
    i = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)
    left = ct.gather(x, i - 1, padding_value=0.0)
    ct.scatter(out, i, ct.gather(x, i) - left)
```

Or bound the lanes by a mask, or the tiles by their number:

```python
import cuda.tile as ct


@ct.kernel
def double_whole_tiles(x, T: ct.Constant[int]):  # verdict: proved
    for i in range(ct.bid(0), x.shape[0] // T, ct.num_blocks(0)):
        tile = ct.load(x, index=(i,), shape=(T,), check_bounds=False)
        ct.store(x, index=(i,), tile=tile * 2.0, check_bounds=False)
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def difference(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x_ptr + i - 1, mask=(i >= 1) & (i < n), other=0.0)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) - left, mask=i < n)
```

## When it says unknown

When the index or the mask depends on values in memory and no contract bounds them, or when a
product of launch values is beyond what is covered. For raw memory the size of the storage is free
unless a contract or a visible launch relates it to the shape.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import unsafe_of
from tilecheck.analysis.facts import Facts
from tilecheck.ir.expr import Expr, add, all_of, le, lt, mul
from tilecheck.ir.kernel import Access, Space
from tilecheck.model import Severity
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each axis of each access that nothing checks."""
    for array in facts.graph.arrays():
        for access in facts.graph.borrows(array):
            if access.checked:
                continue
            here = all_of(performed(access), access.unchecked)
            for number in range(len(access.axes)):
                yield Obligation(
                    rule=RULE.code,
                    goal=Holds(stays_inside(access, number), here, access),
                    sites=(access.site,),
                    cause=f"an unchecked access of `{array}` may leave the array along axis {number}",
                    stage=1,
                    kind="bounds",
                    unsafe=unsafe_of(access),
                    array=array,
                )


def performed(access: Access) -> Expr:
    """Where a lane takes part, whether or not its element exists."""
    return all_of(access.guard, access.lane_facts, access.mask)


def stays_inside(access: Access, number: int) -> Expr:
    """A tile stays inside when its last element does; an element when it does itself."""
    axis = access.axes[number]
    if access.space is Space.TILE:
        end = add(mul(axis.index, axis.step), axis.size)
        return all_of(le(0, axis.index), le(end, axis.extent))
    return all_of(le(0, axis.local), lt(axis.local, axis.extent))


RULE = Rule(
    code="TC303",
    name="unchecked-out-of-bounds",
    level=Severity.ERROR,
    summary="an unchecked access may leave its array",
    since="0.1.0",
    check=check,
)
