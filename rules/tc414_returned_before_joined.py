"""A result is returned before the stream that makes it is joined.

## What it does

Reports a tensor that is returned, or that was handed in, while a side stream of the function may
still write it, and no order leads from that stream to the one that the caller uses.

## Why is this bad?

The caller goes on on its own stream, and reads a result that is not there yet.

## How it is proved

The caller's work after the function is one step more, on the stream that was current at the call:
it reads what is returned and what was handed in. The finding is given if a step of the function
that writes one of them is not ordered before it. An input that the side stream still reads is the
caller's to keep: the function may return before such a stream is joined.

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
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        scale[grid](x, out, x.numel(), BLOCK=256)  # site: made
    return out  # expect: TC414 with=made
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
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        ct.launch(side, grid, scale, (x, out, 256))  # site: made
    return out  # expect: TC414 with=made
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
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        scale[grid](x, out, x.numel(), BLOCK=256)
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


def doubled(x):
    grid = (ct.cdiv(x.shape[0], 256), 1, 1)
    out = torch.empty_like(x)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        ct.launch(side, grid, scale, (x, out, 256))
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
    code="TC414",
    name="returned-before-joined",
    level=Severity.ERROR,
    summary="a result is returned before the stream that makes it is joined",
    since="0.1.0",
)
