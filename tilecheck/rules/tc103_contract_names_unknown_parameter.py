"""A contract speaks of a name that is no parameter.

## What it does

Reports a `mut`, `shared` or `requires` comment above a kernel that names something other than one
of its parameters (`requires` also knows `grid`, `cdiv`, `min`, `max` and `len`).

## Why is this bad?

The contract has no effect. A precondition that was renamed with its parameter only in one place
would silently stop being checked at launches, and an ownership that was declared for nobody would
promise nothing.

## How it is proved

Nothing has to be proved: the names in the comment are compared with the parameters in the `def`.
The names of module constants and of locals do not count, because a caller cannot see them.

## Example

```python
import cuda.tile as ct


# expect: TC103 line=-1
# tilecheck: mut output
@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)
```

In Triton:

```python
import triton
import triton.language as tl


# expect: TC103 line=-1
# tilecheck: mut out
@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2.0, mask=i < n)
```

## Use instead

```python
import cuda.tile as ct


# tilecheck: mut out
# tilecheck: requires out.shape[0] >= x.shape[0] -- the caller allocates
@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)
```

In Triton:

```python
import triton
import triton.language as tl


# tilecheck: mut out_ptr
# tilecheck: requires numel(out_ptr) >= n -- the caller allocates
@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # verdict: conditional
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2.0, mask=i < n)
```

## When it says unknown

Never for this rule. A `requires` whose names are all parameters, but whose expression is not one
that tilecheck can read, makes the kernel `unknown(unsupported:contract ...)` instead: a
precondition is never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.analysis.facts import Facts
from tilecheck.model import Diagnostic, Severity
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Yield a finding for each unknown name in a contract."""
    names = ", ".join(f"`{p.name}`" for p in facts.kernel.params)
    for unknown in facts.kernel.unknown_names:
        yield Diagnostic(
            code=RULE.code,
            name=RULE.name,
            severity=RULE.level,
            message=f"this contract names `{unknown.name}`, which is no parameter of `{facts.kernel.name}`",
            site=unknown.site,
            kernel=facts.kernel.name,
            label="the contract has no effect",
            help=f"the parameters are {names}" if names else "the kernel has no parameters",
        )


RULE = Rule(
    code="TC103",
    name="contract-names-unknown-parameter",
    level=Severity.ERROR,
    summary="a contract speaks of a name that is no parameter",
    since="0.1.0",
    check=check,
)
