"""The host touches or frees memory that an asynchronous copy uses.

## What it does

Reports host code that reads, writes or frees page-locked memory while a copy with
`non_blocking=True` may still read or write it.

## Why is this bad?

An asynchronous copy returns at once. Refilling its source changes what arrives on the device, and
reading its destination gives old bytes.

## How it is proved

What the host does is ordered after a copy only where the host waits: for the stream, for an event
that was recorded after the copy, or for the device. The finding is given if it does not.

## Example

```python
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def doubled(x):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    out = torch.empty_like(x)
    scale[grid](x, out, x.numel(), BLOCK=256)
    result = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
    result.copy_(out, non_blocking=True)  # site: copied
    return result.sum().item()  # expect: TC415 with=copied
```

In cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)


def doubled(x):
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    out = torch.empty_like(x)
    ct.launch(torch.cuda.current_stream(), grid, scale, (x, out, 256))
    result = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
    result.copy_(out, non_blocking=True)  # site: copied
    return result.sum().item()  # expect: TC415 with=copied
```

## Use instead

```python
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def doubled(x):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    out = torch.empty_like(x)
    scale[grid](x, out, x.numel(), BLOCK=256)
    result = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
    result.copy_(out, non_blocking=True)
    torch.cuda.current_stream().synchronize()
    return result.sum().item()
```

In cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)


def doubled(x):
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    out = torch.empty_like(x)
    ct.launch(torch.cuda.current_stream(), grid, scale, (x, out, 256))
    result = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
    result.copy_(out, non_blocking=True)
    torch.cuda.current_stream().synchronize()
    return result.sum().item()
```

## When it says unknown

Never: a host function has the status `unread` with the reason where something in it is not read,
or where it is not decided whether the two steps touch one element. `--require launches` does not
let it pass.

## References

CUDA C++ Programming Guide, page-locked host memory. PyTorch, CUDA semantics: use pinned memory
buffers.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated by a query over the host borrow graph (`analysis.hosts`).
RULE = Rule(
    code="TC415",
    name="host-memory-in-flight",
    level=Severity.ERROR,
    summary="the host touches or frees memory that an asynchronous copy uses",
    since="0.1.0",
)
