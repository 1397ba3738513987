"""Queues of items: what streams hold, and what a graph holds, which is the same thing kept for later."""

from __future__ import annotations

import enum
from dataclasses import field, replace

from tilecheck.dataclass import dataclass
from tilecheck.proof.interleavings.boxes import Access
from tilecheck.proof.interleavings.hazard import Path


class Kind(enum.Enum):
    """What an item is."""

    WORK = "work"
    ORDER = "order"  # a wait for an event, the begin or the end of a replay: touches nothing
    TOUCH = "touch"  # by the host
    NEXT_OWNER = "next owner"  # whoever gets freed memory
    CALLER_BEFORE = "caller before"
    CALLER_AFTER = "caller after"


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a queue, with the items that must have ended before it starts, by their numbers.

    An item with a `launch_before` is dependent: it starts when that launch has started. It makes its `early`
    accesses from then on, and its `late` ones when that launch has ended. `waits` says whether all of its
    programs wait for that. `frozen` are variables that were handed over, with the action that bound each last.
    """

    path: Path
    kind: Kind
    early: tuple[Access, ...] = ()
    late: tuple[Access, ...] = ()
    after: tuple[int, ...] = ()
    launch_before: int | None = None
    waits: bool = True
    is_launch: bool = False
    frozen: tuple[tuple[str, int], ...] = ()

    @property
    def accesses(self) -> tuple[Access, ...]:
        return self.early + self.late


@dataclass(slots=True)
class Recording:
    """Items in the order in which they were enqueued, and the numbers of those of each stream."""

    items: list[Item] = field(default_factory=list)
    streams: dict[str, list[int]] = field(default_factory=dict)

    def tail(self, stream: str) -> int | None:
        """The last item of the stream."""
        numbers = self.streams.get(stream)
        return numbers[-1] if numbers else None

    def put(self, item: Item) -> int:
        """Hold an item that is in no stream."""
        self.items.append(item)
        return len(self.items) - 1

    def enqueue(self, stream: str, item: Item, *, dependent: bool = False) -> int:
        """Put an item behind what the stream holds. It depends on the start of a launch right before it."""
        tail = self.tail(stream)
        if tail is not None:
            if dependent and self.items[tail].is_launch:
                item = replace(item, launch_before=tail)
            else:
                item = replace(item, after=(*item.after, tail))
        number = self.put(item)
        self.streams.setdefault(stream, []).append(number)
        return number

    def replay(self, stream: str, graph: Recording, step: int, after: tuple[int, ...]) -> int:
        """Put a copy of all that the graph holds into the stream, as one item: begin, the items, end."""
        begin = self.enqueue(stream, Item((step,), Kind.ORDER, after=after))
        first = begin + 1
        for item in graph.items:
            path = (step, *item.path)
            if item.launch_before is None:
                follows = tuple(first + number for number in item.after) or (begin,)
                self.put(replace(item, path=path, after=follows))
            else:
                self.put(replace(item, path=path, launch_before=first + item.launch_before))
        end = self.put(Item((step,), Kind.ORDER, after=tuple(range(begin, len(self.items)))))
        self.streams[stream].append(end)
        return end
