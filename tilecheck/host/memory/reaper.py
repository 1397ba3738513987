"""Frees memory when nothing that is in flight can touch it any more.

Dropping a handle never blocks and never frees what the GPU may still use: the storage is *parked* behind events
of the streams that use it, and freed when they have ended. After a fault of the device nobody knows what has
ended, so what is parked then is leaked, which is said once.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
import warnings
import weakref
from typing import TYPE_CHECKING, Any

from tilecheck.host.memory.regions import Region
from tilecheck.host.memory.storage import Storage
from tilecheck.host.places import text_of
from tilecheck.host.streams.clocks import Item, Mark, Queue, has_ended

if TYPE_CHECKING:
    from tilecheck.host.graphs.owners import Owner
    from tilecheck.host.runtime import Runtime

_OFTEN = 64  # values that are kept, between two looks at them
_SHORTEST, _LONGEST = 50e-6, 5e-3  # seconds between two looks at what is parked


class Reaper:
    """What was dropped in flight. Mutable; its lock is the runtime's."""

    def __init__(self, runtime: Runtime, *, background: bool) -> None:
        self._runtime = weakref.ref(runtime)
        # A handle may be dropped anywhere, also by the garbage collector in the midst of our own code: this
        # queue may be touched even there.
        self._dropped: queue.SimpleQueue[tuple[Storage, Region] | Owner] = queue.SimpleQueue()
        self.is_needed = False  # whether `collect` has anything to do
        self._parked: dict[Storage, list[Mark]] = {}
        self._kept: list[tuple[Item, Any]] = []
        self._leaked: list[Any] = []
        self._freed = 0
        self._faulted = False
        self._background = background
        self._thread: threading.Thread | None = None

    # ---- counters --------------------------------------------------------------------------------------------

    @property
    def parked(self) -> int:
        return len(self._parked)

    @property
    def reaped(self) -> int:
        return self._freed

    @property
    def leaked(self) -> int:
        return len(self._leaked)

    # ---- what others say -------------------------------------------------------------------------------------

    def dropped(self, storage: Storage, region: Region) -> None:
        """Note that a handle is gone. Callable from anywhere at any time."""
        self._dropped.put((storage, region))
        self.is_needed = True
        runtime = self._runtime()
        if runtime is not None:
            runtime.collect_if_free()

    def abandoned(self, graph: Owner) -> None:
        """Note that a graph is gone. Callable from anywhere at any time."""
        self._dropped.put(graph)
        self.is_needed = True
        runtime = self._runtime()
        if runtime is not None:
            runtime.collect_if_free()

    def keep(self, item: Item, value: Any) -> None:
        """Keep a value until a piece of work has ended."""
        self._kept.append((item, value))
        self.is_needed = self.is_needed or len(self._kept) % _OFTEN == 0

    # ---- freeing ---------------------------------------------------------------------------------------------

    def collect(self, runtime: Runtime) -> None:
        """Free or park what was dropped since. The caller holds the lock, and captures nothing."""
        self.is_needed = False
        while True:
            try:
                gone = self._dropped.get_nowait()
            except queue.Empty:
                break
            if not isinstance(gone, tuple):
                gone.close()
                continue
            storage, region = gone
            root = storage.root()
            root.let_go(region)
            self.consider(runtime, root)
        self._let_go(runtime)

    def _let_go(self, runtime: Runtime) -> None:
        """Drop the values that were kept for work that has ended."""
        done = runtime.ledger.done
        if self._kept:
            self._kept = [(item, value) for item, value in self._kept if not has_ended(item, 0, 0, done)]

    def consider(self, runtime: Runtime, storage: Storage) -> None:
        """Free a storage, or park it, if nobody holds it."""
        if storage.held or storage in self._parked:
            return
        if storage.is_idle(runtime.ledger.done):
            self._free(runtime, storage)
            return
        try:
            queues = {item.queue for item in storage.tracks.items()}
            self._parked[storage] = [runtime.ledger.mark(q) for q in queues]
        except Exception as error:  # noqa: BLE001 - whatever a driver raises after a fault
            self._fault(runtime, error, storage)
            return
        self._start(runtime)

    def look(self, runtime: Runtime) -> None:
        """Free what is parked and has ended. The caller holds the lock, and captures nothing."""
        self.collect(runtime)
        for storage, marks in tuple(self._parked.items()):
            if storage.held:  # somebody holds it again
                del self._parked[storage]
                continue
            try:
                if all(self._has_passed(runtime, mark) for mark in marks) and self._is_over(runtime, storage):
                    del self._parked[storage]
                    self._free(runtime, storage)
                    self._freed += 1
            except Exception as error:  # noqa: BLE001 - as above
                self._fault(runtime, error, storage)
        self._let_go(runtime)

    def _has_passed(self, runtime: Runtime, mark: Mark) -> bool:
        done = runtime.ledger.done
        if all(done.get(lane, 0) >= count for lane, count in mark.clock.items()):
            return True
        if runtime.driver.is_done(mark.event):
            runtime.ledger.passed(mark)
            return True
        return False

    def _is_over(self, runtime: Runtime, storage: Storage) -> bool:
        """Whether all work on it has ended. An event says nothing of launches that nothing waited for."""
        if not storage.is_idle(runtime.ledger.done):
            queues: set[Queue] = {item.queue for item in storage.tracks.items()}
            for each in queues:
                runtime.ledger.saw_idle(each)
        return storage.is_idle(runtime.ledger.done)

    def _free(self, runtime: Runtime, storage: Storage) -> None:
        runtime.table.remove(storage)
        if runtime.ledger.recorder is not None:
            runtime.ledger.recorder.free(storage)
        storage.keep.clear()  # whoever owns the memory frees it with its last reference

    def _fault(self, runtime: Runtime, error: Exception, storage: Storage) -> None:
        """Never free what the device may still use, and say so once."""
        self._parked.pop(storage, None)
        self._leaked.append(storage)
        if self._faulted:
            return
        self._faulted = True
        last = max(storage.tracks.items(), key=lambda item: item.seq)
        warnings.warn(
            f"the device has failed ({error}): memory that {last.name} at {text_of(last.place)} may still use, "
            "and all that is dropped in flight after it, is never freed",
            ResourceWarning,
            stacklevel=2,
        )

    def rests(self) -> None:
        """Note that the thread ends: the next that is parked needs another."""
        self._thread = None

    # ---- in the background -----------------------------------------------------------------------------------

    def _start(self, runtime: Runtime) -> None:
        # At the end of the interpreter a thread never begins to run, and `start` may wait for it.
        if not self._background or self._thread is not None or sys.is_finalizing():
            return
        thread = threading.Thread(
            target=_watch, args=(weakref.ref(runtime),), name="tilecheck-reaper", daemon=True
        )
        with contextlib.suppress(RuntimeError):  # at the end of the interpreter there is no next thread
            thread.start()
            self._thread = thread


def _watch(held: weakref.ref[Runtime]) -> None:
    """Look again and again, ever more seldom, until nothing is parked."""
    pause = _SHORTEST
    while True:
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)
        runtime = held()
        if runtime is None:
            return
        with runtime.lock:
            runtime.reaper.look(runtime)
            if not runtime.reaper.parked:
                runtime.reaper.rests()
                return
        del runtime
