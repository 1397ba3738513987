"""An array declared shared is written.

## What it does

Reports a store, a scatter or an atomic update of an array that the kernel declares `shared`, in a
comment (`# tilecheck: shared x`) or in the annotation (`x: Shared`). Writes through a slice, a
tiled view, a member of a list or raw memory count as writes of the array.

## Why is this bad?

The declaration is what callers rely on: a shared array may be passed to several kernels at once,
and the same tensor may stand behind two shared parameters. A write breaks that promise where nobody
looks for it.

## How it is proved

For each write of a shared array, that it never happens:

    not (path  and  mask  and  inside)

`path` are the branches and loop bounds around the write, `mask` the lanes that take part, and
`inside` says that the element exists. One launch in which a block gets there refutes it. A write in
dead code is no finding.

## Example

```python
import cuda.tile as ct
from tilecheck import Shared


@ct.kernel
def scale(x: Shared, out, T: ct.Constant[int]):  # verdict: violated
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=tile * 2.0)
    ct.store(x, index=(i,), tile=ct.zeros((T,), dtype=ct.float32))  # expect: TC101
```

In Triton the comment declares what a pointer is for:

```python
import triton
import triton.language as tl


# tilecheck: shared x_ptr
@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: violated
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2.0, mask=i < n)
    tl.store(x_ptr + i, 0.0, mask=i < n)  # expect: TC101
```

## Use instead

Drop the declaration if the write is meant, or write to another array:

```python
import cuda.tile as ct
from tilecheck import Shared


@ct.kernel
def scale(x: Shared, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=tile * 2.0)
```

In Triton:

```python
import triton
import triton.language as tl


# tilecheck: shared x_ptr
@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2.0, mask=i < n)
```

## When it says unknown

When the write hangs on a condition that cannot be decided: a branch on values in memory that
ordinary launches do not take, or a bound beyond the arithmetic that tilecheck knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.ir.expr import FALSE
from tilecheck.ir.kernel import Effect, Ownership
from tilecheck.model import Severity
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation, that it never happens, for each write of a shared array."""
    for param in facts.kernel.params:
        if param.declared is not Ownership.SHARED or facts.graph.ownership(param.name) is not Ownership.MUT:
            continue
        for access in facts.graph.borrows(param.name):
            if access.effect is not Effect.READ:
                yield Obligation(
                    rule=RULE.code,
                    goal=Holds(FALSE, access.happens, access),
                    sites=(access.site, param.site),
                    cause=f"`{param.name}` is declared shared but is written",
                    stage=0,
                    kind="ownership",
                    array=param.name,
                )


RULE = Rule(
    code="TC101",
    name="shared-array-written",
    level=Severity.ERROR,
    summary="an array declared shared is written",
    since="0.1.0",
    check=check,
)
