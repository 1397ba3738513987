"""Which stream an operation runs on when the program does not say."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tilecheck.host.runtime import Runtime
    from tilecheck.host.streams.streams import Stream


class Policy(Protocol):
    """Chooses the stream of the next operation. Your own may be any object with this method."""

    def next_stream(self, runtime: Runtime) -> Stream: ...


class SingleStream:
    """One stream for all: a given one, else the one on which the user's own code works now."""

    def __init__(self, stream: Stream | None = None) -> None:
        self._stream = stream

    def next_stream(self, runtime: Runtime) -> Stream:
        return runtime.current() if self._stream is None else self._stream


class RoundRobin:
    """Several new streams in turn."""

    def __init__(self, count: int = 4) -> None:
        if count < 1:
            raise ValueError("a round needs a stream")
        self._count = count
        self._turn = itertools.count()
        self._streams: list[Stream] = []

    def next_stream(self, runtime: Runtime) -> Stream:
        if not self._streams:
            self._streams = [runtime.stream() for _ in range(self._count)]
        return self._streams[next(self._turn) % self._count]
