"""A launch writes a part of a fresh output that is returned.

## What it does

Reports a launch that passes a fresh tensor (`torch.empty`, `empty_like`, `new_empty`,
`empty_strided`) and leaves elements of it unwritten, where the host function returns the tensor
and nothing else writes it.

## Why is this bad?

The caller gets elements that hold whatever was in memory: often the right numbers of an earlier
call, so that tests pass.

## How it is proved

The launch is run at ordinary inputs of several sizes, all blocks of it, and its log shows which
elements were written. The finding is given if some were and others were not. The inputs that
decide what is written must be those that decide the size of the tensor, or belong to one tensor:
whether two inputs fit together is up to the caller of the function. Where values in memory decide
what is written, nothing is said. To have it proved that every launch fills an array, see TC501.

## Example

The last tile has no block where the length is no multiple of 256:

```python
import cuda.tile as ct
import torch


@ct.kernel
def double(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)


def doubled(x, stream):
    out = torch.empty_like(x)
    ct.launch(stream, (x.shape[0] // 256,), double, (x, out, 256))  # expect: TC504
    return out
```

In Triton:

```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2.0, mask=i < n)


def doubled(x):
    x = x.contiguous()
    n = x.numel()
    out = torch.empty_like(x)
    double[(n // 256,)](x, out, n, BLOCK=256)  # expect: TC504
    return out
```

## Use instead

```python
import cuda.tile as ct
import torch


@ct.kernel
def double(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)


def doubled(x, stream):
    out = torch.empty_like(x)
    ct.launch(stream, (ct.cdiv(x.shape[0], 256),), double, (x, out, 256))
    return out
```

In Triton:

```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2.0, mask=i < n)


def doubled(x):
    x = x.contiguous()
    n = x.numel()
    out = torch.empty_like(x)
    double[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
```

## When it says unknown

Never, and it leaves the verdict alone. It says nothing where a part of the tensor is returned,
where several launches write it, and where the launch cannot be run at small inputs.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Reported from runs of the launches in view (`proof.initialisation.unwritten_memory`).
RULE = Rule(
    code="TC504",
    name="output-partly-written",
    level=Severity.WARNING,
    summary="a launch writes a part of a fresh output that is returned",
    since="0.1.0",
)
