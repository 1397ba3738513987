"""How far a long run is, on a terminal: shown after a while, and gone when the run ends."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from typing import TextIO

DELAY_S = 0.7  # shorter runs show nothing


def is_wanted(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a person watches: `stream` is a terminal, and no hook or CI runs this."""
    quiet = environment.get("PRE_COMMIT") or environment.get("CI") or environment.get("TERM") == "dumb"
    return not quiet and stream.isatty()


class Progress:
    """Counts of one run, shown on standard error in a `with` block. The analysis writes them, and the thread of
    the display reads them."""

    def __init__(self, files: int) -> None:
        self._files = files
        self._done = self._kernels = self._obligations = 0
        self._current = ""
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def began(self, file: str) -> None:
        """A file is looked at."""
        self._current = file

    def ended(self, file: str, kernels: int, obligations: int) -> None:
        """A file is done, maybe by another process."""
        self._current = file
        self._done += 1
        self._kernels += kernels
        self._obligations += obligations

    @property
    def text(self) -> str:
        """How far the run is."""
        counts = f"{self._done}/{self._files} files, {self._kernels} kernels, {self._obligations} obligations"
        return f"{counts}  {self._current}"

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._show, args=(sys.stderr,), name="progress", daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self, stream: TextIO) -> None:
        if self._ended.wait(DELAY_S):
            return
        from rich.console import Console  # lazy: few runs come here
        from rich.live import Live
        from rich.text import Text

        console = Console(file=stream, highlight=False, markup=False)
        with Live(console=console, transient=True, auto_refresh=False) as live:
            while not self._ended.wait(0.1):
                live.update(Text(self.text, no_wrap=True, overflow="ellipsis"), refresh=True)
