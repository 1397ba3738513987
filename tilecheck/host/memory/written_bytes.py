"""Which bytes of new memory have been written by work that runs."""

from __future__ import annotations

import bisect
from collections.abc import Iterator

from tilecheck.host.memory.regions import Region, count_runs, runs

_MOST_RUNS = 256  # intervals of one region that are told apart


class Written:
    """Disjoint half-open intervals of addresses, in order. Mutable: they grow and join."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, region: Region) -> None:
        """Note a write. One in too many pieces to follow is not noted: what reads it is taken for too early."""
        if count_runs(region) <= _MOST_RUNS:
            for first, last in runs(region):
                self._add(first, last)

    def _add(self, first: int, last: int) -> None:
        low = bisect.bisect_left(self._ends, first)
        high = bisect.bisect_right(self._starts, last)
        if low < high:
            first, last = min(first, self._starts[low]), max(last, self._ends[high - 1])
        self._starts[low:high] = [first]
        self._ends[low:high] = [last]

    def joined(self, other: Written) -> Written:
        """What was written by either."""
        found = Written()
        for intervals in (self, other):
            for first, last in zip(intervals._starts, intervals._ends, strict=True):  # noqa: SLF001 - of this class
                found._add(first, last)
        return found

    def covers(self, first: int, last: int) -> bool:
        """Whether every byte from `first` up to `last` was written."""
        at = bisect.bisect_right(self._starts, first) - 1
        return first >= last or (at >= 0 and last <= self._ends[at])

    def misses(self, read: Region, other: Region) -> bool:
        """Whether a byte that lies in both regions was not written."""
        return any(
            not self.covers(max(first, start), min(last, end))
            for first, last in _runs(read)
            for start, end in _runs(other)
        )


def _runs(region: Region) -> Iterator[tuple[int, int]]:
    if count_runs(region) <= _MOST_RUNS:
        yield from runs(region)
    else:
        yield region.start, region.end
