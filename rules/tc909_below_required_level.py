"""A kernel does not meet what the run requires of every kernel.

## What it does

Reports each kernel that is below the level of `--require`, or of `require` in `[tool.tilecheck]`,
and says why. The run ends with exit code 3.

- `conditional`, the default, asks for nothing beyond the other exit codes.
- `launches` asks that every kernel passes and has a launch in view, that no launch is `unread`,
  that none leaves a requirement `unmet` or `broken`, that no contract is only `promised`, and that
  no host function that uses streams or graphs is `unread`.
- `proved` asks that every kernel is `proved`.

## Why is this bad?

A conditional kernel is safe if its launches are right. Whoever asks for more than that wants to
know which kernels still rest on launches that nobody has looked at, or on somebody's word.

## How it is proved

Nothing has to be proved. The verdict, the launches in view and the contracts of the kernel are
compared with the level.

## Example

```toml
[tool.tilecheck]
require = "launches"
```

Nothing in view launches this kernel:

```python
import cuda.tile as ct


@ct.kernel
def double(x, out, T: ct.Constant[int]):  # verdict: conditional; expect: TC909 "no launch of it is in view"
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=2.0 * ct.load(x, index=(i,), shape=(T,)))
```

## Use instead

Verify the file that launches it along with it:

```toml
[tool.tilecheck]
require = "launches"
```

```python
import cuda.tile as ct
import torch


@ct.kernel
def double(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=2.0 * ct.load(x, index=(i,), shape=(T,)))


def doubled(x):
    out = torch.empty_like(x)
    ct.launch(torch.cuda.current_stream(), (ct.cdiv(x.shape[0], 128),), double, (x, out, 128))
    return out
```

## When it says unknown

It changes no verdict. A kernel that is `unknown` or `violated` is below both levels, whatever a
baseline or a suppression says of it. A finding of this rule cannot be suppressed.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated after a baseline is applied: it depends on what the run asks for, not on the kernel alone.
RULE = Rule(
    code="TC909",
    name="below-required-level",
    level=Severity.ERROR,
    summary="a kernel does not meet what the run requires of every kernel",
    since="0.1.0",
)
