"""One GPU as the library uses it: its memory in play, its streams, and the one way by which work gets there."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tilecheck.host.driver import Driver
from tilecheck.host.errors import HostRefused
from tilecheck.host.ledger import Ledger
from tilecheck.host.memory.handles import Array, View, place_of
from tilecheck.host.memory.reaper import Reaper
from tilecheck.host.memory.storage import Table
from tilecheck.host.memory.uses import YOUR_CODE, Order, Use
from tilecheck.host.memory.written_bytes import Written
from tilecheck.host.operations.operations import Execution, Operation, State
from tilecheck.host.places import Place, text_of
from tilecheck.host.streams.clocks import Item, Mark, Queue
from tilecheck.host.streams.policies import Policy, SingleStream
from tilecheck.host.streams.streams import Stream
from tilecheck.host.streams.tasks import current_task
from tilecheck.ir.host_program import Place as Kind

if TYPE_CHECKING:
    from tilecheck.host.graphs.capture import Capture
    from tilecheck.host.graphs.owners import Owner

T = TypeVar("T")


class Runtime:
    """A GPU. Mutable, and safe to use from several threads: one of them enqueues at a time.

    Args:
        driver: what to drive it by.
        policy: the stream of an operation that names none; else the stream of the user's own code.
        order: what to do where an operation conflicts with work in flight on another stream: "refuse" it, or
            wait for an event of that stream ("events").
        background: whether a thread frees what was dropped in flight; else `reap` does.
    """

    def __init__(
        self, driver: Driver, *, policy: Policy | None = None, order: Order = "refuse", background: bool = True
    ) -> None:
        self.driver = driver
        self.policy = policy or SingleStream()
        self.order = order
        self.ledger = Ledger(driver)
        self.table = Table()
        self.reaper = Reaper(self, background=background)
        self.capture: Capture | None = None
        # The graphs that work on a stream updates, by the task that submits it.
        self.updating: dict[object, tuple[Queue, tuple[Owner, ...]]] = {}
        self.launches = 0  # of graphs
        self._capture_stream: Stream | None = None
        self.lock = threading.RLock()
        self._is_mine: Callable[[], bool] = self.lock._is_owned  # type: ignore[attr-defined]  # noqa: SLF001 - for `threading.Condition`
        self.is_executing = False  # whether the thread that holds the lock runs an operation
        self._names = itertools.count(1)
        self._streams = itertools.count(1)

    # ---- one thread at a time --------------------------------------------------------------------------------

    def enter(self, place: Place) -> None:
        """Begin an execution.

        Raises:
            HostRefused: this thread is inside of one already.
        """
        self.lock.acquire()
        if self.is_executing:
            self.lock.release()
            raise HostRefused(
                "TC422" if self.capture is not None else "",
                f"an operation is run at {text_of(place)} inside another that runs",
                "help: give it back from `then`, which runs it on the same stream",
            )
        self.is_executing = True

    def leave(self) -> None:
        """End an execution."""
        self.is_executing = False
        self.lock.release()

    def pause(self) -> None:
        """Allow executions inside one that goes on: the work of a capture."""
        self.is_executing = False

    def collect_if_free(self) -> None:
        """Free what was dropped, unless somebody holds the lock: they do it later. Never waits."""
        # The garbage collector may run in the midst of what this thread does with the runtime.
        if self._is_mine() or not self.lock.acquire(blocking=False):
            return
        try:
            self.reaper.collect(self)
        finally:
            self.lock.release()

    # ---- running operations ----------------------------------------------------------------------------------

    def submit(self, operation: Operation[T], stream: Stream | None, order: Order | None, place: Place) -> T:
        """Enqueue an operation; its result."""
        self.enter(place)
        try:
            capture = self.capture
            graphs: tuple[Owner, ...] = ()
            if capture is not None:
                queue = capture.queue_for(stream, place)
            else:
                if self.reaper.is_needed:
                    self.reaper.collect(self)
                queue = self.ledger.queue((stream or self.policy.next_stream(self)).handle)
                if self.updating:
                    updated, owners = self.updating.get(current_task(), (None, ()))
                    if updated is queue:
                        graphs = owners
            if operation.state is not State.WAITING:
                operation.take(place, State.WAITING)  # refuses what has run
            operation.used = place
            on = Execution(self, queue, order or self.order, place, graphs)
            value = on.run(operation)
            if on.order == "events" and on.items:
                # Recorded now, the event covers this work and not what the stream gets later.
                queue.marks.append(self.ledger.mark(queue))
            return value
        finally:
            self.leave()

    def sync(self, operation: Operation[T], stream: Stream | None, order: Order | None, place: Place) -> T:
        """Enqueue an operation and wait for it."""
        self.refuse_in_capture("`sync()`", place)
        if stream is None:
            stream = self.policy.next_stream(self)
        value = self.submit(operation, stream, order, place)
        with self.lock:
            self.ledger.join(self.ledger.queue(stream.handle))
        return value

    def start(self, operation: Operation[T], place: Place) -> tuple[T, Mark]:
        """Enqueue an operation; its result, and the event behind it."""
        self.refuse_in_capture("`await`", place)
        stream = self.policy.next_stream(self)
        value = self.submit(operation, stream, None, place)
        with self.lock:
            return value, self.ledger.mark(self.ledger.queue(stream.handle))

    def refuse_in_capture(self, what: str, place: Place) -> None:
        """Refuse what cannot be part of a graph.

        Raises:
            HostRefused: this thread captures a graph.
        """
        if self.capture is not None and self._is_mine():
            self.capture.forbid(what, place)

    # ---- streams ---------------------------------------------------------------------------------------------

    def stream(self) -> Stream:
        """A new stream."""
        raw = self.driver.new_stream()
        handle = self.driver.handle(raw)
        with self.lock:
            self.ledger.queues[handle] = Queue(raw, handle, f"stream {next(self._streams)}")
        return Stream(self, handle)

    def capture_stream(self) -> Stream:
        """The stream on which graphs are captured that name none."""
        if self._capture_stream is None:
            self._capture_stream = self.stream()
        return self._capture_stream

    def stream_of(self, stream: Any) -> Stream:
        """A stream that somebody else made: its handle, or an object of PyTorch or with `__cuda_stream__`."""
        handle = getattr(stream, "cuda_stream", None)
        if handle is None:
            protocol = getattr(stream, "__cuda_stream__", None)
            handle = stream if protocol is None else (protocol() if callable(protocol) else protocol)[1]
        if not isinstance(handle, int):
            raise TypeError(f"a {type(stream).__name__} is no stream")
        return Stream(self, handle)

    def current(self) -> Stream:
        """The stream on which the user's own code works now."""
        return Stream(self, self.driver.current())

    def queue_of(self, handle: int) -> Queue:
        """What the stream holds: of the graph, while the stream is captured."""
        if self.capture is not None and handle in self.capture.queues:
            return self.capture.queues[handle]
        return self.ledger.queue(handle)

    def synchronize(self, place: Place) -> None:
        """Wait until the device is idle."""
        self.refuse_in_capture("`synchronize()`", place)
        with self.lock:
            self.ledger.join_all()
            self.reaper.collect(self)

    # ---- memory ----------------------------------------------------------------------------------------------

    def name(self, what: str) -> str:
        """A name that nothing else has."""
        return f"{what} {next(self._names)}"

    def allocate(self, shape: tuple[int, ...], dtype: str, queue: Queue, place: Place) -> Array:
        """A new array, which may be used on the stream at once."""
        array = self.driver.empty(shape, dtype, queue.raw)
        storage, region = place_of(self, array)
        storage.written = Written()
        storage.settle()
        if self.ledger.recorder is not None:
            self.ledger.recorder.allocate(storage, queue, place)
        return Array(self, array, storage, region, place)

    def adopt(self, array: Any, place: Place) -> Array:
        """The exclusive handle of an array that the user's own code made.

        What that code has done with it until now is on its current stream. An array that has a handle already
        is known: between the two the user's code has no right to it.
        """
        if not hasattr(array, "data_ptr") and not hasattr(array, "__cuda_array_interface__"):
            array = self.driver.imported(array) or array
        with self.lock:
            storage, region = place_of(self, array, is_foreign=True)
            if storage.kind is Kind.DEVICE and not storage.is_held(region):
                self.ledger.assume(self.ledger.queue(self.driver.current()), storage, region, place, write=True)
            return Array(self, array, storage, region, place)

    def hand_out(self, view: View, place: Place, order: Order | None) -> None:
        """Put the user's own code, on its current stream, in order with all that was enqueued on an array."""
        with self.lock:
            queue = self.queue_of(self.driver.current())
            use = Use(view, view.region, isinstance(view, Array), "the array")
            self.ledger.claim(queue, (use,), Item(queue, YOUR_CODE, place), order or self.order)
            self.ledger.hand_out(view.home(), view.region, queue, write=use.write)

    def reap(self) -> None:
        """Free what was dropped in flight and has ended."""
        with self.lock:
            if self.capture is None:
                self.reaper.look(self)
