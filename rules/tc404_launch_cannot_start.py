"""A launch cannot compile or start, whatever its inputs are.

## What it does

Reports a launch that no input of its host function makes compile and start: a tile whose size is
no power of two, or more than 65,535 blocks along grid axis 1 or 2.

## Why is this bad?

The launch raises an error, or fails when it is first synchronised. A proof of the kernel says
nothing of it, because there is no run to speak of.

## How it is proved

The host function's parameters are free. The launch is reported if its text and the limits
contradict each other: no input leads to a grid that CUDA accepts, or to tile sizes that the
compiler accepts. Where some inputs do, the others are not admitted: nothing is asked of a launch
that does not start.

## Example

CUDA has at most 65,535 blocks along axis 1:

```python
import torch
import triton
import triton.language as tl


@triton.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(1) * n + columns, 1.0, mask=columns < n)


def filled():
    out = torch.empty((70_000, 64), device="cuda")
    fill[(1, 70_000)](out, 64, BLOCK=64)  # expect: TC404
    return out
```

The size of a tile is a power of two:

```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, out_ptr, SIZE: tl.constexpr):  # verdict: conditional
    i = tl.arange(0, SIZE)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * 2.0)


def doubled():
    x = torch.zeros(100, device="cuda")
    out = torch.empty(100, device="cuda")
    double[(1,)](x, out, SIZE=100)  # expect: TC404
    return out
```

The same in cuTile:

```python
import cuda.tile as ct
import torch


@ct.kernel
def copy(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, index=(i,), tile=tile)


def copied(x):
    out = torch.empty_like(x)
    grid = (ct.cdiv(x.shape[0], 100), 1, 1)
    ct.launch(torch.cuda.current_stream(), grid, copy, (x, out, 100))  # expect: TC404
    return out
```

## Use instead

```python
import torch
import triton
import triton.language as tl


@triton.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * n + columns, 1.0, mask=columns < n)


def filled():
    out = torch.empty((70_000, 64), device="cuda")
    fill[(70_000, 1)](out, 64, BLOCK=64)
    return out
```

```python
import cuda.tile as ct
import torch


@ct.kernel
def copy(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, index=(i,), tile=tile)


def copied(x):
    out = torch.empty_like(x)
    grid = (ct.cdiv(x.shape[0], 128), 1, 1)
    ct.launch(torch.cuda.current_stream(), grid, copy, (x, out, 128))
    return out
```

## When it says unknown

Never: a launch of which that is not shown is judged like any other.

## References

CUDA C++ Programming Guide, compute capabilities: maximum y- and z-dimension of a grid.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

RULE = Rule(
    code="TC404",
    name="launch-cannot-start",
    level=Severity.ERROR,
    summary="a launch cannot compile or start, whatever its inputs are",
    since="0.1.0",
)
