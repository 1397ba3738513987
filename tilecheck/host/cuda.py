"""The GPU through cuda.core, with PyTorch's and CuPy's current streams as those of the user's own code.

Streams, events and device memory are cuda.core's. Copies and fills by address, and the question whether a
stream is idle, are calls of the driver, which cuda.core has no names for; so are graphs, for the reason that
`_Executable` gives. PyTorch and CuPy are used where the program has imported them, and never imported.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from cuda.bindings import driver as bindings
from cuda.core import LEGACY_DEFAULT_STREAM, Device, Stream
from cuda.core.utils import StridedMemoryView

from tilecheck.host.memory.arrays import DeviceArray, size_of
from tilecheck.jit.driver import allocation, call

_NOT_READY = 600  # CUDA_ERROR_NOT_READY: the work goes on
_USE_NODE_PRIORITY = (
    8  # CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY: of the stream that a node was captured on
)
_FILLS = {1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async"}


class Cuda:
    """The current device of the process."""

    def __init__(self) -> None:
        self._torch: Any = None
        self._current: Any = None  # PyTorch's function for the current stream
        torch = self._pytorch()
        self._ordinal = torch.cuda.current_device() if torch is not None else Device().device_id
        self._device = Device(self._ordinal)
        self._threads = threading.local()
        self._outside: dict[int, Any] = {}  # streams of PyTorch's for handles
        self._own = 0  # the current stream where nobody else has one
        self._use()

    def _use(self) -> None:
        """Make the device current in this thread."""
        if not getattr(self._threads, "is_ready", False):
            self._device.set_current()
            self._threads.is_ready = True

    def _pytorch(self) -> Any | None:
        """PyTorch, if the program uses it on a GPU."""
        if self._torch is None:
            found = sys.modules.get("torch")
            if found is not None and found.cuda.is_available():
                found.cuda.init()
                self._torch = found
                # What Triton asks for its launches; `torch.cuda.current_stream` makes an object each time.
                self._current = found._C._cuda_getCurrentRawStream  # noqa: SLF001 - as said
        return self._torch

    # ---- streams and events ----------------------------------------------------------------------------------

    def new_stream(self) -> _Stream:
        self._use()
        stream = self._device.create_stream()
        return _Stream(stream, int(stream.handle))

    def stream_of(self, handle: int) -> _Stream:
        return _Stream(Stream.from_handle(handle) if handle else LEGACY_DEFAULT_STREAM, handle)

    def handle(self, stream: _Stream) -> int:
        return stream.handle

    def current(self) -> int:
        if self._current is not None or self._pytorch() is not None:
            handle: int = self._current(self._ordinal)
            return handle
        cupy = sys.modules.get("cupy")
        return self._own if cupy is None else int(cupy.cuda.get_current_stream().ptr)

    def using(self, stream: _Stream) -> AbstractContextManager[None]:
        handle = stream.handle
        torch, cupy = self._torch or self._pytorch(), sys.modules.get("cupy")
        if torch is not None and cupy is None:
            return _TorchStream(torch._C, self._ordinal, self._outside_of(torch, handle))  # noqa: SLF001 - as above
        return self._using(handle, torch, cupy)

    def _outside_of(self, torch: Any, handle: int) -> Any:
        """PyTorch's object for a stream."""
        outside = self._outside.get(handle)
        if outside is None:
            outside = self._outside[handle] = (
                torch.cuda.ExternalStream(handle, device=self._ordinal)
                if handle
                else torch.cuda.default_stream(self._ordinal)
            )
        return outside

    @contextlib.contextmanager
    def _using(self, handle: int, torch: Any | None, cupy: Any | None) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if torch is not None:
                stack.enter_context(torch.cuda.stream(self._outside_of(torch, handle)))
            if cupy is not None:
                stack.enter_context(cupy.cuda.ExternalStream(handle))
            before, self._own = self._own, handle
            try:
                yield
            finally:
                self._own = before

    def record(self, stream: _Stream) -> Any:
        self._use()
        return stream.core.record()

    def wait(self, stream: _Stream, event: Any) -> None:
        self._use()
        stream.core.wait(event)

    def is_done(self, event: Any) -> bool:
        self._use()
        return bool(event.is_done)

    def is_idle(self, stream: _Stream) -> bool:
        self._use()
        (status,) = bindings.cuStreamQuery(stream.handle)
        if int(status) == _NOT_READY:
            return False
        if int(status):
            raise RuntimeError(f"cuStreamQuery: {status}")
        return True

    def sync(self, stream: _Stream) -> None:
        self._use()
        stream.core.sync()

    def sync_event(self, event: Any) -> None:
        self._use()
        event.sync()

    def sync_device(self) -> None:
        self._use()
        self._device.sync()

    # ---- memory ----------------------------------------------------------------------------------------------

    def empty(self, shape: tuple[int, ...], dtype: str, stream: _Stream) -> Any:
        torch = self._pytorch()
        if torch is None:
            nbytes = size_of(dtype)
            for extent in shape:
                nbytes *= extent
            buffer = self._device.allocate(max(1, nbytes), stream=stream.core)
            return DeviceArray(int(buffer.handle), shape, dtype, buffer)
        kind = getattr(torch, dtype)
        if self.current() == stream.handle:
            return torch.empty(shape, dtype=kind, device=f"cuda:{self._ordinal}")
        with self.using(stream):
            return torch.empty(shape, dtype=kind, device=f"cuda:{self._ordinal}")

    def pinned(self, nbytes: int) -> tuple[int, Any]:
        self._use()
        (address,) = call("cuMemAllocHost", nbytes)
        return int(address), _Pinned(int(address))

    def imported(self, value: Any) -> Any | None:
        if not hasattr(value, "__dlpack__"):
            return None
        view = StridedMemoryView.from_dlpack(value, stream_ptr=-1)  # its owner's stream is ordered by us
        if not view.is_device_accessible:
            return None
        strides = None if view.strides is None else tuple(view.strides)
        return DeviceArray(int(view.ptr), tuple(view.shape), str(view.dtype), (value, view), strides)

    def private(self, array: Any) -> Any | None:
        if type(array) is DeviceArray:  # has no method that changes it
            return array
        torch = self._torch or self._pytorch()
        # Only of PyTorch's own types is it known what `detach` makes.
        is_tensor = torch is not None and type(array) in (torch.Tensor, torch.nn.Parameter)
        return array.detach() if is_tensor else None

    def allocation(self, address: int) -> tuple[int, int] | None:
        self._use()
        return allocation(address)

    def allocations(self) -> int:
        torch = self._pytorch()
        if torch is None:
            return 0
        return int(torch.cuda.memory_stats(self._ordinal).get("allocation.all.allocated", 0))

    # ---- work ------------------------------------------------------------------------------------------------

    def copy(self, stream: _Stream, to: int, source: int, nbytes: int) -> None:
        self._use()
        (status,) = bindings.cuMemcpyAsync(to, source, nbytes, stream.handle)
        if status:
            raise RuntimeError(f"cuMemcpyAsync: {status}")

    def fill(self, stream: _Stream, address: int, nbytes: int, pattern: bytes) -> None:
        self._use()
        value = int.from_bytes(pattern, "little")
        call(_FILLS[len(pattern)], address, value, nbytes // len(pattern), stream.handle)

    # ---- graphs ----------------------------------------------------------------------------------------------

    def begin_capture(self, stream: _Stream) -> None:
        self._use()
        # Relaxed: kernels that are launched for the first time are compiled and loaded meanwhile. What may not
        # be captured is refused before it reaches the driver.
        call(
            "cuStreamBeginCapture",
            stream.handle,
            bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED,
        )

    def end_capture(self, stream: _Stream, capture: Any) -> Any:
        (graph,) = call("cuStreamEndCapture", stream.handle)
        try:
            (executable,) = call("cuGraphInstantiate", graph, _USE_NODE_PRIORITY)
        finally:
            call("cuGraphDestroy", graph)
        call("cuGraphUpload", executable, stream.handle)
        return _Executable(executable)

    def abort_capture(self, stream: _Stream, capture: Any) -> None:
        (status, graph) = bindings.cuStreamEndCapture(stream.handle)
        if not int(status) and int(graph):  # a capture that has become invalid says so when it ends
            call("cuGraphDestroy", graph)

    def replay(self, graph: Any, stream: _Stream) -> None:
        self._use()
        (status,) = bindings.cuGraphLaunch(graph.handle, stream.handle)
        if status:
            raise RuntimeError(f"cuGraphLaunch: {status}")


class _Stream:
    """A stream of cuda.core and its handle, which takes cuda.core a microsecond."""

    __slots__ = ("core", "handle")

    def __init__(self, core: Any, handle: int) -> None:
        self.core = core
        self.handle = handle


class _Executable:
    """A graph that can be launched, destroyed with the last reference to it.

    It is captured and launched by the driver. Graphs that cuda.core 1.2 captures wait for the device when some
    thirty of their launches are in flight; those that the driver or PyTorch captures take more than 400 (H200).
    """

    __slots__ = ("handle",)

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def __del__(self) -> None:
        call("cuGraphExecDestroy", self.handle)


class _TorchStream:
    """`torch.cuda.stream` for a stream of a known device, in a fifth of its time."""

    __slots__ = ("_before", "_ordinal", "_stream", "_torch")

    def __init__(self, torch: Any, ordinal: int, stream: Any) -> None:
        self._torch = torch  # its C module
        self._ordinal = ordinal
        self._stream = stream

    def __enter__(self) -> None:
        self._before = self._torch._cuda_getCurrentStream(self._ordinal)  # noqa: SLF001 - what its Python code calls
        stream = self._stream
        self._set(stream.stream_id, stream.device_index, stream.device_type)

    def __exit__(self, *_: object) -> None:
        self._set(*self._before)

    def _set(self, stream: int, device: int, kind: int) -> None:
        self._torch._cuda_setStream(stream_id=stream, device_index=device, device_type=kind)  # noqa: SLF001 - as above


class _Pinned:
    """Page-locked memory, freed with the last reference to it."""

    __slots__ = ("_address",)

    def __init__(self, address: int) -> None:
        self._address = address

    def __del__(self) -> None:
        call("cuMemFreeHost", self._address)
