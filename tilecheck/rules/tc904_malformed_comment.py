"""A tilecheck comment is not understood.

## What it does

Reports a comment that begins with `# tilecheck:` and is not one of the known forms, or that no
statement follows. The forms are `mut NAMES`, `shared NAMES`, `requires EXPRESSION`,
`unsafe -- REASON` and `ignore[CODES] -- REASON`; the first three may carry a reason as well.

## Why is this bad?

The author thinks that a contract holds or that a finding is silenced, and it is not so. A misspelt
`requires` would otherwise be an ordinary comment that nobody checks.

## How it is proved

Nothing has to be proved. All that can be said of the comment is checked when it is read: its first
word, the names, the expression, the codes, and the statement that it belongs to.

## Example

```python
import cuda.tile as ct


# expect: TC904 line=-1
# tilecheck: require out.shape[0] >= x.shape[0] -- the caller allocates
@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)
```

## Use instead

```python
import cuda.tile as ct


# tilecheck: requires out.shape[0] >= x.shape[0] -- the caller allocates
@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)
```

## When it says unknown

Never. The comment has no effect at all, so the verdict is that of the kernel without it. A finding
of this rule cannot be suppressed.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated where comments are read, also in files without kernels.
RULE = Rule(
    code="TC904",
    name="malformed-comment",
    level=Severity.ERROR,
    summary="a tilecheck comment is not understood",
    since="0.1.0",
)
