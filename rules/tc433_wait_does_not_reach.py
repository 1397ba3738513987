"""The wait of a dependent launch does not reach work that it depends on.

## What it does

Reports work that touches memory of a launch further back, where a launch between the two may end
before that one, because its kernel does not wait.

## Why is this bad?

A wait waits for the launch right before it to end, and for nothing else. If that launch never
waited itself, its end says nothing of the launches before it.

## How it is proved

The end of a dependent launch implies the end of the launch before it only if each of its programs
waits. The finding is given if no chain of such ends leads from one launch to the other.

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
def scale_after_wait(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.extra.cuda.gdc_wait()
    tl.store(out_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def quadrupled(x, y):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    assert y.shape == x.shape and y.is_contiguous()
    double, other, out = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)
    scale[grid](x, double, x.numel(), BLOCK=256)  # site: written
    scale[grid](y, other, x.numel(), BLOCK=256, launch_pdl=True)
    scale_after_wait[grid](double, out, x.numel(), BLOCK=256, launch_pdl=True)  # expect: TC433 with=written
    torch.cuda.synchronize()
    return out, other
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


def quadrupled(x, y):
    grid, stream = (ct.cdiv(x.shape[0], 256), 1, 1), torch.cuda.current_stream()
    assert y.shape == x.shape and y.is_contiguous()
    double, other, out = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)
    ct.launch(stream, grid, scale, (x, double, 256))  # site: written
    ct.launch(stream, grid, scale, (y, other, 256), programmatic_dependent_launch=True)
    # expect: TC433 with=written
    ct.launch(stream, grid, scale_after_wait, (double, out, 256), programmatic_dependent_launch=True)
    torch.cuda.synchronize()
    return out, other
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


def quadrupled(x, y):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    assert y.shape == x.shape and y.is_contiguous()
    double, other, out = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)
    scale[grid](x, double, x.numel(), BLOCK=256)
    scale_after_wait[grid](y, other, x.numel(), BLOCK=256, launch_pdl=True)
    scale_after_wait[grid](double, out, x.numel(), BLOCK=256, launch_pdl=True)
    return out, other
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


def quadrupled(x, y):
    grid, stream = (ct.cdiv(x.shape[0], 256), 1, 1), torch.cuda.current_stream()
    assert y.shape == x.shape and y.is_contiguous()
    double, other, out = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)
    ct.launch(stream, grid, scale, (x, double, 256))
    ct.launch(stream, grid, scale_after_wait, (y, other, 256), programmatic_dependent_launch=True)
    ct.launch(stream, grid, scale_after_wait, (double, out, 256), programmatic_dependent_launch=True)
    return out, other
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
    code="TC433",
    name="wait-does-not-reach",
    level=Severity.ERROR,
    summary="the wait of a dependent launch does not reach work that it depends on",
    since="0.1.0",
)
