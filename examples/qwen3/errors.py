"""How a run ends that does not end well: by one line on standard error, and by its exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

REFUSED, USER, SIGNALLED = 1, 2, 128  # exit codes; the last with the number of a signal
PACKAGES = "pip install 'tilecheck[gpu,triton]' torch tokenizers jinja2"


class UserError(Exception):
    """Something that the user gave cannot be used; the message is one line and says what to do."""


class WrongResultError(Exception):
    """The device has computed something else than the host."""


def ended(run: Callable[[], int]) -> int:
    """The exit code of a run: its own; 2 for what the user can mend; 1 if a check refuses or contradicts
    what runs; 128 and the number of the signal if one ends it.
    """
    stopped: list[int] = []
    try:
        from tilecheck.cli.interrupts import interrupts_are_not_lost
        from tilecheck.errors import TilecheckError
    except ModuleNotFoundError as error:
        return _said(f"the package `{error.name}` is not installed: {PACKAGES}", USER)
    try:
        with _terminated_as_interrupted(stopped), interrupts_are_not_lost():
            return run()
    except UserError as error:
        return _said(str(error), USER)
    except ModuleNotFoundError as error:
        return _said(f"the package `{error.name}` is not installed: {PACKAGES}", USER)
    except (WrongResultError, TilecheckError) as error:
        return _said(str(error), REFUSED)
    except BrokenPipeError:  # who reads the text has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SIGNALLED + signal.SIGPIPE
    except KeyboardInterrupt:
        number = signal.Signals(stopped[0] if stopped else signal.SIGINT)
        return _said(f"stopped by {number.name}", SIGNALLED + number)


def leave(code: int) -> NoReturn:
    """End the process. One that a signal stopped ends at once: nothing waits for what is in flight, and Python
    does not put an exit code of its own in place, as it does for some interrupts that were caught."""
    if code > SIGNALLED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _said(line: str, code: int) -> int:
    print(f"qwen3: {line}", file=sys.stderr)
    return code


@contextmanager
def _terminated_as_interrupted(stopped: list[int]) -> Iterator[None]:
    """Have SIGTERM end a run as Ctrl-C does: verification defers that one where nothing may be raised."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        stopped.append(number)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
