"""Draws plans of host functions that break no rule: streams, rings, graphs, dependent launches, host copies.

Each family builds its plan right. Where streams meet, waits are added one by one until `broken` finds nothing,
so that most waits are needed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from soundness_host_kernels import Kernel, Wait
from soundness_host_plans import (
    MAIN,
    Allocate,
    Capture,
    Delete,
    HostTouch,
    HostWait,
    Keep,
    Launch,
    Loop,
    Part,
    Plan,
    Record,
    RecordStream,
    Replay,
    Step,
    Update,
    WaitEvent,
    WaitStream,
)
from soundness_host_truth import Walk, broken, walked

EMPTY, ZEROS = "torch.empty_like({first})", "torch.zeros_like({first})"
HALVES = ((0, 2), (2, 4))
_SIDES = ("left", "right", "third")

Family = Callable[[random.Random], Plan]


def _launch(operation: str, *buffers: str, wait: Wait = Wait.NEVER, **given: str | bool) -> Launch:
    return Launch(Kernel(operation, wait), tuple(map(Part, buffers)), **given)  # type: ignore[arg-type]  # by name


# ---- streams -------------------------------------------------------------------------------------------------


@dataclass
class _Streams:
    """Launches on several streams, with the waits that they need. Mutable: a plan in the making."""

    rng: random.Random
    plan: Plan
    events: dict[int, str] = field(default_factory=dict)  # by item: an event that was recorded behind it

    def add(self, *steps: Step) -> None:
        self.plan = replace(self.plan, steps=(*self.plan.steps, *steps))

    def walk(self, *more: Step) -> Walk:
        return walked(replace(self.plan, steps=(*self.plan.steps, *more)), 1)

    def work(self, step: Launch | Update) -> None:
        """Add work with the waits that it needs, and now and then an event behind it."""
        while waited := sorted({first for first, _ in self.walk(step).races - self.walk().races}):
            self.wait(step.stream, self.rng.choice(waited))
        self.add(step)
        if self.rng.random() < 0.4:
            name = f"done_{len(self.events)}"
            self.events[len(self.walk().items) - 1] = name
            self.add(Record(name, step.stream))

    def wait(self, stream: str, item: int) -> None:
        """Let a stream wait for an item."""
        if item in self.events:
            self.add(WaitEvent(self.events[item], stream))
        else:
            self.add(WaitStream(stream, self.walk().items[item].stream))

    def join(self) -> None:
        """Order everything before what the caller does next, and before the end of the local buffers."""
        streams = sorted({item.stream for item in self.walk().items} - {MAIN})
        self.rng.shuffle(streams)
        for stream in streams:
            if broken(self.plan) & {"TC413", "TC414"}:
                self.add(HostWait(stream) if self.rng.random() < 0.15 else WaitStream(MAIN, stream))
        if broken(self.plan):  # a buffer of a side stream that the caller's stream still uses
            self.record()
        if broken(self.plan):
            self.add(HostWait())

    def record(self) -> None:
        """Record the streams that use a buffer of another stream."""
        walk = self.walk()
        for buffer, home in walk.home.items():
            users = {i.stream for i in walk.items if any(u.buffer == buffer for u in i.uses)} - {home}
            if buffer not in walk.gone and buffer not in self.plan.returned:
                self.add(*(RecordStream(buffer, user) for user in sorted(users)))


def streams(rng: random.Random) -> Plan:
    """A few launches on two to four streams, each on what others have made."""
    sides = _SIDES[: rng.randint(1, 3)]
    handed = ("x", "y")[: rng.randint(1, 2)]
    made = _Streams(rng, Plan(handed, (), (), rng.choice((None, 1024, 2048))))
    readable, local = list(handed), []
    for number in range(rng.randint(2, 5)):
        stream = rng.choice((MAIN, *sides, *sides))
        reused = [name for name in local if rng.random() < 0.2]
        out = rng.choice(reused) if reused else f"t{number}"
        inputs = [name for name in readable if name != out]
        if out not in local:
            home = rng.choice((MAIN, stream))
            made.add(Allocate(out, EMPTY, home))
            local.append(out)
        chosen = rng.choices(inputs, k=2)
        if made.plan.size is not None and rng.random() < 0.25:
            for half in HALVES:
                parts = (Part(chosen[0], half), Part(out, half))
                made.work(Launch(Kernel("scale"), parts, rng.choice((MAIN, *sides))))
        elif rng.random() < 0.5:
            made.work(_launch(rng.choice(("scale", "shift")), chosen[0], out, stream=stream))
        else:
            made.work(_launch(rng.choice(("add", "multiply")), *chosen, out, stream=stream))
        readable = [*dict.fromkeys((*readable, out))]
    made.plan = replace(made.plan, returned=(local[-1],))
    if len(local) > 1 and rng.random() < 0.5:
        gone = rng.choice(local[:-1])
        walk = made.walk()
        users = {i.stream for i in walk.items if any(u.buffer == gone for u in i.uses)} - {walk.home[gone]}
        made.add(*(RecordStream(gone, user) for user in sorted(users)), Delete(gone))
    made.join()
    return made.plan


# ---- rings ---------------------------------------------------------------------------------------------------


def ring(rng: random.Random) -> Plan:
    """One stream fills a ring of two buffers, another one works on what is full."""
    fills, works = rng.choice((("left", MAIN), ("left", "right"), (MAIN, "right")))
    buffer, freed, full = "ring[i % 2]", "freed[i % 2]", rng.choice(("full", "full[i % 2]"))
    body: list[Step] = [WaitEvent(freed, fills)]
    body.append(_launch(rng.choice(("scale", "shift")), "x", buffer, stream=fills))
    if rng.random() < 0.5:
        body += [WaitStream(works, fills)]
    else:
        body += [Record(full, fills), WaitEvent(full, works)]
    body += [_launch("accumulate", buffer, "total", stream=works), Record(freed, works)]
    if rng.random() < 0.25:  # the same without overlap
        body[0] = WaitStream(fills, works)
        del body[-1]
    rows = Allocate("ring", "torch.empty((2, {n}), device={first}.device)", ring=True)
    steps: list[Step] = [rows, Allocate("total", ZEROS, filled=True)]
    steps += [WaitStream(stream, MAIN) for stream in (fills, works) if stream != MAIN]
    steps.append(Loop(tuple(body)))
    steps += [WaitStream(MAIN, stream) for stream in (fills, works) if stream != MAIN]
    return Plan(("x",), tuple(steps), ("total",), rng.choice((None, 512)))


# ---- graphs --------------------------------------------------------------------------------------------------


def graphs(rng: random.Random) -> Plan:
    """A step that is captured once and replayed in a loop: its input by a copy, a number from memory."""
    side = rng.choice(("", "", "left"))
    stream = side or MAIN
    source, collects, has_cell = rng.random() < 0.6, rng.random() < 0.5, rng.random() < 0.5
    handed = ("x", "out", "following")[: 3 if source else 2]
    steps: list[Step] = [Allocate("scratch", EMPTY)]
    if has_cell:
        steps.append(Allocate("cell", "torch.ones(1, device={first}.device)", filled=True))
    inner: list[Step] = [_launch("scale_by_cell", "x", "cell", "scratch") if has_cell else _scaled(rng)]
    inner.append(rng.choice((_launch("add", "x", "scratch", "out"), _launch("scale", "scratch", "out"))))
    if rng.random() < 0.3:
        inner[0:0] = [Allocate("pooled", EMPTY), _launch("shift", "x", "pooled")]
        inner.append(_launch("accumulate", "pooled", "out"))
    steps.append(Capture("graph", tuple(inner)))
    second = rng.random() < 0.35
    if second:
        steps += [Allocate("result", ZEROS, filled=True)]
        steps.append(Capture("later", (_launch("accumulate", "out", "result"),)))
    body: list[Step] = [Update("x", "copy_", "following")] * source
    body += [WaitStream(stream, MAIN)] * bool(side) + [Replay("graph", stream)]
    body += [WaitStream(MAIN, stream)] * bool(side)
    body += [Replay("later")] * second + [Update("cell", "add_(1.0)")] * has_cell
    body += [Keep("results", "out", copied=True)] * collects
    steps.append(Loop(tuple(body)))
    returned = ("results",) if collects else ("result",) if second else ("out",)
    return Plan(handed, tuple(steps), returned, rng.choice((None, 1024)))


def _scaled(rng: random.Random) -> Launch:
    return _launch(rng.choice(("scale", "shift")), "x", "scratch", number=rng.choice(("0.5", "3.0")))


# ---- dependent launches --------------------------------------------------------------------------------------


def chain(rng: random.Random) -> Plan:
    """Launches that start before the one in front of them has ended, and wait for it in their kernels."""
    stream = rng.choice((MAIN, MAIN, "left"))
    steps: list[Step] = []
    launches = [_launch(rng.choice(("scale", "shift")), "x", "t0", stream=stream)]
    made = ["t0"]
    for number in range(1, rng.randint(2, 4)):
        out, last = f"t{number}", made[-1]
        wait = rng.choice((Wait.FIRST, Wait.FIRST, Wait.PREFETCH))
        if wait is Wait.PREFETCH:  # no launch writes the weight
            launch = _launch(rng.choice(("add", "multiply")), last, "weight", out, wait=wait)
        elif len(made) > 1 and rng.random() < 0.5:
            launch = _launch("add", made[-2], last, out, wait=wait)
        elif len(made) == 1 and rng.random() < 0.3:
            launch = _launch("shift", "weight", out, wait=wait)  # has nothing to do with the launch before
        else:
            launch = _launch(rng.choice(("scale", "shift")), last, out, wait=wait)
        launches.append(replace(launch, stream=stream, dependent=True))
        made.append(out)
    steps += [Allocate(name, EMPTY) for name in made]
    side = stream != MAIN
    steps += [WaitStream(stream, MAIN)] * side + launches + [WaitStream(MAIN, stream)] * side
    steps += [HostWait()] * (rng.random() < 0.5)
    return Plan(("x", "weight"), tuple(steps), (made[-1],), rng.choice((None, 2048)))


# ---- copies of the host --------------------------------------------------------------------------------------


def copies(rng: random.Random) -> Plan:
    """Batches go to the device through one pinned buffer, and a result comes back through another."""
    stream = rng.choice((MAIN, "left"))
    side = stream != MAIN
    device = "torch.empty({n}, device={first}.device)"
    steps: list[Step] = [
        Allocate("staging", "torch.empty({n}, pin_memory=True)", pinned=True),
        Allocate("batch", device),
    ]
    body: list[Step] = [HostWait(event="copied"), HostTouch("staging", write=True)]
    body += [WaitStream(stream, MAIN)] * side
    body += [Update("batch", "copy_", "staging", stream, asynchronous=True), Record("copied", stream)]
    body += [WaitStream(MAIN, stream)] * side + [_launch("accumulate", "batch", "x")]
    steps.append(Loop(tuple(body)))
    if rng.random() < 0.5:
        steps += [
            Allocate("fetched", "torch.empty({n}, pin_memory=True)", pinned=True),
            Update("fetched", "copy_", "x", asynchronous=True),
            rng.choice((HostWait(), HostWait(MAIN))),
            HostTouch("fetched", write=False),
        ]
        return Plan(("x",), tuple(steps), ("values",), 512)
    return Plan(("x",), (*steps, HostWait()), ("x",), 512)


FAMILIES: Sequence[Family] = (streams, ring, graphs, chain, copies)
