"""Ownership of GPU memory across launches: streams, pipelines, graphs and dependent launches, checked as they
are enqueued.

    from tilecheck import host

    x = host.zeros(1024).sync()
    x, y = host.launch(kernel, (8,), (x, y)).submit(stream)

Operations are lazy. Arrays are owned: an operation that writes one takes it and gives it back. Work on several
streams is in order by streams, events and joins, or it is refused, with both places in the program.
"""

from __future__ import annotations

from typing import Any, TypeVar

from tilecheck.host.defaults import default, using
from tilecheck.host.driver import Driver
from tilecheck.host.errors import HostRefused
from tilecheck.host.graphs.capture import Scope, capture
from tilecheck.host.graphs.graphs import Graph, GraphState, Updating, updating
from tilecheck.host.memory.handles import Array, Borrowed, Shared, View
from tilecheck.host.memory.host_arrays import HostArray
from tilecheck.host.memory.partition import Partition, partition, partition_map, partition_prefix, unpartition
from tilecheck.host.operations.copies import (
    arange,
    copy,
    copy_to_device,
    copy_to_host,
    empty,
    fill,
    full,
    pinned,
    zeros,
)
from tilecheck.host.operations.kernels import Kernel
from tilecheck.host.operations.launches import call, enqueue, launch
from tilecheck.host.operations.operations import Operation, Value, first, unzip, zip  # noqa: A004 - as there
from tilecheck.host.places import caller
from tilecheck.host.recording import Recorder, recording
from tilecheck.host.runtime import Runtime
from tilecheck.host.streams.policies import Policy, RoundRobin, SingleStream
from tilecheck.host.streams.streams import Event, Stream

__all__ = [
    "Array",
    "Borrowed",
    "Driver",
    "Event",
    "Graph",
    "GraphState",
    "HostArray",
    "HostRefused",
    "Kernel",
    "Operation",
    "Partition",
    "Policy",
    "Recorder",
    "RoundRobin",
    "Runtime",
    "Scope",
    "Shared",
    "SingleStream",
    "Stream",
    "Updating",
    "View",
    "arange",
    "call",
    "capture",
    "copy",
    "copy_to_device",
    "copy_to_host",
    "current",
    "default",
    "empty",
    "enqueue",
    "fill",
    "first",
    "full",
    "launch",
    "leaked",
    "own",
    "parked",
    "partition",
    "partition_map",
    "partition_prefix",
    "pinned",
    "reap",
    "reaped_total",
    "recording",
    "share",
    "stream",
    "stream_of",
    "synchronize",
    "unpartition",
    "unzip",
    "updating",
    "using",
    "value",
    "zeros",
    "zip",
]


T = TypeVar("T")


def own(array: Any) -> Array:
    """The exclusive handle of an array of PyTorch, CuPy, DLPack or `__cuda_array_interface__`.

    What your own code has done with it until now is on your current stream, and is in order from here on.
    """
    return default().adopt(array, caller())


def share(array: Any) -> Shared:
    """A handle for readers of an array, such as a weight."""
    return (array if isinstance(array, Array) else default().adopt(array, caller())).share()


def value(result: T) -> Operation[T]:
    """An operation with a result that is there already."""
    return Value(default(), result, caller())


def stream() -> Stream:
    """A new stream."""
    return default().stream()


def stream_of(stream: Any) -> Stream:
    """A stream that somebody else made: its handle, or an object of PyTorch or with `__cuda_stream__`."""
    return default().stream_of(stream)


def current() -> Stream:
    """The stream on which your own code works now."""
    return default().current()


def synchronize() -> None:
    """Wait until the device is idle."""
    default().synchronize(caller())


def reap() -> None:
    """Free now what was dropped in flight and has ended."""
    default().reap()


def parked() -> int:
    """How many arrays were dropped in flight and are not freed yet."""
    return default().reaper.parked


def reaped_total() -> int:
    """How many arrays that were dropped in flight have been freed."""
    return default().reaper.reaped


def leaked() -> int:
    """How many arrays are never freed because the device failed while it might use them."""
    return default().reaper.leaked
