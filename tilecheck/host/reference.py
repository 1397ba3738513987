"""A stand-in for a GPU where there is none: memory of the process, and kernels run by the reference backend.

Work is done when it is enqueued, which is one of the orders that streams and events allow. It counts as in
flight until somebody waits for it, so that ownership and order are checked as on a GPU that takes its time.
Kernels are slow: this is for small sizes, in tests and in examples that have to run anywhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import types
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tilecheck.host.driver import Driver
from tilecheck.host.memory.arrays import DeviceArray, size_of
from tilecheck.jit.guard import compile_guard
from tilecheck.jit.guard_triton import compile_guard as compile_triton_guard
from tilecheck.jit.launch import captured
from tilecheck.jit.layouts import Layout
from tilecheck.jit.modules import kernel_function
from tilecheck.jit.verdicts import record_for
from tilecheck.reference import Launch, run


class _Stream:
    """A stream: how many pieces of work it was given, and how many of them somebody has waited for."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.given = self.waited = 0
        self.capture: list[Callable[[], object]] | None = None

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class _Event(NamedTuple):
    """The end of the first pieces of work of a stream."""

    stream: _Stream
    given: int
    capture: list[Callable[[], object]] | None


class ReferenceDriver(Driver):
    """A device that does everything at once, in memory of the process. Mutable: it knows its streams."""

    def __init__(self) -> None:
        self._streams = {0: _Stream(0)}
        self._handles = itertools.count(1)
        self._current = 0
        self._captures: list[list[Callable[[], object]]] = []
        self._live: dict[int, int] = {}  # allocations: address and size

    def enqueue(self, handle: int, work: Callable[[], object]) -> None:
        """Do something now, or at each replay of the graph that the stream is captured into."""
        stream = self._streams[handle]
        if stream.capture is None:
            stream.given += 1
            work()
        else:
            stream.capture.append(work)

    # ---- streams and events ----------------------------------------------------------------------------------

    def new_stream(self) -> _Stream:
        handle = next(self._handles)
        return self._streams.setdefault(handle, _Stream(handle))

    def stream_of(self, handle: int) -> _Stream:
        return self._streams[handle]

    def handle(self, stream: _Stream) -> int:
        return stream.handle

    def current(self) -> int:
        return self._current

    @contextlib.contextmanager
    def using(self, stream: _Stream) -> Iterator[None]:
        before, self._current = self._current, stream.handle
        try:
            yield
        finally:
            self._current = before

    def record(self, stream: _Stream) -> _Event:
        return _Event(stream, stream.given, stream.capture)

    def wait(self, stream: _Stream, event: _Event) -> None:
        if event.capture is not None:  # takes the stream into the capture
            stream.capture = event.capture

    def is_done(self, event: _Event) -> bool:
        return event.given <= event.stream.waited

    def is_idle(self, stream: _Stream) -> bool:
        return stream.given == stream.waited

    def sync(self, stream: _Stream) -> None:
        stream.waited = stream.given

    def sync_event(self, event: _Event) -> None:
        event.stream.waited = max(event.stream.waited, event.given)

    def sync_device(self) -> None:
        for stream in self._streams.values():
            self.sync(stream)

    # ---- memory ----------------------------------------------------------------------------------------------

    def empty(self, shape: tuple[int, ...], dtype: str, stream: _Stream) -> DeviceArray:
        count = int(np.prod(shape, dtype=np.int64))
        address, owner = self.pinned(max(1, count) * size_of(dtype))
        return DeviceArray(address, shape, dtype, owner)

    def pinned(self, nbytes: int) -> tuple[int, Any]:
        owner = np.empty(max(1, nbytes), dtype=np.uint8)
        address = owner.ctypes.data
        self._live[address] = owner.nbytes
        return address, _Owner(owner, lambda: self._live.pop(address, None))

    def imported(self, value: Any) -> None:
        return None

    def private(self, array: Any) -> DeviceArray | None:
        return array if type(array) is DeviceArray else None

    def allocation(self, address: int) -> tuple[int, int] | None:
        return next(((a, n) for a, n in self._live.items() if a <= address < a + n), None)

    def allocations(self) -> int:
        return 0

    # ---- work ------------------------------------------------------------------------------------------------

    def copy(self, stream: _Stream, to: int, source: int, nbytes: int) -> None:
        self.enqueue(stream.handle, partial(ctypes.memmove, to, source, nbytes))

    def fill(self, stream: _Stream, address: int, nbytes: int, pattern: bytes) -> None:
        data = pattern * (nbytes // len(pattern))
        self.enqueue(stream.handle, partial(ctypes.memmove, address, data, nbytes))

    # ---- graphs ----------------------------------------------------------------------------------------------

    def begin_capture(self, stream: _Stream) -> list[Callable[[], object]]:
        stream.capture = []
        return stream.capture

    def end_capture(self, stream: _Stream, capture: list[Callable[[], object]]) -> list[Callable[[], object]]:
        self.abort_capture(stream, capture)
        return capture

    def abort_capture(self, stream: _Stream, capture: list[Callable[[], object]]) -> None:
        for each in self._streams.values():
            if each.capture is capture:
                each.capture = None

    def replay(self, graph: list[Callable[[], object]], stream: _Stream) -> None:
        stream.given += 1
        for work in graph:
            work()


class _Owner:
    """Keeps memory until nobody refers to it."""

    def __init__(self, memory: Any, freed: Callable[[], Any]) -> None:
        self.memory = memory
        self._freed = freed

    def __del__(self) -> None:
        self._freed()


class ReferenceKernel:
    """A verified kernel that the reference backend runs on the arrays of a `ReferenceDriver`.

    Args:
        kernel: a `ct.kernel`, a kernel of Triton, or the Python function of one. Constants are arguments of its
            launches like others.
        driver: where it runs.

    Raises:
        LaunchRefused: it is not verified.
    """

    def __init__(self, kernel: Any, driver: ReferenceDriver) -> None:
        function = kernel if isinstance(kernel, types.FunctionType) else kernel_function(kernel)
        self.record = record_for(function)
        is_triton = self.record.language == "triton"
        self._check = (compile_triton_guard if is_triton else compile_guard)(
            self.record, captured(function)
        ).check
        self._names = [argument.name for argument in self.record.arguments]
        self._is_flat = is_triton  # its pointers are arrays of one axis
        self._path = function.__code__.co_filename
        self._driver = driver

    def enqueue(self, stream: int, grid: Any, args: Sequence[Any], *, dependent: bool) -> None:
        """Check a launch, and run it when its turn comes.

        Raises:
            LaunchRefused: it breaks a condition of the proof.
        """
        x, y, z = (*grid, 1, 1)[:3]
        self._check((x, y, z)[: len(grid)], args)
        arguments = {
            name: elements(value, is_flat=self._is_flat) if isinstance(value, DeviceArray) else value
            for name, value in zip(self._names, args, strict=True)
        }

        def work() -> None:
            run(Launch(self._path, self.record.name, (x, y, z), arguments), record=False)

        self._driver.enqueue(stream, work)


def elements(array: DeviceArray, *, is_flat: bool = False) -> np.ndarray[Any, Any]:
    """The elements of an array of a `ReferenceDriver`, where they lie.

    Args:
        array: the array.
        is_flat: all elements from the first to the last that shape and strides reach, as one axis.
    """
    size, shape, strides = array.element_size(), array.shape, array.stride()
    reach = Layout(shape, strides, size).reach
    memory: Any = (ctypes.c_char * max(1, reach * size)).from_address(array.data_ptr())
    found: np.ndarray[Any, Any]
    if is_flat:
        found = np.ndarray((reach,), array.dtype, memory)
    else:
        found = np.ndarray(shape, array.dtype, memory, strides=tuple(step * size for step in strides))
    return found
