"""32-bit index arithmetic wraps at ordinary sizes.

## What it does

Reports integer arithmetic that is done in 32 bits, feeds an index, a branch or a loop bound, and
leaves the range of a 32-bit integer although the grid, the shapes and the scalars of the launch are
small.

## Why is this bad?

A wrapped index is an ordinary number. It may be negative, where gathers and scatters drop it in
silence, or fall into another block's part of the array. The program runs and the result is wrong.

## How it is proved

An expression is looked at if a constant in it is so large that it can pass 2^31 with every run-time
quantity at most 64. For those, and any block and iteration that gets there:

    path   =>   -2^31 <= value  and  value < 2^31

Sums and products may pass the range in between, because they come back to the right value; what
counts is the value that is compared, divided, widened or used as an index. All other 32-bit index
expressions are taken to fit at the sizes of the launch: that is the standing obligation S5
(`tilecheck explain S5`), and with it the usual `ct.bid(0) * T + lane` is no finding.

## Example

Plane 8 starts at element 2^31:

```python
import cuda.tile as ct

PLANE = 1 << 28  # elements from one plane to the next


@ct.kernel
def mark_planes(out: ct.IndexedWithInt64):  # verdict: violated
    lane = ct.arange(64, dtype=ct.int32)
    ct.scatter(out, ct.bid(0) * PLANE + lane, 1.0)  # expect: TC305
```

## Use instead

Widen before multiplying:

```python
import cuda.tile as ct

PLANE = 1 << 28  # elements from one plane to the next


@ct.kernel
def mark_planes(out: ct.IndexedWithInt64):  # verdict: proved
    lane = ct.arange(64, dtype=ct.int64)
    ct.scatter(out, ct.astype(ct.bid(0), ct.int64) * PLANE + lane, 1.0)
```

Or let the array have the axis, so that no product is needed:

```python
import cuda.tile as ct


@ct.kernel
def mark_planes(out):  # verdict: proved
    lane = ct.arange(64, dtype=ct.int32)
    ct.scatter(out, (ct.bid(0), lane), 1.0)
```

## When it says unknown

When the expression multiplies values that are free in every launch, so that it may or may not fit,
and no launch in which it wraps could be replayed: a wrap often needs arrays too large to run. A
`requires` that bounds the factors (`requires grid[0] <= 8`) makes the proof short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilecheck.analysis.facts import Facts
from tilecheck.analysis.ranges import INT32_MAX, INT32_MIN, promised_sizes, wraps_when_small
from tilecheck.ir.expr import Expr, Kind, Symbol, all_of, le, render, substitute, sym, symbols, walk
from tilecheck.ir.kernel import Arithmetic
from tilecheck.model import Severity, Site
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield one obligation for each 32-bit value that feeds an address or branch and wraps at small sizes."""
    used = _feeding(facts)
    promised = promised_sizes(r.condition for r in facts.kernel.requires)
    for operation in facts.kernel.arithmetic:
        if _without_lanes(operation.value) in used and wraps_when_small(operation.value, promised):
            yield Obligation(
                rule=RULE.code,
                goal=Holds(
                    all_of(le(INT32_MIN, operation.value), le(operation.value, INT32_MAX)), operation.guard
                ),
                sites=(_first_to_wrap(operation, promised),),
                cause=f"`{render(operation.value)}` is computed in 32 bits and may wrap",
                stage=0,
                kind="overflow",
                unsafe=() if operation.unsafe is None else (operation.unsafe,),
            )


def _first_to_wrap(operation: Arithmetic, promised: Mapping[Symbol, int]) -> Site:
    """The innermost operation that wraps at small sizes; where the value is used, if none does alone."""
    return next((site for value, site in operation.steps if wraps_when_small(value, promised)), operation.site)


def _feeding(facts: Facts) -> set[Expr]:
    """Every expression that an access or an operation of the kernel depends on."""
    roots = []
    for access in facts.kernel.accesses:
        roots += [access.guard, access.mask, *(axis.index for axis in access.axes)]
    roots += [check.goal for check in facts.kernel.checks]
    return set(walk(*(_without_lanes(root) for root in roots)))


def _without_lanes(value: Expr) -> Expr:
    """The lanes of an operation and of the access that it feeds have names of their own: forget them."""
    lanes = {sym(s): _LANE for s in symbols(value) if s.kind is Kind.LANE}
    return substitute(value, lanes)


_LANE = sym(Symbol("lane", Kind.LANE))

RULE = Rule(
    code="TC305",
    name="index-overflow",
    level=Severity.ERROR,
    summary="32-bit index arithmetic wraps at ordinary sizes",
    since="0.1.0",
    check=check,
)
