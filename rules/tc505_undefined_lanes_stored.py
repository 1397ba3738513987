"""Undefined lanes of a load decide what is stored.

## What it does

Reports a load whose mask leaves lanes out, without `other` (Triton), or whose tile reaches beyond
its array, without a padding mode (cuTile), where these lanes decide a value that a launch in view
stores.

## Why is this bad?

The lanes hold whatever the hardware left there, which may be a NaN. In a sum, a maximum or a
matrix product over the tile they become part of every result. A test passes as long as they
happen to be zero.

## How it is proved

The launch is run at ordinary inputs of several sizes, some of them no multiple of the tile, with
other values in the undefined lanes each time. The finding is given if the runs leave different
values in memory. Lanes that are left out again by the mask of the store, or that `tl.where`
replaces, are no fault.

## Example

```python
import torch
import triton
import triton.language as tl


@triton.jit
def row_sums(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + column, mask=column < n)  # expect: TC505
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def sums(x):
    m, n = x.shape
    x = x.contiguous()
    out = torch.empty(m, device=x.device)
    row_sums[(m,)](x, out, n, BLOCK=triton.next_power_of_2(n))
    return out
```

In cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def row_sums(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    total = ct.full((1,), 0.0, dtype=ct.float32)
    for k in range(ct.num_tiles(x, axis=1, shape=(1, T))):
        tile = ct.load(x, index=(i, k), shape=(1, T))  # expect: TC505
        total = total + ct.sum(tile, axis=1)
    ct.store(out, index=(i,), tile=total)


def sums(x, stream):
    out = torch.empty(x.shape[0], device=x.device)
    ct.launch(stream, (x.shape[0],), row_sums, (x, out, 64))
    return out
```

## Use instead

```python
import torch
import triton
import triton.language as tl


@triton.jit
def row_sums(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + column, mask=column < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def sums(x):
    m, n = x.shape
    x = x.contiguous()
    out = torch.empty(m, device=x.device)
    row_sums[(m,)](x, out, n, BLOCK=triton.next_power_of_2(n))
    return out
```

In cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def row_sums(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    total = ct.full((1,), 0.0, dtype=ct.float32)
    for k in range(ct.num_tiles(x, axis=1, shape=(1, T))):
        tile = ct.load(x, index=(i, k), shape=(1, T), padding_mode=ct.PaddingMode.ZERO)
        total = total + ct.sum(tile, axis=1)
    ct.store(out, index=(i,), tile=total)


def sums(x, stream):
    out = torch.empty(x.shape[0], device=x.device)
    ct.launch(stream, (x.shape[0],), row_sums, (x, out, 64))
    return out
```

## When it says unknown

Never, and it leaves the verdict alone. It says nothing of kernels without a launch in view, and
of launches that cannot be run at small inputs.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Reported from runs of the launches in view (`proof.initialisation.undefined_lanes`).
RULE = Rule(
    code="TC505",
    name="undefined-lanes-stored",
    level=Severity.WARNING,
    summary="undefined lanes of a load decide what is stored",
    since="0.1.0",
)
