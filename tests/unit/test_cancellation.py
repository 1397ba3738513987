from __future__ import annotations

import threading
import time

import pytest

from tilecheck.cache.results import Cache
from tilecheck.cancellation import Cancellation, Cancelled, cancelled_by, checkpoint, interruptible
from tilecheck.options import Options
from tilecheck.proof.solver.session import Session
from tilecheck.verify.pipeline import verify_source

# Sums of cubes are no cubes: z3 does not find that out within any budget.
HARD = """
(declare-const x Int)(declare-const y Int)(declare-const z Int)
(assert (> x 2))(assert (> y 2))(assert (> z 2))
(assert (= (+ (* x x x) (* y y y)) (* z z z)))
"""
FOR_EVER = 2_000_000_000
RACY = b"""import cuda.tile as ct


@ct.kernel
def shift(x, T: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, index=(i,), shape=(T,))
    ct.store(x, index=(i + 1,), tile=t)
"""


def test_nothing_is_cancelled_where_nobody_can_cancel() -> None:
    checkpoint()
    with interruptible(lambda: pytest.fail("interrupted")):
        checkpoint()


def test_a_checkpoint_raises_what_no_handler_of_bugs_catches() -> None:
    cancellation = Cancellation()
    with cancelled_by(cancellation):
        checkpoint()
        assert not cancellation.cancel()
        with pytest.raises(Cancelled):
            checkpoint()
    checkpoint()
    assert not issubclass(Cancelled, Exception)


def test_a_wait_is_interrupted_and_what_it_gave_is_lost() -> None:
    cancellation, interrupted = Cancellation(), threading.Event()

    def wait() -> None:
        with cancelled_by(cancellation), interruptible(interrupted.set):
            assert cancellation.cancel()
            assert interrupted.is_set()

    with pytest.raises(Cancelled):
        wait()
    assert not cancellation.cancel()  # nothing waits any more


def test_no_wait_begins_after_the_end() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with cancelled_by(cancellation), pytest.raises(Cancelled), interruptible(lambda: None):
        pytest.fail("it began")


def test_a_hard_question_ends_soon_after_it_was_cancelled() -> None:
    cancellation, times = Cancellation(), []

    def cancel() -> None:
        times.append(time.monotonic())
        while cancellation.cancel():  # an interrupt that comes before z3 listens is lost
            time.sleep(0.01)

    query = Session().query(HARD)
    canceller = threading.Timer(0.3, cancel)
    canceller.start()
    with cancelled_by(cancellation), pytest.raises(Cancelled):
        query.check(FOR_EVER)
    ended = time.monotonic()
    canceller.join()
    assert ended - times[0] < 2
    assert list(query.values()) == []


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("after", range(0, 60, 7))
def test_an_analysis_cancelled_at_any_checkpoint_gives_no_report(
    after: int, cached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exception leaves the analysis, and the next one, with the same cache, is as if it had not been."""
    cache = Cache.in_memory() if cached else None
    expected = _verdicts()
    assert expected
    cancellation, left = Cancellation(), [after]

    def count_down(self: Cancellation) -> None:
        left[0] -= 1
        if left[0] < 0:
            self._is_cancelled = True
            raise Cancelled

    with monkeypatch.context() as patch:
        patch.setattr(Cancellation, "check", count_down)
        with cancelled_by(cancellation), pytest.raises(Cancelled):
            verify_source(RACY, "shift.py", Options(), cache=cache)
    assert left[0] == -1  # nothing went on after it was raised
    assert _verdicts(cache) == expected


def _verdicts(cache: Cache | None = None) -> list[object]:
    report = verify_source(RACY, "shift.py", Options(), cache=cache)
    assert not any(kernel.cached for kernel in report.kernels)
    return [(k.name, k.verdict, k.reason, k.conditions) for k in report.kernels] + list(report.diagnostics)
