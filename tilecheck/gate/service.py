"""The loop of the gate: lines in, answers out in the same order, and workers in between.

Nothing in it blocks but the wait for whatever comes next. At most `AHEAD` lines are read before the first of
them is answered: memory does not grow with the input, and a caller may write that many before it reads.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import shutil
import signal
import tempfile
from collections import deque
from dataclasses import field
from pathlib import Path

from tilecheck.dataclass import dataclass
from tilecheck.gate.processes import Worker
from tilecheck.gate.protocol import MAX_LINE, answer
from tilecheck.gate.worker import Limits
from tilecheck.options import Options
from tilecheck.verify.stages import preload

AHEAD = 256  # lines
AHEAD_BYTES = 50_000_000
_PART = 2**16
# What the pipeline imports only where a kernel needs it.
_USED = (
    "z3",
    "tilecheck.proof.launches.aliasing",
    "tilecheck.proof.refute.counterexample",
    "tilecheck.proof.initialisation.coverage",
    "tilecheck.proof.launches.claims",
    "tilecheck.proof.initialisation.tuner_runs",
)


@dataclass(slots=True)
class _Slot:
    """A line that is not answered yet. Mutable: gets its answer, and `again` if a second worker reads it."""

    number: int
    line: bytes
    answer: bytes | None = None
    name: bytes = b"null"
    again: bool = False

    @property
    def size(self) -> int:
        return len(self.line) + len(self.answer or b"")


@dataclass(slots=True)
class _Input:
    """The lines of a file descriptor. Mutable: bytes that make no line yet are kept, up to the longest line."""

    source: int
    ended: bool = False
    read: int = 0  # lines
    _parts: list[bytes] = field(default_factory=list)
    _length: int = 0

    def lines(self) -> list[_Slot]:
        """Read what is there, and return the lines that are whole."""
        data = os.read(self.source, _PART)
        self.ended = not data
        *whole, rest = data.split(b"\n")
        found = []
        for part in whole:
            self._keep(part)
            found.append(self._slot())
        self._keep(rest)
        if self.ended and self._length:
            found.append(self._slot())
        return found

    def _keep(self, part: bytes) -> None:
        self._length += len(part)
        if self._length > MAX_LINE:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _slot(self) -> _Slot:
        self.read += 1
        slot = _Slot(self.read, b"".join(self._parts))
        if self._length > MAX_LINE:
            error = f"the line has {self._length:,} bytes; lines over {MAX_LINE:,} bytes are not read"
            slot.answer = answer(None, [], [], f"line {self.read}: {error}")
        self._parts.clear()
        self._length = 0
        return slot


class Service:
    """Answers every line of a file descriptor on another."""

    def __init__(self, source: int, target: int, jobs: int, limits: Limits, options: Options) -> None:
        self._input = _Input(source)
        self._target = target
        self._jobs = jobs
        self._limits = limits
        self._options = options
        self._slots: deque[_Slot] = deque()  # in the order of the lines
        self._waiting: deque[_Slot] = deque()  # those that no worker has yet
        self._at_work: dict[Worker, _Slot | None] = {}
        self._unsent = bytearray()

    def run(self) -> None:
        """Until the input ends and all is answered, or nobody reads the answers any more."""
        _load()
        folder = Path(tempfile.mkdtemp(prefix="tilecheck-gate-"))
        try:
            self._run(folder)
        except BrokenPipeError:
            return
        finally:
            for worker in self._at_work:
                worker.kill()
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, folder: Path) -> None:
        while not self._input.ended or self._slots or self._unsent:
            self._give(folder)
            reads: list[int | Worker] = [*self._at_work]
            ahead = sum(slot.size for slot in self._slots)
            if not self._input.ended and len(self._slots) < AHEAD and ahead < AHEAD_BYTES:
                reads.append(self._input.source)
            writes: list[int | Worker] = [w for w in self._at_work if w.wants_to_send]
            if self._unsent:
                writes.append(self._target)
            ready, writable, _ = select.select(reads, writes, [])
            for one in writable:
                if isinstance(one, Worker):
                    one.send()
                else:
                    self._write()
            for one in ready:
                if isinstance(one, Worker):
                    self._hear(one)
                else:
                    self._take(self._input.lines())
            self._answer()

    def _take(self, slots: list[_Slot]) -> None:
        self._slots += slots
        self._waiting += (slot for slot in slots if slot.answer is None)

    def _give(self, folder: Path) -> None:
        """Give lines that wait to workers that are free, and start workers that are missing."""
        free = [worker for worker, slot in self._at_work.items() if slot is None]
        while self._waiting and (free or len(self._at_work) < self._jobs):
            worker = free.pop() if free else self._started(folder)
            slot = self._waiting.popleft()
            self._at_work[worker] = slot
            worker.give(slot.line, slot.number)

    def _started(self, folder: Path) -> Worker:
        return Worker.start(folder, self._limits, self._options, self._at_work)

    def _hear(self, worker: Worker) -> None:
        slot = self._at_work[worker]
        try:
            heard = worker.hear()
        except EOFError:
            del self._at_work[worker]
            code = worker.end()
            if slot is not None and worker.name is None and not slot.again:
                slot.again = True  # perhaps the process ended before it read the line
                self._waiting.appendleft(slot)
            elif slot is not None:
                slot.name = worker.name or b"null"
                slot.answer = _answer_of(slot.name, self._ended(code))
            return
        if heard is not None and slot is not None:
            slot.line, slot.name, slot.answer = b"", worker.name or b"null", heard
            self._at_work[worker] = None
            if worker.retires:
                del self._at_work[worker]
                worker.end()

    def _ended(self, code: int) -> str:
        """Why a worker ended in the middle of its work."""
        if code == -signal.SIGALRM:
            return f"the analysis takes more than {self._limits.seconds:g} s"
        if code == -signal.SIGKILL:
            return "the analysis was killed, as the system does where memory is short"
        how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        return f"the analysis crashed ({how})"

    def _answer(self) -> None:
        """Pass on the answers whose turn it is, as far as somebody reads them."""
        while self._slots and self._slots[0].answer is not None and len(self._unsent) < _PART:
            slot = self._slots.popleft()
            self._unsent += slot.answer or b""

    def _write(self) -> None:
        """Write what a pipe takes without blocking."""
        del self._unsent[: os.write(self._target, self._unsent[: select.PIPE_BUF])]


def _answer_of(name: bytes, error: str) -> bytes:
    return answer(json.loads(name), [], [], error)


def _load() -> None:
    """Import all that an analysis may need before workers are forked: they share it."""
    for name in _USED:
        importlib.import_module(name)
    preload()
    gc.collect()
    gc.freeze()  # what is shared is not looked at by collections, so it stays shared
