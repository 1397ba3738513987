"""A dependent launch runs a kernel that does not wait, beside work that it depends on.

## What it does

Reports a dependent launch (`launch_pdl=True`, `programmatic_dependent_launch=True`) whose kernel
has no wait, or has one that some programs do not reach, and that touches memory of work before
it.

## Why is this bad?

Without a wait nothing orders the launch after the launch before it: both run at once whenever the
GPU has room.

## How it is proved

The kernel is read for waits: one counts if each program reaches it. The finding is given if a
launch that may still run touches an element that the dependent launch touches too, and one of
them writes.

## Example

```python
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def quadrupled(x):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    double, out = torch.empty_like(x), torch.empty_like(x)
    scale[grid](x, double, x.numel(), BLOCK=256)  # site: written
    scale[grid](double, out, x.numel(), BLOCK=256, launch_pdl=True)  # expect: TC432 with=written
    torch.cuda.synchronize()
    return out
```

In cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)


def quadrupled(x):
    grid, stream = (ct.cdiv(x.shape[0], 256), 1, 1), torch.cuda.current_stream()
    double, out = torch.empty_like(x), torch.empty_like(x)
    ct.launch(stream, grid, scale, (x, double, 256))  # site: written
    # expect: TC432 with=written
    ct.launch(stream, grid, scale, (double, out, 256), programmatic_dependent_launch=True)
    torch.cuda.synchronize()
    return out
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


@triton.jit
def scale_after_wait(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.extra.cuda.gdc_wait()
    tl.store(out_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def quadrupled(x):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    double, out = torch.empty_like(x), torch.empty_like(x)
    scale[grid](x, double, x.numel(), BLOCK=256)
    scale_after_wait[grid](double, out, x.numel(), BLOCK=256, launch_pdl=True)
    return out
```

In cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)


@ct.kernel
def scale_after_wait(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.grid_dependency_control_wait()
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)


def quadrupled(x):
    grid, stream = (ct.cdiv(x.shape[0], 256), 1, 1), torch.cuda.current_stream()
    double, out = torch.empty_like(x), torch.empty_like(x)
    ct.launch(stream, grid, scale, (x, double, 256))
    ct.launch(stream, grid, scale_after_wait, (double, out, 256), programmatic_dependent_launch=True)
    return out
```

## When it says unknown

Never: a host function has the status `unread` with the reason where something in it is not read,
or where it is not decided whether the two steps touch one element. `--require launches` does not
let it pass.

## References

CUDA C++ Programming Guide, programmatic dependent launch and synchronization.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated by a query over the host borrow graph (`analysis.hosts`).
RULE = Rule(
    code="TC432",
    name="never-waits",
    level=Severity.ERROR,
    summary="a dependent launch runs a kernel that does not wait, beside work that it depends on",
    since="0.1.0",
)
