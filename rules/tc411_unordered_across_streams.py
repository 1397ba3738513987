"""Two streams use one memory in no order, and one of them writes it.

## What it does

Reports two steps of a host function, on different streams, that touch the same elements of a
tensor where one of them writes, and that no event, `wait_stream` or synchronisation orders.

## Why is this bad?

Streams run side by side. The second step may read what the first has not written yet, or write
what it still reads. It mostly works, because launches take time, and fails on a busy or faster
GPU.

## How it is proved

The steps of the host function are put in order: by their stream, by events and `wait_stream`, and
by the host where it waits. The finding is given if no order leads from one step to the other, if
they touch one element for some sizes, and if the interleavings of the function with these sizes
show both at once.

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
    side = torch.cuda.Stream()
    scale[grid](x, double, x.numel(), BLOCK=256)  # site: written
    with torch.cuda.stream(side):
        scale[grid](double, out, x.numel(), BLOCK=256)  # expect: TC411 with=written
    torch.cuda.current_stream().wait_stream(side)
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
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    double, out = torch.empty_like(x), torch.empty_like(x)
    side = torch.cuda.Stream()
    ct.launch(torch.cuda.current_stream(), grid, scale, (x, double, 256))  # site: written
    with torch.cuda.stream(side):
        ct.launch(side, grid, scale, (double, out, 256))  # expect: TC411 with=written
    torch.cuda.current_stream().wait_stream(side)
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


def quadrupled(x):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    double, out = torch.empty_like(x), torch.empty_like(x)
    side = torch.cuda.Stream()
    scale[grid](x, double, x.numel(), BLOCK=256)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        scale[grid](double, out, x.numel(), BLOCK=256)
    torch.cuda.current_stream().wait_stream(side)
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
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    double, out = torch.empty_like(x), torch.empty_like(x)
    side = torch.cuda.Stream()
    ct.launch(torch.cuda.current_stream(), grid, scale, (x, double, 256))
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        ct.launch(side, grid, scale, (double, out, 256))
    torch.cuda.current_stream().wait_stream(side)
    return out
```

## When it says unknown

Never: a host function has the status `unread` with the reason where something in it is not read,
or where it is not decided whether the two steps touch one element. `--require launches` does not
let it pass.

## References

CUDA C++ Programming Guide, streams and events. PyTorch, CUDA semantics: CUDA streams.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated by a query over the host borrow graph (`analysis.hosts`).
RULE = Rule(
    code="TC411",
    name="unordered-across-streams",
    level=Severity.ERROR,
    summary="two streams use one memory in no order, and one of them writes it",
    since="0.1.0",
)
