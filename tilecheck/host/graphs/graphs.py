"""Graphs: captured once, launched many times."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tilecheck.host.errors import HostRefused
from tilecheck.host.graphs.describe import Description
from tilecheck.host.memory.handles import Array, Borrowed, View
from tilecheck.host.places import Place, caller, text_of
from tilecheck.host.streams.clocks import has_ended
from tilecheck.host.streams.tasks import current_task

if TYPE_CHECKING:
    from tilecheck.host.graphs.owners import Owner
    from tilecheck.host.memory.uses import Order
    from tilecheck.host.operations.operations import Operation
    from tilecheck.host.streams.streams import Stream

T = TypeVar("T")


class GraphState(enum.Enum):
    """What the outputs of a graph are worth."""

    CAPTURED = "captured"  # it was never launched: they hold nothing
    LAUNCHED = "launched"  # they are being written
    COMPLETE = "complete"  # they are written
    CLOSED = "closed"


class Graph(Generic[T]):
    """A captured graph.

    It owns what it touches: between two launches nothing but its inputs is written, and all its memory lives
    until the graph is closed or dropped. Its updates and launches are in order, on whatever streams they are.
    """

    def __init__(
        self,
        owner: Owner,
        inputs: Mapping[str, Array],
        outputs: Mapping[str, View],
        description: Description,
    ) -> None:
        self._owner = owner
        self._inputs = dict(inputs)
        self._outputs = dict(outputs)
        self._description = description

    def __del__(self) -> None:
        if hasattr(self, "_description"):
            self._owner.runtime.reaper.abandoned(self._owner)

    def __enter__(self) -> Graph[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{self._owner.name}, {self.state.value}>"

    @property
    def state(self) -> GraphState:
        owner = self._owner
        if owner.is_closed:
            return GraphState.CLOSED
        if not owner.generation:
            return GraphState.CAPTURED
        with owner.runtime.lock:
            ledger = owner.runtime.ledger
            if not owner.is_complete:
                owner.is_complete = has_ended(owner.item, 0, 0, ledger.done) or (
                    owner.runtime.capture is None and ledger.saw_idle(owner.item.queue)
                )
        return GraphState.COMPLETE if owner.is_complete else GraphState.LAUNCHED

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of its inputs."""
        return tuple(self._inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of its outputs."""
        return tuple(self._outputs)

    def describe(self) -> Description:
        """Its nodes, their order, and the memory that it owns."""
        return self._description

    def launch(self, stream: Stream | None = None, *, order: Order | None = None) -> None:
        """Enqueue everything that was captured, behind the launch or update before.

        Args:
            stream: where; else what the policy says.
            order: what to do about work of others in flight on its memory.

        Raises:
            HostRefused: work of others on its memory is not in order, or the graph is closed.
        """
        owner = self._owner
        runtime = owner.runtime
        place = caller()
        runtime.enter(place)
        try:
            if owner.is_closed or runtime.capture is not None:
                self._check_open("a launch", place)
            queue = runtime.ledger.queue((stream or runtime.policy.next_stream(runtime)).handle)
            owner.launch(queue, place, order or runtime.order)
        finally:
            runtime.leave()

    def update(
        self, inputs: Mapping[str, Any], stream: Stream | None = None, *, order: Order | None = None
    ) -> None:
        """Copy new contents into inputs, behind the launch or update before.

        Args:
            inputs: by name: arrays of the shape and element type of the input, on the device or the host.
            stream: where; else what the policy says.
            order: what to do about work of others in flight on the new contents.

        Raises:
            HostRefused: there is no such input, its shape or type is another, or an access is not in order.
        """
        from tilecheck.host.operations.copies import (  # lazy: copies build on operations, which make graphs
            transfer,
        )
        from tilecheck.host.operations.operations import Execution  # lazy: as above

        place = caller()
        owner = self._owner
        runtime = owner.runtime
        runtime.enter(place)
        try:
            self._check_open("an update", place)
            queue = runtime.ledger.queue((stream or runtime.policy.next_stream(runtime)).handle)
            on = Execution(runtime, queue, order or runtime.order, place, (owner,))
            for name, value in inputs.items():
                on.run(self._fitting(name, value, place, transfer))
        finally:
            runtime.leave()

    def _fitting(
        self, name: str, value: Any, place: Place, transfer: Callable[..., Operation[Any]]
    ) -> Operation[Any]:
        """The copy of new contents into an input.

        Raises:
            HostRefused: there is no such input, or the contents do not fit.
        """
        if name not in self._inputs:
            known = ", ".join(f"`{each}`" for each in self._inputs) or "none"
            raise HostRefused(
                "TC423",
                f"the update at {text_of(place)} names `{name}`, which is no input of the graph",
                f"its inputs: {known}",
            )
        to = self._inputs[name]
        try:
            return transfer(self._owner.runtime, value, to, None, place)
        except ValueError as error:
            raise HostRefused(
                "TC423",
                f"the update of `{name}` at {text_of(place)} does not fit: {error}",
                f"it was captured with {to.dtype}{list(to.shape)}",
            ) from None

    def output(self, name: str | int = 0) -> Borrowed:
        """An output as the latest launch leaves it, good until the next.

        Raises:
            HostRefused: the graph was not launched yet, or is closed.
        """
        owner = self._owner
        place = caller()
        if owner.is_closed or not owner.generation:
            raise HostRefused(
                "TC426",
                f"an output is taken at {text_of(place)} from a graph that is {self.state.value}",
                f"it was captured at {text_of(owner.place)}; capturing runs nothing",
                "help: launch it first",
            )
        view = self._outputs[str(name)]
        recorder = owner.runtime.ledger.recorder
        kept = recorder.keep(view.home(), place) if recorder is not None else ""
        return Borrowed(owner, view, kept, place)

    def sync(self) -> None:
        """Wait for the latest launch."""
        owner = self._owner
        owner.runtime.refuse_in_capture("`sync()`", caller())
        with owner.runtime.lock:
            owner.runtime.ledger.join(owner.last.queue)

    def close(self) -> None:
        """End the graph: its arrays are exclusive again. Work in flight goes on."""
        with self._owner.runtime.lock:
            self._owner.close()

    def _check_open(self, what: str, place: Place) -> None:
        owner = self._owner
        if owner.is_closed:
            raise HostRefused(
                "TC421",
                f"{what} at {text_of(place)} of a graph that was closed",
                f"it was captured at {text_of(owner.place)}",
            )
        if owner.runtime.capture is not None:
            owner.runtime.capture.forbid(f"{what} of a graph", place)


class Updating:
    """A `with` block whose work on one stream updates graphs. Mutable: it is entered once."""

    def __init__(self, graphs: Sequence[Graph[Any]], stream: Stream, place: Place) -> None:
        self._graphs = tuple(graphs)  # kept open by this
        self._stream = stream
        self._place = place
        self._task: object = None  # the one that is in the block

    def __enter__(self) -> Updating:  # noqa: PYI034 - `typing.Self` is newer than Python 3.10
        runtime = self._stream.runtime
        runtime.enter(self._place)
        try:
            for graph in self._graphs:
                graph._check_open("an update", self._place)  # noqa: SLF001 - of this module
            task = current_task()
            if task in runtime.updating:
                raise HostRefused("TC423", f"`updating` at {text_of(self._place)} inside another `updating`")
            owners = tuple(graph._owner for graph in self._graphs)  # noqa: SLF001 - as above
            runtime.updating[task] = (runtime.ledger.queue(self._stream.handle), owners)
            self._task = task
        finally:
            runtime.leave()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stream.runtime.lock:
            del self._stream.runtime.updating[self._task]


def updating(stream: Stream, *graphs: Graph[Any]) -> Updating:
    """A `with` block: what it submits on the stream may write the inputs of the graphs.

    As an update does, work that uses their memory comes behind the latest launches and updates of the graphs,
    and before the next. Everything else of their memory can be read, and not be written.

    Args:
        stream: whose work it is; work on other streams, and of other threads and tasks, updates nothing.
        graphs: of the runtime of the stream.

    Raises:
        HostRefused: when the block begins: a graph is closed, or something is captured, or the block is inside
            another one.
    """
    if any(graph._owner.runtime is not stream.runtime for graph in graphs):  # noqa: SLF001 - of this module
        raise ValueError("`updating` is given graphs of another runtime than that of the stream")
    return Updating(graphs, stream, caller())
