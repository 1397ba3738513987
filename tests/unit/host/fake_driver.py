"""A GPU on the CPU that does what a program has not ordered in the worst order.

Memory is real memory of this process, so addresses are addresses. Work waits in streams until somebody waits
for it; then parts of it start and end in an order drawn from a seed, wherever streams, events, graphs and waits
of dependent launches leave a choice. What a part does, it does when it ends: a launch that starts early and
does not wait sees memory as it was. Freed memory is overwritten at once, and handed out again first.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilecheck.host.memory.arrays import DeviceArray, size_of
from tilecheck.host.reference import elements
from tilecheck.jit.layouts import layout_of
from tilecheck.jit.records import Record

ARENA = 1 << 20
PINNED = 1 << 18


class FakeFault(RuntimeError):
    """The device has failed."""


class UseAfterFree(AssertionError):
    """Work touches memory that nobody owns."""


@dataclass(eq=False)
class Part:
    """A piece of work that runs in one go."""

    effect: Callable[[], None] | None = None
    needs_started: tuple[Part, ...] = ()
    needs_ended: tuple[Part, ...] = ()
    started: bool = False
    ended: bool = False

    @property
    def may_start(self) -> bool:
        return (
            not self.started
            and all(p.started for p in self.needs_started)
            and all(p.ended for p in self.needs_ended)
        )


@dataclass(eq=False)
class Task:
    """One item of a stream: its parts, the first of which starts first."""

    parts: tuple[Part, ...]
    is_launch: bool = False


@dataclass(eq=False)
class Node:
    """One item of a graph, to be made into a task at each replay."""

    effects: tuple[Callable[[], None] | None, ...]
    after: tuple[Node, ...] = ()
    launch_before: Node | None = None
    is_launch: bool = False


@dataclass(eq=False)
class Graph:
    nodes: list[Node] = field(default_factory=list)
    replayed: tuple[Part, ...] = ()


@dataclass(eq=False)
class Stream:
    handle: int
    parts: list[Part] = field(default_factory=list)  # of all its items
    tail: Task | None = None
    node: Node | None = None  # the last one that was captured
    capture: Graph | None = None

    def __cuda_stream__(self):
        return 0, self.handle


@dataclass(eq=False)
class Event:
    parts: tuple[Part, ...]
    node: Node | None = None
    capture: Graph | None = None


class Block:
    """Memory that is freed with its last reference."""

    def __init__(self, driver, address, size):
        self.driver, self.address, self.size = driver, address, size

    def __del__(self):
        self.driver.free(self)


class FakeDriver:
    def __init__(self, seed=0):
        self.rng = random.Random(seed)
        self.streams: dict[int, Stream] = {0: Stream(0)}
        self.parts: list[Part] = []  # those that have not ended
        self.current_handle = 0
        self.fault: Exception | None = None
        self.polls_advance = 0  # steps of the machine that a question takes
        self.user_allocations = 0
        self.live: dict[int, int] = {}  # blocks: address and size
        self.counts: dict[str, int] = {}
        self._arena = (ctypes.c_char * (ARENA + PINNED))()
        self._base = ctypes.addressof(self._arena)
        self._next = {"device": self._base, "pinned": self._base + ARENA}
        self._free: list[tuple[int, int]] = []

    def _count(self, name):
        if self.fault is not None:
            raise self.fault
        self.counts[name] = self.counts.get(name, 0) + 1

    # ---- the machine -----------------------------------------------------------------------------------------

    def step(self):
        """One part starts or ends; whether any could."""
        ready = [p for p in self.parts if p.started or p.may_start]
        if not ready:
            return False
        part = self.rng.choice(ready)
        if not part.started:
            part.started = True
        else:
            self._end(part)
        return True

    def _end(self, part):
        if part.effect is not None:
            part.effect()
        part.effect = None  # which would keep the arrays
        part.ended = True
        self.parts.remove(part)

    def run(self, parts):
        """Let the machine run until some parts have ended."""
        while not all(part.ended for part in parts):
            assert self.step(), "the streams wait for each other"

    def hold(self, stream):
        """Have nothing that comes after this run on a stream before `release` of what this returns."""
        gate, held = Part(), self.streams[stream.handle]
        part = Part(needs_ended=(gate, *(held.tail.parts if held.tail else ())))
        self._put(held, Task((part,)), [part])
        return gate

    def release(self, gate):
        gate.ended = True

    def run_all(self):
        while self.step():
            pass

    def enqueue(self, handle, effect, *, early=None, dependent=False, is_launch=False):
        """Put work behind what a stream holds."""
        stream = self.streams[handle]
        if stream.capture is not None:
            tail = stream.node
            starts_early = dependent and tail is not None and tail.is_launch
            effects = (early, effect) if starts_early else (_both(early, effect),)
            after = () if tail is None or starts_early else (tail,)
            stream.node = Node(effects, after, tail if starts_early else None, is_launch)
            stream.capture.nodes.append(stream.node)
            return
        tail_task = stream.tail
        if dependent and tail_task is not None and tail_task.is_launch:
            parts = self._dependent(early, effect, tail_task)
        else:
            parts = (Part(_both(early, effect), needs_ended=tail_task.parts if tail_task else ()),)
        self._put(stream, Task(parts, is_launch), parts)

    def _put(self, stream, tail, parts):
        stream.tail = tail
        stream.parts += parts
        self.parts += parts

    def _dependent(self, early, effect, before):
        """A part before the wait, and one after it, unless the kernel never waits."""
        first = Part(early, needs_started=before.parts[:1])
        if effect is None:
            return (first,)
        return first, Part(effect, needs_ended=(first, *before.parts))

    def touch(self, address, size):
        """Fail if no live block holds these bytes."""
        if size and not any(start <= address and address + size <= start + n for start, n in self.live.items()):
            raise UseAfterFree(f"{size} bytes at {address - self._base}")

    # ---- streams and events ----------------------------------------------------------------------------------

    def new_stream(self):
        handle = len(self.streams)
        self.streams[handle] = Stream(handle)
        return self.streams[handle]

    def stream_of(self, handle):
        return self.streams[handle]

    def handle(self, stream):
        return stream.handle

    def current(self):
        return self.current_handle

    @contextlib.contextmanager
    def using(self, stream):
        before, self.current_handle = self.current_handle, stream.handle
        try:
            yield
        finally:
            self.current_handle = before

    def record(self, stream):
        self._count("record")
        return Event(stream.tail.parts if stream.tail else (), stream.node, stream.capture)

    def wait(self, stream, event):
        self._count("wait")
        if event.capture is not None and stream.capture is None:
            stream.capture, stream.node = event.capture, None
        assert event.capture is stream.capture, "a wait across the border of a capture"
        if stream.capture is not None:
            after = tuple(n for n in (stream.node, event.node) if n is not None)
            stream.node = Node((None,), after)
            stream.capture.nodes.append(stream.node)
            return
        part = Part(None, needs_ended=(*(stream.tail.parts if stream.tail else ()), *event.parts))
        self._put(stream, Task((part,)), [part])

    def _poll(self):
        self._count("poll")
        for _ in range(self.polls_advance):
            self.step()

    def is_done(self, event):
        self._poll()
        return all(part.ended for part in event.parts)

    def is_idle(self, stream):
        assert stream.capture is None, "a question about a captured stream"
        self._poll()
        return self._settled(stream)

    def _settled(self, stream):
        stream.parts = [part for part in stream.parts if not part.ended]
        return not stream.parts

    def sync(self, stream):
        assert stream.capture is None, "a wait for a captured stream"
        self._count("sync")
        while not self._settled(stream):
            assert self.step()

    def sync_event(self, event):
        self._count("sync")
        self.run(event.parts)

    def sync_device(self):
        self._count("sync")
        self.run_all()

    # ---- memory ----------------------------------------------------------------------------------------------

    def empty(self, shape, dtype, stream):
        self._count("empty")
        address, block = self._block("device", max(1, int(np.prod(shape))) * size_of(dtype))
        return DeviceArray(address, shape, dtype, block)

    def pinned(self, nbytes):
        self._count("pinned")
        return self._block("pinned", nbytes)

    def _block(self, where, size):
        size = -(-size // 256) * 256
        for k in reversed(range(len(self._free))):
            address, have = self._free[k]
            if have == size and (address >= self._base + ARENA) == (where == "pinned"):
                del self._free[k]
                break
        else:
            address = self._next[where]
            self._next[where] += size
            assert self._next[where] <= self._base + (ARENA if where == "device" else ARENA + PINNED)
        self.live[address] = size
        return address, Block(self, address, size)

    def free(self, block):
        del self.live[block.address]
        ctypes.memset(block.address, 0xDD, block.size)
        self._free.append((block.address, block.size))

    def imported(self, value):
        return getattr(value, "under_dlpack", None)

    def private(self, array):
        return array if type(array) is DeviceArray else None

    def allocation(self, address):
        return next(((a, n) for a, n in self.live.items() if a <= address < a + n), None)

    def allocations(self):
        return self.user_allocations

    # ---- work ------------------------------------------------------------------------------------------------

    def _is_ours(self, address):
        return self._base <= address < self._base + ARENA + PINNED

    def copy(self, stream, to, source, nbytes):
        self._count("copy")
        assert self._is_ours(to), "an asynchronous copy to pageable memory"
        if self._is_ours(source):

            def effect():
                self.touch(to, nbytes)
                self.touch(source, nbytes)
                ctypes.memmove(to, source, nbytes)
        else:
            assert stream.capture is None, "a pageable copy in a capture"
            data = ctypes.string_at(source, nbytes)

            def effect():
                self.touch(to, nbytes)
                ctypes.memmove(to, data, nbytes)

        self.enqueue(stream.handle, effect)

    def fill(self, stream, address, nbytes, pattern):
        self._count("fill")
        assert len(pattern) in (1, 2, 4)

        def effect():
            self.touch(address, nbytes)
            ctypes.memmove(address, pattern * (nbytes // len(pattern)), nbytes)

        self.enqueue(stream.handle, effect)

    # ---- graphs ----------------------------------------------------------------------------------------------

    def begin_capture(self, stream):
        self._count("begin_capture")
        assert stream.capture is None
        stream.capture, stream.node = Graph(), None
        return stream.capture

    def end_capture(self, stream, capture):
        self.abort_capture(stream, capture)
        self._count("end_capture")
        return capture

    def abort_capture(self, stream, capture):
        for each in self.streams.values():
            if each.capture is capture:
                each.capture = each.node = None

    def replay(self, graph, stream):
        self._count("replay")
        assert stream.capture is None
        begin = Part(needs_ended=(*(stream.tail.parts if stream.tail else ()), *graph.replayed))
        tasks: dict[Node, tuple[Part, ...]] = {}
        made = [begin]
        for node in graph.nodes:
            if node.launch_before is not None:
                parts = self._dependent(*node.effects, Task(tasks[node.launch_before]))
            else:
                after = [part for other in node.after for part in tasks[other]] or [begin]
                parts = (Part(node.effects[0], needs_ended=tuple(after)),)
            tasks[node] = parts
            made += parts
        end = Part(needs_ended=tuple(made))
        graph.replayed = (end,)
        self._put(stream, Task((end,)), [*made, end])

    # ---- the user's own code ---------------------------------------------------------------------------------

    def tensor(self, values, dtype="float32"):
        """An array with values in it, which the library knows nothing of."""
        data = np.asarray(values, dtype)
        array = self.empty(data.shape, dtype, self.streams[0])
        elements(array)[...] = data
        return array

    def torch(self, function, *arrays):
        """Work of the user's own on the current stream."""
        self.enqueue(self.current_handle, lambda: function(*map(elements, arrays)), is_launch=True)


