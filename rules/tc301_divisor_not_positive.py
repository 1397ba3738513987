"""A divisor or the step of a range may not be positive.

## What it does

Asks that the right side of every integer `//`, `%` and `ct.cdiv`, and the step of every `range`, is
at least 1 wherever the operation runs.

## Why is this bad?

Division by zero gives no error on the GPU but some number, and what is computed from it is an index
like any other. A step of zero never ends the loop. Negative divisors are defined, but the rounding
of `//` and `%` differs between languages and from what the author of an index had in mind, so they
are not accepted either. A `range` that counts down by a constant is no finding.

In Triton, `2 ** n` of a number of compile time is a fraction where n is negative. Where it is used
as an integer, or taken for one, that n is at least 0 is asked too (`1 << n` does not compile then).

## How it is proved

For any block, any iteration and any lane that gets to the operation:

    path   =>   divisor >= 1

`path` are the branches and loop bounds before it. Tile sizes and numbers of blocks are at least 1
in every launch. If the divisor is made of launch values alone, `ratio >= 1` becomes a launch
condition. This is proved before everything else, because the meaning of an index depends on it.

## Example

The first level divides by zero:

```python
import cuda.tile as ct


@ct.kernel
def pyramid(x, out, T: ct.Constant[int]):  # verdict: violated
    i = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)
    total = ct.zeros((T,), dtype=ct.float32)
    for level in range(4):
        total = total + ct.gather(x, i // level)  # expect: TC301
    ct.scatter(out, i, total)
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def pyramid(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: violated
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for level in range(4):
        total += tl.load(x_ptr + i // level, mask=i < n)  # expect: TC301
    tl.store(out_ptr + i, total, mask=i < n)
```

## Use instead

```python
import cuda.tile as ct


@ct.kernel
def pyramid(x, out, T: ct.Constant[int]):  # verdict: proved
    i = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)
    total = ct.zeros((T,), dtype=ct.float32)
    for level in range(1, 5):
        total = total + ct.gather(x, i // level)
    ct.scatter(out, i, total)
```

A divisor that the caller chooses can be required:

```python
import cuda.tile as ct


# tilecheck: requires ratio >= 1 -- each tile of x serves `ratio` tiles of out
@ct.kernel
def repeat_tiles(x, out, ratio: int, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i // ratio,), shape=(T,)))
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def pyramid(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for level in range(1, 5):
        total += tl.load(x_ptr + i // level, mask=i < n)
    tl.store(out_ptr + i, total, mask=i < n)
```

## When it says unknown

When the divisor is read from memory and no contract bounds it, unless ordinary values fail as well,
or when it is itself made of products and quotients that no proof covers. `max(divisor, 1)` settles
both, and so does `within(t, 1, n)` for a table. Triton divides by negative numbers as C does: there
a divisor that is negative and never 0 is not decided, because proofs take divisors to be positive.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import CheckKind
from tilecheck.model import Severity
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each such operation of the kernel."""
    for operation in facts.kernel.checks:
        if operation.kind in (CheckKind.DIVISOR, CheckKind.STEP):
            yield Obligation(
                rule=RULE.code,
                goal=Holds(operation.goal, operation.guard),
                sites=(operation.site,),
                cause=f"`{operation.what}` is used as a divisor or step but may not be positive",
                stage=0,
                kind="undefined",
                unsafe=() if operation.unsafe is None else (operation.unsafe,),
            )
        elif operation.kind is CheckKind.EXPONENT:
            yield Obligation(
                rule=RULE.code,
                goal=Holds(operation.goal, operation.guard),
                sites=(operation.site,),
                cause=f"`{operation.what}` is an exponent of 2 and may be negative, which makes a fraction",
                stage=0,
                kind="undefined",
                unsafe=() if operation.unsafe is None else (operation.unsafe,),
            )
        elif operation.kind is CheckKind.DIVIDEND:
            yield Obligation(
                rule=RULE.code,
                goal=Holds(operation.goal, operation.guard),
                sites=(operation.site,),
                cause=f"`{operation.what}` is divided and may be negative, where division rounds towards zero",
                stage=0,
                kind="undefined",
                unsafe=() if operation.unsafe is None else (operation.unsafe,),
            )


RULE = Rule(
    code="TC301",
    name="divisor-not-positive",
    level=Severity.ERROR,
    summary="a divisor or the step of a range may not be positive",
    since="0.1.0",
    check=check,
)
