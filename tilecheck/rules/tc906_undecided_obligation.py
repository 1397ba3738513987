"""Something about the kernel is neither proved nor refuted.

## What it does

Marks each place at which a question of another rule stayed open, when the kernel is `unknown` for
that reason. The message says which question it was.

## Why is this bad?

The kernel may be right or wrong, and tilecheck cannot tell. Open is not a pass: `tilecheck verify`
ends with exit code 3.

## How it is proved

It was not. Every rule's question is first put to cheap arguments, then to a solver with a fixed
number of steps. What they leave open is tried again under launch conditions, and at last a
counterexample is sought; one counts only if running the kernel's own text with it, block by block,
shows what was claimed. A question is open if all of that fails.

## Example

The blocks add to the sum one after another. That follows from the counter, but not in a form that
has a proof (`!= i` in place of `< i` has one):

```python
import cuda.tile as ct


# tilecheck: requires within(turn, 0, 1) -- the first block begins
# tilecheck: requires turn.shape[0] >= 1
@ct.kernel
def total(x, out, turn):  # verdict: unknown(needs-contract)
    i = ct.bid(0)
    part = ct.gather(x, i)
    while ct.atomic_add(turn, 0, 0).item() < i:
        pass
    ct.scatter(out, 0, ct.gather(out, 0) + part)  # expect: TC906
    ct.atomic_add(turn, 0, 1)
```

A place that comes from memory may be anywhere:

```python
import triton
import triton.language as tl


@triton.jit
def scatter(x_ptr, places_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: unknown(needs-contract)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    place = tl.load(places_ptr + i, mask=i < n)
    tl.store(out_ptr + place, x, mask=i < n)  # expect: TC906
```

## Use instead

Often another way to the same result has a proof:

```python
import cuda.tile as ct


@ct.kernel
def total(x, out, T: ct.Constant[int]):  # verdict: conditional
    tile = ct.load(x, index=(ct.bid(0),), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
    ct.atomic_add(out, 0, ct.sum(tile))
```

Otherwise a `requires` that states what the launcher guarantees may be what the proof lacks, and an
`unsafe` block with a reason makes the author answer for the place:

```python
import cuda.tile as ct
from tilecheck import unsafe

PARTS = 1024  # no launch has more blocks


@ct.kernel
def total(x, parts, finished, out, T: ct.Constant[int]):  # verdict: trusted
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
    ct.scatter(parts, i, ct.sum(tile))
    if ct.atomic_add(finished, 0, 1) == ct.num_blocks(0) - 1:
        with unsafe("the counter reached its end, so every other block has stored its part"):
            rest = ct.gather(parts, ct.arange(PARTS, dtype=ct.int32), padding_value=0.0)
        ct.atomic_add(out, 0, ct.sum(rest))
```

In Triton:

```python
import triton
import triton.language as tl


# tilecheck: requires distinct(places_ptr) -- each place has one source
# tilecheck: requires within(places_ptr, 0, numel(out_ptr))
@triton.jit
def scatter(x_ptr, places_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    place = tl.load(places_ptr + i, mask=i < n)
    tl.store(out_ptr + place, x, mask=i < n)
```

## When it says unknown

Always: this rule is how `unknown` is reported, place by place. `tilecheck explain unknown` lists
the reasons.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated with the verdict, from the obligations of all other rules that stayed open.
RULE = Rule(
    code="TC906",
    name="undecided-obligation",
    level=Severity.WARNING,
    summary="something about the kernel is neither proved nor refuted",
    since="0.1.0",
)
