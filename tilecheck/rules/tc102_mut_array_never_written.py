"""An array declared mut is never written.

## What it does

Reports a parameter that the kernel declares `mut`, in a comment (`# tilecheck: mut out`) or in the
annotation (`out: Mut`), and that nothing in the kernel stores to, scatters to or updates
atomically.

## Why is this bad?

Callers allocate a fresh tensor for a mutable output and read it afterwards. If nothing writes it,
they read whatever was in memory. Most often the store went to another parameter, or an output was
forgotten.

## How it is proved

Nothing has to be proved. What a kernel does with an array is inferred from its accesses: it is
`mut` if at least one of them writes or updates the array, also through a slice, a view, a list or
raw memory, and `shared` if all of them read. The declaration is compared with that.

## Example

```python
import cuda.tile as ct


# tilecheck: mut out, total
@ct.kernel
def scale_and_sum(  # verdict: conditional
    x,
    out,
    total,  # expect: TC102
    T: ct.Constant[int],
):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, index=(i,), tile=tile * 2.0)
```

In Triton:

```python
import triton
import triton.language as tl


# tilecheck: mut out_ptr, total_ptr
@triton.jit
def scale_and_sum(  # verdict: conditional
    x_ptr,
    out_ptr,
    total_ptr,  # expect: TC102
    n,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x * 2.0, mask=i < n)
```

## Use instead

```python
import cuda.tile as ct


# tilecheck: mut out, total
@ct.kernel
def scale_and_sum(x, out, total, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, index=(i,), tile=tile * 2.0)
    ct.atomic_add(total, 0, ct.sum(tile))
```

In Triton:

```python
import triton
import triton.language as tl


# tilecheck: mut out_ptr, total_ptr
@triton.jit
def scale_and_sum(x_ptr, out_ptr, total_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x * 2.0, mask=i < n)
    tl.atomic_add(total_ptr, tl.sum(x, axis=0))
```

## When it says unknown

Never: the finding follows from the text. It leaves the verdict alone, since no launch goes wrong by
it. A write that stands in the text but that no launch can reach satisfies this rule.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import Ownership
from tilecheck.model import Diagnostic, Severity
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Yield a finding for each parameter declared mut that the block never borrows mutably."""
    for param in facts.kernel.params:
        if param.declared is Ownership.MUT and facts.graph.ownership(param.name) is not Ownership.MUT:
            yield Diagnostic(
                code=RULE.code,
                name=RULE.name,
                severity=RULE.level,
                message=f"`{param.name}` is declared mut but `{facts.kernel.name}` never writes it",
                site=param.site,
                kernel=facts.kernel.name,
                label="never written",
                help=f"declare it shared, or store to `{param.name}`",
            )


RULE = Rule(
    code="TC102",
    name="mut-array-never-written",
    level=Severity.ERROR,
    summary="an array declared mut is never written",
    since="0.1.0",
    check=check,
)
