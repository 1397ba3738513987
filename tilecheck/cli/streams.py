"""Where a command writes: findings to one stream, everything else to the other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TextIO

from tilecheck.dataclass import dataclass
from tilecheck.errors import UsageError, refusal
from tilecheck.report.style import Line, fit, safe, write


@dataclass(slots=True)
class Streams:
    """Standard output and standard error. Mutable: a reader that went away is remembered."""

    stdout: TextIO
    stderr: TextIO
    closed: bool = False

    def out(self, text: str) -> None:
        """Write text for the user or for a program to standard output."""
        if self.closed:
            return
        try:
            self.stdout.write(fit(text, getattr(self.stdout, "encoding", None) or "utf-8"))
            self.stdout.flush()
        except OSError as error:
            self._failed(error)

    def out_lines(self, lines: Iterable[Line], *, colour: bool) -> None:
        """Write styled lines to standard output."""
        if self.closed:
            return
        try:
            write(lines, self.stdout, colour=colour)
            self.stdout.flush()
        except OSError as error:
            self._failed(error)

    def log(self, text: str) -> None:
        """Write a message about the run, with a newline, to standard error."""
        shown = "\n".join(map(safe, text.split("\n"))) + "\n"
        try:
            self.stderr.write(fit(shown, getattr(self.stderr, "encoding", None) or "utf-8"))
            self.stderr.flush()
        except OSError:
            return  # nobody reads the messages; the exit code still tells

    def _failed(self, error: OSError) -> None:
        """A report that is not written whole is no report, unless its reader did not want more of it."""
        self._close()
        if not isinstance(error, BrokenPipeError):
            raise UsageError(f"cannot write to standard output: {refusal(error)}") from None

    def _close(self) -> None:
        """The reader (`| head`) has seen enough. The verdict stands, so the exit code is not changed."""
        self.closed = True
        try:
            # Python flushes standard output once more at exit; let that go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stdout.fileno())
        except (OSError, ValueError):
            return  # not a real file: nothing is flushed


def wants_colour(choice: str, stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether to colour: `always` and `never` decide; `auto` asks the environment, then the stream."""
    if choice != "auto":
        return choice == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") != "0" or environment.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return stream.isatty() and environment.get("TERM") != "dumb"
