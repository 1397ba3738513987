"""The output of a graph is used before its first replay or after the next one.

## What it does

Reports a use of memory that only captured work writes before the graph was replayed, and a result
that was kept without a copy and is used after another replay has written it again.

## Why is this bad?

A capture computes nothing, so before the first replay the output holds no result. Each replay
writes the same memory: what was kept from the replay before it changes under its name.

## How it is proved

The captured work is done at the replays alone. The finding is given if a use stands before the
first of them, or if a replay that writes the memory stands between keeping the result and using
it.

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
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale[grid](x, out, x.numel(), BLOCK=256)  # site: captured
    total = out.sum()  # expect: TC426 with=captured
    graph.replay()
    torch.cuda.synchronize()
    return total
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
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ct.launch(torch.cuda.current_stream(), grid, scale, (x, out, 256))  # site: captured
    total = out.sum()  # expect: TC426 with=captured
    graph.replay()
    torch.cuda.synchronize()
    return total
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
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale[grid](x, out, x.numel(), BLOCK=256)
    graph.replay()
    total = out.sum()
    torch.cuda.synchronize()
    return total
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
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ct.launch(torch.cuda.current_stream(), grid, scale, (x, out, 256))
    graph.replay()
    total = out.sum()
    torch.cuda.synchronize()
    return total
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
    code="TC426",
    name="graph-output-out-of-turn",
    level=Severity.ERROR,
    summary="the output of a graph is used before its first replay or after the next one",
    since="0.1.0",
)
