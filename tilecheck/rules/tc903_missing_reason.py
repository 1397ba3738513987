"""A suppression does not say why.

## What it does

Reports an `# tilecheck: ignore[...]` comment without a reason after ` -- `.

## Why is this bad?

Whoever meets the comment later cannot tell a considered exception from a finding that was in the
way. Without a reason the comment has no effect: the finding stays.

## How it is proved

Nothing has to be proved. The reason is the text after ` -- `; it must not be empty. It is shown by
`tilecheck audit` together with the finding.

## Example

```python
import cuda.tile as ct
from tilecheck import unsafe


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    # expect: TC105, TC903
    with unsafe("each block has a tile of its own"):  # tilecheck: ignore[TC105]
        ct.store(out, index=(i,), tile=tile * 2.0)
```

## Use instead

```python
import cuda.tile as ct
from tilecheck import unsafe


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    # suppressed: TC105
    with unsafe("each block has a tile of its own"):  # tilecheck: ignore[TC105] -- the store will get a table
        ct.store(out, index=(i,), tile=tile * 2.0)
```

## When it says unknown

Never, and a suppression never changes a verdict: a kernel with a suppressed race stays `violated`,
is counted as such, and is not run by the guard. A finding of this rule cannot be suppressed.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated where suppressions are applied.
RULE = Rule(
    code="TC903",
    name="missing-reason",
    level=Severity.ERROR,
    summary="a suppression does not say why",
    since="0.1.0",
)
