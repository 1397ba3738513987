"""Two graphs that share memory are replayed in no order.

## What it does

Reports two replays of different graphs, on different streams, that touch the same elements where
one of them writes, and that nothing orders.

## Why is this bad?

A replay is one item of its stream, and two streams run side by side. Graphs that share a pool or
a buffer then overwrite what the other one works on.

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


def replayed(x, out):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        scale[grid](x, out, x.numel(), BLOCK=256)
    with torch.cuda.graph(second):
        scale[grid](out, x, x.numel(), BLOCK=256)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    first.replay()  # site: first
    with torch.cuda.stream(side):
        second.replay()  # expect: TC425 with=first
    torch.cuda.current_stream().wait_stream(side)
    return x
```

In cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)


def replayed(x, out):
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        ct.launch(torch.cuda.current_stream(), grid, scale, (x, out, 256))
    with torch.cuda.graph(second):
        ct.launch(torch.cuda.current_stream(), grid, scale, (out, x, 256))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    first.replay()  # site: first
    with torch.cuda.stream(side):
        second.replay()  # expect: TC425 with=first
    torch.cuda.current_stream().wait_stream(side)
    return x
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


def replayed(x, out):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        scale[grid](x, out, x.numel(), BLOCK=256)
    with torch.cuda.graph(second):
        scale[grid](out, x, x.numel(), BLOCK=256)
    side = torch.cuda.Stream()
    first.replay()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        second.replay()
    torch.cuda.current_stream().wait_stream(side)
    return x
```

In cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)


def replayed(x, out):
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        ct.launch(torch.cuda.current_stream(), grid, scale, (x, out, 256))
    with torch.cuda.graph(second):
        ct.launch(torch.cuda.current_stream(), grid, scale, (out, x, 256))
    side = torch.cuda.Stream()
    first.replay()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        second.replay()
    torch.cuda.current_stream().wait_stream(side)
    return x
```

## When it says unknown

Never: a host function has the status `unread` with the reason where something in it is not read,
or where it is not decided whether the two steps touch one element. `--require launches` does not
let it pass.

## References

CUDA C++ Programming Guide, CUDA graphs. PyTorch, CUDA semantics: CUDA graphs.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated by a query over the host borrow graph (`analysis.hosts`).
RULE = Rule(
    code="TC425",
    name="replays-overlap",
    level=Severity.ERROR,
    summary="two graphs that share memory are replayed in no order",
    since="0.1.0",
)
