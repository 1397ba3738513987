"""Random host functions as text: right ones, and mutants with the codes that they deserve.

A function is drawn as a plan (`host_families.py`) that breaks no rule. A mutant is the plan with one change:

- a wait is dropped, names another stream, or comes after the work that needed it (or an event before the work
  that it stands for), and work may move to another stream: what the wait alone ordered races;
- a buffer is let go while work uses it, or while a graph still holds its address;
- a number that the captured step read from memory is a number of the host, which the loop changes;
- the name of a captured input is bound to the next input, where the input was copied into it;
- results are collected without a copy; the host waits inside a capture;
- a kernel of a dependent launch never waits, or waits when it has already read what earlier launches write.

A kind does not say that its mutants are wrong: a dropped wait may be one of two. `broken` (`host_truth.py`)
says which rules the plan of a mutant breaks, from the clocks of its streams. A mutant that breaks none has to
pass.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from soundness_host_families import FAMILIES, Family
from soundness_host_kernels import Kernel, Wait
from soundness_host_plans import (
    MAIN,
    Allocate,
    Capture,
    Delete,
    HostWait,
    Keep,
    Launch,
    Loop,
    Part,
    Plan,
    Rebind,
    Record,
    RecordStream,
    Replay,
    SetNumber,
    Step,
    Update,
    WaitEvent,
    WaitStream,
    all_steps,
    uses_of,
)
from soundness_host_texts import Style, module
from soundness_host_truth import broken

# What the mutants of a kind may break.
KINDS: dict[str, frozenset[str]] = {
    "dropped wait": frozenset({"TC411", "TC413", "TC414", "TC415", "TC421", "TC425"}),
    "wrong stream": frozenset({"TC411", "TC413", "TC414", "TC415", "TC421", "TC425", "TC431", "TC433"}),
    "reordered wait": frozenset({"TC411", "TC413", "TC414", "TC415", "TC421", "TC425"}),
    "freed buffer": frozenset({"TC413", "TC421"}),
    "frozen scalar": frozenset({"TC424"}),
    "reordered update": frozenset({"TC411", "TC423", "TC425"}),
    "kept output": frozenset({"TC426"}),
    "wait in capture": frozenset({"TC422"}),
    "missing PDL wait": frozenset({"TC413", "TC414", "TC432", "TC433"}),
    "PDL wait too late": frozenset({"TC431"}),
}
UNMUTATED = "unmutated"


@dataclass(frozen=True)
class Function:
    """One host function of a module. `codes` are those of the rules that it breaks."""

    name: str
    kind: str
    plan: Plan
    codes: frozenset[str]


@dataclass(frozen=True)
class Module:
    """A right host function and mutants of it, in one text with their kernels."""

    family: str
    text: str
    functions: tuple[Function, ...]


def drawn(seed: int, most: int = 12) -> Module:
    """The module of a seed, with at most so many mutants of its function."""
    rng = random.Random(seed)
    family = rng.choice(FAMILIES)
    plan = right(rng, family)
    functions = [Function("host", UNMUTATED, plan, frozenset())]
    for number, (kind, mutant) in enumerate(_chosen(rng, plan, most)):
        functions.append(Function(f"mutant_{number}", kind, mutant, broken(mutant)))
    text = module({f.name: f.plan for f in functions}, Style.drawn(rng))
    return Module(family.__name__, text, tuple(functions))


def _chosen(rng: random.Random, plan: Plan, most: int) -> list[tuple[str, Plan]]:
    """Mutants of a plan: one of each kind before a second of any."""
    mutants = [
        m for m in dict.fromkeys(mutants_of(plan)) if bool(broken(m[1])) is bool(broken(m[1], joins=False))
    ]
    rng.shuffle(mutants)
    counts: Counter[str] = Counter()
    ranked = []
    for kind, mutant in mutants:
        counts[kind] += 1
        ranked.append((counts[kind], kind, mutant))
    ranked.sort(key=lambda one: one[0])
    return [(kind, mutant) for _, kind, mutant in ranked[:most]]


def right(rng: random.Random, family: Family) -> Plan:
    """A plan of a family that breaks no rule."""
    while True:
        plan = family(rng)
        if not (broken(plan) or broken(plan, joins=False)):
            return plan


# ---- places in a plan ----------------------------------------------------------------------------------------

_Rebuild = Callable[[tuple[Step, ...]], tuple[Step, ...]]


def _same(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return steps


@dataclass(frozen=True)
class _Place:
    """A step among its neighbours, and the way back to the whole plan."""

    steps: tuple[Step, ...]
    index: int
    rebuild: _Rebuild
    captured: bool = False

    @property
    def step(self) -> Step:
        return self.steps[self.index]

    def with_(self, *new: Step, upto: int = 1) -> tuple[Step, ...]:
        """All steps, with new ones in the place of this one (and of those behind it, `upto` in all)."""
        return self.rebuild((*self.steps[: self.index], *new, *self.steps[self.index + upto :]))


def _places(steps: tuple[Step, ...], rebuild: _Rebuild = _same, *, captured: bool = False) -> Iterator[_Place]:
    for index, step in enumerate(steps):
        here = _Place(steps, index, rebuild, captured)
        yield here
        if isinstance(step, Loop | Capture):
            inner = partial(_inside, here, step)
            yield from _places(step.steps, inner, captured=isinstance(step, Capture))


def _inside(place: _Place, step: Loop | Capture, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return place.with_(replace(step, steps=steps))


# ---- mutants -------------------------------------------------------------------------------------------------


def mutants_of(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Every mutant of a plan, with its kind."""
    changes = (
        _dropped,
        _wrong_stream,
        _reordered,
        _freed,
        _rebound,
        _kept,
        _waits_in_capture,
        _waits_of_kernels,
    )
    for place in _places(plan.steps):
        for change in changes:
            for kind, steps in change(plan, place):
                yield kind, replace(plan, steps=steps)
    frozen = _frozen(plan.steps)
    if frozen != plan.steps:
        yield "frozen scalar", replace(plan, steps=frozen)


