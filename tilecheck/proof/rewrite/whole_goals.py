"""Which goals are looked at as a whole, before they are taken case by case (`proof.rewrite.case_split`).

Where one flag splits several goals, those of one kind mostly need the same: either all are saved as they stand,
or none is before it is split. So once more of them failed than were saved, the others go to their cases at
once, as what a block's id chooses between does, and what stands under masks that flags take away. So do races,
which are looked at last, where bounds did. That decides what is tried first, and nothing else.
"""

from __future__ import annotations

from collections import Counter

from tilecheck.ir.expr import Expr
from tilecheck.proof.obligation import Holds, Obligation
from tilecheck.proof.rewrite.case_split import deciding, is_apart_first

_Kind = tuple[str, tuple[Expr, ...]]


class Wholes:
    """Mutable: it counts what was saved as a whole, and what was not."""

    def __init__(self) -> None:
        self._saved: Counter[_Kind] = Counter()
        self._failed: Counter[_Kind] = Counter()

    def is_tried(self, obligation: Obligation) -> bool:
        kind = _kind(obligation)
        if is_apart_first(obligation):
            return False
        kinds = (kind, (Holds.__name__, kind[1]))
        return not kind[1] or all(self._failed[k] <= self._saved[k] for k in kinds)

    def note(self, obligation: Obligation, *, saved: bool) -> None:
        (self._saved if saved else self._failed)[_kind(obligation)] += 1


def _kind(obligation: Obligation) -> _Kind:
    return type(obligation.goal).__name__, deciding(obligation)
