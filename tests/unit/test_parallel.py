"""Work that is spread over processes: order, exceptions, and processes that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tilecheck.parallel import available_cores, in_order, isolated  # noqa: F401 - by calls in other processes

MAIN = os.getpid()
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def square(number: int) -> tuple[int, bool]:
    return number * number, os.getpid() == MAIN


def fails(number: int) -> int:
    if number == 3:
        raise LookupError("three")
    return number


def dies(number: int) -> int:
    if number == 3 and os.getpid() != MAIN:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def alone(call: str) -> str:
    """What a call gives in a process of its own: that of the tests may have threads, and does not fork then."""
    here = Path(__file__)
    code = f"import sys; sys.path.insert(0, {str(here.parent)!r}); from {here.stem} import *; print({call})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    return ran.stdout.strip() or ran.stderr.strip().splitlines()[-1]


@forks
def test_results_come_in_order_from_other_processes() -> None:
    assert alone("in_order(square, range(9), 3)") == str([(n * n, False) for n in range(9)])


@pytest.mark.parametrize(("items", "jobs"), [(range(5), 1), (range(1), 4), (range(0), 4)])
def test_little_work_stays_here(items: range, jobs: int) -> None:
    assert in_order(square, items, jobs) == [(n * n, True) for n in items]


def test_a_process_with_threads_does_not_fork() -> None:
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    try:
        assert in_order(square, range(4), 2) == [(n * n, True) for n in range(4)]
    finally:
        ended.set()
        other.join()


def test_an_exception_is_raised_here() -> None:
    with pytest.raises(LookupError, match="three"):
        in_order(fails, range(9), 1)
    assert alone("in_order(fails, range(9), 2)") == "LookupError: three"


@forks
def test_the_work_of_a_process_that_died_is_done_here() -> None:
    assert alone("in_order(dies, range(9), 2)") == str(list(range(9)))


@forks
def test_only_the_item_whose_process_dies_is_lost() -> None:
    lost = "in_order(dies, range(9), 2, lost=lambda n: -n)"
    assert alone(lost) == str([0, 1, 2, -3, *range(4, 9)])


@forks
def test_an_exception_in_a_process_of_its_own_is_raised_here() -> None:
    assert alone("list(isolated(fails, range(9), 2))") == "LookupError: three"


@forks
def test_as_many_processes_as_are_allowed_work_at_once() -> None:
    found = "sorted((n, one.ended, one.result) for n, one in isolated(dies, range(6), 4))"
    expected = [(n, n != 3, None if n == 3 else n) for n in range(6)]
    assert alone(found) == str(expected)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="counts threads as Linux tells them")
@pytest.mark.skipif(available_cores() < 2, reason="one processor has no use for threads")
@pytest.mark.parametrize(("asked", "alone"), [("one_thread_each()", True), ("None", False)])
def test_linear_algebra_takes_no_threads(asked: str, alone: bool) -> None:
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    code = (
        f"from tilecheck.parallel import one_thread_each; {asked}; import numpy as np\n"
        "a = np.ones((512, 512)); a @ a\n"
        "print(open('/proc/self/status').read().partition('Threads:')[2].split()[0])"
    )
    rest = {name: value for name, value in os.environ.items() if name not in names}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=rest)
    assert (ran.stdout.strip() == "1") is alone, ran.stderr
