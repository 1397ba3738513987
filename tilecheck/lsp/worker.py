"""The process that verifies for the server: requests as pickles on stdin, answers as pickles on stdout.

It is a process of its own so that its imports do not wait for those of the server, nor the server for an
analysis, and so that a crash of the solver is no crash of the server. Both ends are this program, so pickles
are safe.

Requests: `("verify", number, path, data, texts)`, `("borrows", number, path, data, texts, kernel)`,
`("propose", number, path, data, texts, kernel)` and `("cancel", number)`. Every request but the last is
answered, in order: `(number, word, value)` with the word `done`, `cancelled`, `refused` (the user's to solve;
the value is a text) or `failed` (a traceback).
"""

from __future__ import annotations

import gc
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tilecheck.cancellation import Cancellation, Cancelled, cancelled_by
from tilecheck.dataclass import dataclass
from tilecheck.errors import UsageError
from tilecheck.garbage import collect_rarely
from tilecheck.parallel import one_thread_each

if TYPE_CHECKING:
    from tilecheck.cache.results import Cache
    from tilecheck.model import Report

Answer = tuple[int, str, Any]
_RETRY_S = 0.01  # between interrupts, until one arrives while the solver listens


@dataclass(slots=True)
class Requests:
    """What was asked for and is not answered. Mutable; shared by the reader and the worker."""

    waiting: queue.Queue[tuple[Any, ...] | None] = field(default_factory=queue.Queue)
    cancellations: dict[int, Cancellation] = field(default_factory=dict)

    def read(self, stream: BinaryIO) -> None:
        """Take requests until the stream ends; then cancel what is open."""
        while True:
            try:
                request = pickle.load(stream)  # noqa: S301 - from our own server
            except (EOFError, OSError, pickle.UnpicklingError):
                break
            if request[0] == "cancel":
                self._cancel(request[1])
            else:
                self.cancellations[request[1]] = Cancellation()
                self.waiting.put(request)
        self.waiting.put(None)
        for number in list(self.cancellations):
            self._cancel(number)

    def _cancel(self, number: int) -> None:
        cancellation = self.cancellations.get(number)
        while cancellation is not None and cancellation.cancel():
            time.sleep(_RETRY_S)


def main() -> None:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's business
    requests = Requests()
    reader = threading.Thread(target=requests.read, args=(sys.stdin.buffer,), daemon=True)
    reader.start()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not print between answers
    cache = _load()
    while (request := requests.waiting.get()) is not None:
        with cancelled_by(requests.cancellations[request[1]]):
            answer = _answer(request, cache)
        requests.cancellations.pop(request[1], None)
        try:
            pickle.dump(answer, answers)
            answers.flush()
        except OSError:  # the server is gone
            break
        if requests.waiting.empty():
            gc.collect()  # while nobody waits, and not in the middle of the next answer


def _load() -> Cache:
    """Import what an analysis needs, without collecting garbage that is none."""
    gc.disable()
    one_thread_each()
    import tilecheck.cache.session  # lazy: after the reader has begun
    import tilecheck.history.baseline_file
    import tilecheck.proof.refute.counterexample
    import tilecheck.verify.files
    import tilecheck.verify.pipeline
    import tilecheck.verify.suppressions  # noqa: F401
    from tilecheck.cache.results import Cache
    from tilecheck.proof.solver.session import load_solver
    from tilecheck.verify.stages import preload

    preload()
    load_solver()
    gc.freeze()
    gc.enable()
    collect_rarely()
    return Cache.in_memory()


def _answer(request: tuple[Any, ...], cache: Cache) -> Answer:
    number = request[1]
    try:
        return number, "done", _REQUESTS[request[0]](cache, *request[2:])
    except Cancelled:
        return number, "cancelled", None
    except UsageError as error:
        return number, "refused", f"{error.message} ({error.hint})" if error.hint else error.message
    except Exception:  # noqa: BLE001 - a bug of ours must not end the process: the server tells the user
        return number, "failed", traceback.format_exc()


def _verify(cache: Cache, path: str, data: bytes, texts: dict[str, bytes]) -> object:
    from tilecheck.config.files import Configs  # lazy: as above
    from tilecheck.identifiers import words_in  # lazy: as above
    from tilecheck.model import Report  # lazy
    from tilecheck.options import Options  # lazy
    from tilecheck.verify.discover import MAY_HOLD_KERNELS  # lazy
    from tilecheck.verify.pipeline import verify_source  # lazy

    if not MAY_HOLD_KERNELS.search(words_in(data)) or Configs().excluding(path):
        return Report((), (), 1)  # most files are no business of ours, not even their syntax
    report = verify_source(data, path, Options(), texts=texts, cache=cache)
    return _accepted(report, path)


def _accepted(report: Report, path: str) -> Report:
    """The report by what the project's baseline accepts, as the command line has it."""
    from tilecheck.history.baseline import applied  # lazy: as above
    from tilecheck.history.baseline_file import load  # lazy
    from tilecheck.history.baseline_location import default_file  # lazy

    file = default_file(Path(path).parent)
    return applied(report, load(file)[0], str(file.parent)) if file.is_file() else report


def _borrows(cache: Cache, path: str, data: bytes, texts: dict[str, bytes], kernel: str) -> object:
    from tilecheck.lsp.borrows import borrows_of  # lazy: as above

    return borrows_of(data, path, kernel, texts)


def _propose(cache: Cache, path: str, data: bytes, texts: dict[str, bytes], kernel: str) -> object:
    """The contracts with which open obligations of a kernel were proved."""
    from tilecheck.lsp.actions import contracts_in  # lazy: as above
    from tilecheck.options import Options  # lazy
    from tilecheck.proof.obligation import SETTLE, SETTLES  # lazy
    from tilecheck.verify.pipeline import verify_source  # lazy

    options = Options(propose=True)
    report = verify_source(data, path, options, texts=texts, cache=cache, kernels=(kernel,))
    cache.end()
    helps = [d.help or "" for d in report.diagnostics if d.kernel == kernel]
    verified = [text for text in helps if SETTLE in text or SETTLES in text]
    return tuple(dict.fromkeys(contract for text in verified for contract in contracts_in(text)))


_REQUESTS: dict[str, Callable[..., object]] = {"verify": _verify, "borrows": _borrows, "propose": _propose}
