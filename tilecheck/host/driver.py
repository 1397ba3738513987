"""What the library asks of a GPU. `cuda.py` is the real one; tests have one that runs on the CPU.

Streams, events and graphs are whatever the driver makes of them: they are only handed back to it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol


class Driver(Protocol):
    """A GPU with streams. Calls that fail raise; after a fault of the device, every call may."""

    # ---- streams and events ----------------------------------------------------------------------------------

    def new_stream(self) -> Any:
        """A stream that waits for no other."""

    def stream_of(self, handle: int) -> Any:
        """The stream that somebody else made, by its handle."""

    def handle(self, stream: Any) -> int:
        """The number by which kernels are launched on a stream."""

    def current(self) -> int:
        """The handle of the stream on which the user's own code works now."""

    def using(self, stream: Any) -> AbstractContextManager[None]:
        """Have the user's own code work on a stream."""

    def record(self, stream: Any) -> Any:
        """An event that ends when what the stream holds now has ended."""

    def wait(self, stream: Any, event: Any) -> None:
        """Have the stream wait for the event."""

    def is_done(self, event: Any) -> bool: ...

    def is_idle(self, stream: Any) -> bool:
        """Whether everything that was enqueued on the stream has ended."""

    def sync(self, stream: Any) -> None:
        """Wait until everything that was enqueued on the stream has ended."""

    def sync_event(self, event: Any) -> None: ...

    def sync_device(self) -> None: ...

    # ---- memory ----------------------------------------------------------------------------------------------

    def empty(self, shape: tuple[int, ...], dtype: str, stream: Any) -> Any:
        """A new array on the device, which may be used on `stream` at once. It owns its memory."""

    def pinned(self, nbytes: int) -> tuple[int, Any]:
        """The address of new page-locked memory of the host, and its owner."""

    def imported(self, value: Any) -> Any | None:
        """An array with `__cuda_array_interface__` over the memory of one that has only DLPack's interface."""

    def private(self, array: Any) -> Any | None:
        """An object for the memory of an array, whose address, shape and type nobody else can change; None if
        there is none."""

    def allocation(self, address: int) -> tuple[int, int] | None:
        """Start and size of the device's allocation that holds an address."""

    def allocations(self) -> int:
        """How many allocations the user's own code has made so far, as far as that is known."""

    # ---- work ------------------------------------------------------------------------------------------------

    def copy(self, stream: Any, to: int, source: int, nbytes: int) -> None:
        """Copy bytes between two addresses, of the device or the host."""

    def fill(self, stream: Any, address: int, nbytes: int, pattern: bytes) -> None:
        """Repeat a pattern of 1, 2 or 4 bytes."""

    # ---- graphs ----------------------------------------------------------------------------------------------

    def begin_capture(self, stream: Any) -> Any:
        """Write what is enqueued on the stream into a graph from here on, and what waits for its events."""

    def end_capture(self, stream: Any, capture: Any) -> Any:
        """The graph, ready to be replayed."""

    def abort_capture(self, stream: Any, capture: Any) -> None:
        """End a capture whose graph is not wanted, or cannot be had."""

    def replay(self, graph: Any, stream: Any) -> None: ...
