"""One process that answers items, and its limits.

The limits are the system's: a timer whose signal ends the process, wherever it is and whoever still waits for
it, and a bound on its address space. An item that hangs, crashes or takes all memory costs its own process.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import NoReturn

from tilecheck.cli.crash import issue_text
from tilecheck.dataclass import dataclass
from tilecheck.garbage import collect_rarely
from tilecheck.gate.analyse import BrokenAnalysis, answered
from tilecheck.gate.decisions import Decisions
from tilecheck.gate.protocol import BadLine, Id, answer, read_line
from tilecheck.options import Options

ASKED = struct.Struct("!QQ")  # the length of a line and its number stand before it
TOLD = struct.Struct("!Q?")  # the length of a text, and whether it is the last one of this process
MAX_ANSWER = 50_000_000  # bytes
_MOST_ITEMS = 256  # of one process: then what libraries keep for ever is given back
_GROWN = 4  # a process that came to use this part of its memory is replaced


@dataclass(frozen=True, slots=True)
class Limits:
    """What one item may take: seconds of wall-clock time, and MiB of memory above those of an idle process."""

    seconds: float
    memory: int


def serve(channel: socket.socket, folder: Path, limits: Limits, options: Options) -> NoReturn:
    """Answer the lines that come through `channel` until it closes; ends the process, never returns.

    Two texts go back for each line: its id as JSON as soon as it is known, so that the answer can bear it even
    if this process ends, and the answer.
    """
    code = 1
    try:
        _detach(folder)
        _bound_memory(limits)
        start = _peak()
        decisions = Decisions()
        collect_rarely()
        for left in reversed(range(_MOST_ITEMS)):
            length, number = ASKED.unpack(_read(channel, ASKED.size))
            line = _read(channel, length)
            signal.setitimer(signal.ITIMER_REAL, limits.seconds)
            reply = _reply(channel, line, number, limits, options, decisions)
            signal.setitimer(signal.ITIMER_REAL, 0)
            last = not left or _peak() - start > limits.memory / _GROWN
            _tell(channel, reply, last=last)
            if last:
                break
        code = 0
    except (EOFError, OSError):  # the service has ended
        code = 0
    finally:
        os._exit(code)


def _reply(
    channel: socket.socket, line: bytes, number: int, limits: Limits, options: Options, decisions: Decisions
) -> bytes:
    name: Id | None = None
    try:
        item = read_line(line)
        name = item.name
        _tell(channel, json.dumps(name).encode())
        kernels, diagnostics, error = answered(item, options, decisions)
        reply = answer(name, kernels, diagnostics, error)
        if len(reply) <= MAX_ANSWER:
            return reply
        error = f"the answer has {len(reply):,} bytes; more than {MAX_ANSWER:,} are not sent"
    except BadLine as bad:
        if name is None:
            name = bad.name
            _tell(channel, json.dumps(name).encode())
        error = f"line {number}: {bad.problem}"
    except MemoryError:
        error = f"the analysis needs more than {limits.memory} MiB"
    except RecursionError:
        error = "code nested this deeply is not read"
    except BrokenAnalysis as broken:
        sys.stderr.write(issue_text(["gate"], broken.traceback) + "\n")
        error = f"a bug in tilecheck ended the analysis of `{broken.kernel}`"
    except Exception as problem:  # noqa: BLE001 - a bug of ours must not stop the other items
        sys.stderr.write(issue_text(["gate"]) + "\n")
        error = f"a bug in tilecheck ended the analysis: {type(problem).__name__}"
    return answer(name, [], [], error)


def _detach(folder: Path) -> None:
    """Leave nothing through which this process could take part in the service's own input and output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; one answers
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    os.chdir(folder)


def _bound_memory(limits: Limits) -> None:
    own = _address_space() + limits.memory * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (own, own))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _address_space() -> int:
    """Bytes of the address space that this process uses already."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux
        return 2**30


def _peak() -> float:
    """The most memory that this process had, in MiB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def _tell(channel: socket.socket, text: bytes, *, last: bool = False) -> None:
    channel.sendall(TOLD.pack(len(text), last) + text)


def _read(channel: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = channel.recv(min(count, 2**20))
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
