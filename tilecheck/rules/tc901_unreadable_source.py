"""A file cannot be read as Python.

## What it does

Reports a file that cannot be opened, that is not text in the encoding it declares, or that is not
valid Python, at the place where reading it failed.

## Why is this bad?

No kernel of the file was looked at. That must not pass for a file without findings:
`tilecheck verify` ends with exit code 3.

## How it is proved

Nothing has to be proved. The bytes are decoded as Python itself does, by byte order mark or coding
comment and as UTF-8 otherwise, and parsed without running them. The other files of the run are
verified all the same.

## Example

A comma is missing, so there is no kernel to speak of:

```python
import cuda.tile as ct


@ct.kernel
def scale(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,) tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)  # expect: TC901
```

## Use instead

```python
import cuda.tile as ct


@ct.kernel
def scale(x, out, T: ct.Constant[int]):  # verdict: conditional
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2.0)
```

## When it says unknown

Such a file has no kernels and so no verdicts; the exit code says that something was not decided. A
path on the command line that does not exist is a usage error (exit code 2) if nothing else could be
analysed. A finding of this rule cannot be suppressed.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule

# Stated where files are read: there is no kernel to ask.
RULE = Rule(
    code="TC901",
    name="unreadable-source",
    level=Severity.ERROR,
    summary="a file cannot be read as Python",
    since="0.1.0",
)
