"""Memory is used after it was moved away.

## What it does

Reports a use of an array of `tilecheck.host` between the operation that took it and the one that
gives it back, and an array that two operations take.

## Why is this bad?

An operation owns the arrays that it writes until it has run. Its results hold them afterwards. A
use in between reads what is not written yet, or lets two operations write one array.

## How it is proved

Building an operation moves the arrays that its kernel writes into it, and running it gives them
back. The finding is given if a use stands between the two, on a path through the function.

## Example

```python
import torch
import triton
import triton.language as tl

from tilecheck import host


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def doubled(x):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    out = host.own(torch.empty_like(x))
    operation = host.launch(scale, grid, (host.share(x), out, x.numel()), BLOCK=256)  # site: moved
    values = out.tolist()  # expect: TC412 with=moved
    operation.sync()
    return values
```

In cuTile:

```python
import cuda.tile as ct
import torch

from tilecheck import host


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)


def doubled(x):
    grid = (ct.cdiv(x.shape[0], 256),)
    out = host.own(torch.empty_like(x))
    operation = host.launch(scale, grid, (host.share(x), out, 256))  # site: moved
    values = out.tolist()  # expect: TC412 with=moved
    operation.sync()
    return values
```

## Use instead

```python
import torch
import triton
import triton.language as tl

from tilecheck import host


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def doubled(x):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    out = host.own(torch.empty_like(x))
    operation = host.launch(scale, grid, (host.share(x), out, x.numel()), BLOCK=256)
    operation.sync()
    return out.tolist()
```

In cuTile:

```python
import cuda.tile as ct
import torch

from tilecheck import host


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)


def doubled(x):
    grid = (ct.cdiv(x.shape[0], 256),)
    out = host.own(torch.empty_like(x))
    operation = host.launch(scale, grid, (host.share(x), out, 256))
    operation.sync()
    return out.tolist()
```

## When it says unknown

Never: a host function that uses streams, events or graphs in a way that is not read has the
status `unread` with the reason, and no finding. `--require launches` does not let it pass.

## References

The Rust Reference, moved and copied types.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated by a query over the host borrow graph (`analysis.hosts`).
RULE = Rule(
    code="TC412",
    name="use-after-move",
    level=Severity.ERROR,
    summary="memory is used after it was moved away",
    since="0.1.0",
)
