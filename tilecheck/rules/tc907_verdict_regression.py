"""A kernel was decided when the baseline was written and is not any more.

## What it does

Reports a kernel that `.tilecheck-baseline.json` has as `proved`, `conditional` or `trusted` and
that is `unknown` now. The message states both verdicts and the reason. It comes beside the finding
that says where the kernel became undecided.

## Why is this bad?

A change has taken a proof away. In a project with other undecided kernels one more is easily
overlooked, and the day after nobody knows which change it was. A kernel once proved should stay so.

## How it is proved

Nothing has to be proved. The verdicts of the run are compared with those that `tilecheck baseline
write` recorded, by file and by the name of the kernel. A kernel that is `violated` now has findings
of its own, and is not reported here.

## Example

The baseline says that the kernel was proved under conditions:

```json
{
"tilecheck_baseline": 1,
"findings": [
],
"kernels": [
{"path": "activate.py", "kernel": "activate", "verdict": "conditional"}
]
}
```

Since then a helper has moved to a package whose source is not there:

```python
import cuda.tile as ct
from some_package import activation


@ct.kernel
def activate(x, out, T: ct.Constant[int]):  # verdict: unknown(unsupported); expect: TC907 "was conditional"
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=activation(tile))  # expect: TC905
```

## Use instead

Bring the proof back, here by keeping the helper where tilecheck can read it:

```json
{
"tilecheck_baseline": 1,
"findings": [
],
"kernels": [
{"path": "activate.py", "kernel": "activate", "verdict": "conditional"}
]
}
```

```python
import cuda.tile as ct


def activation(tile):
    return ct.maximum(tile, 0.0)


@ct.kernel
def activate(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=activation(tile))
```

Where the proof has to go, `tilecheck baseline write --reason "..."` records the new verdict.

## When it says unknown

Always: it is about kernels that are `unknown`. Without a baseline, or for a kernel that is not in
it, nothing is reported. A finding of this rule cannot be suppressed.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated where a baseline is applied.
RULE = Rule(
    code="TC907",
    name="verdict-regression",
    level=Severity.ERROR,
    summary="a kernel was decided when the baseline was written and is not any more",
    since="0.1.0",
)