_Mutants = Iterator[tuple[str, tuple[Step, ...]]]


def _dropped(plan: Plan, place: _Place) -> _Mutants:
    if isinstance(place.step, WaitStream | WaitEvent | HostWait):
        yield "dropped wait", place.with_()


def _wrong_stream(plan: Plan, place: _Place) -> _Mutants:
    step = place.step
    names = {MAIN, *(s.stream for s in all_steps(plan.steps) if isinstance(s, Launch | Update | Replay))}
    if isinstance(step, WaitStream):
        for name in sorted(names - {step.waited, step.waiter}):
            yield "wrong stream", place.with_(replace(step, waited=name))
        yield "wrong stream", place.with_(WaitStream(step.waited, step.waiter))
    elif isinstance(step, Launch | Update | Replay | Record | WaitEvent) and not place.captured:
        for name in sorted(names - {step.stream}):
            yield "wrong stream", place.with_(replace(step, stream=name))


def _reordered(plan: Plan, place: _Place) -> _Mutants:
    """A wait behind the work that follows it, an event before the work in front of it."""
    if place.index + 1 == len(place.steps):
        return
    first, second = place.steps[place.index : place.index + 2]
    work = (Launch, Update, Replay)
    if isinstance(first, WaitStream | WaitEvent) and isinstance(second, work):
        kind = "reordered update" if isinstance(second, Update) else "reordered wait"
        yield kind, place.with_(second, first, upto=2)
    if isinstance(first, work) and isinstance(second, Record | WaitStream):
        yield "reordered wait", place.with_(second, first, upto=2)


def _freed(plan: Plan, place: _Place) -> _Mutants:
    """A local buffer is let go as soon as no later step names it, and no stream is recorded."""
    step = place.step
    if isinstance(step, RecordStream):
        yield "freed buffer", place.with_()
    if place.rebuild is not _same or not isinstance(step, Launch | Capture | Update):
        return
    captured = step.steps if isinstance(step, Capture) else (step,)
    named = {b for inner in captured for b in _named(inner)}
    local = {s.buffer for s in plan.steps if isinstance(s, Allocate) and not s.pinned}
    later = {b for s in all_steps(place.steps[place.index + 1 :]) for b in _named(s)}
    for buffer in sorted((named & local) - later - {*plan.returned}):
        yield "freed buffer", place.with_(step, Delete(buffer))


def _named(step: Step) -> Iterator[str]:
    if isinstance(step, Launch | Update):
        yield from (use.buffer for use in uses_of(step, 0))
    elif isinstance(step, RecordStream | Delete | Keep):
        yield step.buffer


def _rebound(plan: Plan, place: _Place) -> _Mutants:
    step = place.step
    if isinstance(step, Update) and {step.buffer, step.source} <= {*plan.handed}:
        yield "reordered update", place.with_(Rebind(step.buffer, step.source))


def _kept(plan: Plan, place: _Place) -> _Mutants:
    if isinstance(place.step, Keep) and place.step.copied:
        yield "kept output", place.with_(replace(place.step, copied=False))


def _waits_in_capture(plan: Plan, place: _Place) -> _Mutants:
    if isinstance(place.step, Capture):
        yield "wait in capture", place.with_(replace(place.step, steps=(*place.step.steps, HostWait())))


def _waits_of_kernels(plan: Plan, place: _Place) -> _Mutants:
    step = place.step
    if isinstance(step, Launch) and step.dependent:
        operation = step.kernel.operation
        yield "missing PDL wait", place.with_(replace(step, kernel=Kernel(operation)))
        yield "PDL wait too late", place.with_(replace(step, kernel=Kernel(operation, Wait.LATE)))


def _frozen(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The cell of memory as a number of the host."""
    found: list[Step] = []
    for step in steps:
        if isinstance(step, Loop | Capture):
            found.append(replace(step, steps=_frozen(step.steps)))
        elif isinstance(step, Allocate) and step.buffer == "cell":
            found.append(SetNumber("factor", "1.0"))
        elif isinstance(step, Update) and step.buffer == "cell":
            found.append(SetNumber("factor", "factor + 1.0"))
        elif isinstance(step, Launch) and step.kernel.operation == "scale_by_cell":
            x, _, out = step.arguments
            found.append(
                replace(step, kernel=Kernel("scale"), arguments=(x, Part(out.buffer)), number="factor")
            )
        else:
            found.append(step)
    return tuple(found)
