"""Which bytes of memory a piece of work touches, and whether two pieces touch a common one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from tilecheck.jit.layouts import Layout, share_memory, solid


class Region:
    """The elements of a strided box in memory. `start` and `end` are the addresses that enclose them."""

    __slots__ = ("end", "is_dense", "layout", "start")

    def __init__(self, start: int, layout: Layout) -> None:
        self.start = start
        self.layout = layout
        self.end = start + layout.span
        self.is_dense = is_dense(layout)  # every byte between `start` and `end` is touched

    def covers(self, other: Region) -> bool:
        """Whether this region is known to hold every byte of the other."""
        if self.start == other.start and self.layout == other.layout:
            return True
        return self.is_dense and self.start <= other.start and other.end <= self.end

    def text(self, base: int) -> str:
        """The bytes as a message names them, counted from `base`."""
        first, last = self.start - base, self.end - base
        if self.is_dense or self.start == self.end:
            return f"bytes {first}..{last}"
        shape, steps = self.layout.shape, self.layout.strides
        return f"bytes {first}..{last} (shape {shape}, strides {steps})"


def is_dense(layout: Layout) -> bool:
    """Whether the elements fill their span, each byte once."""
    step = 1
    for stride, extent in sorted(zip(layout.strides, layout.shape, strict=True)):
        if extent == 1:
            continue
        if stride != step:
            return False
        step *= extent
    return True


def overlap(first: Region, second: Region) -> bool:
    """Whether two regions may share a byte. What is not decided counts as shared."""
    if first.end <= second.start or second.end <= first.start or first.start == first.end:
        return False
    if first.is_dense and second.is_dense:
        return second.start < second.end
    return share_memory(first.layout, second.layout, second.start - first.start) is not False


def hull(region: Region) -> Region:
    """All bytes from the first element to the last, gaps included: what offsets from the first may reach."""
    return region if region.is_dense else Region(region.start, solid(region.layout))


def runs(region: Region) -> Iterator[tuple[int, int]]:
    """The addresses of a region as half-open intervals without gaps, in no particular order."""
    length, axes, size = _blocks(region.layout)
    for steps in itertools.product(*(range(0, s * n, s) for s, n in axes)) if region.layout.size else ():
        first = region.start + sum(steps) * size
        yield first, first + length * size


def count_runs(region: Region) -> int:
    """How many intervals `runs` gives."""
    return math.prod(n for _, n in _blocks(region.layout)[1])


def _blocks(layout: Layout) -> tuple[int, list[tuple[int, int]], int]:
    """The elements of one interval, the strides and extents of the axes that step over it, the item size."""
    axes = sorted((s, n) for n, s in zip(layout.shape, layout.strides, strict=True) if n > 1 and s)
    length = 1
    while axes and axes[0][0] == length:
        length *= axes.pop(0)[1]
    return length, axes, layout.itemsize
