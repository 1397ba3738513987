"""How a run ends that does not end well: by one line on standard error, and by its exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

USER, REFUSED = 2, 1  # exit codes
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
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        number = signal.Signals(stopped[0] if stopped else signal.SIGINT)
        return _said(f"stopped by {number.name}", 128 + number)


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
