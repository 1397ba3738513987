"""The baseline accepts a finding that is gone.

## What it does

Reports an entry of `.tilecheck-baseline.json` whose finding was not found again, although the run
has looked at its kernel.

## Why is this bad?

The finding was fixed and the entry stayed. It would accept the next finding of that rule in the
same operation, which nobody has looked at.

## How it is proved

Nothing has to be proved. An entry is stale if its file was part of the run and was read, or exists
no more, and no finding of the run has its rule, file, kernel and operation. While the kernel is
`unknown` its other entries are kept: what they wait for may only be out of reach.

`tilecheck verify` drops such entries from the file by itself. They are reported where it leaves the
file alone: on CI (the variable `CI` is set), where this is an error, and as a warning by `tilecheck
check`, under pre-commit, and where the file cannot be written.

## Example

The kernel once wrote `index=(i // 2,)`, and that was accepted. It was fixed since:

```json
{
"tilecheck_baseline": 1,
"findings": [
{
  "path": "zero.py", "kernel": "zero", "rule": "TC201", "reason": "one block",
  "operation": "ct.store(out,index=(i//2,),tile=ct.zeros((T,),dtype=ct.float32))"
}
],
"kernels": [
{"path": "zero.py", "kernel": "zero", "verdict": "violated"}
]
}
```

```python
import cuda.tile as ct


@ct.kernel
def zero(out, T: ct.Constant[int]):  # verdict: conditional; expect: TC908
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.zeros((T,), dtype=ct.float32))
```

## Use instead

`tilecheck baseline prune` drops the entry, and records that the verdict is better:

```json
{
"tilecheck_baseline": 1,
"findings": [
],
"kernels": [
{"path": "zero.py", "kernel": "zero", "verdict": "conditional"}
]
}
```

```python
import cuda.tile as ct


@ct.kernel
def zero(out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.zeros((T,), dtype=ct.float32))
```

## When it says unknown

Never, and it never changes a verdict. A finding of this rule cannot be suppressed.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated where a baseline is applied.
RULE = Rule(
    code="TC908",
    name="stale-baseline-entry",
    level=Severity.WARNING,
    summary="the baseline accepts a finding that is gone",
    since="0.1.0",
)
