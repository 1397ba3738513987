"""A graph is replayed after a number that it was captured with has changed.

## What it does

Reports a replay after a Python number that was given to captured work has another value: the
graph keeps the number of the capture.

## Why is this bad?

Arguments of a launch are stored in the graph. A step counter, a length or a learning rate that
changes from replay to replay has no effect, and nothing says so.

## How it is proved

The variable has another value at the replay than at the capture on a path through the function. A
value that changes has to be in device memory, which the kernel reads.

## Example

```python
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, factor * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def replayed(x, out):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    factor = 1.0
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale[grid](x, out, x.numel(), factor, BLOCK=256)
    factor = 2.0  # site: changed
    graph.replay()  # expect: TC424 with=changed
    return out
```

In cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def scale(x, out, factor, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * factor)


def replayed(x, out):
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    factor = 1.0
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ct.launch(torch.cuda.current_stream(), grid, scale, (x, out, factor, 256))
    factor = 2.0  # site: changed
    graph.replay()  # expect: TC424 with=changed
    return out
```

## Use instead

```python
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, factor * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def replayed(x, out):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    factor = 2.0
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale[grid](x, out, x.numel(), factor, BLOCK=256)
    graph.replay()
    return out
```

In cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def scale(x, out, factor, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * factor)


def replayed(x, out):
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    factor = 2.0
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ct.launch(torch.cuda.current_stream(), grid, scale, (x, out, factor, 256))
    graph.replay()
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
    code="TC424",
    name="frozen-scalar",
    level=Severity.ERROR,
    summary="a graph is replayed after a number that it was captured with has changed",
    since="0.1.0",
)
