"""Keeps Ctrl-C from being lost in code that may not raise."""

from __future__ import annotations

import _thread
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_LATER = 0.01  # seconds


@contextmanager
def interrupts_are_not_lost() -> Iterator[None]:
    """Raise a KeyboardInterrupt once more, a moment later, when Python had to drop it in this block.

    A signal's handler runs between any two bytecodes, also in what nothing calls: a destructor, or the callback
    of a weak reference or of C code. What it raises there goes to `sys.unraisablehook` and is lost.
    """
    before = sys.unraisablehook
    sent, over = False, False

    def send_later() -> None:
        nonlocal sent
        time.sleep(_LATER)
        sent = False
        if not over:
            _thread.interrupt_main()

    def again(dropped: UnraisableHookArgs) -> None:
        nonlocal sent
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            before(dropped)
            return
        # Not from here, where it would be dropped as well: by a thread, when this has returned. If it meets
        # such code again, so does this. A `threading.Timer` would wait here until its thread runs, and an
        # interrupt that comes meanwhile would be dropped.
        started, sent = sent, True
        while not started:
            try:
                _thread.start_new_thread(send_later, ())
                started = True
            except KeyboardInterrupt:  # noqa: PERF203 - it stands for this one, which was not sent yet
                continue

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before
        over = True
