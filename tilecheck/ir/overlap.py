"""Whether two tensors of a launch lie in the same memory, as far as the text of the host function tells.

Two claims are made, and each must be sure: that they share memory, which is held against the launch, and that
they do not. Whatever is neither is left to the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr, symbols
from tilecheck.ir.host import CONTIGUOUS, OPAQUE, RAISED, SAME_STRIDES, STRIDE
from tilecheck.ir.launch import HostTensor


class Overlap(Enum):
    """`SAME`: they begin and end together. `PARTLY`: one holds all of what the other is a part of."""

    SAME = "same"
    PARTLY = "partly"
    APART = "apart"
    PERHAPS = "perhaps"


@dataclass(frozen=True, slots=True)
class Step:
    """Positions `low` to `high`, `by` apart, along `axis` of a tensor that `of` describes, itself a part of
    something: its shape and strides, as they are written. One position if `by` is 0, at `low`."""

    of: tuple[object, ...]
    axis: int
    low: Expr
    high: Expr
    by: int


def overlap(a: HostTensor, b: HostTensor, facts: Sequence[Expr]) -> Overlap:
    """How the memory of two tensors overlaps. Either may be empty: then they share nothing after all."""
    if a.storage != b.storage or a.among or b.among:
        return _of_storages(a, b)
    if a.copied != b.copied and (_may_be_copy(a, facts) or _may_be_copy(b, facts)):
        return Overlap.PERHAPS
    if a.part is not None and a.part == b.part:
        return Overlap.SAME
    if (a.part == () and _is_known(b)) or (b.part == () and _is_known(a)):
        return Overlap.PARTLY
    return Overlap.APART if _are_apart(a.part, b.part) else Overlap.PERHAPS


def _is_known(t: HostTensor) -> bool:
    """Whether the text says how many elements a part has: it may be empty."""
    return t.part is not None and t.shape is not None


def _of_storages(a: HostTensor, b: HostTensor) -> Overlap:
    """A fresh storage is another than every other fresh one, and than what a caller passes; but what unread
    code returns may be whatever that code was ever handed."""
    if set(a.among or (a.storage,)) & set(b.among or (b.storage,)):
        return Overlap.PERHAPS
    if a.fresh and b.fresh:
        return Overlap.APART
    fresh, other = (a, b) if a.fresh else (b, a)
    if not fresh.fresh or (other.opaque and not other.given):
        return Overlap.PERHAPS
    # A parameter is bound before anything is allocated here. What an object holds can be replaced later.
    is_parameter = other.storage.isidentifier() and not other.among
    return Overlap.APART if is_parameter or not fresh.handed_on else Overlap.PERHAPS


def _may_be_copy(t: HostTensor, facts: Sequence[Expr]) -> bool:
    """`x.contiguous()` is `x` for a contiguous `x`: a launch that says nothing of strides may be given one."""
    if not t.copied.startswith("unless contiguous"):
        return bool(t.copied)
    return any(s.origin in (STRIDE, SAME_STRIDES, CONTIGUOUS, OPAQUE, RAISED) for s in symbols(*facts))


def _are_apart(a: Sequence[object] | None, b: Sequence[object] | None) -> bool:
    """Whether two parts of one tensor, that differ in nothing but the positions along one axis, have none in
    common. `of` is the same for both, and says that the tensor is in row-major order, so that different
    positions are different elements."""
    if not a or not b or a[:-1] != b[:-1]:
        return False
    u, v = a[-1], b[-1]
    if not isinstance(u, Step) or not isinstance(v, Step) or (u.of, u.axis) != (v.of, v.axis):
        return False
    if not u.of[-1]:
        return False
    return _ends_before(u, v) or _ends_before(v, u)


def _ends_before(u: Step, v: Step) -> bool:
    last, first = u.high, v.low
    if last is first:
        return True
    return last.value is not None and first.value is not None and 0 <= last.value <= first.value
