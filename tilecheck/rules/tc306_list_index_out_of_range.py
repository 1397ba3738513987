"""An index may lie outside a list of arrays.

## What it does

Asks that the index into a list parameter, `parts[i]`, names one of its arrays. There are no
negative indices that count from the end.

## Why is this bad?

What lies behind the last array of a list is not an array. Its pointer and its shape are read from
there all the same, and the access goes wherever they point.

## How it is proved

For any block and any iteration that gets to the access:

    path   =>   0 <= i  and  i < len(parts)

The length of the list is free. An index that follows the grid needs `grid[0] <= len(parts)`, which
becomes a launch condition.

## Example

The last iteration reaches past the list:

```python
import cuda.tile as ct


@ct.kernel
def sum_of_parts(parts, out, T: ct.Constant[int]):  # verdict: violated
    i = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)
    total = ct.zeros((T,), dtype=ct.float32)
    for k in range(len(parts)):
        total = total + ct.gather(parts[k + 1], i)  # expect: TC306
    ct.scatter(out, i, total)
```

## Use instead

```python
import cuda.tile as ct


@ct.kernel
def sum_of_parts(parts, out, T: ct.Constant[int]):  # verdict: proved
    i = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)
    total = ct.zeros((T,), dtype=ct.float32)
    for k in range(len(parts)):
        total = total + ct.gather(parts[k], i)
    ct.scatter(out, i, total)
```

## When it says unknown

When the index is read from memory and no contract such as `within(t, 0, len(parts))` bounds it, or
is computed in a way that no proof covers.
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
        if operation.kind is CheckKind.MEMBER:
            yield Obligation(
                rule=RULE.code,
                goal=Holds(operation.goal, operation.guard),
                sites=(operation.site,),
                cause=f"`{operation.what}` may lie outside the list",
                stage=0,
                kind="bounds",
                unsafe=() if operation.unsafe is None else (operation.unsafe,),
            )


RULE = Rule(
    code="TC306",
    name="list-index-out-of-range",
    level=Severity.ERROR,
    summary="an index may lie outside a list of arrays",
    since="0.1.0",
    check=check,
)
