"""32-bit index arithmetic wraps at ordinary sizes.

## What it does

Reports integer arithmetic that is done in 32 bits, feeds an index, a branch or a loop bound, and
leaves the range of a 32-bit integer although the grid, the shapes and the scalars of the launch are
small. Arithmetic on values that the kernel reads from memory, whose size no launch shows, must be
proved to stay in range.

## Why is this bad?

A wrapped index is an ordinary number. It may be negative, where gathers and scatters drop it in
silence, or fall into another block's part of the array. The program runs and the result is wrong.

## How it is proved

An expression is looked at if a constant in it is so large that it can pass 2^31 with every run-time
quantity at most 64 (or less, in products of so many of them that these come near it alone). For
those, and any block and iteration that gets there:

    path   =>   -2^31 <= value  and  value < 2^31

Sums and products may pass the range in between, because they come back to the right value; what
counts is the value that is compared, divided, widened or used as an index. All other 32-bit index
expressions are taken to fit at the sizes of the launch: that is the standing obligation S5
(`tilecheck explain S5`), and with it the usual `ct.bid(0) * T + lane` is no finding.

What is computed from values in memory (elements of tables, results of atomics) is taken for
granted only where every such value lies between launch values, by a contract
`within(t, low, high)`: then S5 speaks of it, and `tilecheck.launch` checks it for the largest
values that the contract allows. Else the kernel's own tests must show it: each value is some 32-bit
number, and

    path  =>  -2^31 <= value < 2^31,  or  each value from memory in it is inside a `within`

Where the value is only part of an index, the mask of the access counts as well. The text does not
show the dtype of an array, so a sum with its elements is taken to be done in 32 bits unless they
are cast to 64.

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

In Triton:

```python
import triton
import triton.language as tl


# tilecheck: requires numel(out_ptr) >= 2 ** 33
@triton.jit
def mark_planes(out_ptr):  # verdict: violated
    lane = tl.arange(0, 64)
    tl.store(out_ptr + tl.program_id(0) * (1 << 28) + lane, 1.0)  # expect: TC305
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

A table of offsets gets a bound, or the test is written so that nothing can wrap:

```python
import cuda.tile as ct


# tilecheck: requires within(first, 0, out.shape[0] + 1) -- the rows in use
@ct.kernel
def append_row(x, out, first):  # verdict: conditional
    row = ct.load(first, index=(0,), shape=()).item() + ct.bid(0)
    if row < out.shape[0]:
        ct.store(out, index=(row,), tile=ct.load(x, index=(ct.bid(0),), shape=(1,)))
```

In Triton:

```python
import triton
import triton.language as tl


@triton.jit
def mark_planes(out_ptr):  # verdict: conditional
    lane = tl.arange(0, 64)
    plane = tl.program_id(0).to(tl.int64)
    tl.store(out_ptr + plane * (1 << 28) + lane, 1.0)
```

## When it says unknown

When values in memory are added up and neither a contract nor a test bounds them: the message says
which `within` would. Such a sum is no error by itself, for ordinary tables hold small numbers.

Also when the expression multiplies values that are free in every launch, so that it may or may
not fit, and no launch in which it wraps could be replayed: a wrap often needs arrays too large to
run. A `requires` that bounds the factors (`requires grid[0] <= 8`) makes the proof short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilecheck.analysis.facts import Facts
from tilecheck.analysis.limits import is_bounded, is_from_memory, promised_ranges, values_in_memory
from tilecheck.analysis.ranges import INT32_MAX, INT32_MIN, promised_sizes, wraps_when_small
from tilecheck.ir.expr import (
    FALSE,
    TRUE,
    Expr,
    Kind,
    Symbol,
    all_of,
    any_of,
    conjuncts,
    le,
    negated_terms,
    rebuild,
    render,
    sym,
    symbols,
    walk,
)
from tilecheck.ir.kernel import Arithmetic, Ownership
from tilecheck.model import Severity, Site
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.rule import Rule


def check(facts: Facts) -> Iterator[Obligation]:
    """Yield an obligation for each 32-bit value that feeds an address or branch and wraps at small sizes, or
    that is computed from values in memory."""
    promised = promised_sizes(r.condition for r in facts.kernel.requires)
    found: dict[object, Obligation] = {}
    for operation in facts.kernel.arithmetic:
        if not operation.counts:
            continue
        wraps = wraps_when_small(operation.value, promised)
        if wraps and not values_in_memory(operation.value):
            yield Obligation(
                rule=RULE.code,
                goal=Holds(_fits(operation.value), operation.guard),
                sites=(_first_to_wrap(operation, promised),),
                cause=f"`{render(operation.value)}` is computed in 32 bits and may wrap",
                stage=0,
                kind="overflow",
                unsafe=() if operation.unsafe is None else (operation.unsafe,),
            )
        elif values_in_memory(operation.value):
            everywhere = [(operation.value, operation.guard)]
            places = [(place.value, place.given) for place in operation.places]
            for value, given in everywhere if operation.tested else places:
                stated = _from_memory(facts, operation, value, given, wraps=wraps)
                if stated is not None:
                    found.setdefault(stated.goal, stated)
    yield from found.values()


def _fits(value: Expr) -> Expr:
    return all_of(le(INT32_MIN, value), le(value, INT32_MAX))


# ---- values from memory ------------------------------------------------------------------------------------


def _from_memory(
    facts: Facts, operation: Arithmetic, value: Expr, given: Expr, *, wraps: bool
) -> Obligation | None:
    """`value`, computed from memory, fits, or every value in it lies between launch values.

    None where the second is so in any case: then S5 speaks of it, and launches check it. The arrays are taken
    to hold 32-bit numbers, since with larger ones the value would be computed in 64 bits. What `wraps` between
    literals is asked to fit.
    """
    ranges = promised_ranges(facts.kernel)
    value, given = _on_path(value, given)
    bounded = FALSE if wraps else is_bounded(value, ranges)
    if bounded is TRUE:
        return None
    if all(term.op in ("lt", "le", "eq") for term in negated_terms(bounded)):
        # Bounded where a test turns out one way, as 0 is in the place of no index: asked is the other way.
        value, given = _on_path(value, all_of(given, *negated_terms(bounded)))
        bounded = FALSE
    leaves = values_in_memory(value)
    names = tuple(dict.fromkeys(name for name in map(_array, leaves) if name))
    same = [n for n in walk(given) if is_from_memory(n) and _array(n) in names]
    large = promised_sizes(r.condition for r in facts.kernel.requires)
    extents = [s for s in symbols(value, given) if s.kind is Kind.EXTENT and large.get(s, 0) <= INT32_MAX]
    small = [le(sym(s), INT32_MAX) for s in extents if not _is_wide(facts, s)]  # S4
    listed = " and ".join(f"`{n}`" for n in names) or "memory"
    return Obligation(
        rule=RULE.code,
        goal=Holds(bounded if _is_plain(bounded) and not same else any_of(_fits(value), bounded), given),
        sites=(_first_from_memory(operation),),
        cause=f"what is computed in 32 bits from values of {listed} may wrap",
        stage=0,
        kind="overflow",
        unsafe=() if operation.unsafe is None else (operation.unsafe,),
        assume=all_of(*map(_fits, (*leaves, *same)), *small),
        advice=""
        if wraps or _is_tested(leaves, given)
        else _advice(facts, [n for n in names if n not in ranges], _limit(facts, operation)),
    )


def _on_path(value: Expr, given: Expr) -> tuple[Expr, Expr]:
    """The value as it is where `given` holds, and `given`: a conditional is the branch that a term without
    conditionals chooses. Sound because those terms stand in `given` as they did, and the goal is claimed
    nowhere else."""
    terms = conjuncts(given)
    known = frozenset(term for term in terms if all(node.op != "ite" for node in walk(term)))

    def chosen(node: Expr) -> Expr | None:
        if node.op != "ite":
            return None
        test, first, second = node.args
        if known.issuperset(conjuncts(test)):
            return rebuild(first, chosen)
        return rebuild(second, chosen) if known.issuperset(negated_terms(test)) else None

    return rebuild(value, chosen), all_of(*(rebuild(term, chosen) for term in terms))


def _is_plain(bounded: Expr) -> bool:
    """Whether it says of some elements that each is in the one range that a contract gives: elements are, where
    they are inside their arrays, and that the value fits is harder to see."""
    return bounded.op == "all" and all(part.op in ("le", "lt") for part in bounded.args)


def _is_tested(leaves: Sequence[Expr], given: Expr) -> bool:
    """Whether tests put each value between launch values: what the rest needs is then a condition on these."""
    low: set[Expr] = set()
    high: set[Expr] = set()
    for part in conjuncts(given):
        if part.op in ("lt", "le"):
            a, b = part.args
            low |= _tested(b) if not any(s.varies for s in symbols(a)) and not values_in_memory(a) else set()
            high |= _tested(a) if not any(s.varies for s in symbols(b)) and not values_in_memory(b) else set()
    return all(leaf in low and leaf in high for leaf in leaves)


def _tested(value: Expr) -> frozenset[Expr]:
    """The values from memory that a test of `value` is about: it is one of them."""
    return frozenset(values_in_memory(value)) if is_from_memory(value) or value.op == "ite" else frozenset()


def _advice(facts: Facts, tables: Sequence[str], limit: str) -> str:
    """What would bound the values: a contract, which says nothing of an array that the kernel writes."""
    read = [t for t in tables if facts.graph.ownership(t) is Ownership.SHARED and limit]
    contracts = " and ".join(f"`# tilecheck: requires within({t}, 0, {limit}) -- why`" for t in read)
    wide = "compute in 64 bits: `ct.astype(value, ct.int64)`"
    return f"bound the values above the kernel: {contracts}, or {wide}" if read else wide


def _limit(facts: Facts, operation: Arithmetic) -> str:
    """What values in memory that make up this one are likely to be at most."""
    if operation.places:
        return f"{operation.places[0].length} + 1"
    own = frozenset(map(_array, values_in_memory(operation.value)))
    for access in facts.kernel.accesses:
        if any(is_from_memory(node) and _array(node) in own for node in walk(access.guard, access.mask)):
            return f"{access.array}.shape[0] + 1"
    return ""


def _array(leaf: Expr) -> str:
    """The array that a value was read from; "" for what an atomic returned and what was computed otherwise."""
    if leaf.op == "read":
        return str(leaf.args[0]).removesuffix(":int")
    origin: str = leaf.args[0].origin
    return origin.removeprefix("memory:") if origin.startswith("memory:") and "," not in origin else ""


def _is_wide(facts: Facts, symbol: Symbol) -> bool:
    """Whether the annotation of an array asks for 64-bit indices: then it may be that large."""
    return any(
        p.wide and symbol.name.startswith((f"{p.name}.", f"numel({p.name})")) for p in facts.kernel.params
    )


def _first_from_memory(operation: Arithmetic) -> Site:
    return next((site for value, site in operation.steps if values_in_memory(value)), operation.site)


def _first_to_wrap(operation: Arithmetic, promised: Mapping[Symbol, int]) -> Site:
    """The innermost operation that wraps at small sizes; where the value is used, if none does alone."""
    return next((site for value, site in operation.steps if wraps_when_small(value, promised)), operation.site)


RULE = Rule(
    code="TC305",
    name="index-overflow",
    level=Severity.ERROR,
    summary="32-bit index arithmetic wraps at ordinary sizes",
    since="0.1.0",
    check=check,
)
