"""A kernel uses memory that nothing wrote.

## What it does

Reports a launch that passes a fresh tensor (`torch.empty`, `empty_like`, `new_empty`,
`empty_strided`) to a kernel which loads it, or updates it by an atomic, where neither the host
function, nor an earlier launch, nor the block itself has written the element before.

## Why is this bad?

The tensor holds what its memory was last used for. A sum that is added to it is that plus the
sum. In a test the memory is often zero, because the process has just started, so that the fault
shows in production.

## How it is proved

The host function is followed from the allocation to the launch: as long as no method, assignment,
launch or unread code may have written the tensor, it is unwritten. The launch is then run at
ordinary inputs of several sizes, three times each, with other contents in that tensor. The
finding is given if an element is loaded or updated that no block has written before, and if the
runs leave different values: a value that is loaded and then replaced by another is no fault.

## Example

```python
import torch
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


def total_of(x):
    x = x.contiguous()
    out = torch.empty(1, device=x.device)
    total[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)  # expect: TC503
    return out
```

In cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def add(x, total, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    before = ct.load(total, index=(i,), shape=(T,))
    ct.store(total, index=(i,), tile=before + ct.load(x, index=(i,), shape=(T,)))


def added(x, stream):
    total = torch.empty_like(x)
    ct.launch(stream, (ct.cdiv(x.shape[0], 64),), add, (x, total, 64))  # expect: TC503
    return total
```

## Use instead

```python
import torch
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


def total_of(x):
    x = x.contiguous()
    out = torch.zeros(1, device=x.device)
    total[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
```

In cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def add(x, total, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    before = ct.load(total, index=(i,), shape=(T,))
    ct.store(total, index=(i,), tile=before + ct.load(x, index=(i,), shape=(T,)))


def added(x, stream):
    total = torch.zeros_like(x)
    ct.launch(stream, (ct.cdiv(x.shape[0], 64),), add, (x, total, 64))
    return total
```

## When it says unknown

Never, and it leaves the verdict alone: no two blocks meet by it. It says nothing where the tensor
may have been written by code that is not read, where another block writes the element (TC202),
and where the launch cannot be run at small inputs.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Reported from runs of the launches in view (`proof.initialisation.unwritten_memory`).
RULE = Rule(
    code="TC503",
    name="unwritten-memory-used",
    level=Severity.WARNING,
    summary="a kernel uses memory that nothing wrote",
    since="0.1.0",
)
