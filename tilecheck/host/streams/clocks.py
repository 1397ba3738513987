"""The order of work on streams: what has ended when a piece of work starts.

Every piece of work has a place in a *lane*: a sequence in which the end of each item implies the end of those
before it. A stream is one lane, until a dependent launch that does not wait for the launch before it: its end
implies nothing of that launch, so the stream goes on in a new lane. A *clock* maps lanes to how many of their
items have ended; it is the vector clock of the order that streams, events and joins of the host make.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from tilecheck.host.places import Place

if TYPE_CHECKING:
    from tilecheck.host.graphs.capture import Capture
    from tilecheck.host.memory.storage import Storage

Clock: TypeAlias = Mapping[int, int]
EMPTY: Clock = {}

_lanes = itertools.count(1)
_MOST_MARKS = 64


def merged(first: Clock, second: Clock) -> Clock:
    """What has ended when both of two moments have passed."""
    if not first:
        return second
    found = dict(first)
    for lane, count in second.items():
        if found.get(lane, 0) < count:
            found[lane] = count
    return found


class Item:
    """A piece of work that was enqueued: its place in the order, and who asked for it.

    `lane` and `seq` are there when it has its place. Mutable: see `Replay`.
    """

    __slots__ = ("lane", "name", "place", "queue", "seq")

    lane: int
    seq: int
    is_replay = False

    def __init__(self, queue: Queue, name: str, place: Place) -> None:
        self.queue = queue
        self.name = name
        self.place = place


class Replay(Item):
    """The latest launch of a graph. It moves to the place of the next.

    Launches of one graph are in order, so what is ordered after the latest is ordered after all of them.
    """

    __slots__ = ()

    is_replay = True

    def __init__(self, queue: Queue, name: str, place: Place) -> None:
        super().__init__(queue, name, place)
        self.lane = self.seq = 0  # it has ended


class Mark:
    """An event that was recorded: the driver's event, and what has ended when it has."""

    __slots__ = ("capture", "clock", "event", "heads", "lane", "name", "queue")

    def __init__(self, queue: Queue, event: Any, name: str) -> None:
        self.queue = queue
        self.event = event
        self.clock = queue.end()
        self.lane = queue.lane
        self.name = name
        self.capture = queue.capture
        self.heads = queue.heads


class Queue:
    """The order of the work on one stream. Mutable: its state after the last item that was enqueued.

    `lane` and `seq` are the place of the last item, `before` what else has ended when that item has. If the
    item is a launch (`is_launch`), a dependent launch after it starts when the item has started: by then
    `before` and the first `start` items of the lane have ended. `retired` are the last items of lanes that the
    stream has left.
    """

    __slots__ = (
        "before", "capture", "handle", "heads", "is_foreign", "is_launch", "lane", "lanes", "marks", "name",
        "outside", "raw", "retired", "seq", "start",
        "watched",
    )  # fmt: skip

    def __init__(self, raw: Any, handle: int, name: str, capture: Capture | None = None) -> None:
        self.raw = raw
        self.handle = handle
        self.name = name
        self.capture = capture
        self.lane = next(_lanes)
        self.lanes = {self.lane}  # all that it has had since it was last found empty
        self.seq = 0
        self.before: Clock = EMPTY
        self.start = 0
        self.is_launch = False
        self.retired: Clock = EMPTY
        self.marks: deque[Mark] = deque(maxlen=_MOST_MARKS)  # the latest events behind single operations
        self.watched: Mark | None = None  # an event that is asked about from time to time
        self.is_foreign = False  # whether somebody else has made it
        self.outside: set[Storage] = set()  # what the user's own code has been given on it
        self.heads: tuple[int, ...] = ()  # in a capture: the nodes that the next one comes after

    def end(self) -> Clock:
        """What has ended when the last item has."""
        return {**self.before, self.lane: self.seq} if self.seq else self.before

    def mark_behind(self, item: Item) -> Mark | None:
        """The first event known behind an item."""
        found = None
        for mark in reversed(self.marks):
            if mark.clock.get(item.lane, 0) >= item.seq:
                found = mark
            elif mark.lane == item.lane:
                break  # it was recorded before the item, and all further ones were
        return found

    def everything(self) -> Clock:
        """What has ended when all items have."""
        return merged(self.end(), self.retired)

    def wait(self, clock: Clock) -> None:
        """Have what is enqueued from here on start when `clock` has passed as well."""
        self.before = merged(self.before, clock)
        self.is_launch = False  # the wait is an item of its own: nothing overlaps across it

    def push(self, item: Item, *, is_launch: bool) -> None:
        """Enqueue an item that starts when the item before it has ended."""
        self.start = self.seq
        self.seq += 1
        self.is_launch = is_launch
        item.lane = self.lane
        item.seq = self.seq

    def push_dependent(self, item: Item, *, waits: bool) -> None:
        """Enqueue a launch that starts when the launch right before it has started.

        The end of one that waits on every path implies the end of what came before, by its wait. The end of
        one that may not wait implies no more than what had ended when it started.
        """
        if not waits:
            self.retired = merged(self.retired, {self.lane: self.seq})
            if self.start:
                self.before = merged(self.before, {self.lane: self.start})
            self.lane = next(_lanes)
            self.lanes.add(self.lane)
            self.seq = self.start = 0
        self.seq += 1
        item.lane = self.lane
        item.seq = self.seq


def has_ended(item: Item, lane: int, seq: int, before: Clock) -> bool:
    """Whether an item has ended where `seq` items of `lane`, and those that `before` counts, have."""
    return (item.lane == lane and item.seq <= seq) or before.get(item.lane, 0) >= item.seq
