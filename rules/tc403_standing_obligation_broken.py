"""A launch breaks what every launch must keep.

## What it does

Reports a launch in host code that tilecheck can see whose text breaks one of these standing
obligations:

- S2: a written array does not overlap itself, as an expanded tensor does, a window whose steps are
  shorter than its rows (`as_strided`, `unfold`), or a tensor descriptor with such strides;
- S3: a grid axis that the kernel never reads has one block, if the kernel stores anything.

S1, that arguments do not overlap, is the business of TC401. S5, that values fit in 32 bits, is
judged where the text fixes the sizes. S8, tiles as large as the program, is judged by `num_warps`.

## Why is this bad?

Verdicts of all kernels rest on them, so no condition of a kernel speaks of them. A launch with a
second grid axis runs every block twice, and the copies race with each other; a written tensor with
stride 0 has one element behind many indices, so that blocks with different indices still collide.

## How it is proved

As for TC402: the host function's parameters are free, its text is exact, and inputs are sought for
which a written tensor made by `expand` has more than one element, or an axis that the kernel does
not read more than one block. The launch is run with these inputs, and reported if two blocks meet.
What the text neither establishes nor breaks is `unmet`: the kernel is `unknown`.

A descriptor that the host makes (`TensorDescriptor(base, shape, strides, block_shape)`) is run over
the memory of its tensor, by its own strides. One that reaches outside that memory breaks TC402.

## Example

The kernel reads axis 0 alone, and the grid has two blocks along axis 1:

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
    ct.launch(stream, (ct.cdiv(x.shape[0], TILE), 2), scale, (x, out))  # expect: TC403
    return out
```

All rows of the output are one row in memory:

```python
import cuda.tile as ct
import torch

TILE = 256


@ct.kernel
def scale_rows(x, out):  # verdict: violated
    i, j = ct.bid(0), ct.bid(1)
    ct.store(out, index=(i, j), tile=ct.load(x, index=(i, j), shape=(1, TILE)) * 2.0)


def scaled(x, stream):
    rows, columns = x.shape
    out = torch.empty((1, columns)).expand(rows, columns)
    ct.launch(stream, (rows, ct.cdiv(columns, TILE)), scale_rows, (x, out))  # expect: TC403
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
    out = torch.empty_like(x)
    n = x.numel()
    scale[(triton.cdiv(n, 1024), 2)](x, out, n, BLOCK=1024)  # expect: TC403
    return out
```

## Use instead

```python
import cuda.tile as ct
import torch

TILE = 256


@ct.kernel
def scale_rows(x, out):  # verdict: conditional
    i, j = ct.bid(0), ct.bid(1)
    ct.store(out, index=(i, j), tile=ct.load(x, index=(i, j), shape=(1, TILE)) * 2.0)


def scaled(x, stream):
    out = torch.empty_like(x)
    ct.launch(stream, (x.shape[0], ct.cdiv(x.shape[1], TILE)), scale_rows, (x, out))
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

When the text admits inputs that break one and no harm was seen.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# The launch check states these findings: they compare a settled kernel with its visible launches.
RULE = Rule(
    code="TC403",
    name="standing-obligation-broken",
    level=Severity.ERROR,
    summary="a launch breaks what every launch must keep",
    since="0.1.0",
)
