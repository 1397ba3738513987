"""An unsafe block does not say why it may be trusted.

## What it does

Reports `with unsafe("")` and a `# tilecheck: unsafe` comment without a reason after ` -- `.

## Why is this bad?

In an unsafe block the author answers for what tilecheck cannot prove. The reason is all that a
reviewer has to check that answer against, and it is what `tilecheck audit` lists. The block is
trusted all the same, as its author asked; the missing reason is an error of its own, so that the
run does not pass.

## How it is proved

Nothing has to be proved. The reason is the string given to `unsafe`, or the text after ` -- ` of
the comment; it must not be empty.

## Example

Nothing in the kernel says that `rows` names each row once, so the store has to be trusted:

```python
import cuda.tile as ct
from tilecheck import unsafe


@ct.kernel
def permute_rows(x, rows, out, T: ct.Constant[int]):  # verdict: trusted
    i = ct.bid(0)
    row = ct.load(rows, index=(i,), shape=(1,)).item()
    tile = ct.reshape(ct.load(x, index=(i, 0), shape=(1, T)), (T,))
    with unsafe(""):  # expect: TC104
        ct.scatter(out, (row, ct.arange(T, dtype=ct.int32)), tile)
```

Triton has no such block; there a comment before the statement says the same:

```python
import triton
import triton.language as tl


@triton.jit
def permute(x_ptr, places_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: trusted
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    place = tl.load(places_ptr + i, mask=i < n)
    # expect: TC104 line=-1
    # tilecheck: unsafe
    tl.store(out_ptr + place, x, mask=i < n)
```

## Use instead

```python
import cuda.tile as ct
from tilecheck import unsafe


@ct.kernel
def permute_rows(x, rows, out, T: ct.Constant[int]):  # verdict: trusted
    i = ct.bid(0)
    row = ct.load(rows, index=(i,), shape=(1,)).item()
    tile = ct.reshape(ct.load(x, index=(i, 0), shape=(1, T)), (T,))
    with unsafe("rows comes from argsort, so each row is named once"):
        ct.scatter(out, (row, ct.arange(T, dtype=ct.int32)), tile)
```

Better still is a kernel that has nothing to trust, here by reading through the table instead of
writing through it:

```python
import cuda.tile as ct


@ct.kernel
def permute_rows(x, rows, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    row = ct.load(rows, index=(i,), shape=(1,)).item()
    tile = ct.gather(x, (row, ct.arange(T, dtype=ct.int32)))
    ct.store(out, index=(i, 0), tile=ct.reshape(tile, (1, T)))
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def permute(x_ptr, places_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: trusted
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    place = tl.load(places_ptr + i, mask=i < n)
    # tilecheck: unsafe -- places comes from argsort, so each place is named once
    tl.store(out_ptr + place, x, mask=i < n)
```

## When it says unknown

Never: the finding follows from the text, and the verdict is that of the kernel with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.model import Diagnostic, Severity
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Yield a finding for each unsafe block without a reason."""
    for block in facts.kernel.unsafe_blocks:
        if not block.reason:
            yield Diagnostic(
                code=RULE.code,
                name=RULE.name,
                severity=RULE.level,
                message="this unsafe block gives no reason",
                site=block.site,
                kernel=facts.kernel.name,
                label="trusted for no stated reason",
                help="write why the accesses inside cannot collide",
            )


RULE = Rule(
    code="TC104",
    name="unsafe-without-reason",
    level=Severity.ERROR,
    summary="an unsafe block does not say why it may be trusted",
    since="0.1.0",
    check=check,
)
