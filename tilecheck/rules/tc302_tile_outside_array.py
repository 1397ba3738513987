"""A tile may lie wholly outside its array.

## What it does

Asks that every tile that is loaded or stored has at least one element inside its array (or inside
the slice or view that it goes through). It holds for the indices of `ct.load`, `ct.store` and tiled
views, with bounds checks on or off.

## Why is this bad?

The bounds check of cuTile covers tiles that hang over the end: elements outside are padded or
dropped. A tile that lies outside as a whole is undefined, checks or no checks. Tile -1 is such a
tile; there are no negative indices that count from the end.

## How it is proved

For any block and any iteration that gets to the access, on every axis k:

    path   =>   0 <= index[k]  and  index[k] * tile[k] < shape[k]

For a tiled view with `traversal_steps` the step takes the place of `tile[k]` in the product. An
index that follows the grid needs a bound on the grid, so this is where most launch conditions come
from: `grid[0] <= cdiv(x.shape[0], T)`. In a condition `parts[*]` stands for every member of a list.

## Example

Block 0 has no tile before its own, and every launch has a block 0:

```python
import cuda.tile as ct


@ct.kernel
def smooth(x, out, T: ct.Constant[int]):  # verdict: violated
    i = ct.bid(0)
    before = ct.load(x, index=(i - 1,), shape=(T,))  # expect: TC302
    here = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=(before + here) * 0.5)
```

## Use instead

```python
import cuda.tile as ct


@ct.kernel
def smooth(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    here = ct.load(x, index=(i,), shape=(T,))
    if i > 0:
        here = (here + ct.load(x, index=(i - 1,), shape=(T,))) * 0.5
    ct.store(out, index=(i,), tile=here)
```

A loop over `ct.num_tiles` of the array itself needs no condition:

```python
import cuda.tile as ct


@ct.kernel
def fill(out, T: ct.Constant[int]):  # verdict: proved
    for i in range(ct.bid(0), ct.num_tiles(out, axis=0, shape=(T,)), ct.num_blocks(0)):
        ct.store(out, index=(i,), tile=ct.zeros((T,), dtype=ct.float32))
```

An index from a table needs a contract over its values:

```python
import cuda.tile as ct


# tilecheck: requires within(table, 0, cdiv(x.shape[0], T)) -- tile numbers of x
@ct.kernel
def pick_tiles(x, table, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    t = ct.load(table, index=(i,), shape=(1,)).item()
    ct.store(out, index=(i,), tile=ct.load(x, index=(t,), shape=(T,)))
```

## When it says unknown

When the index is read from memory and no contract bounds it, when it is carried through a loop in a
way that has no closed form, or when it multiplies and divides launch values beyond what is covered.
Clamping the index, `min(index, ct.num_tiles(...) - 1)`, or guarding the access settles the bound.

## References

- `ct.load` and `ct.store`: https://docs.nvidia.com/cuda/cutile-python/
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import unsafe_of
from tilecheck.analysis.facts import Facts
from tilecheck.ir.expr import all_of, le, lt, mul
from tilecheck.ir.kernel import CheckKind, Space
from tilecheck.model import Severity
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each axis of each tile access: 0 <= i and i * step < extent."""
    for operation in facts.kernel.checks:
        if operation.kind is CheckKind.TILE:
            yield Obligation(
                rule=RULE.code,
                goal=Holds(operation.goal, operation.guard),
                sites=(operation.site,),
                cause=f"a tile may lie wholly outside its array along {operation.what}",
                stage=1,
                kind="bounds",
                unsafe=() if operation.unsafe is None else (operation.unsafe,),
                array=operation.array,
            )
    for array in facts.graph.arrays():
        for access in facts.graph.borrows(array):
            if access.space is not Space.TILE:
                continue
            for number, axis in enumerate(access.axes):
                yield Obligation(
                    rule=RULE.code,
                    goal=Holds(
                        all_of(le(0, axis.index), lt(mul(axis.index, axis.step), axis.extent)),
                        access.guard,
                        access,
                    ),
                    sites=(access.site,),
                    cause=f"a tile of `{array}` may lie wholly outside the array along axis {number}",
                    stage=1,
                    kind="bounds",
                    unsafe=unsafe_of(access),
                    array=array,
                )


RULE = Rule(
    code="TC302",
    name="tile-outside-array",
    level=Severity.ERROR,
    summary="a tile may lie wholly outside its array",
    since="0.1.0",
    check=check,
)
