"""Boxes of elements with numbers for bounds, and accesses to them."""

from __future__ import annotations

from collections.abc import Iterable

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr
from tilecheck.ir.host_program import Memory, Region

Box = tuple[tuple[int, int], ...]
WHOLE: Box = ()  # every element of a memory whose shape is not known

Instance = tuple[str, int]  # a memory's name, and how often it had been allocated


@dataclass(frozen=True, slots=True)
class Access:
    """A box of one instance of memory that is read or written. The box is not empty."""

    instance: Instance
    box: Box
    write: bool
    exact: bool = True

    @property
    def memory(self) -> str:
        return self.instance[0]


def access(region: Region, memory: Memory, generation: int, *, write: bool) -> Access | None:
    """The region with its bounds as numbers; None if it holds no element.

    Raises:
        ValueError: a bound is no number.
    """
    box = tuple((_number(start), _number(stop)) for start, stop in region.box) if region.box else shape(memory)
    if any(start >= stop for start, stop in box):
        return None
    return Access((memory.name, generation), box, write, region.exact)


def shape(memory: Memory) -> Box:
    """All elements of the memory, as a box if its extents are numbers."""
    extents = [extent.value for extent in memory.extents or ()]
    known = [(0, extent) for extent in extents if extent is not None]
    return tuple(known) if len(known) == len(extents) else WHOLE


def _number(bound: Expr) -> int:
    if bound.value is None:
        raise ValueError(f"the bound {bound} is no number")
    return bound.value


def intersection(one: Box, other: Box) -> Box | None:
    """The elements in both boxes; None if there are none.

    Raises:
        ValueError: the boxes have not the same number of axes.
    """
    if WHOLE in {one, other}:
        return one or other
    if len(one) != len(other):
        raise ValueError(f"boxes of {len(one)} and {len(other)} axes in one memory")
    both = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return both if all(start < stop for start, stop in both) else None


def corner(box: Box) -> tuple[int, ...] | None:
    """One element of the box, if positions are known."""
    return tuple(start for start, _ in box) if box != WHOLE else None


def left_over(box: Box, taken: Iterable[Box]) -> list[Box]:
    """The elements of `box` that no box of `taken` holds, as disjoint boxes."""
    rest = [box]
    for cut in taken:
        rest = [piece for whole in rest for piece in _without(whole, cut)]
    return rest


def _without(box: Box, cut: Box) -> list[Box]:
    if cut == WHOLE:
        return []
    if box == WHOLE:
        return [box]  # of unknown shape: something may lie outside any box
    common = intersection(box, cut)
    if common is None:
        return [box]
    pieces: list[Box] = []
    inner = list(box)
    for axis, (start, stop) in enumerate(common):
        low, high = inner[axis]
        pieces.extend(
            (*inner[:axis], side, *inner[axis + 1 :])
            for side in ((low, start), (stop, high))
            if side[0] < side[1]
        )
        inner[axis] = (start, stop)
    return pieces
