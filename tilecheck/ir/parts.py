"""Parts of an array that a contract speaks of: `t[0::2]`, `t[:, 1]`, `t[-1]`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilecheck.ir.expr import FALSE, TRUE, Expr, add, all_of, eq, le, mod, sub

# For each axis the first index and the step to the next one, 0 where the first is the only one: that may be
# negative, and is counted from the end then. No axes: all.
Part = tuple[tuple[int, int], ...]
WHOLE: Part = ()


def lies_in(indices: Sequence[Expr], part: Part, extent: Callable[[int], Expr]) -> Expr:
    """Whether an element belongs to a part, of an array that has so many of them along each axis; an element of
    other axes than the part has does not."""
    if not part:
        return TRUE
    if len(part) != len(indices):
        return FALSE
    axes = enumerate(zip(indices, part, strict=True))
    return all_of(*(_is_taken(i, first, step, k, extent) for k, (i, (first, step)) in axes))


def _is_taken(index: Expr, first: int, step: int, axis: int, extent: Callable[[int], Expr]) -> Expr:
    if step == 0:
        return eq(index, first if first >= 0 else add(extent(axis), first))
    # An index inside an array is not negative, so that a remainder of `first` puts it at `first` or after.
    least = TRUE if first < step else le(first, index)
    if step == 1:
        return least
    known = residue(index, step)
    if known is None:
        return all_of(least, eq(mod(sub(index, first), step), 0))
    return least if known == first % step else FALSE


def residue(e: Expr, divisor: int) -> int | None:
    """The remainder of `e` by a positive number, where its text shows it."""
    if e.value is not None:
        return e.value % divisor
    if e.op == "add":
        terms = [residue(a, divisor) for a in e.args]
        return None if None in terms else sum(t for t in terms if t is not None) % divisor
    if e.op != "mul":
        return None
    product: int = 1
    for factor in e.args:
        if factor.value is not None:
            product *= factor.value
    return 0 if product % divisor == 0 else None
