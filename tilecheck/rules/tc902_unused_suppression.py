"""A suppression silences nothing.

## What it does

Reports an `# tilecheck: ignore[...]` comment, or one code in it, for which there is no finding in
the statement that it speaks of.

## Why is this bad?

The finding was fixed, or moved elsewhere, and the comment stayed. It would silence the next finding
of that rule at that place, which nobody has looked at.

## How it is proved

Nothing has to be proved. A comment at the end of a line speaks of the statement in that line, a
comment on a line of its own of the next statement, and above a `def` or its decorators of the whole
function. A code is used if a finding with this code, or with the rule's name, begins in there.

## Example

```python
import cuda.tile as ct


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    # expect: TC902
    ct.store(out, index=(i,), tile=tile * 2.0)  # tilecheck: ignore[TC201] -- was i // 2 once
```

## Use instead

```python
import cuda.tile as ct


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=tile * 2.0)
```

## When it says unknown

Nothing is reported for a file with a kernel that is `unknown`: the finding that the comment waits
for may only have been out of reach. Whether a suppression is used never changes a verdict. A
finding of this rule cannot be suppressed.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated where suppressions are applied: all findings of the run must be known by then.
RULE = Rule(
    code="TC902",
    name="unused-suppression",
    level=Severity.WARNING,
    summary="a suppression silences nothing",
    since="0.1.0",
)
