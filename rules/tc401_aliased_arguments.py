"""One launch passes one buffer twice and writes it.

## What it does

Looks at the launches in host code that tilecheck can see and reports one that passes the same
tensor for two parameters of a kernel, at least one of which the kernel writes. Views of the tensor
count as the tensor if the text shows that they are all of it. A tensor twice among the inputs is
fine.

## Why is this bad?

A kernel is compiled on the promise that its arrays do not overlap. Loads of one parameter may then
move past stores of the other, within a block and between blocks, and every proof about the kernel,
of races and of order, rests on that promise: it is the standing obligation S1.

## How it is proved

Each argument of a visible launch is followed to the allocation or the parameter of the host
function that it comes from: through views, in-place methods and functions (`relu_`, `x += 1`,
`F.relu(x, inplace=True)`), lists, default arguments and cached functions, which give back one
object. `.clone()` and fresh allocations have origins of their own.

A tensor is a window of its origin, with an offset, a shape and strides. Windows side by side, or in
other columns of the same rows, are proved apart. Otherwise the launch is run with one buffer behind
both parameters, and the kernel is `violated` if two blocks meet at one address.

A Triton kernel may be launched in place. If no run shows harm, the kernel is decided once more with
one array behind both parameters: it must follow that no two blocks meet in it.

A tensor that unread code returns may be any that this code was given: beside one of these S1 is not
met, unless both are proved to be safe in one array. What the code could find elsewhere is listed as
unread.

A tensor whose own shape or memory changes (`t_()`, `resize_`, `set_`, `y.data = x`) has an unknown
shape from then on, and may have the memory of both.

## Example

```python
import cuda.tile as ct

TILE = 256


@ct.kernel
def add(x, y, out):  # verdict: violated
    i = ct.bid(0)
    a = ct.load(x, index=(i,), shape=(TILE,))
    b = ct.load(y, index=(i,), shape=(TILE,))
    ct.store(out, index=(i,), tile=a + b)


def accumulate(x, y, stream):
    assert x.shape == y.shape
    ct.launch(stream, (ct.cdiv(x.shape[0], TILE),), add, (x, y, x))  # expect: TC401
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: violated
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i + 1, mask=i < n - 1, other=0.0)
    y = tl.load(y_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x + y, mask=i < n)


def accumulate(x, y):
    assert x.is_contiguous() and y.is_contiguous() and x.numel() == y.numel()
    n = x.numel()
    add[(triton.cdiv(n, 1024),)](x, y, x, n, BLOCK=1024)  # expect: TC401
```

## Use instead

A kernel that works in place has one parameter for the array that it reads and writes:

```python
import cuda.tile as ct

TILE = 256


@ct.kernel
def add_to(x, y):  # verdict: conditional
    i = ct.bid(0)
    a = ct.load(x, index=(i,), shape=(TILE,))
    b = ct.load(y, index=(i,), shape=(TILE,))
    ct.store(x, index=(i,), tile=a + b)


def accumulate(x, y, stream):
    assert x.shape == y.shape
    ct.launch(stream, (ct.cdiv(x.shape[0], TILE),), add_to, (x, y))
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def add_to(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = tl.load(y_ptr + i, mask=i < n, other=0.0)
    tl.store(x_ptr + i, x + y, mask=i < n)


def accumulate(x, y):
    assert x.is_contiguous() and y.is_contiguous() and x.numel() == y.numel()
    n = x.numel()
    add_to[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## When it says unknown

If a launch passes one tensor twice, two parts of one tensor, or a tensor and what may be a copy of
it (`x.to(y.dtype)`), and neither harm nor its absence is shown. That two tensors which are handed
in independently do not overlap is left to the caller, and listed by `tilecheck audit`. Which
threads of one Triton program do what is not looked at here; S1 at the launch stands for it. Overlap
within one parameter, such as an expanded output, is the business of TC403.

## References

- Arrays must not overlap: https://docs.nvidia.com/cuda/cutile-python/data.html
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.model import Diagnostic, Severity
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Yield a finding for each launch that moves one buffer into two parameters, one of them written."""
    for alias in facts.graph.aliases():
        if not alias.partial:
            yield Diagnostic(
                code=RULE.code,
                name=RULE.name,
                severity=RULE.level,
                message=(
                    f"this launch of `{facts.kernel.name}` passes `{alias.buffer}` as `{alias.mutable}`,"
                    f" which is written, and again as `{alias.other}`"
                ),
                site=alias.launch.site,
                kernel=facts.kernel.name,
                label=f"`{alias.buffer}` is borrowed mutably and once more",
                help="pass a copy, or a kernel that reads and writes one parameter in place",
            )


RULE = Rule(
    code="TC401",
    name="aliased-arguments",
    level=Severity.ERROR,
    summary="one launch passes one buffer twice and writes it",
    since="0.1.0",
    check=check,
)
