"""Memory is freed while a stream may still use it.

## What it does

Reports a tensor that loses its last name, or leaves its function, while work on another stream
than the one it was allocated on may still use it, and work that uses a tensor after that.

## Why is this bad?

The caching allocator gives the memory to the next tensor of the stream that it was allocated on.
It knows nothing of other streams, so the next owner writes while the side stream still reads.

## How it is proved

A free is a write by the next owner, in the order of the stream that the tensor was allocated on,
and after what streams of `record_stream` hold at that moment. The finding is given if a use is
not ordered before it, and if the interleavings of the function show both at once.

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
    copy, out = torch.empty_like(x), torch.empty_like(x)
    side = torch.cuda.Stream()
    scale[grid](x, copy, x.numel(), BLOCK=256)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        scale[grid](copy, out, x.numel(), BLOCK=256)  # site: used
    del copy  # expect: TC413 with=used
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
    copy, out = torch.empty_like(x), torch.empty_like(x)
    side = torch.cuda.Stream()
    ct.launch(torch.cuda.current_stream(), grid, scale, (x, copy, 256))
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        ct.launch(side, grid, scale, (copy, out, 256))  # site: used
    del copy  # expect: TC413 with=used
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


def doubled(x):
    assert x.is_contiguous()
    grid = (triton.cdiv(x.numel(), 256),)
    copy, out = torch.empty_like(x), torch.empty_like(x)
    side = torch.cuda.Stream()
    scale[grid](x, copy, x.numel(), BLOCK=256)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        scale[grid](copy, out, x.numel(), BLOCK=256)
    copy.record_stream(side)
    del copy
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
    copy, out = torch.empty_like(x), torch.empty_like(x)
    side = torch.cuda.Stream()
    ct.launch(torch.cuda.current_stream(), grid, scale, (x, copy, 256))
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        ct.launch(side, grid, scale, (copy, out, 256))
    copy.record_stream(side)
    del copy
    torch.cuda.current_stream().wait_stream(side)
    return out
```

## When it says unknown

Never: a host function has the status `unread` with the reason where something in it is not read,
or where it is not decided whether the two steps touch one element. `--require launches` does not
let it pass.

## References

PyTorch, `torch.Tensor.record_stream`.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated by a query over the host borrow graph (`analysis.hosts`).
RULE = Rule(
    code="TC413",
    name="freed-in-flight",
    level=Severity.ERROR,
    summary="memory is freed while a stream may still use it",
    since="0.1.0",
)
