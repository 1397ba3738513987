"""The server's end of the process that verifies: starts it, asks it, cancels, and replaces it when it hangs."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import subprocess
import sys
import threading
from dataclasses import field
from typing import Any, cast

from tilecheck.dataclass import dataclass

PATIENCE_S = 5.0  # for a request that was cancelled; then the process is replaced
_BEGIN = "import sys; sys.path[:] = {path!r}; from tilecheck.lsp.worker import main; main()"


class RefusedError(Exception):
    """The request cannot be answered, for a reason that is the user's to solve."""


class FailedError(Exception):
    """The process ended, or met a bug of ours."""


class _ReplacedError(Exception):
    """The process was replaced because of another request: ask again."""


@dataclass(slots=True)
class _Process:
    """One process and what it was asked. Mutable."""

    popen: subprocess.Popen[bytes]
    open: dict[int, asyncio.Future[Any]] = field(default_factory=dict)


class Verifier:
    """Requests to one process at a time, answered in order. Used from one event loop."""

    def __init__(self, *, patience_s: float = PATIENCE_S) -> None:
        self._process: _Process | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._count = 0
        self._patience_s = patience_s
        self.starts = 0

    def start(self) -> None:
        """Start the process, if none runs: what it imports takes longer than anything else at the start."""
        if self._process is None:
            # With our own path, and not a module or a script, which would put another folder before it.
            command = [sys.executable, "-c", _BEGIN.format(path=sys.path)]
            popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
            self._process = _Process(popen)
            self.starts += 1
            threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    @property
    def process_id(self) -> int:
        """The process that runs; 0 where none does."""
        return 0 if self._process is None else self._process.popen.pid

    def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    async def ask(self, word: str, *arguments: object) -> Any:
        """The answer to a request. Cancelling the task that waits for it cancels the request.

        Raises:
            RefusedError: it cannot be answered.
            FailedError: the process ended or met a bug.
        """
        while True:
            with contextlib.suppress(_ReplacedError):
                return await self._ask(word, *arguments)

    async def _ask(self, word: str, *arguments: object) -> Any:
        self._loop = asyncio.get_running_loop()
        self.start()
        process = cast("_Process", self._process)
        self._count += 1
        number = self._count
        answer = process.open[number] = self._loop.create_future()
        self._send(process, (word, number, *arguments))
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            if not answer.done():
                self._send(process, ("cancel", number))
                self._loop.call_later(self._patience_s, self._replace, process, number)
            raise

    def _send(self, process: _Process, request: tuple[Any, ...]) -> None:
        try:
            stream = process.popen.stdin
            if stream is not None:
                pickle.dump(request, stream)
                stream.flush()
        except OSError:
            self._ended(process)

    def _replace(self, process: _Process, number: int) -> None:
        """End a process that did not end a request in time, and ask another for what waits behind it."""
        if number in process.open:
            self._ended(process, _ReplacedError())

    def _read(self, process: _Process) -> None:
        """In a thread of its own: hand on answers until the process ends."""
        stream = process.popen.stdout
        while stream is not None:
            try:
                answer = pickle.load(stream)  # noqa: S301 - from our own process
            except (EOFError, OSError, ValueError, pickle.UnpicklingError):
                break
            self._call(self._answered, process, answer)
        self._call(self._ended, process)

    def _call(self, function: Any, *arguments: object) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it who would listen
                self._loop.call_soon_threadsafe(function, *arguments)

    def _answered(self, process: _Process, answer: tuple[int, str, Any]) -> None:
        number, word, value = answer
        future = process.open.pop(number, None)
        if future is None or future.done():
            return
        if word == "done":
            future.set_result(value)
        elif word == "cancelled":
            future.cancel()
        else:
            _refuse(future, RefusedError(value) if word == "refused" else FailedError(value))

    def _ended(self, process: _Process, why: Exception | None = None) -> None:
        if self._process is process:
            self._process = None
        _end(process)
        for future in process.open.values():
            _refuse(future, why or FailedError("the process that verifies has ended"))
        process.open.clear()


def _refuse(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # whoever asked may be gone: that is no error of its own


def _end(process: _Process) -> None:
    process.popen.kill()
    for stream in (process.popen.stdin, process.popen.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    process.popen.wait()
