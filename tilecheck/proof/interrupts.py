"""Keeps Ctrl-C out of z3's Python layer.

Python raises KeyboardInterrupt between any two bytecodes. Inside z3's wrappers that leaves objects half made:
their destructors then release what was never acquired, which can end the process with a segmentation fault, and
an interrupt that lands in a destructor is swallowed. So while z3 is at work an interrupt is only noted, and it
is raised when the work, which resource limits bound, is done.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Deliver a SIGINT that arrives in this block when the block ends, to the handler it found.

    Python runs signal handlers in the main thread only: in any other thread this does nothing. It does nothing
    either where SIGINT has no Python handler (ignored, or the default action).
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    arrived: list[int] = []
    try:
        signal.signal(signal.SIGINT, lambda number, _frame: arrived.append(number))
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if arrived:
            # Without the frame that was interrupted, which would keep solver objects alive.
            handler(arrived[0], None)
