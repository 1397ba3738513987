"""How numbers are computed: by which operations, from which numbers, as it is written.

Numbers of one way are alike to a compiler too: it knows the same of their divisors, and of which of their
lanes follow each other. That is more than that they are equal: of `8 * n // 8` it knows less than of `n`, and
of `n - n` more than of `n - m`. Of the number of an iteration it knows where the loop begins and its step, and
all if there is one iteration. A choice has a way where constants alone decide it. What comes from memory, and
what a loop changes, has no known way.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.frontend.values.values import Num, Way

_ONE_VALUE = ("literal", "parameter", "start", "loop")  # what no operation makes, wherever it is used
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
    if len(known) < len(operands) or length > _LONGEST or _may_cancel(op, known):
        return None
    return (length, op, *known)


def _may_cancel(op: str, operands: list[Way]) -> bool:
    """Whether a compiler may find that terms cancel if it knows that they are one value: of `k - k` it does, of
    `3 * n - 3 * n` perhaps too late, and of `k * K + k` where K is -1."""
    if op in ("*", "choice") or len(operands) < 2:  # of a choice there is one operand
        return False
    parts = [list(_parts(way)) for way in operands]
    computed = [{part for part in own if part[1] not in _ONE_VALUE} for own in parts]
    return sum(map(len, computed)) > len(set().union(*computed))


def _parts(way: Way) -> Iterator[Way]:
    yield way
    for part in way[3 if way[1] == "to" else 2 :]:
        if isinstance(part, tuple) and isinstance(part[1], str):
            yield from _parts(part)
