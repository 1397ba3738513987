"""Capture: work that is written into a graph instead of being run."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tilecheck.host.defaults import default
from tilecheck.host.errors import HostRefused
from tilecheck.host.graphs.describe import Description, Edge, Node, OwnedBuffer
from tilecheck.host.graphs.graphs import Graph
from tilecheck.host.graphs.owners import Owner
from tilecheck.host.memory.handles import Array, Borrowed, View, views_in
from tilecheck.host.memory.storage import Storage, Tracks
from tilecheck.host.memory.uses import Use
from tilecheck.host.memory.written_bytes import Written
from tilecheck.host.operations.operations import Operation
from tilecheck.host.places import Place, caller, text_of
from tilecheck.host.streams.clocks import Item, Queue
from tilecheck.host.streams.streams import Stream
from tilecheck.host.streams.tasks import current_task

if TYPE_CHECKING:
    from tilecheck.host.runtime import Runtime

T = TypeVar("T")


class Capture:
    """One capture that goes on. Mutable: nodes and streams are added.

    Its streams have an order of their own, which begins empty: nothing outside runs before or after what is
    captured, but before or after the launch of the graph as a whole.
    """

    def __init__(self, runtime: Runtime, queue: Queue, name: str, place: Place) -> None:
        self.runtime = runtime
        self.name = name
        self.place = place
        self.live = queue  # the captured stream, as it goes on when the capture is over
        self.origin = Queue(queue.raw, queue.handle, queue.name, self)
        self.queues = {queue.handle: self.origin}
        self.is_over = False
        self._task = current_task()
        self.inputs: dict[str, Array] = {}
        self.outputs: dict[str, View] = {}
        self._tracks: dict[Storage, Tracks] = {}
        self._uses: dict[Storage, list[Use]] = {}
        self._written: dict[Storage, Written] = {}
        self._unsure: list[tuple[Use, Written]] = []  # reads of what may not be written yet
        self._nodes: list[Node] = []
        self._edges: list[Edge] = []

    def forbid(self, what: str, place: Place) -> NoReturn:
        """Refuse what cannot be part of a graph.

        Raises:
            HostRefused: always.
        """
        recorder = self.runtime.ledger.recorder
        if recorder is not None:
            recorder.forbidden(what, place)
        raise HostRefused(
            "TC422",
            f"{what} at {text_of(place)} cannot be captured",
            f"the capture began at {text_of(self.place)}",
            "help: do it before the capture; the graph keeps the arrays that it uses",
        )

    def _check_task(self, place: Place) -> None:
        """Check that the task that enqueues work is the one that captures.

        Raises:
            HostRefused: another task of the thread captures.
        """
        if current_task() is not self._task:
            raise HostRefused(
                "TC422",
                f"an operation is run at {text_of(place)} while another task captures a graph",
                f"the capture began at {text_of(self.place)}",
            )

    def queue_for(self, stream: Stream | None, place: Place) -> Queue:
        """The queue of a captured stream; the first one if none is named.

        Raises:
            HostRefused: the stream is not captured.
        """
        self._check_task(place)
        if stream is None:
            return self.origin
        found = self.queues.get(stream.handle)
        if found is None:
            self.forbid(f"work on {stream!r}, which waits for no event of a captured stream,", place)
        return found

    def join(self, handle: int) -> Queue:
        """Have a stream become part of the capture, because it waits for an event of it."""
        live = self.runtime.ledger.queue(handle)
        self.queues[handle] = Queue(live.raw, handle, live.name, self)
        return self.queues[handle]

    def tracks(self, storage: Storage) -> Tracks:
        """The captured accesses to a storage."""
        found = self._tracks.get(storage)
        if found is None:
            found = self._tracks[storage] = Tracks()
        return found

    def add(self, queue: Queue, item: Item, uses: Sequence[Use], kind: str, *, starts_early: bool) -> None:
        """Note a node."""
        number = len(self._nodes)
        self._edges += [Edge(before, number, starts_early) for before in queue.heads]
        queue.heads = (number,)
        name = item.name.partition("`")[2].rpartition("`")[0] or item.name
        reads, writes = (tuple(u.label for u in uses if u.write is write) for write in (False, True))
        self._nodes.append(Node(number, kind, name, text_of(item.place), queue.name, reads, writes))
        for use in uses:
            self.own(use)
        self._follow_contents(uses)

    def _follow_contents(self, uses: Sequence[Use]) -> None:
        """Note what a node reads of new memory that no node before it writes."""
        for use in uses:
            storage = use.view.home()
            written = self._written.setdefault(storage, Written())
            if not use.write and storage.written is not None and written.misses(use.region, use.region):
                self._unsure.append((use, written.joined(Written())))
        for use in uses:
            if use.write:
                self._written[use.view.home()].add(use.region)

    def own(self, use: Use) -> None:
        """Have the graph own what a node uses: distinct regions; a write stands for reads of the same."""
        view = use.view
        if isinstance(view, Borrowed):  # each launch reads what the other graph has left then
            use = use._replace(view=view.source)
        kept = self._uses.setdefault(view.home(), [])
        for number, other in enumerate(kept):
            if other.region is use.region:
                if use.write and not other.write:
                    kept[number] = use
                return
        kept.append(use)

    def check_joined(self) -> None:
        """Check that the first stream waits for all others.

        Raises:
            HostRefused: it does not wait for one.
        """
        known = self.origin.end()
        for queue in self.queues.values():
            if any(known.get(lane, 0) < count for lane, count in queue.end().items()):
                raise HostRefused(
                    "TC422",
                    f"the capture that began at {text_of(self.place)} ends before it waits for {queue.name}",
                    "help: have the captured stream wait for it at the end of the capture",
                )

    def owner(self, raw: Any) -> Owner:
        """The owner of the complete graph."""
        uses = {storage: tuple(kept) for storage, kept in self._uses.items()}
        inputs, outputs = tuple(self.inputs.values()), tuple(self.outputs.values())
        return Owner(self.runtime, self.name, raw, self.live, uses, self._unsure, inputs, outputs, self.place)

    def description(self) -> Description:
        named = [view.home() for view in (*self.inputs.values(), *self.outputs.values())]
        buffers = tuple(
            OwnedBuffer(
                storage.name,
                storage.end - storage.start,
                storage.kind.value,
                any(use.write for use in self._uses.get(storage, ())),
                tuple(name for name, view in self.inputs.items() if view.home() is storage),
                tuple(name for name, view in self.outputs.items() if view.home() is storage),
            )
            for storage in dict.fromkeys((*self._uses, *named))
        )
        return Description(self.name, text_of(self.place), tuple(self._nodes), tuple(self._edges), buffers)


class Scope:
    """A `with` block whose work is captured. The graph is there when the block has ended.

    The capture ends with the block, also where the block raises. Mutable.
    """

    def __init__(
        self, runtime: Runtime, stream: Stream | None, inputs: Mapping[str, Array], place: Place
    ) -> None:
        self._runtime = runtime
        self._stream = stream
        self._inputs = dict(inputs)
        self._place = place
        self._capture: Capture | None = None
        self._raw: Any = None
        self._graph: Graph[Any] | None = None

    def __enter__(self) -> Scope:  # noqa: PYI034 - `typing.Self` is newer than Python 3.10
        runtime, place = self._runtime, self._place
        runtime.refuse_in_capture("another capture", place)
        for name, array in self._inputs.items():
            array.check_alive(f"the input `{name}`", place)
        stream = self._stream or runtime.capture_stream()
        if not stream.handle:
            raise ValueError("the default stream cannot be captured: name another")
        self._runtime.enter(place)
        try:
            queue = runtime.ledger.queue(stream.handle)
            capture = Capture(runtime, queue, runtime.name("graph"), place)
            capture.inputs = self._inputs
            self._raw = runtime.driver.begin_capture(queue.raw)
        except BaseException:
            runtime.leave()
            raise
        self._capture = runtime.capture = capture
        if runtime.ledger.recorder is not None:
            runtime.ledger.recorder.capture(capture.name, queue, place)
        runtime.pause()
        return self

    @property
    def stream(self) -> Stream:
        """The stream that is captured."""
        return Stream(self._runtime, self._going_on().origin.handle)

    def output(self, name: str, view: View) -> None:
        """Declare an output of the graph: what can be borrowed after a launch."""
        capture = self._going_on()
        view.check_alive("an output", caller())
        capture.outputs[name] = view

    def _going_on(self) -> Capture:
        if self._capture is None or self._capture.is_over:
            raise HostRefused("TC422", f"the capture at {text_of(self._place)} does not go on")
        return self._capture

    @property
    def graph(self) -> Graph[Any]:
        """The graph.

        Raises:
            HostRefused: the block has not ended, or has raised.
        """
        if self._graph is None:
            raise HostRefused("TC422", f"the capture at {text_of(self._place)} has no graph (yet)")
        return self._graph

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        capture, runtime = self._going_on(), self._runtime
        driver, queue = runtime.driver, capture.live
        try:
            capture.is_over = True
            if error is None:
                try:
                    capture.check_joined()
                except HostRefused:
                    driver.abort_capture(queue.raw, self._raw)
                    raise
                try:
                    raw = driver.end_capture(queue.raw, self._raw)
                except Exception as failure:
                    raise HostRefused(
                        "TC422", f"the capture at {text_of(self._place)} failed: {failure}"
                    ) from failure
                self._graph = Graph(capture.owner(raw), capture.inputs, capture.outputs, capture.description())
            else:
                with contextlib.suppress(Exception):  # the first error is the one to report
                    driver.abort_capture(queue.raw, self._raw)
            if runtime.ledger.recorder is not None:
                runtime.ledger.recorder.end_capture(capture.name, self._place)
        finally:
            runtime.capture = None
            runtime.leave()


def capture(
    stream: Stream | None = None,
    *,
    inputs: Mapping[str, Array] | None = None,
    runtime: Runtime | None = None,
) -> Scope:
    """Capture the work that is submitted inside a `with` block.

    Args:
        stream: the stream that is captured, and others as they wait for its events; else one for captures.
        inputs: arrays that may be given other contents between two launches, by name (`Graph.update`).
        runtime: where.
    """
    return Scope(runtime or default(), stream, inputs or {}, caller())


def capture_operation(operation: Operation[T], stream: Stream | None, place: Place) -> Graph[T]:
    """Capture an operation; the arrays of its result are the outputs `0`, `1`, ..."""
    scope = Scope(operation.runtime, stream, {}, place)
    with scope:
        value = operation.runtime.submit(operation, None, None, place)
        for number, view in enumerate(views_in(value)):
            scope.output(str(number), view)
    found: Graph[T] = scope.graph
    return found
