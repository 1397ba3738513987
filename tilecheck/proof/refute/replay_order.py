"""Which accesses of a replayed launch its atomics ordered: happens-before in the one run that was made.

An acquire that comes after a release of the same element has everything that the releasing block did before.
This is generous: threads of a block, values in between and stores that break a chain are not looked at, so that
a pair without an order here has none in the memory model either.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilecheck.ir.kernel import ACQUIRES, RELEASES, WIDE_SCOPES
from tilecheck.reference.log import AccessRecord, Log

_Block = tuple[int, int, int]
_Clock = Mapping[_Block, int]  # up to which of its accesses a block's work is known


class Happened:
    """The order in a log. Blocks ran one after another, each to its end."""

    def __init__(self, log: Log) -> None:
        self._time = {id(record): time for time, record in enumerate(log.accesses)}
        self._clocks: dict[int, _Clock] = {}
        known: dict[_Block, _Clock] = {}
        released: dict[tuple[str, int | None, tuple[int, ...]], _Clock] = {}
        for time, record in enumerate(log.accesses):
            clock = known.get(record.block, {})
            strong = record.scope in WIDE_SCOPES
            cells = (
                [(record.array, record.member, tuple(map(int, e))) for e in record.elements] if strong else []
            )
            if record.order in ACQUIRES:
                for cell in cells:
                    clock = _later(clock, released.get(cell, {}))
            if record.order in RELEASES:
                for cell in cells:
                    released[cell] = _later(released.get(cell, {}), {**clock, record.block: time})
            known[record.block] = self._clocks[time] = clock

    def orders(self, one: AccessRecord, two: AccessRecord) -> bool:
        """Whether one of two accesses of different blocks happens before the other."""
        early, late = sorted((one, two), key=lambda r: self._time[id(r)])
        return self._clocks[self._time[id(late)]].get(early.block, -1) >= self._time[id(early)]


def _later(a: _Clock, b: _Clock) -> _Clock:
    if all(a.get(block, -1) >= time for block, time in b.items()):
        return a
    return {block: max(a.get(block, -1), b.get(block, -1)) for block in (*a, *b)}
