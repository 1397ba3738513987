"""An atomic update and another access meet without a common scope.

## What it does

Asks that an element which one block updates atomically is touched by other blocks only in ways that
the memory model allows: by atomics, or by loads and stores with a memory order other than WEAK, and
on both sides with a scope that covers the other block (DEVICE or SYS).

## Why is this bad?

An atomic protects an element only from other accesses that play by the same rules. A plain load
beside it may see an old value, a plain store may be lost, and an atomic of BLOCK scope is atomic
for its own block alone. All of these are data races.

## How it is proved

A pair of accesses is safe by itself if each is an atomic or has a `memory_order` other than WEAK,
and each has DEVICE or SYS scope. `ct.atomic_add` and its siblings have DEVICE scope unless told
otherwise; `ct.load`, `ct.store`, `ct.gather` and `ct.scatter` are WEAK. For every other pair with
an atomic in it, the elements must differ as in TC201:

    A != B  and  touches(A)  and  touches(B)   =>   element(A) != element(B)

Within one block the accesses of an array follow the order of the program, so a block may mix both
kinds.

## Example

Block 0 clears the sum while others may already have added to it:

```python
import cuda.tile as ct


@ct.kernel
def total(x, out, T: ct.Constant[int]):  # verdict: violated
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
    if i == 0:
        ct.scatter(out, 0, 0.0)  # site: clear
    ct.atomic_add(out, 0, ct.sum(tile))  # expect: TC205 with=clear
```

The scope of this update ends at the block:

```python
import cuda.tile as ct


@ct.kernel
def total(x, out, T: ct.Constant[int]):  # verdict: violated
    tile = ct.load(x, index=(ct.bid(0),), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
    ct.atomic_add(out, 0, ct.sum(tile), memory_scope=ct.MemoryScope.BLOCK)  # expect: TC205
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: violated
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    if tl.program_id(0) == 0:
        tl.store(out_ptr, 0.0)  # site: clear
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))  # expect: TC205 with=clear
```

## Use instead

Let the host clear the sum, and let every block update it with the default scope:

```python
import cuda.tile as ct


@ct.kernel
def total(x, out, T: ct.Constant[int]):  # verdict: conditional
    tile = ct.load(x, index=(ct.bid(0),), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
    ct.atomic_add(out, 0, ct.sum(tile))
```

A value that was there before an update is the result of the atomic; it needs no load:

```python
import cuda.tile as ct


@ct.kernel
def prefix(x, out, order, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
    before = ct.atomic_add(out, 0, ct.sum(tile))
    ct.scatter(order, i, before)
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))
```

## When it says unknown

For the reasons of TC201, and where one of the two accesses stands behind a branch on the result of
an atomic: then the blocks may be ordered in a way that no proof covers.

## References

- Orders and scopes: https://docs.nvidia.com/cuda/cutile-python/memory_model.html
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.accesses import both_atomic_enough, sites_of, unsafe_of
from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import Effect
from tilecheck.model import Severity
from tilecheck.proof.obligation import Between, Disjoint, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each pair with an atomic that the memory model does not make safe."""
    for conflict in facts.graph.conflicts():
        first, second = conflict.first, conflict.second
        if Effect.ATOMIC not in (first.effect, second.effect) or both_atomic_enough(first, second):
            continue
        plain = next((a for a in (first, second) if a.effect is not Effect.ATOMIC), None)
        if plain is None:
            cause = (
                f"blocks update the same element of `{conflict.array}` atomically, but their scope is one block"
            )
        else:
            verb = "reads" if plain.effect is Effect.READ else "writes"
            cause = f"a block {verb} an element of `{conflict.array}` that another block updates atomically"
        yield Obligation(
            rule=RULE.code,
            goal=Disjoint(first, second, Between.BLOCKS),
            sites=sites_of(first, second),
            cause=cause,
            stage=2,
            kind="overlap",
            unsafe=unsafe_of(first, second),
            array=conflict.array,
        )


RULE = Rule(
    code="TC205",
    name="mixed-atomic",
    level=Severity.ERROR,
    summary="an atomic update and another access meet without a common scope",
    since="0.1.0",
    check=check,
)
