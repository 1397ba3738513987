"""Whether undefined lanes of a load reach memory, at a visible launch (TC505).

Lanes that a mask leaves out hold nothing that is defined unless `other` says so, and the part of a tile
outside its array unless a padding mode does. Runs of one launch that differ in what these lanes hold show it:
they leave other values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilecheck.ir.expr import TRUE
from tilecheck.ir.kernel import Access, Effect, Kernel
from tilecheck.model import Diagnostic, Related, Severity
from tilecheck.proof.launches.judge import Judge
from tilecheck.proof.launches.replays.trials import Memory, Seen, Trial, Trials, input_text
from tilecheck.proof.refute.replay import at_site
from tilecheck.reference import Call, UndefinedRecord

CODE, NAME = "TC505", "undefined-lanes-stored"
_VALUES = (100, -100)  # what undefined lanes hold, besides zeros
_MOST_LOADS = 16  # of one kernel, each run alone


def may_leave_undefined(kernel: Kernel) -> bool:
    """Whether some load has a mask or is checked against its array's bounds, and does not say what its other
    lanes hold."""
    reads = (a for a in kernel.accesses if a.effect is Effect.READ and not a.padded)
    return any(a.mask is not TRUE or a.checked for a in reads)


def undefined_lanes(judge: Judge, trials: Trials) -> Iterator[Diagnostic]:
    """A finding for each load whose undefined lanes decide what the launch leaves in memory."""
    seen: dict[Call, Seen] = {}
    arrays: dict[Call, str] = {}

    def is_settled(number: int) -> bool:
        return bool(seen) and all(one.is_settled(number) for one in seen.values())

    for trial, first in trials.until(is_settled) if may_leave_undefined(judge.kernel) else ():
        arrays.update(first.log.idle)
        for call in first.log.idle:
            seen.setdefault(call, Seen()).possible += 1
        for call in _deciding(trial, first):
            seen[call].shown.append((trial, call))
    for call in sorted(seen):
        if seen[call].is_usual:
            yield _finding(judge, call, arrays[call], seen[call].shown[0][0])


def _deciding(trial: Trial, first: Memory) -> tuple[Call, ...]:
    """The loads whose undefined lanes decide alone what is left; else those without which the others do not."""
    calls = tuple(sorted(first.log.idle))
    if not 0 < len(calls) <= _MOST_LOADS or not _matters(trial, first, calls):
        return ()
    if len(calls) == 1:
        return calls
    alone = tuple(call for call in calls if _matters(trial, first, (call,)))
    if alone:
        return alone
    return tuple(c for c in calls if not _matters(trial, first, [other for other in calls if other != c]))


def _matters(trial: Trial, first: Memory, calls: Sequence[Call]) -> bool:
    """Whether the launch leaves other values where the undefined lanes of `calls` hold others."""
    runs = (trial.run(idle=value, idle_at=calls) for value in _VALUES)
    return any(other is not None and first.differs(other) for other in runs)


def _finding(judge: Judge, call: Call, array: str, trial: Trial) -> Diagnostic:
    kernel = judge.kernel
    access = _access(kernel, call, array)
    site = kernel.site if access is None else access.site
    triton = kernel.language == "triton"
    cause = "the mask leaves out" if triton else "lie outside the array"
    return Diagnostic(
        code=CODE,
        name=NAME,
        severity=Severity.WARNING,
        message=f"lanes of this load of `{array}` that {cause} are undefined, and decide what "
        f"`{kernel.name}` stores",
        site=site,
        kernel=kernel.name,
        label="undefined without `other`" if triton else "the padding is undetermined",
        related=(Related(judge.launch.site, "at this launch"),),
        witness=trial.witness(array, None, (0, 0, 0)),
        notes=(input_text(trial.values),),
        help="give the load `other=` with the neutral value, such as `other=0.0` for a sum"
        if triton
        else "give the load a padding, such as `padding_mode=ct.PaddingMode.ZERO` for a sum",
    )


def _access(kernel: Kernel, call: Call, array: str) -> Access | None:
    """The load of the kernel that stands where the run made it."""
    record = UndefinedRecord("", (0, 0, 0), *call)
    reads = [a for a in kernel.accesses if a.effect is Effect.READ and a.array == array]
    return next((a for a in reads if at_site(a.site, [record])), None)
