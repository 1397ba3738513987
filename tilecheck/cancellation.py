"""Ends an analysis whose answer nobody waits for any more, from another thread.

The analysis asks at checkpoints, and what it waits for outside Python can be interrupted. Either way
`Cancelled` is raised out of it. That is no `Exception`: nothing that turns a bug or a limit into a verdict can
catch it, so a cancelled analysis has no result, and nothing of it can be kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Cancelled(BaseException):
    """The analysis was cancelled; what it found so far means nothing."""


class Cancellation:
    """One analysis that may be cancelled. Mutable, and shared by the analysis and whoever cancels it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._interrupt: Callable[[], None] | None = None

    def cancel(self) -> bool:
        """Cancel, and interrupt what the analysis waits for, if it does; whether it did.

        An interrupt that comes before the wait begins may be lost: call this again while it says True.
        """
        with self._lock:
            self._is_cancelled = True
            if self._interrupt is not None:
                self._interrupt()
            return self._interrupt is not None

    def check(self) -> None:
        """Raise `Cancelled` if so."""
        if self._is_cancelled:
            raise Cancelled

    @contextmanager
    def waiting(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """In this block the analysis waits for something that `interrupt` ends. What an interrupted wait gave
        is never used: the flag is set before the interrupt, and asked for after the wait."""
        self.check()
        with self._lock:
            self._interrupt = interrupt
        try:
            yield
        finally:
            with self._lock:
                self._interrupt = None
        self.check()


_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Iterator[None]:
    """Let `cancellation` end what runs in this block."""
    token = _current.set(cancellation)
    try:
        yield
    finally:
        _current.reset(token)


def checkpoint() -> None:
    """Raise `Cancelled` if what runs here was cancelled."""
    cancellation = _current.get()
    if cancellation is not None:
        cancellation.check()


@contextmanager
def interruptible(interrupt: Callable[[], None]) -> Iterator[None]:
    """A block that waits for something outside Python, which `interrupt` ends; it works from any thread."""
    cancellation = _current.get()
    if cancellation is None:
        yield
    else:
        with cancellation.waiting(interrupt):
            yield
