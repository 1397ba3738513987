"""The refusals of accesses: both sites, both ranges, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilecheck.host.errors import HostRefused
from tilecheck.host.memory.storage import Found, Storage
from tilecheck.host.memory.uses import Use
from tilecheck.host.places import Place, text_of
from tilecheck.host.streams.clocks import Clock, Item, Queue

if TYPE_CHECKING:
    from tilecheck.host.graphs.owners import Owner


def _does(write: bool) -> str:
    return "writes" if write else "reads"


def conflict(
    use: Use, item: Item, found: Found, queue: Queue, known: Clock, *, early: bool, waits: bool
) -> HostRefused:
    """An access that is not in order with one in flight.

    Args:
        use: the access.
        item: the work that makes it.
        found: the access in flight.
        queue: the stream of the work.
        known: what has ended when the work starts, its own stream apart.
        early: whether the access is made before the wait of a dependent launch.
        waits: whether all programs of the work wait.
    """
    other, theirs, writes = found
    base = use.view.home().start
    # Whether they would be in order if no launch depended on the start of the one before it.
    overlaps = other.queue is queue or any(lane > other.lane for lane in known.keys() & other.queue.lanes)
    code = "TC411"
    if other.is_replay and item.is_replay:
        code = "TC425"
    elif overlaps:
        code = ("TC431" if waits else "TC432") if early else "TC433"
    when = " before it waits for the launch before it" if early else ""
    mine = f"{item.name} at {text_of(item.place)} on {queue.name} {_does(use.write)} `{use.label}`{when}, "
    that = f"{other.name} at {text_of(other.place)} on {other.queue.name} {_does(writes)} "
    notes = [mine + use.region.text(base), that + f"{theirs.text(base)}, and may not have ended"]
    if code == "TC433":
        notes.append("a launch between them need not wait: its end says nothing of what came before it")
        notes.append(f"help: wait for {other.queue.name} before it (`Stream.sync`)")
    elif overlaps:
        notes.append("help: launch it without `dependent=True`, or have the kernel wait before this access")
    else:
        notes.append(
            f"help: submit it on {other.queue.name}, have {queue.name} wait for that one (`Stream.wait`), or "
            'pass order="events"'
        )
    return HostRefused(code, f"{item.name} is not in order with {other.name}", *notes)


def touch(storage: Storage, found: Found, place: Place, what: str, *, write: bool) -> HostRefused:
    """An access of the host itself to memory that work in flight uses."""
    other, theirs, writes = found
    return HostRefused(
        "TC415",
        f"the host {_does(write)} {what} at {text_of(place)} while work in flight {_does(writes)} it",
        f"{other.name} at {text_of(other.place)} on {other.queue.name}, {theirs.text(storage.start)}",
        f"help: wait for {other.queue.name} first (`sync()`)",
    )


def captured(use: Use, item: Item, graph: Owner) -> HostRefused:
    """A write to memory that a graph has captured."""
    return HostRefused(
        "TC423",
        f"{item.name} at {text_of(item.place)} writes `{use.label}`, which a graph has captured",
        f"the graph was captured at {text_of(graph.place)}",
        "help: declare the array as an input of the graph and use `graph.update(...)` or `updating(...)`",
    )


def not_launched(use: Use, item: Item, graph: Owner) -> HostRefused:
    """A read of what a graph has yet to write."""
    return HostRefused(
        "TC426",
        f"{item.name} at {text_of(item.place)} reads `{use.label}`, which only a graph writes that was not "
        "launched yet",
        f"the graph was captured at {text_of(graph.place)}",
        "help: launch the graph first",
    )


def breaks_order(queue: Queue, item: Item) -> HostRefused:
    """A launch that need not wait, on a stream that your own code works on."""
    return HostRefused(
        "TC432",
        f"{item.name} at {text_of(item.place)} need not wait for the launch before it, and your own code works "
        f"on {queue.name}",
        "what that code enqueues next would start while what it enqueued before may still run",
        "help: launch it without `dependent=True`, or on a stream of `host.stream()`",
    )
