"""Spreads independent work over processes."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tilecheck.dataclass import dataclass

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# What the forked processes do, by the number of an item. Set before they are forked, so nothing is pickled but
# results, and what one of them has read for an item is there for its next.
_task: Callable[[int], Any] | None = None


def available_cores() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def one_thread_each() -> None:
    """Let NumPy's linear algebra, which is loaded later, do without threads of its own, here and in children.

    For programs: work is spread over processes, whose threads would wait for one another; and where there are
    threads, nothing can be forked.
    """
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def can_fork() -> bool:
    """Whether processes can be forked safely: with threads about, a lock may be held for ever in the child."""
    import multiprocessing  # lazy, like the others: most runs work alone

    return "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1


def in_order(
    work: Callable[[_Item], _Result],
    items: Sequence[_Item],
    jobs: int,
    *,
    size: Callable[[_Item], int] | None = None,
    begin: Callable[[], object] | None = None,
    started: Callable[[], object] | None = None,
    done: Callable[[_Item, _Result], object] | None = None,
    lost: Callable[[_Item], _Result] | None = None,
) -> list[_Result]:
    """`[work(item) for item in items]`, by up to `jobs` forked processes.

    An exception of `work` is raised here, that of the first item of several. A process that dies, as by a crash
    of the solver, takes the others' unfinished work with it: each item that is left then gets a process of its
    own, or is done in this one where nothing is known to do for an item whose process dies.

    Args:
        work: what is done.
        items: to which it is done.
        jobs: how many processes work.
        size: how long an item takes, about: the longest are begun first, so that no process waits for another's
            last item.
        begin: called in each new process.
        started: called here once all processes are there: before that, threads are in the way of forks.
        done: called here with each item and its result as soon as it is there, in any order.
        lost: the result of an item whose own process died.
    """
    jobs = min(jobs, len(items))
    results: dict[int, _Result] = {}
    if jobs > 1 and can_fork():
        order: Sequence[int] = range(len(items))
        if size is not None:
            order = sorted(order, key=lambda number: -size(items[number]))
        forked = _forked(lambda number: work(items[number]), order, jobs, begin, started)
        with contextlib.closing(forked) as found:
            for number, result in found:
                results[number] = result
                if done is not None:
                    done(items[number], result)
        left = [number for number in order if number not in results] if lost is not None else []
        for number, alone in isolated(lambda number: work(items[number]), left, jobs, begin):
            results[number] = alone.result if alone.ended or lost is None else lost(items[number])
            if done is not None:
                done(items[number], results[number])
    elif started is not None:
        started()
    for number, item in enumerate(items):
        if number not in results:
            results[number] = work(item)
            if done is not None:
                done(item, results[number])
    return [results[number] for number in range(len(items))]


@dataclass(frozen=True, slots=True)
class Ending:
    """How the process of one item ended: with a result, or by dying."""

    ended: bool
    result: Any = None


def isolated(
    task: Callable[[int], Any], numbers: Sequence[int], jobs: int, begin: Callable[[], object] | None = None
) -> Iterator[tuple[int, Ending]]:
    """How `task` ended for each number, in a forked process of its own; up to `jobs` of them run at once.

    An exception of `task` is raised here.
    """
    import multiprocessing  # lazy, like the others
    from multiprocessing.connection import Connection, wait

    context = multiprocessing.get_context("fork")
    waiting = list(reversed(numbers))
    running: dict[Connection, tuple[int, ForkProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_send, args=(sender, task, waiting[-1], begin))
                process.start()
                sender.close()  # so that the end of the process is the end of the pipe
                running[receiver] = waiting.pop(), process
            for receiver in (found for found in wait(list(running)) if isinstance(found, Connection)):
                number, process = running.pop(receiver)
                yield number, _received(receiver)
                process.join()
    finally:
        for receiver, (_, process) in running.items():
            process.kill()
            receiver.close()


def _received(receiver: Connection) -> Ending:
    with receiver:
        try:
            error, result = receiver.recv()
        except (EOFError, ConnectionResetError):
            return Ending(ended=False)
    if error is not None:
        raise error
    return Ending(ended=True, result=result)


def _send(
    sender: Connection, task: Callable[[int], Any], number: int, begin: Callable[[], object] | None
) -> None:
    _begin(begin)
    result, problem = None, None
    try:
        result = task(number)
    except Exception as error:  # noqa: BLE001 - raised again in the parent
        problem = error
    sender.send((problem, result))


def _forked(
    task: Callable[[int], _Result],
    order: Sequence[int],
    jobs: int,
    begin: Callable[[], object] | None,
    started: Callable[[], object] | None,
) -> Generator[tuple[int, _Result], None, None]:
    """The results of `task` as they come; not all of them if a process dies."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    global _task  # noqa: PLW0603 - it must be there before the fork
    _task = task
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _begin, (begin,))
    try:
        yield from _collected(pool, order, started)
    except BrokenProcessPool:
        return
    except BaseException:
        # Killed, not cancelled: the executor's own thread takes a cancelled future that breaks for a mistake.
        for process in multiprocessing.active_children():
            process.kill()
        raise
    finally:
        pool.shutdown()
        _task = None


def _collected(
    pool: ProcessPoolExecutor, order: Sequence[int], started: Callable[[], object] | None
) -> Iterator[tuple[int, Any]]:
    from concurrent.futures import as_completed
    from concurrent.futures.process import BrokenProcessPool

    numbers: dict[Future[Any], int] = {pool.submit(_do, number): number for number in order}
    if started is not None:
        started()
    failed: dict[int, BaseException] = {}
    for future in as_completed(numbers):
        error = future.exception()
        if error is None:
            yield numbers[future], future.result()
            continue
        failed[-1 if isinstance(error, BrokenProcessPool) else numbers[future]] = error
    if failed:
        raise failed[min(failed)]


def _do(number: int) -> Any:
    if _task is None:
        raise RuntimeError("this process was not forked for work")
    return _task(number)


def _begin(begin: Callable[[], object] | None) -> None:
    # Ctrl-C reaches every process of a terminal; the parent alone answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if begin is not None:
        begin()
