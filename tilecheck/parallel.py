"""Spreads independent work over processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def available_cores() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def can_fork() -> bool:
    """Whether processes can be forked safely: with threads about, a lock may be held for ever in the child."""
    return "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1


def in_order(work: Callable[[_Item], _Result], items: Sequence[_Item], jobs: int) -> list[_Result]:
    """`[work(item) for item in items]`, by up to `jobs` forked processes.

    An exception of `work` is raised here. A process that dies, as by a crash of the solver, takes the others'
    unfinished work with it: all of it is then done again in this process.
    """
    jobs = min(jobs, len(items))
    if jobs < 2 or not can_fork():
        return [work(item) for item in items]
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _ignore_interrupts)
    try:
        futures = [pool.submit(work, item) for item in items]
        return [future.result() for future in futures]
    except BrokenProcessPool:
        return [work(item) for item in items]
    except BaseException:
        # Killed, not cancelled: the executor's own thread takes a cancelled future that breaks for a mistake.
        for process in multiprocessing.active_children():
            process.kill()
        raise
    finally:
        pool.shutdown()


def _ignore_interrupts() -> None:
    """Ctrl-C reaches every process of a terminal; the parent alone answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
