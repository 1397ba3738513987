"""How numbers are computed: by which operations, from which numbers, as it is written.

Numbers of one way are alike to a compiler too: it knows the same of their divisors, and of which of their
lanes follow each other. That is more than that they are equal: of `8 * n // 8` it knows less than of `n`, and
of `n - n` more than of `n - m`. Of the number of an iteration it knows where the loop begins and its step, and
all if there is one iteration. A choice has a way where constants alone decide it. What comes from memory, and
what a loop changes, has no known way.
"""

from __future__ import annotations

from tilecheck.frontend.values import Num, Way

_LONGEST = 40  # operations: what is computed by more is not compared


def way_of(num: Num) -> Way | None:
    """The way of a number: that of a literal is the literal."""
    if num.way is None and num.bits is None and not num.shape and num.elem is not None:
        literal = num.elem.value
        return None if literal is None else (1, "literal", literal)
    return num.way


def combined(op: str, *operands: Way | None) -> Way | None:
    """The way of what an operation makes of its operands."""
    known = [way for way in operands if way is not None]
    length = 1 + sum(way[0] for way in known)
    return (length, op, *known) if len(known) == len(operands) and length <= _LONGEST else None
