"""What visible launches show about memory that nothing wrote and lanes that are undefined (TC503 to TC505)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tilecheck.ir.kernel import Kernel
from tilecheck.ir.launch import Launch
from tilecheck.model import Diagnostic, Site
from tilecheck.proof.initialisation.undefined_lanes import may_leave_undefined, undefined_lanes
from tilecheck.proof.initialisation.unwritten_memory import blank_arrays, partly_written, used
from tilecheck.proof.initialisation.written_elements import is_written_whole
from tilecheck.proof.launches.judge import Judge
from tilecheck.proof.launches.replays.trials import Trials, is_readable
from tilecheck.proof.launches.visible import Judges
from tilecheck.proof.solver.fuel import Fuel

_LAUNCHES = 12  # of one kernel that are run
_WAYS = 2  # of one call, which may be seen as several launches
_STATEMENTS = 150_000  # for the trials of one kernel


def incomplete(
    kernel: Kernel, launches: Sequence[Launch], path: str, judges: Judges, is_straight: Callable[[], bool]
) -> Iterator[Diagnostic]:
    """A finding for each array and each load, at the first launch that shows it. `is_straight` says whether the
    kernel leaves no loop before its end."""
    wanted = _chosen(kernel, launches)
    fuel = Fuel(_STATEMENTS)
    known: set[tuple[object, ...]] = set()
    for judge in map(judges.of, wanted):
        if judge.is_of_another_kernel():
            continue
        for found in _shown(judge, path, fuel, is_straight):
            key = (found.code, found.site, found.message)
            if key not in known:
                known.add(key)
                yield found


def _shown(judge: Judge, path: str, fuel: Fuel, is_straight: Callable[[], bool]) -> Iterator[Diagnostic]:
    kernel = judge.kernel
    blank = blank_arrays(kernel, judge.launch)
    tried = Trials(judge, path, blank, fuel)

    def is_whole(name: str, trials: Trials) -> bool:
        # Where lanes may be undefined, all trials are run anyhow.
        if may_leave_undefined(kernel) or not is_straight():
            return False
        return all(is_written_whole(kernel, name, trial.concrete) for trial in trials.possible())

    yield from used(judge, blank, tried)
    yield from partly_written(judge, blank, tried, is_whole)
    yield from undefined_lanes(judge, tried)


def _chosen(kernel: Kernel, launches: Sequence[Launch]) -> list[Launch]:
    """The launches that are looked at, of each call those first that pass memory which nothing wrote."""
    readable = [launch for launch in launches if is_readable(launch)]
    blank = [launch for launch in readable if blank_arrays(kernel, launch)]
    others = [launch for launch in readable if launch not in blank] if may_leave_undefined(kernel) else []
    ways = Counter[Site]()
    found = []
    for launch in (*blank, *others):
        ways[launch.site] += 1
        if ways[launch.site] <= _WAYS:
            found.append(launch)
    return found[:_LAUNCHES]
