"""Random programs of `tilecheck.host`: nothing wrong is accepted, and nothing right is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from soundness_host_runtime import check

from tilecheck.host import ledger
from tilecheck.host.graphs import owners
from tilecheck.host.memory import reaper, storage
from tilecheck.host.operations import operations
from tilecheck.host.streams import clocks


@pytest.mark.parametrize("batch", range(8))
def test_what_is_accepted_is_in_order_and_what_is_refused_is_not(batch: int) -> None:
    refused: Counter[str] = Counter()
    for seed in range(50 * batch, 50 * (batch + 1)):
        outcome = check(seed)
        assert outcome.wrong == [], f"seed {seed}"
        assert outcome.accepted > 0
        refused += outcome.refused
    assert refused["TC411"] > 50
    assert sum(refused[code] for code in ("TC431", "TC432", "TC433")) > 0


def _planted(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    """Plant a mistake in the library."""

    def skipped(*_: object, **__: object) -> None:
        return None

    conflict = storage.Tracks.conflict
    dependent = clocks.Queue.push_dependent
    claim = ledger.Ledger._claim  # noqa: SLF001 - the place of the mistake

    def unnoticed(self: ledger.Ledger, *args: Any) -> bool:
        starts_early = claim(self, *args)
        for owner in args[-1]:
            owner.touched = {}
        return starts_early

    mistakes: dict[str, tuple[object, str, Callable[..., object]]] = {
        "reads do not count": (
            storage.Tracks,
            "conflict",
            lambda self, *args, write: conflict(self, *args, write=False) if write else None,
        ),
        "kernels are taken to wait": (
            clocks.Queue,
            "push_dependent",
            lambda self, item, *, waits: dependent(self, item, waits=True),
        ),
        "an event waits for nothing": (ledger.Ledger, "wait", lambda self, queue, mark: queue.wait(mark.clock)),
        "a busy stream is taken for idle": (
            ledger.Ledger,
            "saw_idle",
            lambda self, queue: self._joined(queue) or True,
        ),
        "graphs do not follow their updates": (owners.Owner, "follow", skipped),
        "updates follow no launches": (operations.Execution, "run", lambda self, update: update.run(self)),
        "updates are taken to have ended": (ledger.Ledger, "_claim", unnoticed),
        "updates may write all that a graph owns": (owners.Owner, "takes", lambda self, use: True),
        "graphs do not look at others": (ledger.Ledger, "check", skipped),
        "what is dropped is freed": (
            reaper.Reaper,
            "consider",
            lambda self, runtime, dropped: dropped.held or self._free(runtime, dropped),
        ),
        "a covered access is forgotten for a part": (storage.Region, "covers", lambda self, other: True),
    }
    owner, name, function = mistakes[mistake]
    monkeypatch.setattr(owner, name, function)


@pytest.mark.parametrize(
    "mistake",
    [
        "reads do not count",
        "kernels are taken to wait",
        "an event waits for nothing",
        "a busy stream is taken for idle",
        "graphs do not follow their updates",
        "updates follow no launches",
        "updates are taken to have ended",
        "updates may write all that a graph owns",
        "graphs do not look at others",
        "what is dropped is freed",
        "a covered access is forgotten for a part",
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_the_programs_find_mistakes_in_the_library(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    _planted(monkeypatch, mistake)
    assert any(map(_is_noticed, range(300)))


def _is_noticed(seed: int) -> bool:
    try:
        return bool(check(seed).wrong)
    except AssertionError:  # the fake GPU: memory that nobody owns
        return True
