"""A graph is replayed after memory that it uses was freed.

## What it does

Reports the replay of a captured graph after a tensor that its work reads or writes was freed, or
after the graph itself was reset, and uses of memory of its pool after that.

## Why is this bad?

A graph holds addresses, not tensors. The allocator has given the memory to somebody else, whose
data every replay then reads or overwrites without any error.

## How it is proved

The work that was captured is done at each replay, with the tensors that it was given at the
capture. The finding is given if one of them was freed before, or may be freed while the replay
runs.

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
    half = torch.empty_like(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale[grid](x, half, x.numel(), BLOCK=256)
        scale[grid](half, out, x.numel(), BLOCK=256)
    del half  # site: freed
    graph.replay()  # expect: TC421 with=freed
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
    half = torch.empty_like(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ct.launch(torch.cuda.current_stream(), grid, scale, (x, half, 256))
        ct.launch(torch.cuda.current_stream(), grid, scale, (half, out, 256))
    del half  # site: freed
    graph.replay()  # expect: TC421 with=freed
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
    half = torch.empty_like(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale[grid](x, half, x.numel(), BLOCK=256)
        scale[grid](half, out, x.numel(), BLOCK=256)
    graph.replay()
    torch.cuda.synchronize()
    del half
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
    half = torch.empty_like(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ct.launch(torch.cuda.current_stream(), grid, scale, (x, half, 256))
        ct.launch(torch.cuda.current_stream(), grid, scale, (half, out, 256))
    graph.replay()
    torch.cuda.synchronize()
    del half
    return out
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
    code="TC421",
    name="graph-memory-freed",
    level=Severity.ERROR,
    summary="a graph is replayed after memory that it uses was freed",
    since="0.1.0",
)
