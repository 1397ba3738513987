"""A graph is replayed that still reads the tensor which a name had at capture.

## What it does

Reports a replay after the name of a captured tensor was bound to another tensor: the graph goes
on reading the old one.

## Why is this bad?

A graph holds the address of the tensor that it was captured with. Binding the name to a new input
changes nothing in the graph, and every replay computes the old result again.

## How it is proved

The name is bound to another tensor after the capture and before the replay, on a path through the
function, and the captured work reads the old tensor.

## Example

```python
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def replayed(x, later, out):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale[grid](x, out, x.numel(), BLOCK=256)
    x = later  # site: bound
    graph.replay()  # expect: TC423 with=bound
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


def replayed(x, later, out):
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ct.launch(torch.cuda.current_stream(), grid, scale, (x, out, 256))
    x = later  # site: bound
    graph.replay()  # expect: TC423 with=bound
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


def replayed(x, later, out):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale[grid](x, out, x.numel(), BLOCK=256)
    x.copy_(later)
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


def replayed(x, later, out):
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ct.launch(torch.cuda.current_stream(), grid, scale, (x, out, 256))
    x.copy_(later)
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
    code="TC423",
    name="stale-graph-input",
    level=Severity.ERROR,
    summary="a graph is replayed that still reads the tensor which a name had at capture",
    since="0.1.0",
)
