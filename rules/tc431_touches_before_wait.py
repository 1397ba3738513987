"""A dependent launch touches memory before its wait that earlier work may still use.

## What it does

Reports a dependent launch (`launch_pdl=True`, `programmatic_dependent_launch=True`) whose kernel,
before it waits, reads what a launch before it writes, or writes what such a launch reads or
writes.

## Why is this bad?

A dependent launch may start before the launches before it have ended. Only its wait makes what
they wrote visible: what is read earlier may be old, silently and rarely.

## How it is proved

Every load and store of the kernel lies before or after its wait, in the order of the text. Those
before it are ordered after nothing but what had ended when the launch before it started. The
finding is given if such an element is written by work that may still run.

## Example

```python
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def scale_and_wait(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.extra.cuda.gdc_wait()
    tl.store(out_ptr + i, 2.0 * x, mask=i < n)


def quadrupled(x):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    double, out = torch.empty_like(x), torch.empty_like(x)
    scale[grid](x, double, x.numel(), BLOCK=256)  # site: written
    scale_and_wait[grid](double, out, x.numel(), BLOCK=256, launch_pdl=True)  # expect: TC431 with=written
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


@ct.kernel
def scale_and_wait(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.grid_dependency_control_wait()
    ct.store(out, index=(i,), tile=tile * 2.0)


def quadrupled(x):
    grid, stream = (ct.cdiv(x.shape[0], 256), 1, 1), torch.cuda.current_stream()
    double, out = torch.empty_like(x), torch.empty_like(x)
    ct.launch(stream, grid, scale, (x, double, 256))  # site: written
    # expect: TC431 with=written
    ct.launch(stream, grid, scale_and_wait, (double, out, 256), programmatic_dependent_launch=True)
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
    code="TC431",
    name="touches-before-wait",
    level=Severity.ERROR,
    summary="a dependent launch touches memory before its wait that earlier work may still use",
    since="0.1.0",
)
