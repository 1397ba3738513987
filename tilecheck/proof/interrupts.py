"""Keeps Ctrl-C out of z3's Python layer.

Python raises KeyboardInterrupt between any two bytecodes. Inside z3's wrappers that leaves objects half made:
their destructors then release what was never acquired, which can end the process with a segmentation fault, and
an interrupt that lands in a destructor is swallowed. So while z3 is at work an interrupt is only noted, and it
is raised when the work is done. A question that is being solved is given up for that: resource limits bound it,
but some take seconds.
"""

from __future__ import annotations

import signal
import socket
import threading
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


@contextmanager
def given_up_by_interrupts(give_up: Callable[[], None]) -> Iterator[None]:
    """Call `give_up`, from another thread, when a SIGINT arrives in this block: while this thread waits outside
    Python, no handler runs in it. What the block gives is not to be used then: `deferred_interrupts` raises.
    """
    if _handler() is None:
        yield
        return
    done = threading.Event()
    ours, theirs = socket.socketpair()

    def watch() -> None:
        while not done.is_set():
            if signal.SIGINT in ours.recv(1):
                while not done.wait(_AGAIN):  # one that comes before the work begins is lost
                    give_up()

    theirs.setblocking(False)
    before = signal.set_wakeup_fd(
        theirs.fileno(), warn_on_full_buffer=False
    )  # told by the system's own handler
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        done.set()
        theirs.close()
        watcher.join()
        ours.close()


def _handler() -> Callable[[int, FrameType | None], object] | None:
    """The handler of Python's that a SIGINT runs in this thread."""
    handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    return handler if is_main and callable(handler) else None
