"""The kernel uses something that tilecheck does not read.

## What it does

Marks the first place of a kernel that tilecheck cannot give a meaning to: a call of a function
whose source it does not have, a statement or an operation that it does not know. The kernel is
`unknown(unsupported:...)`, with the construct named after the colon.

## Why is this bad?

Nothing is known of such a kernel, for better or worse. What is not read is never taken to be
harmless: a helper that is not seen may store anywhere.

## How it is proved

Nothing is proved. The kernel is executed symbolically, statement by statement and helper by helper;
where an operation has no model, the execution ends. Arithmetic on data that never becomes an index
needs no model and is no obstacle.

## Example

The package of the helper is not part of the project:

```python
import cuda.tile as ct
from some_package import activation


@ct.kernel
def activate(x, out, T: ct.Constant[int]):  # verdict: unknown(unsupported)
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=activation(tile))  # expect: TC905
```

In Triton:

```python
import triton
import triton.language as tl
from some_package import activation


@triton.jit
def activate(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: unknown(unsupported)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, activation(x), mask=i < n)  # expect: TC905
```

## Use instead

Keep helpers where tilecheck can read them, in the file or in a module beside it:

```python
import cuda.tile as ct


def activation(tile):
    return ct.maximum(tile, 0.0)


@ct.kernel
def activate(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=activation(tile))
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def activation(x):
    return tl.maximum(x, 0.0)


@triton.jit
def activate(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, activation(x), mask=i < n)
```

## When it says unknown

Always: this rule is how `unknown(unsupported:...)` is reported. `tilecheck verify` ends with exit
code 3, `tilecheck check` warns. An unsafe block does not help, since what stands inside has to be
read as well.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated where the symbolic execution of a kernel ends: there are no facts to ask.
RULE = Rule(
    code="TC905",
    name="unsupported-construct",
    level=Severity.WARNING,
    summary="the kernel uses something that tilecheck does not read",
    since="0.1.0",
)
