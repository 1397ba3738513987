"""Parts of an array that a contract speaks of: `t[0::2]`, `t[:, 1]`."""

from __future__ import annotations

from collections.abc import Sequence

from tilecheck.ir.expr import FALSE, TRUE, Expr, all_of, eq, le, mod, sub

# For each axis the first index and the step to the next one, 0 where the first is the only one. No axes: all.
Part = tuple[tuple[int, int], ...]
WHOLE: Part = ()


def lies_in(indices: Sequence[Expr], part: Part) -> Expr:
    """Whether an element belongs to a part; an element of other axes than the part has does not."""
    if not part:
        return TRUE
    if len(part) != len(indices):
        return FALSE
    return all_of(*(_is_taken(i, first, step) for i, (first, step) in zip(indices, part, strict=True)))


def _is_taken(index: Expr, first: int, step: int) -> Expr:
    if step == 0:
        return eq(index, first)
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
