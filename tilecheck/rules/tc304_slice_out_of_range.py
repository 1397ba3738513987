"""The bounds of a slice may lie outside its array.

## What it does

Asks that every `Array.slice(axis, start, stop)` names a range that exists.

## Why is this bad?

A slice is a view without a check of its own: its origin is `start` elements into the array, and its
extent is `stop - start`. With a wrong origin all its accesses are shifted, and the bounds checks on
them compare with the wrong extent.

## How it is proved

For any block and any iteration that gets to the slice, with n the extent of the array along that
axis:

    path   =>   0 <= start  and  start < n  and  start <= stop  and  stop <= n

Bounds that follow the grid need a launch condition, such as `grid[0] <= x.shape[0]`. This is proved
before the accesses through the slice, which may rely on it.

## Example

The window of row 0 starts before the array:

```python
import cuda.tile as ct


@ct.kernel
def sum_with_previous(x, out, T: ct.Constant[int]):  # verdict: violated
    row, column = ct.bid(0), ct.bid(1)
    window = x.slice(axis=0, start=row - 1, stop=row + 1)  # expect: TC304
    pair = ct.load(window, index=(0, column), shape=(2, T))
    ct.store(out, index=(row, column), tile=ct.sum(pair, axis=0, keepdims=True))
```

## Use instead

```python
import cuda.tile as ct


@ct.kernel
def sum_with_previous(x, out, T: ct.Constant[int]):  # verdict: conditional
    row, column = ct.bid(0), ct.bid(1)
    window = x.slice(axis=0, start=max(row - 1, 0), stop=row + 1)
    pair = ct.load(window, index=(0, column), shape=(2, T), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, index=(row, column), tile=ct.sum(pair, axis=0, keepdims=True))
```

Bounds that are read from memory can be compared before they are used:

```python
import cuda.tile as ct


@ct.kernel
def first_rows(x, starts, out, T: ct.Constant[int]):  # verdict: conditional
    b = ct.bid(0)
    start = ct.load(starts, index=(b,), shape=(1,)).item()
    stop = ct.load(starts, index=(b + 1,), shape=(1,)).item()
    lane = ct.arange(T, dtype=ct.int32)
    if 0 <= start and start < stop and stop <= x.shape[0]:
        rows = x.slice(axis=0, start=start, stop=stop)
        ct.scatter(out, (b, lane), ct.gather(rows, (0, lane)))
```

## When it says unknown

When the bounds are read from memory and no contract bounds them, or multiply and divide launch
values beyond what is covered. `increasing(starts)` with `within(starts, 0, n)` speaks of one
extent: a second array that is sliced by the same table needs a comparison in the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import CheckKind
from tilecheck.model import Severity
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each such operation of the kernel."""
    for operation in facts.kernel.checks:
        if operation.kind is CheckKind.SLICE:
            yield Obligation(
                rule=RULE.code,
                goal=Holds(operation.goal, operation.guard),
                sites=(operation.site,),
                cause=f"`{operation.what}` may reach outside its array",
                stage=0,
                kind="bounds",
                unsafe=() if operation.unsafe is None else (operation.unsafe,),
            )


RULE = Rule(
    code="TC304",
    name="slice-out-of-range",
    level=Severity.ERROR,
    summary="the bounds of a slice may lie outside its array",
    since="0.1.0",
    check=check,
)
