"""An array is said to be filled, and some element may be left.

## What it does

Reports a parameter of which the kernel says `# tilecheck: fills out`, where it is not shown that a
launch writes every element of it.

## Why is this bad?

Callers hand over `torch.empty(...)` and read all of it. Elements that no block writes hold whatever
was in memory: often the right numbers of an earlier call, so that tests pass.

## How it is proved

For any element of the array there must be a block, an iteration and a lane that write it. They
are read off the store: in `ct.bid(0) * T + lane` element `e` is written by block `e // T` in lane
`e % T`, and offsets such as `row * pitch + column` are taken apart digit by digit. Then it is
proved that this block is in the grid, the iteration in its loop and the lane in the tile, that
the store is made there, and that it meets this element. What the launch must keep, such as a grid
that is large enough, has to be stated with `requires`: visible launches and the guard check it.
That no element is written twice is the business of TC201 and TC203.

## Example

Nothing says that there is a block for each tile:

```python
import cuda.tile as ct


# tilecheck: fills out
@ct.kernel  # expect: TC501 line=-1
def ones(out, T: ct.Constant[int]):  # verdict: conditional
    ct.store(out, index=(ct.bid(0),), tile=ct.full((T,), 1.0, dtype=ct.float32))
```

The last column of each row is left:

```python
import triton
import triton.language as tl


# tilecheck: requires n >= 1 and numel(out_ptr) == n * grid[0] -- one program for each row
# tilecheck: requires BLOCK >= n -- a row is one tile
# tilecheck: fills out_ptr
@triton.jit  # expect: TC501 line=-1
def rows(out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    columns = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * n + columns, 1.0, mask=columns < n - 1)
```

## Use instead

```python
import cuda.tile as ct


# tilecheck: requires grid[0] >= cdiv(out.shape[0], T) -- a block for each tile
# tilecheck: fills out
@ct.kernel
def ones(out, T: ct.Constant[int]):  # verdict: conditional
    ct.store(out, index=(ct.bid(0),), tile=ct.full((T,), 1.0, dtype=ct.float32))
```

```python
import triton
import triton.language as tl


# tilecheck: requires n >= 1 and numel(out_ptr) == n * grid[0] -- one program for each row
# tilecheck: requires BLOCK >= n -- a row is one tile
# tilecheck: fills out_ptr
@triton.jit
def rows(out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    columns = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * n + columns, 1.0, mask=columns < n)
```

## When it says unknown

It reports whatever it does not show: arrays that several stores fill together, grouped orders of
tiles, stores that depend on values in memory, and all stores of a kernel that has a `while` loop,
or leaves a loop by `break` or `return`. The verdict stays as it is, since no launch is unsafe by
it. A kernel that is violated or unknown is not looked at.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# What the author says is shown or reported once the kernel's conditions are known
# (`proof.initialisation.coverage`).
RULE = Rule(
    code="TC501",
    name="output-not-filled",
    level=Severity.WARNING,
    summary="an array is said to be filled, and some element may be left",
    since="0.1.0",
)
