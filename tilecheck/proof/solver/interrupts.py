"""Keeps Ctrl-C out of z3's Python layer.

Python raises KeyboardInterrupt between any two bytecodes. Inside z3's wrappers that leaves objects half made:
their destructors then release what was never acquired, which can end the process with a segmentation fault, and
an interrupt that lands in a destructor is swallowed. So while z3 is at work an interrupt is only noted, and it
is raised when the work is done. A question that is being solved is given up for that: resource limits bound it,
but some take seconds.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType


@dataclass
class _Arrived:
    """The signals that the block which is running has met. Mutable."""

    numbers: list[int] = field(default_factory=list)


_arrived = _Arrived()
_AGAIN = 0.05  # seconds


def is_interrupted() -> bool:
    """Whether an interrupt waits for the end of the block that is running: nothing it gives will be used."""
    return bool(_arrived.numbers)


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Deliver a SIGINT that arrives in this block when the block ends, to the handler it found.

    Python runs signal handlers in the main thread only: in any other thread this does nothing. It does nothing
    either where SIGINT has no Python handler (ignored, or the default action).
    """
    handler = _handler()
    if handler is None:
        yield
        return
    before, _arrived.numbers = _arrived.numbers, []
    try:
        signal.signal(signal.SIGINT, lambda number, _frame: _arrived.numbers.append(number))
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        arrived, _arrived.numbers = _arrived.numbers, before
        if arrived:
            # Without the frame that was interrupted, which would keep solver objects alive.
            handler(arrived[0], None)


class _Watcher:
    """A thread that waits for a SIGINT while another is at work outside Python, where no handler runs. Mutable.
    One serves many blocks: to start a thread takes as long as a short question."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._theirs.setblocking(False)
        self._lock = threading.Lock()
        self._give_up: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while told := self._ours.recv(1):
            while signal.SIGINT in told and self._called():  # one that comes before the work begins is lost
                time.sleep(_AGAIN)

    def _called(self) -> bool:
        with self._lock:
            if self._give_up is not None:
                self._give_up()
            return self._give_up is not None

    @contextmanager
    def watching(self, give_up: Callable[[], None]) -> Iterator[None]:
        self._give_up = give_up
        # Told by the system's own handler.
        before = signal.set_wakeup_fd(self._theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            with self._lock:
                self._give_up = None

    def end(self) -> None:
        """End the thread; of a signal that it was told of and has not read yet, nothing comes any more."""
        self._theirs.close()
        self._thread.join()
        self._ours.close()

    def forget(self) -> None:
        """In a process that was forked there is no such thread."""
        self._ours.close()
        self._theirs.close()


_watchers: list[_Watcher] = []  # none or one


def _forget_watchers() -> None:
    while _watchers:
        _watchers.pop().forget()


os.register_at_fork(after_in_child=_forget_watchers)


@contextmanager
def given_up_by_interrupts(give_up: Callable[[], None]) -> Iterator[None]:
    """Call `give_up`, from another thread, when a SIGINT arrives in this block: while this thread waits outside
    Python, no handler runs in it. What the block gives is not to be used then: `deferred_interrupts` raises.
    """
    if _handler() is None:
        yield
        return
    if not _watchers:
        _watchers.append(_Watcher())
    is_whole = False
    try:
        with _watchers[0].watching(give_up):
            yield
        is_whole = not is_interrupted()
    finally:
        if not is_whole:  # what it was told of this block must not end another
            stop_watching()


def stop_watching() -> None:
    """End the thread that `given_up_by_interrupts` started, if there is one: a process that forks should have
    none. It serves the main thread, and is not ended by another."""
    while _watchers and threading.current_thread() is threading.main_thread():
        _watchers.pop().end()


def _handler() -> Callable[[int, FrameType | None], object] | None:
    """The handler of Python's that a SIGINT runs in this thread."""
    handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    return handler if is_main and callable(handler) else None
