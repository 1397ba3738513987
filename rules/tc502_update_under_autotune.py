"""A kernel that is tuned goes on from what its last run left.

## What it does

Reports a Triton kernel under `triton.autotune` that updates an array, where neither `restore_value`
nor `reset_to_zero` names the array. A kernel updates an array if it counts elements up with
atomics, or reads the array before it stores to it.

## Why is this bad?

The tuner runs the kernel with every configuration, many times each, on the arguments of the first
launch. A kernel that adds to its output adds every time; one that works in place works on its own
results. The first launch for each key gives wrong values, and all later ones right values, which is
hard to find.

## How it is proved

What the kernel does with an array follows from its accesses, and the decorator says what is put
back before each run. A kernel that reads one part of an array and writes another is not reported,
if it is shown that no read meets a write.

## Example

```python
import triton
import triton.language as tl


@triton.autotune(  # expect: TC502
    configs=[triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 512})], key=["n"]
)
@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))
```

## Use instead

```python
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 512})],
    key=["n"],
    reset_to_zero=["out_ptr"],
)
@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))
```

## When it says unknown

Never, and it leaves the verdict alone: no run is unsafe by it. It says nothing where the text does
not tell what is put back (a file that speaks of hooks, lists that are not literal, configurations
from another file), nor where a second run may well change nothing: locks, the largest of some
values, counters that the kernel also sets back, memory that it stores to before it reads.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Reported once the kernel's conditions are known, which may keep what is read from what is written
# (`proof.initialisation.tuner_runs`).
RULE = Rule(
    code="TC502",
    name="update-under-autotune",
    level=Severity.WARNING,
    summary="a kernel that is tuned goes on from what its last run left",
    since="0.1.0",
)
