"""Streams and events as a program names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilecheck.host.errors import HostRefused
from tilecheck.host.places import caller, text_of
from tilecheck.host.streams.clocks import Mark, Queue

if TYPE_CHECKING:
    from tilecheck.host.runtime import Runtime


class Event:
    """A moment in a stream: the end of what it held when the event was recorded."""

    __slots__ = ("mark", "runtime")

    def __init__(self, runtime: Runtime, mark: Mark) -> None:
        self.runtime = runtime
        self.mark = mark

    def is_done(self) -> bool:
        """Whether the moment has passed."""
        with self.runtime.lock:
            if self.mark.capture is not None or not self.runtime.driver.is_done(self.mark.event):
                return False
            self.runtime.ledger.passed(self.mark)
            return True

    def sync(self) -> None:
        """Wait for the moment."""
        with self.runtime.lock:
            self.runtime.refuse_in_capture("a wait of the host", caller())
            self.runtime.ledger.join_mark(self.mark)


class Stream:
    """A stream. Two objects for one handle are the same stream."""

    __slots__ = ("handle", "runtime")

    def __init__(self, runtime: Runtime, handle: int) -> None:
        self.runtime = runtime
        self.handle = handle

    def __repr__(self) -> str:
        return f"<Stream {self.handle:#x}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (other.handle, other.runtime) == (self.handle, self.runtime)

    def __hash__(self) -> int:
        return hash(self.handle)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    @property
    def queue(self) -> Queue:
        """What the stream holds: of the graph, while the stream is captured."""
        return self.runtime.queue_of(self.handle)

    def record(self) -> Event:
        """An event behind what the stream holds."""
        with self.runtime.lock:
            return Event(self.runtime, self.runtime.ledger.mark(self.queue))

    def wait(self, what: Event | Stream) -> None:
        """Have the stream wait for an event, or for what another stream holds.

        Raises:
            HostRefused: one of the two is captured into a graph and the other is not.
        """
        place = caller()
        with self.runtime.lock:
            ledger = self.runtime.ledger
            mark = what.mark if isinstance(what, Event) else ledger.mark(what.queue)
            queue = self.queue
            if mark.capture is not queue.capture:
                capture = mark.capture
                if capture is None or capture.is_over or queue.capture is not None:
                    raise HostRefused(
                        "TC422",
                        f"at {text_of(place)} a captured stream and one that is not wait for each other",
                        "what a graph holds runs when the graph is launched: it is ordered as a whole",
                    )
                queue = capture.join(self.handle)
            ledger.wait(queue, mark)

    def sync(self) -> None:
        """Wait until the stream is empty."""
        with self.runtime.lock:
            self.runtime.refuse_in_capture("a wait of the host", caller())
            self.runtime.ledger.join(self.queue)

    def close(self) -> None:
        """Wait until the stream is empty, and let go of it. Its handle may then be that of another stream."""
        self.sync()
        with self.runtime.lock:
            self.runtime.ledger.queues.pop(self.handle, None)