def _both(early, effect):
    if early is None or effect is None:
        return effect if early is None else early

    def run():
        early()
        effect()

    return run


@dataclass(eq=False)
class FakeKernel:
    """A kernel with a record, and what it does before and after its wait. One without `body` never waits.

    What `early` returns is the last argument of `body`, if there are both.
    """

    driver: FakeDriver
    record: Record
    body: Callable[..., None] | None = None
    early: Callable[..., None] | None = None

    def enqueue(self, stream: int, grid: Sequence[int], args: Sequence[Any], *, dependent: bool) -> None:
        kept = []

        def checked(function, *, is_early=False):
            def run():
                values = []
                for argument, value in zip(self.record.arguments, args, strict=True):
                    if argument.array:
                        self.driver.touch(value.data_ptr(), layout_of(value)[1].span)
                    values.append(elements(value) if argument.array else value)
                if is_early:
                    kept[:] = [function(*values)]
                else:
                    function(*values, *kept)

            return run

        body = None if self.body is None else checked(self.body)
        early = None if self.early is None else checked(self.early, is_early=True)
        self.driver.enqueue(stream, body, early=early, dependent=dependent, is_launch=True)


@contextlib.contextmanager
def faulty(driver: FakeDriver) -> Iterator[None]:
    driver.fault = FakeFault("an illegal memory access")
    try:
        yield
    finally:
        driver.fault = None
