"""An unsafe block has nothing to trust.

## What it does

Reports an unsafe block, or a statement with a `# tilecheck: unsafe` comment, in which everything is
proved.

## Why is this bad?

The block hides the next mistake. As long as it stands, a change that makes two blocks collide
inside it turns the kernel from proved to trusted instead of failing. It also tells readers of a
danger that is not there.

## How it is proved

Unsafe blocks are not skipped: every obligation inside is attempted as anywhere else. An obligation
is trusted only if it is not proved and one of its accesses stands in an unsafe block. A block is
reported if no obligation with an access inside was left for it, proofs under launch conditions
included.

## Example

```python
import cuda.tile as ct
from tilecheck import unsafe


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    with unsafe("every block writes its own tile"):  # expect: TC105
        ct.store(out, index=(i,), tile=tile * 2.0)
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    # expect: TC105 line=-1
    # tilecheck: unsafe -- every program writes a block of its own
    tl.store(out_ptr + i, x * 2.0, mask=i < n)
```

## Use instead

```python
import cuda.tile as ct


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=tile * 2.0)
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2.0, mask=i < n)
```

## When it says unknown

Never. A block whose obligations are undecided for now is needed, and is not reported.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# The finding follows from the verdict: every obligation with a site in the block was proved.

RULE = Rule(
    code="TC105",
    name="unneeded-unsafe",
    level=Severity.WARNING,
    summary="an unsafe block has nothing to trust",
    since="0.1.0",
)
