"""What visible launches show about memory that nothing wrote and lanes that are undefined (TC503 to TC505)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from tilecheck.ir.kernel import Kernel
from tilecheck.ir.launch import Launch
from tilecheck.model import Diagnostic
from tilecheck.proof.fuel import Fuel
from tilecheck.proof.launch_judge import Judge, judge_of
from tilecheck.proof.launch_trials import is_readable, trials
from tilecheck.proof.session import Session
from tilecheck.proof.undefined_lanes import may_leave_undefined, undefined_lanes
from tilecheck.proof.unwritten_memory import blank_arrays, partly_written, used

_LAUNCHES = 16  # of one kernel that are run
_STATEMENTS = 100_000  # for the trials of one launch


def incomplete(kernel: Kernel, launches: Sequence[Launch], path: str) -> Iterator[Diagnostic]:
    """A finding for each array and each load, at the first launch that shows it."""
    wanted = [la for la in launches if is_readable(la) and _asks(kernel, la)]
    known: set[tuple[object, ...]] = set()
    with closing(Session()) as session:
        for launch in wanted[:_LAUNCHES]:
            judge = judge_of(kernel, launch, session)
            if judge.is_of_another_kernel():
                continue
            for found in _shown(judge, path):
                key = (found.code, found.site, found.message)
                if key not in known:
                    known.add(key)
                    yield found


def _shown(judge: Judge, path: str) -> Iterator[Diagnostic]:
    blank = blank_arrays(judge.kernel, judge.launch)
    tried = tuple(trials(judge, path, blank, Fuel(_STATEMENTS)))
    yield from used(judge, blank, tried)
    yield from partly_written(judge, blank, tried)
    yield from undefined_lanes(judge, tried)


def _asks(kernel: Kernel, launch: Launch) -> bool:
    return may_leave_undefined(kernel) or bool(blank_arrays(kernel, launch))
