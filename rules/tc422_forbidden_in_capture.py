"""A step inside a capture may not be captured.

## What it does

Reports a synchronisation, a read of a device value by the host, a copy from ordinary host memory,
or an allocation outside the pool of the graph, between the beginning and the end of a capture.

## Why is this bad?

Such a step ends the capture with an error, or its result is frozen into the graph: the host would
read a value that no replay computes again.

## How it is proved

The steps between the beginning and the end of the capture are those of the text, in every path
through the function.

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
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale[grid](x, out, x.numel(), BLOCK=256)
        torch.cuda.synchronize()  # expect: TC422
    graph.replay()
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


def replayed(x, out):
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ct.launch(torch.cuda.current_stream(), grid, scale, (x, out, 256))
        torch.cuda.synchronize()  # expect: TC422
    graph.replay()
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


def replayed(x, out):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale[grid](x, out, x.numel(), BLOCK=256)
    graph.replay()
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


def replayed(x, out):
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ct.launch(torch.cuda.current_stream(), grid, scale, (x, out, 256))
    graph.replay()
    torch.cuda.synchronize()
    return out
```

## When it says unknown

Never: a host function that uses streams, events or graphs in a way that is not read has the
status `unread` with the reason, and no finding. `--require launches` does not let it pass.

## References

CUDA C++ Programming Guide, CUDA graphs. PyTorch, CUDA semantics: CUDA graphs.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated by a query over the host borrow graph (`analysis.hosts`).
RULE = Rule(
    code="TC422",
    name="forbidden-in-capture",
    level=Severity.ERROR,
    summary="a step inside a capture may not be captured",
    since="0.1.0",
)
