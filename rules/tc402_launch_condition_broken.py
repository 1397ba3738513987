"""A launch does not meet the conditions under which the kernel is safe.

## What it does

Checks every condition of a kernel, derived or written as `requires`, at every launch in host code
that tilecheck can see, and reports a launch at which one fails.

## Why is this bad?

The kernel is proved for the launches that meet its conditions and for no others. A grid with one
block too many makes that block store to a tile that does not exist, which is undefined, or to a
tile of another block.

## How it is proved

The parameters of the host function are free, and so are the shapes and strides of the tensors that
it is given. What its own text says is exact: the grid, fresh tensors with their shapes, constants.
Its asserts and early raises, and the branches around the launch, are facts; a launch with an empty
grid does not run. Then for every input that these admit:

    facts   =>   condition

A condition that does not follow is not needed if what it stands for is proved with the values of
the launch put into the kernel. What relates two inputs that are handed in apart, and the layout of
a tensor that is handed in, are the caller's to keep. All else is the host's own: the grid,
divisibility, what one input alone decides, and tensors that it allocates or keeps, but for those
in the shape of an input.

A condition that does not follow is put to the test: inputs of the host function are sought for
which it fails, and the launch is run with them, block by block. It is reported if something goes
wrong there: two blocks meet, or an access is undefined. So it is with an obligation for which no
condition was found, where the host answers for all that decides it: the message then says what
happens at this launch.

## Example

The grid is counted in tiles of 128 elements, the kernel stores tiles of 256:

```python
import cuda.tile as ct
import torch

TILE = 256


@ct.kernel
def scale(x, out):  # verdict: violated
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(TILE,)) * 2.0)


def scaled(x, stream):
    out = torch.empty_like(x)
    ct.launch(stream, (ct.cdiv(x.shape[0], 128),), scale, (x, out))  # expect: TC402
    return out
```

In Triton:

```python
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: violated
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2.0, mask=i < n)


def scaled(x):
    x = x.contiguous()
    out = torch.empty(x.numel() - 1, device=x.device)
    n = x.numel()
    scale[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)  # expect: TC402
    return out
```

## Use instead

```python
import cuda.tile as ct
import torch

TILE = 256


@ct.kernel
def scale(x, out):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(TILE,)) * 2.0)


def scaled(x, stream):
    out = torch.empty_like(x)
    ct.launch(stream, (ct.cdiv(x.shape[0], TILE),), scale, (x, out))
    return out
```

In Triton:

```python
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2.0, mask=i < n)


def scaled(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    scale[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
```

## When it says unknown

When the text admits inputs for which the condition fails and no harm was seen: `unmet`. When the
grid or an argument is not understood, the condition is `unread`, and the verdict stays as it is.
Launches in files that were not given to tilecheck are not seen at all.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# The launch check states these findings: they compare a settled kernel with its visible launches.
RULE = Rule(
    code="TC402",
    name="launch-condition-broken",
    level=Severity.ERROR,
    summary="a launch does not meet the conditions under which the kernel is safe",
    since="0.1.0",
)
