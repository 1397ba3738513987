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

Nothing has to be proved: what the kernel does with an array follows from its accesses, and the
decorator says what is put back before each run. Both are held against each other.

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

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.ir.kernel import Access, Effect, Kernel
from tilecheck.model import Diagnostic, Related, Severity
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Yield a finding for each array that a tuned kernel updates and the tuner does not put back."""
    kernel = facts.kernel
    if kernel.tuning is None:
        return
    for param in kernel.params:
        if not param.updated or param.name in kernel.tuning.kept:
            continue
        access = _update(kernel, param.name)
        how = "updates" if access.effect is Effect.ATOMIC else "works on"
        yield Diagnostic(
            code=RULE.code,
            name=RULE.name,
            severity=RULE.level,
            message=f"tuning runs `{kernel.name}` many times, and each run {how} what the one before left in "
            f"`{param.name}`",
            site=kernel.tuning.site,
            kernel=kernel.name,
            label=f"`{param.name}` is not put back before each run",
            related=(Related(access.site, "updated here"),),
            help=f'add `restore_value=["{param.name}"]`, or `reset_to_zero` if it starts as zeros',
        )


def _update(kernel: Kernel, array: str) -> Access:
    """The access to point at: the last one that changes the array."""
    return [a for a in kernel.accesses if a.array == array and a.effect is not Effect.READ][-1]


RULE = Rule(
    code="TC502",
    name="update-under-autotune",
    level=Severity.WARNING,
    summary="a kernel that is tuned goes on from what its last run left",
    since="0.1.0",
    check=check,
)
