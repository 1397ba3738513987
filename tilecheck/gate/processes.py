"""The service's side of a worker process: starting it, giving it a line, and hearing what became of that."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path

from tilecheck.dataclass import dataclass
from tilecheck.gate.worker import ASKED, TOLD, Limits, serve
from tilecheck.options import Options

_PART = 2**16


@dataclass(slots=True, eq=False)
class Worker:
    """A worker process. Mutable: it works on one line at a time, and `heard` grows until a text is whole.

    Nothing here waits for the process: what it does not take or tell yet is left for later.
    """

    process: int
    channel: socket.socket
    name: bytes | None = None  # the id of its line as JSON, once it is known
    retires: bool = False  # it has told its last answer
    _unsent: bytearray = field(default_factory=bytearray)
    _heard: bytearray = field(default_factory=bytearray)

    @classmethod
    def start(cls, folder: Path, limits: Limits, options: Options, others: Iterable[Worker]) -> Worker:
        """Fork a worker. This process must have no threads: what they lock would stay locked in the copy."""
        ours, theirs = socket.socketpair()
        process = os.fork()
        if process == 0:
            for channel in (ours, *(other.channel for other in others)):
                channel.close()
            own = tempfile.mkdtemp(dir=folder)
            serve(theirs, Path(own), limits, options)
        theirs.close()
        ours.setblocking(False)
        return cls(process, ours)

    def fileno(self) -> int:
        return self.channel.fileno()

    def give(self, line: bytes, number: int) -> None:
        self.name = None
        self._unsent += ASKED.pack(len(line), number) + line
        self.send()

    @property
    def wants_to_send(self) -> bool:
        return bool(self._unsent)

    def send(self) -> None:
        """Send what the process takes now."""
        try:
            while self._unsent:
                del self._unsent[: self.channel.send(self._unsent[:_PART])]
        except BlockingIOError:
            return
        except OSError:  # it has ended, which `hear` finds out
            self._unsent.clear()

    def hear(self) -> bytes | None:
        """The answer, once it is whole.

        Raises:
            EOFError: the process has ended.
        """
        try:
            part = self.channel.recv(_PART)
        except BlockingIOError:
            return None
        except OSError:
            part = b""
        if not part:
            raise EOFError
        self._heard += part
        while len(self._heard) >= TOLD.size:
            length, last = TOLD.unpack_from(self._heard)
            if len(self._heard) < TOLD.size + length:
                return None
            text = bytes(self._heard[TOLD.size : TOLD.size + length])
            del self._heard[: TOLD.size + length]
            if self.name is not None:
                self.retires = last
                return text
            self.name = text
        return None

    def end(self) -> int:
        """Wait for a process that ends by itself; its exit code, or minus the signal that ended it."""
        self.channel.close()
        _, status = os.waitpid(self.process, 0)
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        self.end()
