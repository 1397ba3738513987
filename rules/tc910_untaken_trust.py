"""A source that the gate answers asks for trust.

## What it does

Lists what `tilecheck gate` finds in a source and does not take: `requires`, `unsafe` and `ignore`
comments, and `with unsafe(...)` blocks. The kernel is judged as if they were not there.

## Why is this bad?

The gate judges kernels that a program wrote. A program that may also write what has to be assumed
can talk any kernel into a pass: `requires distinct(x)` hides a race on `x`. Contracts are the word
of whoever asks, and come with the key `contracts` of a line.

## How it is proved

Nothing has to be proved. `mut`, `shared` and `fills` comments are taken: each asks for one more
check and lets nothing pass.

## Example

This is what the gate says of a source that promises what it needs:

```python gate
import cuda.tile as ct


# tilecheck: requires distinct(slots)
@ct.kernel  # expect: TC910 "requires distinct(slots)" line=-1
def place(x, slots, out, T: ct.Constant[int]):  # verdict: unknown(needs-contract)
    i = ct.bid(0)
    slot = ct.gather(slots, i)
    if i < slots.shape[0]:
        row = ct.load(x, index=(i, 0), shape=(1, T))
        # expect: TC906
        ct.scatter(out, (slot, ct.arange(T, dtype=ct.int32)), ct.reshape(row, (T,)))
```

## Use instead

A kernel that needs no promise; or the contract, with the key `contracts`; or `tilecheck gate
--trust-source`, where the sources are written by people:

```python gate
import cuda.tile as ct


@ct.kernel
def place(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i, 0), tile=ct.load(x, index=(i, 0), shape=(1, T)))
```

## When it says unknown

It changes no verdict: the kernel has the one that it has without the comment. A finding of this
rule cannot be suppressed.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated by the gate alone: a run over files takes what stands in them.
RULE = Rule(
    code="TC910",
    name="untaken-trust",
    level=Severity.INFO,
    summary="a source that the gate answers asks for trust",
    since="0.1.0",
)
